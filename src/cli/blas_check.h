// Whether LibTorch's BLAS multiplies matrices as fast as this processor can: often it does not.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace crais {

/// Float32 operations a second of one core, in units of 10^9.
struct BlasSpeed {
  double sgemm_gflops = 0.0;  // LibTorch's product of two matrices of 256 x 256
  double peak_gflops = 0.0;   // multiply-adds in registers

  /// Below 35% of the peak.
  bool is_slow() const { return sgemm_gflops < 0.35 * peak_gflops; }
};

/// Takes about 20 ms.
BlasSpeed measure_blas();

/// What is in `folder` for this processor, LibTorch and BLAS, else measured and kept there. A slow
/// BLAS is measured each time: it may have been a slow moment. Where the folder cannot be read or
/// written, or is not given, nothing is kept, silently.
BlasSpeed blas_speed(const std::optional<std::filesystem::path>& folder);

/// $XDG_CACHE_HOME/crais, else $HOME/.cache/crais; none without either.
std::optional<std::filesystem::path> cache_folder();

/// What mends a slow BLAS, given the file it is in (its links followed) and the fastest evaluator
/// here, "fused-avx512", ...
std::string blas_remedy(const std::string& library, const std::string& evaluator);

/// One line on stderr if the BLAS is slow. For programs about to spend their time in it.
void warn_of_slow_blas(const std::string& program);

}  // namespace crais
