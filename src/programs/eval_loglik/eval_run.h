// An evaluation of images under a model, for the program and for Python.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/array_file.h"
#include "evaluation/chunks.h"
#include "evaluation/run_problems.h"
#include "programs/eval_loglik/images.h"
#include "programs/eval_loglik/model.h"
#include "programs/eval_loglik/settings.h"
#include "report/run_report.h"

namespace crais {

/// Settings combined with their model and images.
class EvalRun {
 public:
  /// `images` replace the file of `--data`. Throws Error as choose_images does, and kArgument if
  /// settings, model and images exclude each other.
  EvalRun(EvalSettings settings, EvalModel model, const std::optional<ArrayFile>& images = {});

  /// Lines that the user should read before the run; "" if there are none.
  const std::string& notice() const { return notice_; }
  const EvalImages& images() const { return images_; }

  /// The settings that determine the results, to the last bit on one kind of device.
  nlohmann::json record() const;

  /// Estimates, and writes the files that the settings ask for. If the observer stops the run, the
  /// report holds the finished chunks.
  RunReport run(RunObserver& observer) const;
  /// A description of what `run` would do and of its cost: lines of text.
  std::string describe() const;

 private:
  /// The reasons why the numbers may mislead.
  std::vector<std::string> found_warnings() const;
  std::string about_model() const;
  at::Tensor thumbnails_of_results(const RunResults& results) const;
  std::shared_ptr<const Target> posterior_of(int64_t begin, int64_t end) const;
  /// The number of the control's images; 0 sets the reason, `no_control_`.
  int64_t choose_control();
  ProblemSource problems() const;

  EvalSettings settings_;
  EvalModel model_;
  std::string notice_;
  std::vector<std::string> warnings_;
  EvalImages images_;
  Estimator estimator_;
  std::string no_control_;
  Chunks chunks_{};
};

/// Opens the model, reports how its file and its images were read, and evaluates with a progress
/// line. If the settings ask for a dry run, describes it on stdout and returns nothing. Throws
/// Error as EvalRun and complete_run do.
std::optional<RunReport> evaluate_model(const EvalSettings& settings);

}  // namespace crais
