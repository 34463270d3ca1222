// What a comparison of models says: tables, words, files and a page.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "evaluation/comparison.h"
#include "programs/eval_loglik/report.h"
#include "report/estimates.h"
#include "report/table.h"

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

class ComparisonReport {
 public:
  /// At least two models that are comparable. Throws Error kArgument if they have no method in
  /// common.
  explicit ComparisonReport(std::vector<ComparedModel> models);

  /// comparison.json, per_image.csv, report.html: each whole or not at all.
  void write(const std::string& folder) const;
  /// On stdout; `folder` holds the files ("": there are none).
  void print(const std::string& folder, Format format, int width) const;

 private:
  /// Two models by one method.
  struct Pair {
    std::string method;
    size_t a = 0, b = 0;  // places among the models
    Comparison comparison;
  };

  std::string difference_name(const Pair& pair) const;  // "A - B"
  std::string verdict(const Pair& pair) const;
  std::vector<std::string> warnings() const;
  Table models_table() const;
  Table pairs_table() const;
  std::vector<Table> matrices() const;
  nlohmann::json summary() const;
  std::string per_image_csv() const;
  std::string page() const;

  std::vector<ComparedModel> models_;
  std::vector<std::string> methods_;
  std::vector<std::vector<ImageEstimates>> estimates_;  // [method][model]
  std::vector<std::vector<MeanEstimate>> means_;        // [method][model]
  std::vector<Pair> pairs_;
  std::vector<int64_t> indices_;  // of the images, in their data set
};

}  // namespace crais
