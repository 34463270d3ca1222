// How much memory this process has.
#pragma once

#include <cstdint>
#include <exception>
#include <string>

namespace crais {

/// Bytes as "512 MiB" or "1.5 GiB".
std::string size_text(int64_t bytes);

/// The most resident memory this process has had so far, bytes.
int64_t peak_memory();

/// True if an allocation failed, on the CPU or a device.
bool is_out_of_memory(const std::exception& error);

}  // namespace crais
