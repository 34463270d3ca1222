#include "cli/blas_check.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>
#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "kernels/fused_decoder.h"
#include "util/error.h"
#include "util/files.h"
#include "util/format.h"
#include "util/version.h"

namespace crais {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

std::string whole(const char* path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The first line of `text` with `word` in it.
std::string line_with(const std::string& text, const std::string& word) {
  const size_t at = text.find(word);
  if (at == std::string::npos) return "";
  const size_t begin = text.rfind('\n', at) + 1;  // npos + 1 is 0
  return text.substr(begin, text.find('\n', at) - begin);
}

/// The file that matrix products come from; "" where it cannot be told.
std::string blas_library() {
  Dl_info info{};
  const void* product = ::dlsym(RTLD_DEFAULT, "sgemm_");
  if (product == nullptr || ::dladdr(product, &info) == 0 || info.dli_fname == nullptr) return "";
  std::error_code failed;  // Debian's libblas.so.3 is a link to one of several
  const auto path = std::filesystem::canonical(info.dli_fname, failed);
  return failed ? info.dli_fname : path.string();
}

/// Everything the speed depends on.
std::string circumstances() {
  std::string text = line_with(whole("/proc/cpuinfo"), "model name") + "\n" + libtorch_version() +
                     "\n" + blas_library();
  for (const char* name : {"OPENBLAS_CORETYPE", "MKL_ENABLE_INSTRUCTIONS", "MKL_CBWR"})
    if (const char* value = std::getenv(name)) text += std::string("\n") + name + "=" + value;
  return text;
}

std::optional<BlasSpeed> read_speed(const std::filesystem::path& path) {
  std::ifstream file(path);
  const json found = json::parse(file, nullptr, /*allow_exceptions=*/false);
  const auto is_positive = [&](const char* key) {
    return found.is_object() && found.contains(key) && found[key].is_number() &&
           found[key].get<double>() > 0;
  };
  if (!is_positive("sgemm_gflops") || !is_positive("peak_gflops")) return {};
  return BlasSpeed{found["sgemm_gflops"], found["peak_gflops"]};
}

void keep_speed(const std::filesystem::path& path, const BlasSpeed& speed) {
  try {
    std::filesystem::create_directories(path.parent_path());
    write_file_atomic(
        path,
        json({{"sgemm_gflops", speed.sgemm_gflops}, {"peak_gflops", speed.peak_gflops}}).dump());
  } catch (const Error&) {
  } catch (const std::filesystem::filesystem_error&) {
  }
}

}  // namespace

BlasSpeed measure_blas() {
  const c10::NoGradGuard no_grad;
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  constexpr int64_t kSize = 256;
  const at::Tensor a = at::full({kSize, kSize}, 0.5F), b = at::full({kSize, kSize}, 0.5F);
  at::Tensor product = at::empty_like(a);
  at::mm_out(product, a, b);  // the first one sets the BLAS up
  BlasSpeed speed;
  // The fastest of many short ones: other programs slow down some.
  for (const auto end = Clock::now() + std::chrono::milliseconds(12); Clock::now() < end;) {
    const auto start = Clock::now();
    at::mm_out(product, a, b);
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    speed.sgemm_gflops = std::max(speed.sgemm_gflops, 2e-9 * kSize * kSize * kSize / seconds);
  }
  at::set_num_threads(threads);
  speed.peak_gflops = 1e-9 * peak_flops(8);
  return speed;
}

std::optional<std::filesystem::path> cache_folder() {
  // The XDG specification wants relative paths ignored.
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && *cache == '/') return std::filesystem::path(cache) / "crais";
  const char* home = std::getenv("HOME");
  if (home != nullptr && *home == '/') return std::filesystem::path(home) / ".cache" / "crais";
  return {};
}

BlasSpeed blas_speed(const std::optional<std::filesystem::path>& folder) {
  if (!folder) return measure_blas();
  const auto path = *folder / ("blas-" + sha256(circumstances()).substr(0, 16) + ".json");
  if (const auto known = read_speed(path); known && !known->is_slow()) return *known;
  const BlasSpeed speed = measure_blas();
  if (!speed.is_slow()) keep_speed(path, speed);
  return speed;
}

std::string blas_remedy(const std::string& library, const std::string& evaluator) {
  if (library.find("openblas") != std::string::npos) {
    const std::string core = evaluator == "fused-avx512" ? "SkylakeX"
                             : evaluator == "fused-avx2" ? "Haswell"
                                                         : "(the processor's name)";
    return "OpenBLAS may have mistaken the processor: set OPENBLAS_CORETYPE=" + core +
           " in the environment";
  }
  if (library.find("libblas") != std::string::npos)
    return "this is the reference BLAS: install an optimised one (Debian: libopenblas0-openmp)";
  return "another build of LibTorch may have a better one";
}

void warn_of_slow_blas(const std::string& program) {
  const BlasSpeed speed = blas_speed(cache_folder());
  if (!speed.is_slow()) return;
  std::cerr << program << ": LibTorch multiplies matrices at " << fixed(speed.sgemm_gflops, 0)
            << " GFLOP/s of the " << fixed(speed.peak_gflops, 0) << " that a core here can do; "
            << blas_remedy(blas_library(), fastest_exact().name) << "\n";
}

}  // namespace crais
