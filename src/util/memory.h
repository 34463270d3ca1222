// Memory of the machine and of this process.
#pragma once

#include <cstdint>
#include <exception>
#include <string>

namespace crais {

/// Bytes as "512 MiB", "1.5 GiB" or "2.0 TiB".
std::string size_text(int64_t bytes);

/// Memory that this process may use: of the machine, or where `ulimit -v` or a container sets less.
int64_t physical_memory();

/// Throws Error kArgument ("`what` take 1.5 TiB, and this machine has 16.0 GiB ...") if `bytes`
/// exceed the memory of this machine. Call it with the sizes that a user gave before you allocate.
void require_memory(double bytes, const std::string& what);

/// Peak resident memory of this process so far, bytes.
int64_t peak_memory();

/// True if `error` is a failed allocation on the CPU or on a device.
bool is_out_of_memory(const std::exception& error);

}  // namespace crais
