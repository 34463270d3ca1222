#include "programs/estimate_logz/expectations.h"

#include <cmath>
#include <memory>

#include "io/csv.h"
#include "io/json.h"
#include "util/format.h"

namespace crais {
namespace {

using nlohmann::json;

std::unique_ptr<Expectation> make_expectation(const std::string& name) {
  return ExpectationRegistry::instance().make("expectation", name);
}

double output_value(const at::Tensor& column, size_t j) {
  return column[static_cast<int64_t>(j)].item<double>();
}

std::string error_text(double error) { return std::isnan(error) ? "-" : significant(error, 2); }

}  // namespace

void check_expectations(const std::vector<std::string>& names, const Target& target) {
  for (const auto& name : names) make_expectation(name)->outputs(target);
}

std::vector<TargetExpectation> expectations_of(const RunResults& results,
                                               const std::vector<std::string>& names,
                                               const Target& target) {
  std::vector<TargetExpectation> all;
  all.reserve(names.size());
  for (const MethodTable& table : tables(results)) {
    for (const auto& name : names) {
      std::vector<ExpectationSums> parts;
      for (const auto& [number, chunk] : results.chunks)
        for (const ChunkRun& run : chunk.runs)
          if (run.method == table.method) parts.push_back(run.expectations.at(name));
      const auto function = make_expectation(name);
      all.push_back(
          {table.method, name, function->outputs(target), pooled(parts), function->truth(target)});
    }
  }
  return all;
}

json to_json(const std::vector<TargetExpectation>& expectations) {
  json list = json::array();
  for (const TargetExpectation& e : expectations) {
    json outputs = json::array();
    for (size_t j = 0; j < e.outputs.size(); ++j)
      outputs.push_back(
          {{"output", e.outputs[j]},
           {"mean", json_number(output_value(e.estimate.mean, j))},
           {"std_error", json_number(output_value(e.estimate.std_error, j))},
           {"variance", json_number(output_value(e.estimate.variance, j))},
           {"variance_std_error", json_number(output_value(e.estimate.variance_std_error, j))},
           {"truth", e.truth ? json_number(output_value(*e.truth, j)) : json()}});
    list.push_back({{"method", e.method},
                    {"expectation", e.name},
                    {"replicates", e.estimate.replicates},
                    {"particles", e.estimate.particles},
                    {"ess", json_number(e.estimate.ess)},
                    {"error_from", to_string(e.estimate.from)},
                    {"outputs", std::move(outputs)}});
  }
  return list;
}

std::string expectations_csv(const std::vector<TargetExpectation>& expectations) {
  CsvWriter csv({"method", "expectation", "output", "mean", "std_error", "variance",
                 "variance_std_error", "truth", "error_from", "replicates", "particles", "ess"});
  for (const TargetExpectation& e : expectations)
    for (size_t j = 0; j < e.outputs.size(); ++j)
      csv.add_row({e.method, e.name, e.outputs[j], output_value(e.estimate.mean, j),
                   output_value(e.estimate.std_error, j), output_value(e.estimate.variance, j),
                   output_value(e.estimate.variance_std_error, j),
                   e.truth ? CsvCell(output_value(*e.truth, j)) : CsvCell(""),
                   to_string(e.estimate.from), e.estimate.replicates, e.estimate.particles,
                   e.estimate.ess});
  return csv.text();
}

Table expectation_table(const TargetExpectation& e) {
  std::vector<std::string> headers = {"of", "mean", "SE"};
  if (e.truth) headers.insert(headers.end(), {"truth", "z"});
  headers.insert(headers.end(), {"variance", "its SE"});
  Table table(headers, "Under the target: " + e.name + ", by " + e.method);
  for (size_t j = 0; j < e.outputs.size(); ++j) {
    const double mean = output_value(e.estimate.mean, j),
                 error = output_value(e.estimate.std_error, j);
    std::vector<std::string> row = {e.outputs[j], fixed(mean, 4), error_text(error)};
    if (e.truth) {
      const double z = (mean - output_value(*e.truth, j)) / error;
      row.insert(row.end(),
                 {fixed(output_value(*e.truth, j), 4), std::isfinite(z) ? fixed(z, 1) : "-"});
    }
    row.insert(row.end(), {fixed(output_value(e.estimate.variance, j), 4),
                           error_text(output_value(e.estimate.variance_std_error, j))});
    table.add_row(row);
  }
  return table;
}

std::string reading_of(const ExpectationEstimate& e) {
  const std::string all = with_commas(e.particles) + " particles in " + with_commas(e.replicates) +
                          (e.replicates == 1 ? " replicate" : " replicates") +
                          ", effective fraction of their weights " + fixed(e.ess, 3);
  switch (e.from) {
    case ErrorFrom::kParticles:
      return all + "; SE by the delta method over particles.";
    case ErrorFrom::kReplicates:
      return all +
             "; resampling made particles depend on each other: SE by the delta method over "
             "replicates.";
    case ErrorFrom::kNothing:
      break;
  }
  return all +
         "; there is no SE: particles that were resampled depend on each other, and there is one "
         "replicate of them. Ask for more --problems.";
}

}  // namespace crais
