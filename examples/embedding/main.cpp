// Inside a program of your own: progress, stopping between chunks, and going on later.
#include <crais/crais.h>

#include <cstdio>
#include <filesystem>

namespace {

class Observer : public crais::RunObserver {
 public:
  explicit Observer(int64_t stop_after) : stop_after_(stop_after) {}
  void begin(int64_t done, int64_t total) override {
    std::printf("%lld of %lld were done before\n", (long long)done, (long long)total);
  }
  void chunk(const crais::ChunkResult& result) override { done_ += result.indices.size(); }
  bool stop() override { return (int64_t)done_ >= stop_after_; }

 private:
  int64_t stop_after_;
  size_t done_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  const std::filesystem::path folder = argc > 1 ? argv[1] : "embedding-results";
  // Forty posteriors: N(0, 1) times the likelihood of one observation each, with noise of sd 0.5.
  const at::Tensor x = at::linspace(-2, 2, 40, at::kDouble);
  const crais::FunctionTarget target(
      {.num_problems = 40, .dim = 1}, [&](const at::Tensor& z, const at::Tensor& index) {
        const at::Tensor here = z.squeeze(-1), seen = x.index_select(0, index).unsqueeze(1);
        return -0.5 * here.square() - 0.5 * ((seen - here) / 0.5).square();
      });
  const crais::EstimateOptions options{.seed = 1, .chunk = 8};

  Observer first(16);
  crais::LogNormalizerRun run{.threads = 1, .observer = &first, .folder = folder, .name = "forty"};
  run.store.overwrite = true;
  try {
    crais::estimate_log_normalizer(target, options, run);
  } catch (const crais::Error& error) {
    if (error.kind() != crais::ErrorKind::kInterrupted) throw;
    std::printf("%s\n", error.what());
  }

  Observer rest(1000);
  run.observer = &rest;
  run.store = {.resume = true};
  const crais::Result resumed = crais::estimate_log_normalizer(target, options, run);
  const crais::Result at_once = crais::estimate_log_normalizer(target, options, {.threads = 2});
  const bool same = at::equal(resumed.value, at_once.value);
  std::printf("the same numbers as at once, to the bit: %s\n", same ? "yes" : "no");
  return same ? 0 : 1;
}
