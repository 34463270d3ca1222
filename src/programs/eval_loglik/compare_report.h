// What a comparison of models says: tables, words, files and a page.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "programs/eval_loglik/report.h"
#include "report/estimates.h"

namespace crais {

struct ComparedModel {
  std::string label;   // "A"
  std::string name;    // its folder or file, as the user wrote it
  nlohmann::json run;  // its run.json
  EvalResults results;
};

/// Throws Error kArgument, saying in what they differ, unless both are of the same images and of
/// the same kind of p(x).
void check_comparable(const ComparedModel& first, const ComparedModel& other);

/// Compares each of at least two comparable models with every other: words and tables on stdout,
/// and, where there is a folder, comparison.json, per_image.csv and report.html in it, each whole
/// or not at all. Throws Error kArgument if they have no method in common.
void report_comparison(std::vector<ComparedModel> models, const std::string& folder, Format format);

}  // namespace crais
