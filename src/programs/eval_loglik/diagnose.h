// What is wrong with an evaluation, and what would mend it.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "programs/eval_loglik/report.h"

namespace crais {

/// Something that a reader of the results should know or mend.
struct Finding {
  std::string what;             // a sentence
  std::vector<int64_t> images;  // in their data set; empty: the whole run
  std::string remedy;           // a sentence, with the flags
  double evaluations = 0.0;     // an image, of a run with the remedy; 0: not known
};

/// In words, with the first of its images.
std::string sentence_of(const Finding& finding);

/// The findings on each method of a run with these settings (as run.json has them), the worst first
/// within a method. Empty where all is well. Throws Error kData
/// where settings are missing.
std::vector<Finding> diagnose(const EvalResults& results, const nlohmann::json& run);

}  // namespace crais
