// Variance and mass ratio of constant rate: of the particles as they are, or as their weights say.
#include <cmath>
#include <string>
#include <vector>

#include "programs/reproduce/density_experiment.h"

namespace crais {
namespace {

struct WeightedTarget {
  std::string name;
  int64_t steps;  // that the unweighted rule takes
};

/// A way to take the rule's two statistics, with its flag.
struct Weighting {
  std::string name, flag;
};
constexpr const char* kOfRatio = " --weighted-ratio";
const std::vector<Weighting> kWeightings = {{"neither (default)", ""},
                                            {"the ratio (the released code)", kOfRatio},
                                            {"both (the paper's text)", " --weighted"}};

class TableWeights : public Experiment {
 public:
  std::string title() const override { return "Constant rate with weighted statistics"; }
  std::vector<Fault> faults() const override {
    return {{"", "the mass ratio is weighted, the variance is not", "both alike",
             "M, away from order 0; --weighted-ratio repeats it"}};
  }

  void run(const ExperimentOptions& options, Page& page) const override {
    const int64_t seeds = options.seeds > 0 ? options.seeds : options.full ? 20 : 4;
    const std::string chains = options.full ? "1024" : "64";
    page.paragraph(
        "The rule goes by a variance V and a mass ratio r of its pilot's particles. Unweighted, "
        "they assume that the moves mix; weighted, that the weights rest on enough particles. " +
        chains + " chains, step size 0.5, as in the paper" +
        (options.full ? ", and then steps tuned with persistent momentum; " : "; ") +
        std::to_string(seeds) +
        " seeds. delta is such that the unweighted rule has 64 transitions in 128 dimensions, 256 "
        "in "
        "the plane, and is the same for all three. D is the divergence of N(0, I), as each pilot "
        "estimates it: M should be near D / delta. At order 0, r has no say.");
    const std::string own = " --per-problem --chains " + chains + " --pilot-chains " + chains;
    table("fixed", "step size 0.5", own + " --kernel hmc --step-size 0.5", seeds, options, page);
    if (!options.full) return;
    table("tuned", "steps tuned, persistent momentum", own + " --kernel ghmc:0.8", seeds, options,
          page);
  }

 private:
  static std::vector<WeightedTarget> targets() {
    return {{"u1", 256},         {"u6", 256},         {"u11:s=std", 256},   {"normal:128", 64},
            {"mixture:128", 64}, {"laplace:128", 64}, {"student-t:128", 64}};
  }

  static void table(const std::string& stem, const std::string& title, const std::string& own,
                    int64_t seeds, const ExperimentOptions& options, Page& page) {
    std::vector<std::vector<Cell>> rows;
    for (const WeightedTarget& target : targets()) {
      const DensityExperiment experiment(options, target.name, seeds);
      for (const std::string alpha : {"-0.5", "0", "0.5", "1", "2"}) {
        const std::string flags = "--path power:" + alpha + own + " --schedule constant-rate:";
        const MatchedPlans matched = experiment.match(flags + "@", target.steps);
        if (matched.transitions == 0) {
          rows.push_back({target.name, alpha, "any", "none makes a plan", "-", "-", "-", "-", "-"});
          continue;
        }
        std::vector<Variant> variants;
        for (const Weighting& weighting : kWeightings) {
          const bool has_ratio = alpha != "0" || weighting.flag != kOfRatio;
          variants.push_back({weighting.name, matched.flags + (has_ratio ? weighting.flag : "") +
                                                  " --max-steps " +
                                                  std::to_string(4 * target.steps)});
        }
        const std::vector<VariantResult> results =
            experiment.run(stem + ", " + target.name + ", alpha " + alpha, variants);
        for (size_t i = 0; i < variants.size(); ++i)
          rows.push_back(row_of(target.name, alpha, variants[i].name, results[i],
                                std::stod(matched.setting), *experiment.truth()));
      }
    }
    page.table("weights-" + stem, "Constant rate, " + title + ": errors of log Z, nats",
               {"target", "alpha", "weighted", "delta", "M", "D / delta", "bias", "SE", "RMSE"},
               rows);
  }

  static std::vector<Cell> row_of(const std::string& target, const std::string& alpha,
                                  const std::string& weighting, const VariantResult& result,
                                  double delta, double truth) {
    const Cell rate = Cell::number(delta, 4);
    if (!result.failed.empty())
      return {target, alpha, weighting, rate, result.reason(), "-", "-", "-", "-"};
    double start = 0;
    for (const Trace& trace : result.traces)
      start += trace.divergence[0] / static_cast<double>(result.traces.size());
    const TargetErrors e(result.value, truth);
    return {target,
            alpha,
            weighting,
            rate,
            Cell::number(result.transitions, 1),
            Cell::number(start / delta, 1),
            Cell::number(e.bias, 3),
            Cell::number(e.std_error, 3),
            Cell::number(e.root_mean_square, 3)};
  }
};

const Enrol<ExperimentRegistry> kEnrolTableWeights(
    "table-weights", {"table-weights", "variance and mass ratio of constant rate, weighted or not",
                      "table-weights", [](Spec&) { return std::make_unique<TableWeights>(); }});

}  // namespace
}  // namespace crais
