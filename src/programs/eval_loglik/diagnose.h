// Problems of an evaluation, and remedies for them.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "programs/eval_loglik/report.h"

namespace crais {

/// A problem that a reader of the results should know or fix.
struct Finding {
  std::string what;             // a sentence
  std::vector<int64_t> images;  // in their data set; empty: the whole run
  std::string remedy;           // a sentence, with the flags
  double evaluations = 0.0;     // for each image of a run with the remedy; 0: unknown
};

/// The finding as a sentence, with the first of its images.
std::string sentence_of(const Finding& finding);

/// The findings on each method of a run with these settings (in the form of run.json), worst first
/// within a method. Empty if there is no problem. Throws Error kData if settings are missing.
std::vector<Finding> diagnose(const EvalResults& results, const nlohmann::json& run);

}  // namespace crais
