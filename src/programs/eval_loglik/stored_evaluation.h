// A result folder of eval-loglik, read from disk.
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

}  // namespace crais
