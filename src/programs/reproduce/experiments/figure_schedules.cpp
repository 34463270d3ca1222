// Where constant rate of every order puts its temperatures, in the plane.
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "programs/reproduce/density_experiment.h"
#include "util/format.h"

namespace crais {
namespace {

const std::vector<double> kScheduleDeltas = {0.03125, 1, 32};
const std::string kScheduleFlags =
    " --chains 1024 --pilot-chains 1024 --kernel hmc --step-size 0.5 --per-problem";

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
        "Constant rate of the power paths of order alpha, and CESS 0.7 on the same paths, with "
        "steps of 1e-4 to 1/128 as in the paper and without a largest step: 1024 chains, one "
        "leapfrog step of 0.5 a transition, at most 8192 transitions, " +
        std::to_string(seeds) +
        " seeds. delta is the least of 1/32, 1 and 32 that gets there in as many. Pictures show "
        "the first seed. D is the divergence of N(0, I), as the pilot estimates it: constant rate "
        "takes about D / delta transitions.");
    std::vector<std::string> targets = {"u6", "u5:s=std", "u1", "u11:s=std"};
    if (options.has("widths")) targets.insert(targets.end(), {"u5", "u11"});
    std::vector<std::vector<Cell>> rows;
    for (const std::string& target : targets) {
      const DensityExperiment experiment(options, target, 1);
      Plot rate{
          "Temperatures of constant rate, " + target, "transition / M", "beta", false, false, {}};
      Plot cess{"Temperatures of CESS 0.7, steps to 1/128, " + target,
                "transition / M",
                "beta",
                false,
                false,
                {}};
      Plot free_cess{
          "Temperatures of CESS 0.7, " + target, "transition / M", "beta", false, false, {}};
      for (const std::string alpha : {"-0.5", "0", "0.5", "1", "2"}) {
        const std::string path = "--path power:" + alpha;
        std::vector<Variant> variants;
        for (const double delta : kScheduleDeltas) {
          const std::string setting = shortest(delta);
          variants.push_back(
              {setting, path + " --schedule constant-rate:" + setting + kScheduleFlags});
        }
        add({target, alpha, "constant rate"}, variants,
            experiment.run(target + ", alpha " + alpha, variants, seeds), experiment.truth(), rows,
            rate);
        const std::string rule = path + " --schedule cess:0.7 --min-step 1e-4" + kScheduleFlags;
        const std::vector<Variant> by_cess = {{"-", rule + " --max-step 0.0078125"}, {"-", rule}};
        const std::vector<VariantResult> results =
            experiment.run(target + ", alpha " + alpha + ", CESS", by_cess, seeds);
        add({target, alpha, "CESS, steps to 1/128"}, {by_cess[0]}, {results[0]}, experiment.truth(),
            rows, cess);
        add({target, alpha, "CESS, any step"}, {by_cess[1]}, {results[1]}, experiment.truth(), rows,
            free_cess);
      }
      const std::string stem = target.substr(0, target.find(':')) +
                               (target.find(':') == std::string::npos ? "" : "-std");
      page.plot("schedules-" + stem, rate);
      page.plot("cess-" + stem, cess);
      page.plot("free-cess-" + stem, free_cess);
    }
    page.table("figure-schedules", "Transitions, and the error of log Z, nats",
               {"target", "alpha", "rule", "delta", "M", "D at the start", "D / delta", "ESS",
                "error", "SE"},
               rows);
  }

 private:
  struct Place {
    std::string target, alpha, rule;
  };

  /// The first of the variants that arrived.
  static void add(const Place& place, const std::vector<Variant>& variants,
                  const std::vector<VariantResult>& results, std::optional<double> truth,
                  std::vector<std::vector<Cell>>& rows, Plot& plot) {
    for (size_t i = 0; i < results.size(); ++i) {
      const VariantResult& result = results[i];
      if (!result.failed.empty()) continue;
      const std::string& delta = variants[i].name;
      const double start = result.traces[0].divergence[0];
      const Spread error(result.value.flatten() - truth.value_or(NAN));
      rows.push_back({place.target, place.alpha, place.rule, delta,
                      Cell::number(result.transitions, 0), Cell::number(start, 3),
                      delta == "-" ? Cell("-") : Cell::number(start / std::stod(delta), 0),
                      Cell::number(result.ess.mean().item<double>(), 3),
                      Cell::number(error.mean, 3), Cell::number(error.std_error, 3)});
      plot.series.push_back(along_plan("alpha " + place.alpha, result.traces[0].betas));
      return;
    }
    rows.push_back({place.target, place.alpha, place.rule, "-", results.back().reason(), "-", "-",
                    "-", "-", "-"});
  }
};

const Enrol<ExperimentRegistry> kEnrolFigureSchedules(
    "figure-schedules",
    {"figure-schedules", "where constant rate of every order puts its temperatures, in the plane",
     "figure-schedules", [](Spec&) { return std::make_unique<FigureSchedules>(); }});

}  // namespace
}  // namespace crais
