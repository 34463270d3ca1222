// How much memory this process has.
#pragma once

#include <cstdint>
#include <exception>
#include <string>

namespace crais {

/// Bytes as "512 MiB", "1.5 GiB" or "2.0 TiB".
std::string size_text(int64_t bytes);

/// What this machine has, bytes.
int64_t physical_memory();

/// Throws Error kArgument, "`what` take 1.5 TiB, and this machine has 16.0 GiB ...", where
/// something of that size cannot be held. Sizes that a user asks for pass here before they are
/// allocated.
void require_memory(double bytes, const std::string& what);

/// The most resident memory this process has had so far, bytes.
int64_t peak_memory();

/// True if an allocation failed, on the CPU or a device.
bool is_out_of_memory(const std::exception& error);

}  // namespace crais
