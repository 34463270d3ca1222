// The commands of eval-loglik that read results. Each returns the exit code.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "cli/command_line.h"
#include "programs/eval_loglik/report.h"

namespace crais {

/// `eval-loglik merge DIR... --out DIR`: joins the shards of one evaluation. Throws Error kData for
/// gaps, duplicates and folders of another run.
int merge_evaluations(const CommandLine& cli);

/// `eval-loglik compare A B [C ...]`. Throws Error: kArgument for fewer than two folders or
/// different images; kData for damaged or unfinished folders.
int compare_evaluations(const CommandLine& cli);

/// `eval-loglik diagnose DIR`. Returns 0 if there are no findings, else 1. Throws Error as
/// read_evaluation does.
int diagnose_evaluation(const CommandLine& cli);

/// The findings on each method of a run with these settings (in the form of run.json), an object
/// each: "what"; "images" in their data set, or [] for the whole run; "remedy", with the flags; and
/// "evaluations_per_image" of a run with the remedy, or null. Empty if there is no problem. Throws
/// Error kData if settings are missing.
nlohmann::json diagnose(const EvalResults& results, const nlohmann::json& run);

/// The finding as a sentence, with the first of its images.
std::string sentence_of(const nlohmann::json& finding);

}  // namespace crais
