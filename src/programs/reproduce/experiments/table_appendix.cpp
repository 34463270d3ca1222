// ESS and CESS at every ratio with every largest step: the paper's tables A1 and A2.
#include <map>
#include <string>
#include <vector>

#include "programs/reproduce/experiments/high_dimensions.h"

namespace crais {
namespace {

/// Published results for Normal, Mixture, Laplace, Student-t.
const std::map<int64_t, std::map<std::string, std::vector<PublishedError>>> kPublishedAppendix = {
    {128,
     {{"cess:0.9",
       {{871.75, 25.81, 69.8}, {246.08, 33.20, 69.2}, {0.80, 0.65, 43.2}, {0.96, 0.66, 50.0}}},
      {"cess:0.6",
       {{853.39, 36.87, 61.8}, {268.89, 21.24, 61.4}, {0.45, 0.75, 39.6}, {1.37, 0.24, 43.2}}},
      {"cess:0.7",
       {{864.52, 31.07, 61.6}, {253.38, 39.73, 70.0}, {0.12, 0.55, 69.8}, {1.13, 0.39, 43.6}}},
      {"cess:0.8",
       {{879.29, 22.60, 63.2}, {252.01, 33.43, 69.0}, {0.74, 0.97, 40.8}, {0.96, 1.75, 11.4}}},
      {"ess:0.9",
       {{992.07, 33.45, 66.4}, {347.07, 29.13, 43.0}, {0.04, 0.77, 44.8}, {1.00, 1.25, 42.0}}},
      {"ess:0.6",
       {{1001.14, 72.16, 65.6}, {384.80, 24.05, 36.8}, {0.72, 0.50, 37.2}, {0.92, 0.83, 37.2}}},
      {"ess:0.7",
       {{986.59, 53.15, 65.8}, {378.61, 23.42, 38.0}, {0.54, 0.62, 39.4}, {1.56, 0.29, 41.2}}},
      {"ess:0.8",
       {{987.17, 29.88, 66.8}, {357.53, 22.14, 40.6}, {0.15, 0.70, 42.0}, {1.66, 0.14, 39.8}}}}},
    {512,
     {{"cess:0.9",
       {{5163.14, 217.21, 54.8}, {1147.02, 136.34, 65.6}, {8.30, 1.34, 67.4}, {10.39, 2.15, 40.8}}},
      {"cess:0.6",
       {{5181.95, 232.09, 53.4}, {1147.02, 142.66, 66.4}, {9.12, 3.01, 66.4}, {9.72, 2.41, 37.2}}},
      {"cess:0.7",
       {{5297.43, 188.64, 56.4}, {1170.21, 104.98, 66.4}, {7.01, 3.31, 64.0}, {10.66, 0.83, 39.2}}},
      {"cess:0.8",
       {{5195.95, 105.26, 55.8}, {1119.56, 79.00, 69.6}, {8.27, 3.26, 64.4}, {9.92, 1.65, 38.6}}},
      {"ess:0.9",
       {{5107.72, 142.41, 66.0}, {1662.46, 94.87, 39.0}, {9.64, 2.18, 40.8}, {9.97, 1.01, 40.0}}},
      {"ess:0.6",
       {{5203.06, 115.42, 65.2}, {1033.74, 42.08, 69.2}, {7.14, 2.52, 69.8}, {7.83, 1.26, 69.4}}},
      {"ess:0.7",
       {{5190.67, 112.92, 65.2}, {1095.46, 30.55, 70.0}, {10.01, 3.15, 36.2}, {10.15, 1.36, 36.4}}},
      {"ess:0.8",
       {{5151.53, 87.72, 65.6}, {1266.31, 67.74, 69.8}, {9.65, 1.79, 38.6}, {9.94, 1.54, 39.4}}}}}};

const std::vector<std::string> kTargets = {"normal", "mixture", "laplace", "student-t"};

class TableAppendix : public HighDimensions {
 public:
  using HighDimensions::HighDimensions;

  std::vector<Fault> faults() const override {
    return {{"",
             "ESS and CESS are of weights without the last density, one of them twice, and the "
             "threshold compounds",
             "increments of the weights, by bisection",
             "M follows from the ratio alone, and is larger: the rows with 70 or fewer are few"},
            {"", "the search runs HMC for every trial", "cached densities say everything",
             "tuning costs one pilot, not 3.5 times the estimate"}};
  }

 private:
  void run_in(int64_t dim, const ExperimentOptions& options, Page& page) const override {
    const std::string size = std::to_string(dim);
    const int64_t seeds = options.num_seeds(dim > 128 ? 5 : 20, 6);
    const int64_t chains = options.pick(dim > 128 ? 1024 : 4096, 64);
    page.paragraph(
        "ESS and CESS at four ratios, " + std::to_string(chains) + " chains, step size 0.5, " +
        std::to_string(seeds) +
        " seeds, each with a plan of its own, as found and not stretched; the least step is 1e-7. "
        "The largest step is looked for until the plan has 64 transitions within 3%; an error at "
        "any other length says so. The published rows chose, by the true error, among largest "
        "steps with about 64 transitions.");
    const std::string own =
        " --kernel hmc --step-size 0.5 --dtype float32 --per-problem --chains " +
        std::to_string(chains) + " --min-step 1e-7 --max-step ";
    std::vector<Row> best, all;
    for (size_t t = 0; t < kTargets.size(); ++t) {
      const DensityExperiment experiment(options, kTargets[t] + ":" + size, seeds);
      for (const auto& [rule, published] : kPublishedAppendix.at(dim)) {
        const std::string flags = "--schedule " + rule + own;
        const MatchedPlans matched = experiment.match(flags + "@", kHighSteps);
        std::vector<Variant> variants = {{matched.setting, matched.flags}};
        for (const char* step : {"0.25", "0.0625", "0.015625", "0.00390625"})
          variants.push_back({step, flags + step});
        const std::vector<VariantResult> results =
            experiment.run(kTargets[t] + ", " + rule, variants);
        for (size_t i = 0; i < variants.size(); ++i) {
          const VariantResult& result = results[i];
          const TargetErrors e(result.value, experiment.truth());
          (i == 0 ? best : all)
              .push_back(
                  {{"target", kTargets[t]},
                   {"rule", rule},
                   {"largest step", variants[i].name},
                   {"M", result.or_reason(number(result.transitions, 1))},
                   {"cost", number(result.evaluations() / static_cast<double>(chains), 0)},
                   {"bias", at_length(e.bias, 2, result.transitions, kHighSteps)},
                   {"SE", number(e.std_error, 2)},
                   {"mean |error|", at_length(e.absolute, 2, result.transitions, kHighSteps)},
                   {"RMSE", number(e.root_mean_square, 2)},
                   {"paper", with_spread(published[t].error, published[t].spread, 2)},
                   {"its M", number(published[t].transitions, 1)}});
        }
      }
    }
    add_table(page, "appendix-" + size, size + " dimensions, 64 transitions: errors of log Z, nats",
              best);
    add_table(page, "appendix-" + size + "-all",
              size + " dimensions, largest steps of 1/4 to 1/256: errors of log Z, nats", all,
              /*folded=*/true);
  }
};

const EnrolHighDimensions<TableAppendix> kEnrolTableAppendix(
    "table-appendix", "ESS and CESS at every ratio in 128 and 512 dimensions (or DIM alone)");

}  // namespace
}  // namespace crais
