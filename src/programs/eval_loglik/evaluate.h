// One model, one command line: evaluated.
#pragma once

#include <functional>
#include <optional>

#include "programs/eval_loglik/eval_run.h"
#include "programs/eval_loglik/settings.h"
#include "report/run_report.h"

namespace crais {

/// Opens the model, tells the user how its file and its images were understood, and evaluates
/// under a progress line. Nothing where the settings ask for a dry run, which is described on
/// stdout. Throws Error as EvalRun and complete_run do.
/// `check`, where given, may refuse the run before it begins.
std::optional<RunReport> evaluate_model(const EvalSettings& settings,
                                        const std::function<void(const EvalRun&)>& check = {});

}  // namespace crais
