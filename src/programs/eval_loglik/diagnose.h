// Problems of an evaluation, and remedies for them.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "programs/eval_loglik/report.h"

namespace crais {

/// The findings on each method of a run with these settings (in the form of run.json), an object
/// each: "what"; "images" in their data set, or [] for the whole run; "remedy", with the flags; and
/// "evaluations_per_image" of a run with the remedy, or null. Empty if there is no problem. Throws
/// Error kData if settings are missing.
nlohmann::json diagnose(const EvalResults& results, const nlohmann::json& run);

/// The finding as a sentence, with the first of its images.
std::string sentence_of(const nlohmann::json& finding);

}  // namespace crais
