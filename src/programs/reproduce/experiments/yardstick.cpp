// Reference values of log Z: exact values, or two independent estimates that agree.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "core/rng.h"
#include "core/spec.h"
#include "programs/reproduce/density_experiment.h"
#include "util/error.h"

namespace crais {
namespace {

// Flags of second estimates, which share neither base nor schedule with the first.
const std::string kFromPrior =
    "--base prior --resample systematic --schedule cess:0.999 --chains 2048";
const std::string kFromPilot = "--base pilot:512,steps=256 --chains 32 --steps 4096";
const std::string kFromLaplace = "--base laplace --chains 16 --steps 512";

struct Benchmark {
  std::string target, second;
  std::string published;  // a published value and its source
  bool is_dear = false;   // only at full size
};

const std::vector<Benchmark> kBenchmarks = {
    {"beta-binomial", kFromPrior, ""},
    {"double-well", kFromPrior, ""},
    {"many-well:6", kFromPrior, ""},
    {"many-well:32", kFromPrior, "164.70, Midgley et al. 2023"},
    {"two-normals", kFromPrior, ""},
    {"forty-normals", "--base mixture:768 --chains 16 --steps 256", "0, Midgley et al. 2023"},
    {"forty-normals:40", kFromPrior, ""},
    {"two-widths", kFromPrior, "0; N(0, I) hides the narrow normal"},
    {"rosenbrock", kFromPilot, ""},
    {"funnel:2", kFromPilot, ""},
    {"funnel:10", kFromPilot, "0; methods without long chains stay below"},
    {"student-t:10,nu=2", kFromPilot, ""},
    {"narrow:32", kFromLaplace, "-243.23; dynesty issue 289 has -195.1 +- 1.0"},
    {"eight-schools", kFromPilot, "-31.31 with the factor 2 of half Cauchy"},
    {"eight-schools:centred=0", kFromPilot, "-31.31 with the factor 2 of half Cauchy"},
    {"seeds", kFromPilot, "-73.41 +- 0.01"},
    {"brownian", kFromPilot, "1.18774910, by quadrature over the scales"},
    {"eggbox", kFromPrior, "235.86, Feroz, Hobson & Bridges 2009"},
    {"shells", kFromPrior, "-1.75, Feroz, Hobson & Bridges 2009"},
    {"shells:5", kFromPrior, "-5.67, Feroz, Hobson & Bridges 2009"},
    {"shells:10", kFromPrior, "-14.59, Feroz, Hobson & Bridges 2009"},
    {"rosenbrock-box", kFromPilot, ""},
    {"logistic-regression:pima", kFromLaplace, ""},
    {"logistic-regression:sonar", kFromLaplace, ""},
    {"cox-process:10", kFromLaplace, ""},
    {"cox-process:40", kFromLaplace, "501.5 to 501.8; 512.2 to 512.6 has the first pine twice",
     /*is_dear=*/true}};

/// The mean of replicates, with the error from their spread.
struct Estimate {
  double value = NAN, error = NAN;
  Estimate() = default;
  explicit Estimate(const VariantResult& result) {
    const Spread spread(result.value.flatten());
    value = spread.mean;
    error = spread.std_error;
  }
};

class Yardstick : public Experiment {
 public:
  std::set<std::string> flags() const override { return {"seeds", "data-dir"}; }

  void run(const ExperimentOptions& options, Page& page) const override {
    const int64_t replicates = options.num_seeds(16, 8);
    const std::string budget = std::to_string(options.pick<int64_t>(2'000'000, 400'000));
    page.paragraph(
        "Log normalisers in nats, by the definitions that `estimate-logz list` has. Where the "
        "integral is known, that is the value. Elsewhere the value is the estimate of the first "
        "way, the base `mixture` with " +
        budget +
        " evaluations a replicate, and the second way must agree within 5 errors. Errors are of " +
        std::to_string(replicates) +
        " replicates. Targets with exact draws have bounds from both sides too. The published "
        "numbers say which density they are of.");
    std::vector<Row> rows, values;
    for (const Benchmark& benchmark : kBenchmarks)
      if (options.full || !benchmark.is_dear)
        rows.push_back(row_of(benchmark, budget, replicates, options));
    const auto is_shown = [](const std::string& header) {
      return header != "definition" && header != "second flags" && header != "published";
    };
    for (const Row& row : rows) {
      values.emplace_back();
      std::copy_if(row.begin(), row.end(), std::back_inserter(values.back()),
                   [&](const auto& entry) { return is_shown(entry.first); });
    }
    add_table(page, "values", "log Z, nats", values);
    add_table(page, "yardstick", "The same with definitions, flags and published values", rows,
              /*folded=*/true);
  }

 private:
  static Row row_of(const Benchmark& benchmark, const std::string& budget, int64_t replicates,
                    const ExperimentOptions& options) {
    const std::string first = "--base mixture --budget " + budget;
    Row row = {{"target", benchmark.target}, {"definition", definition_of(benchmark.target)}};
    const auto add = [&](const std::string& header, const Cell& cell) {
      row.emplace_back(header, cell);
    };
    double truth = NAN, lower = NAN, upper = NAN, apart = NAN;
    Estimate a, b;
    int64_t dim = 0;
    bool is_missing = false;
    try {
      const DensityExperiment experiment(options, benchmark.target, replicates);
      const std::vector<VariantResult> results =
          experiment.run(benchmark.target, {{"first", first}, {"second", benchmark.second}});
      a = Estimate(results[0]);
      b = Estimate(results[1]);
      apart = std::abs(a.value - b.value) / std::hypot(a.error, b.error);
      truth = experiment.truth();
      dim = experiment.target().dim();
      if (has_exact_draws(experiment.target())) {
        const VariantResult bounds =
            experiment.run(benchmark.target + ", bounds",
                           {{"bounds", "--method bidirectional --chains 64 --steps 512"}})[0];
        lower = bounds.value.mean().item<double>();
        upper = bounds.upper.mean().item<double>();
      }
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kNoInput) throw;
      is_missing = true;
    }
    const bool is_exact = !std::isnan(truth);
    add("dim", is_missing ? Cell("data missing") : Cell(dim));
    add("log Z", number(is_exact ? truth : a.value, 4));
    add("+-", is_exact ? Cell("exact") : number(a.error, 4));
    add("first way", with_spread(a.value, a.error, 4));
    add("second way", with_spread(b.value, b.error, 4));
    add("apart, errors", number(apart, 1));
    add("lower", number(lower, 4));
    add("upper", number(upper, 4));
    add("second flags", benchmark.second);
    add("published", benchmark.published);
    return row;
  }

  static std::string definition_of(const std::string& target) {
    return TargetRegistry::instance().entries().at(Spec(target).name()).summary;
  }
  static bool has_exact_draws(const Target& target) {
    at::Generator rng = make_generator(0);
    return target.exact_sample(1, rng).has_value();
  }
};

const EnrolExperiment<Yardstick> kEnrolYardstick(
    "yardstick", "values of log Z to measure against: exact, or two ways that agree");

}  // namespace
}  // namespace crais
