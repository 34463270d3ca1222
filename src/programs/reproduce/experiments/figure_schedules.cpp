// The temperatures of constant rate in the plane, for every order.
#include <cmath>
#include <string>
#include <vector>

#include "programs/reproduce/density_experiment.h"

namespace crais {
namespace {

class FigureSchedules : public Experiment {
 public:
  std::vector<Fault> faults() const override {
    return {{"widths", "mixtures divide squared distances by s", "by s^2, s being a deviation",
             "the ring and U11: other schedules"},
            {"", "the adaptive baseline's CESS is of wrong weights", "increments of the weights",
             "where its steps are"}};
  }

  void run(const ExperimentOptions& options, Page& page) const override {
    const int64_t seeds = options.num_seeds(5, 2);
    page.paragraph(
        "Constant rate of the power paths of order alpha, and CESS 0.7 on them, with steps of 1e-4 "
        "to 1/128 as in the paper and without a largest step: 1024 chains, one leapfrog step of "
        "0.5 a transition, at most 8192 transitions, " +
        std::to_string(seeds) +
        " seeds, of which plans.csv has the first. delta is the least of 1/32, 1 and 32 that gets "
        "there. D is the pilot's divergence of N(0, I): theory says D / delta transitions.");
    const std::string own =
        " --chains 1024 --pilot-chains 1024 --kernel hmc --step-size 0.5 --per-problem";
    std::vector<std::string> targets = {"u6", "u5:s=std", "u1", "u11:s=std"};
    if (options.has("widths")) targets.insert(targets.end(), {"u5", "u11"});
    std::vector<Row> rows, plans;
    for (const std::string& target : targets) {
      const DensityExperiment experiment(options, target, 1);
      for (const std::string alpha : {"-0.5", "0", "0.5", "1", "2"}) {
        const std::string path = "--path power:" + alpha, label = target + ", alpha " + alpha;
        const auto add = [&](const std::string& rule, const Variant& variant,
                             const VariantResult& result) {
          const double start = result.start_divergence();
          const Spread error(result.value.flatten() - experiment.truth());
          const double delta = variant.name == "-" ? NAN : std::stod(variant.name);
          rows.push_back({{"target", target},
                          {"alpha", alpha},
                          {"rule", rule},
                          {"delta", result.failed.empty() ? variant.name : "-"},
                          {"M", result.or_reason(number(result.transitions, 0))},
                          {"D at the start", number(start, 3)},
                          {"D / delta", number(start / delta, 0)},
                          {"ESS", number(result.mean_ess(), 3)},
                          {"error", number(error.mean, 3)},
                          {"SE", number(error.std_error, 3)}});
          if (!result.failed.empty()) return;
          plans.push_back(along_plan({{"target", target}, {"alpha", alpha}, {"rule", rule}},
                                     result.traces[0].betas));
        };
        std::vector<Variant> variants;
        for (const std::string delta : {"0.03125", "1", "32"})
          variants.push_back({delta, path + " --schedule constant-rate:" + delta + own});
        const std::vector<VariantResult> by_rate = experiment.run(label, variants, seeds);
        size_t first = 0;  // seed that arrived
        while (first + 1 < by_rate.size() && !by_rate[first].failed.empty()) ++first;
        add("constant rate", variants[first], by_rate[first]);
        const std::string rule = path + " --schedule cess:0.7 --min-step 1e-4" + own;
        variants = {{"-", rule + " --max-step 0.0078125"}, {"-", rule}};
        const std::vector<VariantResult> by_cess =
            experiment.run(label + ", CESS", variants, seeds);
        add("CESS, steps to 1/128", variants[0], by_cess[0]);
        add("CESS, any step", variants[1], by_cess[1]);
      }
    }
    add_table(page, "figure-schedules", "Transitions, and the error of log Z, nats", rows);
    add_table(page, "plans", "Temperatures against transition / M", plans, /*folded=*/true);
  }
};

const EnrolExperiment<FigureSchedules> kEnrolFigureSchedules(
    "figure-schedules", "where constant rate of every order puts its temperatures, in the plane");

}  // namespace
}  // namespace crais
