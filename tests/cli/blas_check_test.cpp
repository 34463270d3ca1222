#include "cli/blas_check.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>

#include "kernels/fused_decoder.h"
#include "support/temporary_folder.h"

namespace crais {
namespace {

using testing::TemporaryFolder;

std::filesystem::path only_file(const std::filesystem::path& folder) {
  return std::filesystem::directory_iterator(folder)->path();
}

TEST(BlasCheck, MeasuresBothInOneUnit) {
  const BlasSpeed speed = measure_blas();
  EXPECT_GT(speed.sgemm_gflops, 0.2);
  EXPECT_GT(speed.peak_gflops, 2.0);
  // A core does at most 64 operations a cycle and no more than 6e9 cycles a second.
  EXPECT_LT(speed.peak_gflops, 64 * 6.0);
  EXPECT_LT(speed.sgemm_gflops, 1.5 * speed.peak_gflops);
}

TEST(BlasCheck, LeavesTheNumberOfThreads) {
  const int before = at::get_num_threads();
  at::set_num_threads(2);
  measure_blas();
  EXPECT_EQ(at::get_num_threads(), 2);
  at::set_num_threads(before);
}

TEST(BlasCheck, EveryKernelCountsItsMultiplyAdds) {
  for (const FusedKernel* kernel : available_kernels())
    EXPECT_EQ(kernel->multiply_adds(30), 3 * kernel->multiply_adds(10)) << kernel->name;
}

TEST(BlasCheck, SlowIsBelowAThirdOrSo) {
  EXPECT_TRUE((BlasSpeed{33, 155}).is_slow());
  EXPECT_FALSE((BlasSpeed{120, 275}).is_slow());
}

TEST(BlasCheck, KeepsAGoodFigureAndReadsItAgain) {
  const TemporaryFolder folder;
  const auto cache = folder.path() / "deep" / "crais";
  if (blas_speed(cache).is_slow()) GTEST_SKIP() << "the BLAS here is slow";
  const auto file = only_file(cache);
  std::ofstream(file) << R"({"sgemm_gflops": 90.25, "peak_gflops": 100})";
  EXPECT_EQ(blas_speed(cache).sgemm_gflops, 90.25);
}

TEST(BlasCheck, MeasuresASlowOrSpoiltFigureAgain) {
  const TemporaryFolder folder;
  if (blas_speed(folder.path()).is_slow()) GTEST_SKIP() << "the BLAS here is slow";
  const auto file = only_file(folder.path());
  for (const char* content :
       {R"({"sgemm_gflops": 1.5, "peak_gflops": 1000000})", "", "[1]", R"({"sgemm_gflops": "x"})",
        R"({"sgemm_gflops": -1, "peak_gflops": 0})"}) {
    std::ofstream(file) << content;
    EXPECT_LT(blas_speed(folder.path()).peak_gflops, 1000) << content;
  }
}

TEST(BlasCheck, DoesWithoutACache) {
  EXPECT_GT(blas_speed({}).peak_gflops, 0);
  EXPECT_GT(blas_speed("/proc/no/such/folder").peak_gflops, 0);
}

TEST(BlasCheck, CacheFolderFollowsTheEnvironment) {
  const char* home = std::getenv("HOME");
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const std::optional<std::string> home_before =
      home ? std::optional<std::string>(home) : std::nullopt;
  const std::optional<std::string> cache_before =
      cache ? std::optional<std::string>(cache) : std::nullopt;
  setenv("HOME", "/home/somebody", 1);
  setenv("XDG_CACHE_HOME", "/elsewhere", 1);
  EXPECT_EQ(cache_folder(), "/elsewhere/crais");
  setenv("XDG_CACHE_HOME", "relative", 1);
  EXPECT_EQ(cache_folder(), "/home/somebody/.cache/crais");
  unsetenv("XDG_CACHE_HOME");
  EXPECT_EQ(cache_folder(), "/home/somebody/.cache/crais");
  unsetenv("HOME");
  EXPECT_FALSE(cache_folder());
  if (home_before) setenv("HOME", home_before->c_str(), 1);
  if (cache_before) setenv("XDG_CACHE_HOME", cache_before->c_str(), 1);
}

TEST(BlasCheck, RemedyFitsWhatIsLoaded) {
  const std::string openblas = "/usr/lib/x86_64-linux-gnu/openblas-openmp/libblas.so.3";
  EXPECT_NE(blas_remedy(openblas, "fused-avx512").find("OPENBLAS_CORETYPE=SkylakeX"),
            std::string::npos);
  EXPECT_NE(blas_remedy(openblas, "fused-avx2").find("OPENBLAS_CORETYPE=Haswell"),
            std::string::npos);
  EXPECT_NE(blas_remedy("/usr/lib/x86_64-linux-gnu/blas/libblas.so.3.11.0", "fused-avx2")
                .find("reference BLAS"),
            std::string::npos);
  EXPECT_NE(blas_remedy("/x/libtorch_cpu.so", "fused-avx2").find("another build"),
            std::string::npos);
}

}  // namespace
}  // namespace crais
