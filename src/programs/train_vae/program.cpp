#include <cstdio>
#include <utility>

#include "programs/train_vae/train_vae.h"
#include "report/progress.h"
#include "util/format.h"
#include "util/interrupt.h"

namespace crais {
namespace {

/// A progress line on stderr. Ctrl-C stops before the next batch.
class TrainingProgress : public TrainingObserver {
 public:
  explicit TrainingProgress(bool is_quiet)
      : bar_({.label = "train-vae", .unit = "images", .enabled = !is_quiet}) {}

  void progress(int64_t done, int64_t total, const std::string& status) override {
    if (!std::exchange(is_begun_, true)) bar_.begin(done, total);
    bar_.update(done, status);
  }
  void notice(const std::string& line) override {
    std::fprintf(stderr, "train-vae: %s\n", line.c_str());
  }
  bool stop() override {
    if (!interrupted()) return false;
    lift_deadline();
    finish();
    return true;
  }
  void finish() { bar_.finish(); }

 private:
  ProgressLine bar_;
  bool is_begun_ = false;
};

}  // namespace

int train_vae(int argc, char** argv) {
  const TrainVaeOptions options = train_vae_options({train_vae_synopsis(), argc, argv});
  install_interrupt_handler();
  TrainingProgress progress(options.quiet);
  const Training done = train_vae(options, progress);
  progress.finish();
  std::printf("validation ELBO %s nats (epoch %lld of %lld)\ncheckpoint      %s\n",
              fixed(done.best.validation.elbo, 2).c_str(), static_cast<long long>(done.best.epoch),
              static_cast<long long>(done.epochs.size()), done.checkpoint.c_str());
  return 0;
}

}  // namespace crais
