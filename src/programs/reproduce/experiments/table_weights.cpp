// Variance and mass ratio of constant rate, with unweighted and with weighted particles.
#include <string>
#include <vector>

#include "programs/reproduce/density_experiment.h"

namespace crais {
namespace {

struct WeightedTarget {
  std::string name;
  int64_t steps;  // of the unweighted rule
};
const std::vector<WeightedTarget> kWeightedTargets = {
    {"u1", 256},         {"u6", 256},         {"u11:s=std", 256},   {"normal:128", 64},
    {"mixture:128", 64}, {"laplace:128", 64}, {"student-t:128", 64}};

class TableWeights : public Experiment {
 public:
  std::vector<Fault> faults() const override {
    return {{"", "the mass ratio is weighted, the variance is not", "both alike",
             "M, away from order 0; --weighted-ratio repeats it"}};
  }

  void run(const ExperimentOptions& options, Page& page) const override {
    const int64_t seeds = options.num_seeds(20, 4);
    const std::string chains = options.pick("1024", "64");
    page.paragraph(
        "The rule goes by a variance V and a mass ratio r of its pilot's particles. Unweighted, "
        "they assume that the moves mix; weighted, that the weights rest on enough particles. " +
        chains + " chains, step size 0.5, " + std::to_string(seeds) +
        " seeds. The unweighted rule has 64 transitions in 128 dimensions, 256 in the plane; its "
        "delta is that of all three. D is the divergence of N(0, I), as each pilot estimates it: "
        "M should be near D / delta. At order 0, r has no say.");
    const std::string own = " --per-problem --chains " + chains + " --pilot-chains " + chains +
                            " --kernel hmc --step-size 0.5";
    std::vector<Row> rows;
    for (const WeightedTarget& target : kWeightedTargets) {
      const DensityExperiment experiment(options, target.name, seeds);
      for (const std::string alpha : {"-0.5", "0", "0.5", "1", "2"}) {
        const std::string flags = "--path power:" + alpha + own + " --schedule constant-rate:";
        const MatchedPlans matched = experiment.match(flags + "@", target.steps);
        const std::string ratio = alpha != "0" ? " --weighted-ratio" : "";
        std::vector<Variant> variants = {{"neither (default)", ""},
                                         {"the ratio (the released code)", ratio},
                                         {"both (the paper's text)", " --weighted"}};
        for (Variant& variant : variants)
          variant.flags =
              matched.flags + variant.flags + " --max-steps " + std::to_string(4 * target.steps);
        const std::vector<VariantResult> results =
            experiment.run(target.name + ", alpha " + alpha, variants);
        const double delta = std::stod(matched.setting);
        for (size_t i = 0; i < variants.size(); ++i) {
          const VariantResult& result = results[i];
          const TargetErrors e(result.value, experiment.truth());
          rows.push_back({{"target", target.name},
                          {"alpha", alpha},
                          {"weighted", variants[i].name},
                          {"delta", number(delta, 4)},
                          {"M", result.or_reason(number(result.transitions, 1))},
                          {"D / delta", number(result.start_divergence() / delta, 1)},
                          {"bias", number(e.bias, 3)},
                          {"SE", number(e.std_error, 3)},
                          {"RMSE", number(e.root_mean_square, 3)}});
        }
      }
    }
    add_table(page, "weights-fixed", "Constant rate, step size 0.5: errors of log Z, nats", rows);
  }
};

const EnrolExperiment<TableWeights> kEnrolTableWeights(
    "table-weights", "variance and mass ratio of constant rate, weighted or not");

}  // namespace
}  // namespace crais
