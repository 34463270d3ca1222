#include "programs/estimate_logz/expectations.h"

#include <cmath>
#include <memory>

#include "io/csv.h"
#include "io/json.h"
#include "report/estimates.h"
#include "util/format.h"

namespace crais {
namespace {

using nlohmann::json;

std::unique_ptr<Expectation> make_expectation(const std::string& name) {
  return ExpectationRegistry::instance().make("expectation", name);
}

/// The numbers of output j.
struct Output {
  const std::string& name;
  double mean, std_error, variance, variance_std_error;
  std::optional<double> truth;

  Output(const TargetExpectation& e, size_t j)
      : name(e.outputs[j]),
        mean(value(e.estimate.mean, j)),
        std_error(value(e.estimate.std_error, j)),
        variance(value(e.estimate.variance, j)),
        variance_std_error(value(e.estimate.variance_std_error, j)) {
    if (e.truth) truth = value(*e.truth, j);
  }
  static double value(const at::Tensor& column, size_t j) {
    return column[static_cast<int64_t>(j)].item<double>();
  }
};

std::vector<Output> outputs_of(const TargetExpectation& e) {
  std::vector<Output> outputs;
  for (size_t j = 0; j < e.outputs.size(); ++j) outputs.emplace_back(e, j);
  return outputs;
}

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
    for (const Output& o : outputs_of(e))
      outputs.push_back({{"output", o.name},
                         {"mean", json_number(o.mean)},
                         {"std_error", json_number(o.std_error)},
                         {"variance", json_number(o.variance)},
                         {"variance_std_error", json_number(o.variance_std_error)},
                         {"truth", json_number(o.truth)}});
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
    for (const Output& o : outputs_of(e))
      csv.add_row({e.method, e.name, o.name, o.mean, o.std_error, o.variance, o.variance_std_error,
                   o.truth ? CsvCell(*o.truth) : CsvCell(""), to_string(e.estimate.from),
                   e.estimate.replicates, e.estimate.particles, e.estimate.ess});
  return csv.text();
}

Table expectation_table(const TargetExpectation& e) {
  Table table("Under the target: " + e.name + ", by " + e.method);
  for (const Output& o : outputs_of(e)) {
    Table::NamedCells row = {
        {"of", o.name}, {"mean", fixed(o.mean, 4)}, {"SE", known_or_dash(o.std_error)}};
    if (o.truth) {
      const double z = (o.mean - *o.truth) / o.std_error;
      row.insert(row.end(),
                 {{"truth", fixed(*o.truth, 4)}, {"z", std::isfinite(z) ? fixed(z, 1) : "-"}});
    }
    row.insert(row.end(), {{"variance", fixed(o.variance, 4)},
                           {"its SE", known_or_dash(o.variance_std_error)}});
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
