// train-vae for Python.
#include "programs/train_vae/train_vae.h"

#include <nlohmann/json.hpp>

#include "module.h"

namespace crais {
namespace {

std::string text_of(const EpochMetrics& metrics) { return nlohmann::json(metrics).dump(); }

class PythonTraining : public TrainingObserver {
 public:
  explicit PythonTraining(const py::object& run) : run_(run) {}

  void progress(int64_t done, int64_t total, const std::string& status) override {
    stopped_ = !told([&] { run_.attr("show")(done, total, status); }) || stopped_;
  }
  void epoch(const EpochMetrics& metrics) override {
    stopped_ = !told([&] { run_.attr("epoch")(text_of(metrics)); }) || stopped_;
  }
  void notice(const std::string& line) override {
    from_python([&] { run_.attr("warn")(line); });
  }
  bool stop() override {
    stopped_ = !told([] {}) || stopped_ || interrupted();
    return stopped_;
  }

 private:
  const py::object& run_;
  bool stopped_ = false;
};

/// The checkpoint's path, the metrics of each epoch, and which is the best.
std::tuple<std::string, std::vector<std::string>, int64_t> run_training(const py::dict& options,
                                                                        const py::object& run) {
  PythonTraining observer(run);
  const FlagValues values = values_of(options);
  const Training done = stoppable(run, [&] {
    const py::gil_scoped_release no_gil;
    return train_vae(train_vae_options({train_vae_synopsis(), {}, values}), observer);
  });
  std::vector<std::string> epochs;
  for (const EpochMetrics& metrics : done.epochs) epochs.push_back(text_of(metrics));
  return {done.checkpoint.string(), epochs, done.best.epoch};
}

}  // namespace

void bind_train_vae(py::module_& m) { m.def("train_vae", &run_training); }

}  // namespace crais
