// The divergence along constant-rate runs: it falls to zero on a straight line.
#include <string>
#include <vector>

#include "programs/reproduce/density_experiment.h"

namespace crais {
namespace {

class FigureObjective : public Experiment {
 public:
  std::vector<Fault> faults() const override {
    return {{"", "f is averaged with the weights of before resampling, over particles of after",
             "weights and particles of the same moment", "SMC's curves; these are of AIS"},
            {"", "the paper has the divergence vanish as its clock goes to infinity",
             "it is zero at time D / sqrt(B): delta less each step, D / delta steps",
             "the number of transitions is known beforehand"}};
  }

  void run(const ExperimentOptions& options, Page& page) const override {
    const int64_t seeds = options.num_seeds(10, 3);
    page.paragraph(
        "KL(q_beta || target) along pilots of constant rate on the geometric path, delta = 1/32, "
        "1024 chains each (the pilots alone are shown), one leapfrog step of 0.5 a transition, " +
        std::to_string(seeds) +
        " seeds; expectations under the importance weights. With perfect moves each step takes "
        "delta off. 'bend' is the largest distance of D / D_0 from the straight line 1 - i / M, "
        "'fall' the least-squares slope of D in units of delta a step (-1 is right).");
    std::vector<Row> rows, plans;
    for (const char* target :
         {"u1", "u2:4", "u3:4", "u4:4", "u5:s=std", "u6", "u10:s=std", "u11:s=std"}) {
      const VariantResult result =
          DensityExperiment(options, target, 1)
              .run(target,
                   {{"constant rate",
                     "--schedule constant-rate:0.03125 --chains 2 --pilot-chains 1024 "
                     "--kernel hmc --step-size 0.5 --per-problem"}},
                   seeds)[0];
      std::vector<double> start, bend, fall;
      for (const Trace& trace : result.traces) {
        const at::Tensor d = at::tensor(trace.divergence, at::kDouble);
        const at::Tensor step = at::arange(d.size(0), at::kDouble), x = step - step.mean();
        start.push_back(trace.divergence[0]);
        bend.push_back((d / d[0] - 1 + step / step[-1]).abs().max().item<double>());
        fall.push_back((32 * (x * d).sum() / x.square().sum()).item<double>());
      }
      const auto over_seeds = [](const std::vector<double>& values) {
        return Spread(at::tensor(values, at::kDouble));
      };
      rows.push_back({{"target", target},
                      {"M", result.or_reason(number(result.transitions, 0))},
                      {"D at the start", number(over_seeds(start).mean, 3)},
                      {"bend", number(over_seeds(bend).mean, 3)},
                      {"SE", number(over_seeds(bend).std_error, 3)},
                      {"fall", number(over_seeds(fall).mean, 3)},
                      {"SE", number(over_seeds(fall).std_error, 3)}});
      if (!result.failed.empty()) continue;
      plans.push_back(along_plan({{"target", target}}, result.traces[0].divergence));
    }
    add_table(page, "figure-objective", "How straight the divergence falls", rows);
    add_table(page, "plans", "Divergence left against transition / M", plans, /*folded=*/true);
  }
};

const EnrolExperiment<FigureObjective> kEnrolFigureObjective(
    "figure-objective", "the divergence along constant-rate runs: a straight line to zero");

}  // namespace
}  // namespace crais
