// The comparison of models: tables, text, files and a page.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "programs/eval_loglik/report.h"
#include "report/estimates.h"

namespace crais {

struct ComparedModel {
  std::string label;   // "A"
  std::string name;    // its folder or file, as on the command line
  nlohmann::json run;  // its run.json
  EvalResults results;
};

/// Throws Error kArgument that names the difference, unless both have the same images and the same
/// kind of p(x).
void check_comparable(const ComparedModel& first, const ComparedModel& other);

/// Compares each of at least two comparable models with every other. Prints text and tables on
/// stdout. If `folder` is not empty, writes comparison.json, per_image.csv and report.html there,
/// each atomically. Throws Error kArgument if the models have no method in common.
void report_comparison(std::vector<ComparedModel> models, const std::string& folder, Format format);

}  // namespace crais
