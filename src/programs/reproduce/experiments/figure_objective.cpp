// The divergence along constant-rate runs: a straight line to zero.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "programs/reproduce/density_experiment.h"

namespace crais {
namespace {

constexpr double kObjectiveDelta = 1.0 / 32;

class FigureObjective : public Experiment {
 public:
  std::string title() const override { return "The divergence along constant-rate runs"; }
  std::vector<Fault> faults() const override {
    return {{"", "f is averaged with the weights of before resampling, over particles of after",
             "weights and particles of the same moment", "SMC's curves; these are of AIS"},
            {"", "the paper has the divergence vanish as its clock goes to infinity",
             "it is zero at time D / sqrt(B): delta less each step, D / delta steps",
             "the number of transitions is known beforehand"}};
  }

  void run(const ExperimentOptions& options, Page& page) const override {
    const int64_t seeds = options.seeds > 0 ? options.seeds : options.full ? 10 : 3;
    page.paragraph(
        "KL(q_beta || target) along pilots of constant rate on the geometric path, delta = 1/32, "
        "1024 chains each (the pilots alone are shown), one leapfrog step of 0.5 a transition, " +
        std::to_string(seeds) +
        " seeds; expectations under the importance weights. With perfect moves each step takes "
        "delta off. 'bend' is the largest distance of D / D_0 from the straight line 1 - i / M, "
        "'fall' the least-squares slope of D in units of delta a step (-1 is right).");
    std::vector<std::vector<Cell>> rows;
    Plot plot{"Divergence left", "transition / M", "D / D at the start", false, false, {}};
    for (const char* target :
         {"u1", "u2:4", "u3:4", "u4:4", "u5:s=std", "u6", "u10:s=std", "u11:s=std"}) {
      const DensityExperiment experiment(options, target, 1);
      const VariantResult result =
          experiment.run(target,
                         {{"constant rate",
                           "--schedule constant-rate:0.03125 --chains 2 --pilot-chains 1024 "
                           "--kernel hmc --step-size 0.5 --per-problem"}},
                         seeds)[0];
      if (!result.failed.empty()) {
        rows.push_back({target, result.reason(), "-", "-", "-", "-", "-"});
        continue;
      }
      std::vector<double> start, bend, fall;
      for (const Trace& trace : result.traces) {
        start.push_back(trace.divergence[0]);
        bend.push_back(bend_of(trace.divergence));
        fall.push_back(fall_of(trace.divergence) / kObjectiveDelta);
      }
      const Spread bends(at::tensor(bend, at::kDouble)), falls(at::tensor(fall, at::kDouble));
      rows.push_back({target, Cell::number(result.transitions, 0),
                      Cell::number(Spread(at::tensor(start, at::kDouble)).mean, 3),
                      Cell::number(bends.mean, 3), Cell::number(bends.std_error, 3),
                      Cell::number(falls.mean, 3), Cell::number(falls.std_error, 3)});
      Series series = along_plan(target, result.traces[0].divergence);
      for (double& value : series.y) value /= start[0];
      plot.series.push_back(series);
    }
    plot.series.push_back({"straight", {0, 1}, {1, 0}, {}});
    page.table("figure-objective", "How straight the divergence falls",
               {"target", "M", "D at the start", "bend", "SE", "fall", "SE"}, rows);
    page.plot("objective", plot);
  }

 private:
  static double bend_of(const std::vector<double>& d) {
    double largest = 0;
    for (size_t i = 0; i < d.size(); ++i) {
      const double line = 1 - static_cast<double>(i) / static_cast<double>(d.size() - 1);
      largest = std::max(largest, std::abs(d[i] / d[0] - line));
    }
    return largest;
  }

  static double fall_of(const std::vector<double>& d) {
    const auto n = static_cast<double>(d.size());
    double sum = 0, square = 0;
    for (size_t i = 0; i < d.size(); ++i) {
      const double x = static_cast<double>(i) - (n - 1) / 2;
      sum += x * d[i];
      square += x * x;
    }
    return sum / square;
  }
};

const Enrol<ExperimentRegistry> kEnrolFigureObjective(
    "figure-objective",
    {"figure-objective", "the divergence along constant-rate runs: a straight line to zero",
     "figure-objective", [](Spec&) { return std::make_unique<FigureObjective>(); }});

}  // namespace
}  // namespace crais
