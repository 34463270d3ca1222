// A result folder of eval-loglik, read back.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "cli/command_line.h"
#include "evaluation/result_store.h"
#include "programs/eval_loglik/report.h"

namespace crais {

/// What the folder holds, whole or a part of a run.
// The library of JSON declares that moving does not throw; what its body asserts is not read as so.
// NOLINTNEXTLINE(bugprone-exception-escape)
struct StoredEvaluation {
  nlohmann::json run;  // run.json
  RunShape shape;
  RunResults found;
  bool is_tuned = false;                     // there is a plan.json
  std::map<int64_t, at::Tensor> thumbnails;  // of each chunk; empty without pictures
};

/// Throws Error kArgument naming a flag that decides nothing where a `command` only reads results:
/// any but its `own`, --format and --quiet.
void refuse_flags_of_runs(const CommandLine& cli, const std::string& command,
                          std::set<std::string> own);

/// Throws Error kData for the run.json of a density.
void check_is_evaluation(const nlohmann::json& run, const std::filesystem::path& folder);

/// Throws Error: kNoInput, or kData naming what is damaged.
StoredEvaluation read_evaluation(const std::filesystem::path& folder);

/// What a run.json says of its chunks. Throws Error kData, which `source` begins.
RunShape shape_of(const nlohmann::json& run, const std::string& source);

/// The results of a whole run. Throws Error kData naming the first chunk that is missing, with
/// `advice`, or a plan that is.
EvalResults whole_results(StoredEvaluation evaluation, const std::string& folder,
                          const std::string& advice);

struct WholeEvaluation {
  nlohmann::json run;  // run.json
  EvalResults results;
};
/// Throws Error as both of these do.
WholeEvaluation read_whole_evaluation(const std::string& folder);

}  // namespace crais
