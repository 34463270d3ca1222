// Where constant rate of every order puts its temperatures, in the plane.
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "programs/reproduce/density_experiment.h"
#include "util/format.h"

namespace crais {
namespace {

class FigureSchedules : public Experiment {
 public:
  std::string title() const override { return "Schedules of every order in the plane"; }
  std::vector<Fault> faults() const override {
    return {{"widths", "mixtures divide squared distances by s", "by s^2, s being a deviation",
             "the ring and U11: other schedules"},
            {"", "the adaptive baseline's CESS is of wrong weights", "increments of the weights",
             "where its steps are"}};
  }

  void run(const ExperimentOptions& options, Page& page) const override {
    const int64_t seeds = options.seeds > 0 ? options.seeds : options.full ? 5 : 2;
    page.paragraph(
        "Constant rate of the power paths of order alpha, and CESS 0.7 with steps of 1e-4 to 1/128 "
        "on the geometric path: 1024 chains, one leapfrog step of 0.5 a transition, at most 8192 "
        "transitions, " +
        std::to_string(seeds) +
        " seeds. delta is the least of 1/32, 1 and 32 that gets there in as many. Pictures show "
        "the "
        "first seed. D is the divergence of N(0, I), as the pilot estimates it: constant rate "
        "takes "
        "about D / delta transitions.");
    std::vector<std::string> targets = {"u6", "u5:s=std", "u1", "u11:s=std"};
    if (options.has("widths")) targets.insert(targets.end(), {"u5", "u11"});
    std::vector<std::vector<Cell>> rows;
    for (const std::string& target : targets) {
      const DensityExperiment experiment(options, target, 1);
      Plot plot{"Temperatures, " + target, "transition / M", "beta", false, false, {}};
      for (const std::string alpha : {"-0.5", "0", "0.5", "1", "2"}) {
        std::vector<Variant> variants;
        for (const double delta : kDeltas)
          variants.push_back(
              {"alpha " + alpha,
               "--path power:" + alpha + " --schedule constant-rate:" + shortest(delta) + kOwn});
        add(target, alpha, experiment.run(target + ", alpha " + alpha, variants, seeds),
            experiment.truth(), rows, plot);
      }
      const Variant cess{"CESS", "--schedule cess:0.7 --min-step 1e-4 --max-step 0.0078125" + kOwn};
      add(target, "CESS", experiment.run(target + ", CESS", {cess}, seeds), experiment.truth(),
          rows, plot);
      page.plot("schedules-" + target.substr(0, target.find(':')) +
                    (target.find(':') == std::string::npos ? "" : "-std"),
                plot);
    }
    page.table(
        "figure-schedules", "Transitions, and the error of log Z, nats",
        {"target", "alpha", "delta", "M", "D at the start", "D / delta", "ESS", "error", "SE"},
        rows);
  }

 private:
  const std::vector<double> kDeltas = {0.03125, 1, 32};
  const std::string kOwn =
      " --chains 1024 --pilot-chains 1024 --kernel hmc --step-size 0.5 --per-problem";

  /// The first of the `results` that arrived.
  void add(const std::string& target, const std::string& name,
           const std::vector<VariantResult>& results, std::optional<double> truth,
           std::vector<std::vector<Cell>>& rows, Plot& plot) const {
    for (size_t i = 0; i < results.size(); ++i) {
      const VariantResult& result = results[i];
      if (!result.failed.empty()) continue;
      const double start = result.traces[0].divergence[0];
      const bool has_rate = name != "CESS";
      const Spread error(result.value.flatten() - truth.value_or(NAN));
      rows.push_back({target, name, has_rate ? Cell(shortest(kDeltas[i])) : Cell("-"),
                      Cell::number(result.transitions, 0), Cell::number(start, 3),
                      has_rate ? Cell::number(start / kDeltas[i], 0) : Cell("-"),
                      Cell::number(result.ess.mean().item<double>(), 3),
                      Cell::number(error.mean, 3), Cell::number(error.std_error, 3)});
      plot.series.push_back(along_plan(has_rate ? "alpha " + name : name, result.traces[0].betas));
      return;
    }
    rows.push_back({target, name, "-", results.back().reason(), "-", "-", "-", "-", "-"});
  }
};

const Enrol<ExperimentRegistry> kEnrolFigureSchedules(
    "figure-schedules",
    {"figure-schedules", "where constant rate of every order puts its temperatures, in the plane",
     "figure-schedules", [](Spec&) { return std::make_unique<FigureSchedules>(); }});

}  // namespace
}  // namespace crais
