// What eval-loglik says at the end.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "evaluation/summary.h"
#include "programs/eval_loglik/rate_distortion.h"
#include "report/html.h"
#include "report/run_report.h"
#include "report/table.h"

namespace crais {

struct EvalResults : RunResults {
  int64_t num_pixels = 0;
  double bits_offset = 0.0;  // bits a dimension that make a density one of the stored numbers
  at::Tensor thumbnails;     // a row an image, in the order of chunks; undefined: no pictures
  std::optional<CurveUnits> curve = {};  // of curves
};

/// One method over all images and repeats.
struct LikelihoodSummary : MethodSummary {
  MeanEstimate log_likelihood;
  double bits_per_dim = 0.0;
};

std::vector<LikelihoodSummary> summarise(const EvalResults& results);

/// Of the methods, and of the bounds where there are two.
std::vector<Table> result_tables(const std::vector<LikelihoodSummary>& methods,
                                 const std::optional<CurveUnits>& curve = {});

/// How to read them.
extern const std::string kReading;

/// The report of finished results, without `run` and `progress`. `summary` says what is known
/// beside them; `about` is a line for people below the tables.
RunReport report_of(EvalResults results, nlohmann::json summary, const std::string& about = "");

/// report.html of finished results; `summary` is what summary.json says.
std::string page_of(const EvalResults& results, const std::vector<LikelihoodSummary>& methods,
                    const nlohmann::json& summary);

/// The model's file, as a summary.json has it; "" where it does not say.
std::string model_path(const nlohmann::json& summary);

/// Image `row` of the results with lines below it; `number` is what its data set calls it.
GalleryItem gallery_item(const at::Tensor& thumbnails, int64_t row, int64_t number,
                         const std::vector<std::string>& lines);

}  // namespace crais
