// Where each rule puts its temperatures on the way to a logistic regression's posterior.
#include <cmath>
#include <string>
#include <vector>

#include "programs/reproduce/density_experiment.h"

namespace crais {
namespace {

struct ScheduledRegression {
  std::string name, target;
  double log_z;  // see figure-logreg
};
const std::vector<ScheduledRegression> kScheduledRegressions = {
    {"pima", "logistic-regression:pima,variance=25", -438.983},
    {"sonar", "logistic-regression:sonar,variance=25", -144.506}};

class FigureLogregSchedules : public Experiment {
 public:
  std::string title() const override { return "Schedules for logistic regressions"; }
  std::set<std::string> flags() const override { return {"seeds", "data-dir"}; }
  std::vector<Fault> faults() const override {
    return {{"", "the ESS of the adaptive rule is of wrong weights", "increments of the weights",
             "where its steps are"},
            {"", "delta is said to go from 64 to 2048", "KL(N(0, I) || posterior) is near 560",
             "fewer than 10 transitions: a misprint, for 64 to 1/4 here"}};
  }

  void run(const ExperimentOptions& options, Page& page) const override {
    const int64_t seeds = options.seeds > 0 ? options.seeds : options.full ? 20 : 3;
    page.paragraph(
        "Pima and Sonar, prior N(0, 25 I), 256 chains from N(0, I) (as in the paper) and from a "
        "Laplace base, " +
        std::to_string(seeds) +
        " seeds, each with a plan of its own; pictures show the first, and beta on a logarithmic "
        "axis. The setting of a rule is looked for until its plans have 256 transitions within 3%; "
        "an error at any other length says so. D is KL(base || posterior) as the pilot estimates "
        "it.");
    std::vector<std::vector<Cell>> rows;
    for (const ScheduledRegression& regression : kScheduledRegressions)
      for (const bool paper : {true, false}) {
        const DensityExperiment experiment(options, regression.target, seeds);
        const std::string stem = regression.name + (paper ? "-paper" : "-laplace");
        const std::vector<Variant> all = variants(experiment, paper);
        const std::vector<VariantResult> results = experiment.run(stem, all);
        Plot plot{"Temperatures, " + stem, "transition / M", "beta", false, true, {}};
        for (size_t i = 0; i < all.size(); ++i) {
          const VariantResult& result = results[i];
          if (!result.failed.empty()) {
            rows.push_back({stem, all[i].name, result.reason(), "-", "-", "-", "-", "-", "-"});
            continue;
          }
          const TargetErrors e(result.value, regression.log_z);
          const std::vector<double>& divergence = result.traces[0].divergence;
          rows.push_back({stem, all[i].name, Cell::number(result.transitions, 0),
                          divergence.empty() ? Cell("-") : Cell::number(divergence[0], 3),
                          Cell::number(result.evaluations(), 0),
                          Cell::number(result.ess.mean().item<double>(), 3),
                          at_length(e.bias, 3, result.transitions, kSteps),
                          Cell::number(e.std_error, 3),
                          at_length(e.root_mean_square, 3, result.transitions, kSteps)});
          plot.series.push_back(along_plan(all[i].name, result.traces[0].betas));
        }
        page.plot("schedules-" + stem, plot);
      }
    page.table("figure-logreg-schedules", "Transitions, and the error of log Z, nats",
               {"posterior", "schedule", "M", "D at the start", "evaluations", "ESS", "bias", "SE",
                "RMSE"},
               rows);
  }

 private:
  static constexpr int64_t kSteps = 256;  // transitions that are compared

  /// The paper's settings: from the prior with steps of 0.5; or ours.
  static std::vector<Variant> variants(const DensityExperiment& experiment, bool paper) {
    const std::string own =
        std::string(" --chains 256 --per-problem ") +
        (paper ? "--base prior --kernel hmc --step-size 0.5" : "--base laplace --kernel ghmc:0.8");
    std::vector<Variant> all;
    for (const std::string rule : {"linear", "sigmoidal", "geometric"})
      all.push_back({rule, flags_of_plans(rule, kSteps) + " " + without_pilot(own)});
    for (const std::string rule : {"constant-rate", "constant-length", "cess", "ess"}) {
      const MatchedPlans plans = experiment.match("--schedule " + rule + ":@" + own, kSteps);
      if (plans.transitions > 0) all.push_back({rule + ":" + plans.setting, plans.flags});
    }
    all.push_back({"ess:0.5", "--schedule ess:0.5" + own});  // the paper's
    return all;
  }
};

const Enrol<ExperimentRegistry> kEnrolFigureLogregSchedules(
    "figure-logreg-schedules",
    {"figure-logreg-schedules", "where each rule puts its temperatures on logistic regressions",
     "figure-logreg-schedules", [](Spec&) { return std::make_unique<FigureLogregSchedules>(); }});

}  // namespace
}  // namespace crais
