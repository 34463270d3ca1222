// The commands of eval-loglik. Each returns the exit code.
#pragma once

#include <optional>

#include "programs/eval_loglik/eval_run.h"
#include "programs/eval_loglik/settings.h"

namespace crais {

/// Opens the model, reports how its file and its images were read, and evaluates with a progress
/// line. If the settings ask for a dry run, describes it on stdout and returns nothing. Throws
/// Error as EvalRun and complete_run do.
std::optional<RunReport> evaluate_model(const EvalSettings& settings);

/// `eval-loglik merge DIR... --out DIR`: joins the shards of one evaluation. Throws Error kData for
/// gaps, duplicates and folders of another run.
int merge_evaluations(const CommandLine& cli);

/// `eval-loglik compare A B [C ...]`: compares result folders, or models that it evaluates first
/// with the given flags. Throws Error: kArgument for fewer than two operands, flags without effect
/// on folders, or different images; kData for damaged or unfinished folders.
int compare_evaluations(const CommandLine& cli);

/// `eval-loglik diagnose DIR`. Returns 0 if there are no findings, else 1. Throws Error as
/// read_evaluation does.
int diagnose_evaluation(const CommandLine& cli);

}  // namespace crais
