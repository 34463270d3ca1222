// The commands of eval-loglik that read result folders, and such folders.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "cli/command_line.h"
#include "evaluation/result_store.h"
#include "programs/eval_loglik/report.h"

namespace crais {

/// The content of the folder: a complete run or a part of one.
// The JSON library declares that a move does not throw, but clang-tidy sees its assertions.
// NOLINTNEXTLINE(bugprone-exception-escape)
struct StoredEvaluation {
  nlohmann::json run;  // run.json
  RunShape shape;
  EvalResults results;
  bool is_tuned = false;  // the folder has a plan.json
};

/// The folders that a command which only reads results has as operands. Throws Error kArgument for
/// less than `least` or more than `most`, and for a flag without effect: any flag but its `own`,
/// --format and --quiet.
std::vector<std::string> folders_of(const CommandLine& cli, const std::string& command,
                                    size_t least, size_t most, std::set<std::string> own = {});

/// Throws Error: kNoInput if a file is missing, kData that names the damaged part, or if the folder
/// is of estimate-logz.
StoredEvaluation read_evaluation(const std::filesystem::path& folder);

/// Throws Error kData that names a missing plan, or the first missing chunk followed by `advice`.
/// Separates the chunks of the control.
void check_whole(StoredEvaluation& evaluation, const std::string& folder,
                 const std::string& advice);

/// Reads a complete run. Throws Error as read_evaluation and check_whole do.
StoredEvaluation read_whole_evaluation(const std::string& folder);

// Each command returns the exit code.

/// `eval-loglik`: one of the commands below, or an evaluation.
int eval_loglik(int argc, char** argv);

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
