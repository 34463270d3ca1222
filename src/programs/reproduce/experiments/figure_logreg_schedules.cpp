// The temperatures of each rule for the posterior of a logistic regression.
#include <string>
#include <vector>

#include "programs/reproduce/density_experiment.h"

namespace crais {
namespace {

struct ScheduledRegression {
  std::string name;
  double log_z;  // see figure-logreg
};

class FigureLogregSchedules : public Experiment {
 public:
  std::set<std::string> flags() const override { return {"seeds", "data-dir"}; }
  std::vector<Fault> faults() const override {
    return {{"", "the ESS of the adaptive rule is of wrong weights", "increments of the weights",
             "where its steps are"},
            {"", "delta is said to go from 64 to 2048", "KL(N(0, I) || posterior) is near 560",
             "fewer than 10 transitions: a misprint, for 64 to 1/4 here"}};
  }

  void run(const ExperimentOptions& options, Page& page) const override {
    const int64_t seeds = options.num_seeds(20, 3);
    page.paragraph(
        "Pima and Sonar, prior N(0, 25 I), 256 chains from N(0, I) (as in the paper) and from a "
        "Laplace base, " +
        std::to_string(seeds) +
        " seeds, each with a plan of its own; plans.csv has the first. The setting of a rule is "
        "looked for until its plans have 256 transitions within 3%; an error at any other length "
        "says so. D is KL(base || posterior) as the pilot estimates it.");
    std::vector<Row> rows, plans;
    for (const ScheduledRegression& regression :
         {ScheduledRegression{"pima", -438.983}, ScheduledRegression{"sonar", -144.506}})
      for (const bool paper : {true, false}) {
        const DensityExperiment experiment(
            options, "logistic-regression:" + regression.name + ",variance=25", seeds);
        const std::string stem = regression.name + (paper ? "-paper" : "-laplace");
        const std::vector<Variant> all = variants(experiment, paper);
        const std::vector<VariantResult> results = experiment.run(stem, all);
        for (size_t i = 0; i < all.size(); ++i) {
          const VariantResult& result = results[i];
          const TargetErrors e(result.value, regression.log_z);
          rows.push_back({{"posterior", stem},
                          {"schedule", all[i].name},
                          {"M", result.or_reason(number(result.transitions, 0))},
                          {"D at the start", number(result.start_divergence(), 3)},
                          {"evaluations", number(result.evaluations(), 0)},
                          {"ESS", number(result.mean_ess(), 3)},
                          {"bias", at_length(e.bias, 3, result.transitions, kSteps)},
                          {"SE", number(e.std_error, 3)},
                          {"RMSE", at_length(e.root_mean_square, 3, result.transitions, kSteps)}});
          if (result.failed.empty())
            plans.push_back(along_plan({{"posterior", stem}, {"schedule", all[i].name}},
                                       result.traces[0].betas));
        }
      }
    add_table(page, "figure-logreg-schedules", "Transitions, and the error of log Z, nats", rows);
    add_table(page, "plans", "Temperatures against transition / M", plans, /*folded=*/true);
  }

 private:
  static constexpr int64_t kSteps = 256;  // transitions of all schedules

  /// Variants with the paper's settings (from the prior with steps of 0.5) or with ours.
  static std::vector<Variant> variants(const DensityExperiment& experiment, bool paper) {
    const std::string own =
        std::string(" --chains 256 --per-problem ") +
        (paper ? "--base prior --kernel hmc --step-size 0.5" : "--base laplace --kernel ghmc:0.8");
    std::vector<Variant> all;
    for (const std::string rule : {"linear", "sigmoidal", "geometric"})
      all.push_back({rule, flags_of_plans(rule, kSteps) + " " + without_pilot(own)});
    for (const std::string rule : {"constant-rate", "constant-length", "cess", "ess"}) {
      const MatchedPlans plans = experiment.match("--schedule " + rule + ":@" + own, kSteps);
      all.push_back({rule + ":" + plans.setting, plans.flags});
    }
    all.push_back({"ess:0.5", "--schedule ess:0.5" + own});  // the paper's setting
    return all;
  }
};

const EnrolExperiment<FigureLogregSchedules> kEnrolFigureLogregSchedules(
    "figure-logreg-schedules", "where each rule puts its temperatures on logistic regressions");

}  // namespace
}  // namespace crais
