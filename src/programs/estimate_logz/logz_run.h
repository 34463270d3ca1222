// An estimation of a target's log normaliser, for the program and for Python.
#pragma once

#include <memory>
#include <string>

#include "core/target.h"
#include "evaluation/run_problems.h"
#include "programs/estimate_logz/settings.h"
#include "report/run_report.h"

namespace crais {

/// The registered target that the settings name.
std::shared_ptr<const Target> named_target(const LogzSettings& settings);

/// Settings that have met their target.
class LogzRun {
 public:
  /// Throws Error kArgument where settings and target exclude each other.
  LogzRun(LogzSettings settings, std::shared_ptr<const Target> target);

  /// What the user should hear before: lines; "" for nothing.
  std::string notice() const;
  /// Estimates, and writes the files that the settings ask for. Where the observer stopped it, the
  /// report has the finished chunks.
  RunReport run(RunObserver& observer) const;

 private:
  LogzSettings settings_;
  std::shared_ptr<const Target> target_;
  Estimator estimator_;
};

}  // namespace crais
