// report.html of an evaluation.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "programs/eval_loglik/report.h"
#include "report/html.h"

namespace crais {

/// The page of finished results; `summary` is what summary.json says.
std::string page_of(const EvalResults& results, const std::vector<LikelihoodSummary>& methods,
                    const nlohmann::json& summary);

/// The model's file, as a summary.json has it; "" where it does not say.
std::string model_path(const nlohmann::json& summary);

/// Image `row` of the results with lines below it; `number` is what its data set calls it.
GalleryItem gallery_item(const at::Tensor& thumbnails, int64_t row, int64_t number,
                         const std::vector<std::string>& lines);

}  // namespace crais
