// Evidence of Bayesian logistic regressions: error against evaluations, base by base.
#include <string>
#include <vector>

#include "programs/reproduce/density_experiment.h"

namespace crais {
namespace {

struct Regression {
  std::string data, variance;  // variance of the prior
  // log Z by independent Laplace and AIS, to about 0.005 (Pima) and 0.05 (Sonar).
  double elsewhere;
};
const std::vector<Regression> kRegressions = {{"pima", "25", -438.98},
                                              {"pima", "5", -432.70},
                                              {"sonar", "25", -144.53},
                                              {"sonar", "5", -125.92}};

/// A base with rates at which its pilot takes a few dozen steps.
struct Start {
  std::string name, base, rate, length, cess;
};
const std::vector<Start> kStarts = {{"prior", "prior", "8", "1", "0.6"},
                                    {"laplace", "laplace", "0.02", "0.05", "0.98"},
                                    {"pilot", "pilot:64,steps=32", "0.05", "0.1", "0.95"}};

class FigureLogreg : public Experiment {
 public:
  std::set<std::string> flags() const override { return {"seeds", "data-dir"}; }
  std::vector<Fault> faults() const override {
    return {{"", "the loss is added to the log prior", "subtracted",
             "the target is another density: its log Z is positive"},
            {"", "the first case is read as a header", "every line is a case",
             "Sonar has 207 cases (up to 0.5 nats), Pima 767"},
            {"", "the prior's variance is 25 where the text says 5", "either, said",
             "6 nats for Pima, 19 for Sonar"}};
  }

  void run(const ExperimentOptions& options, Page& page) const override {
    const int64_t seeds = options.num_seeds(20, 6);
    const std::string chains = options.pick("256", "64");
    page.paragraph(
        "Pima (768 cases, 8 features) and Sonar (208 cases, 60 features), standardised, no "
        "intercept, prior N(0, variance I). " +
        chains + " chains, " + std::to_string(seeds) +
        " seeds, each with a base and a plan of its own; persistent momentum, tuned step sizes. "
        "Evaluations are all there are: base (curvatures at their multiply-adds), pilot and "
        "estimate. A plan that a rule found is stretched to the length that is asked for.");
    std::vector<Row> references;
    for (const Regression& regression : kRegressions) {
      if (!options.full && regression.variance != "25") continue;
      const std::string target =
          "logistic-regression:" + regression.data + ",variance=" + regression.variance;
      const DensityExperiment experiment(options, target, seeds);
      // The run from the Laplace base is the reference.
      const std::string own = " --kernel ghmc:0.8 --chains 64 --steps 1024";
      const std::vector<VariantResult> runs = experiment.run(
          target + ", reference",
          {{"laplace", "--base laplace:1.1" + own}, {"pilot", "--base pilot" + own}}, 1, 1000);
      const Spread laplace(runs[0].value[0]), pilot(runs[1].value[0]);
      references.push_back({{"target", target},
                            {"log Z", number(laplace.mean, 4)},
                            {"SE", number(laplace.std_error, 4)},
                            {"from another base", number(pilot.mean, 4)},
                            {"its SE", number(pilot.std_error, 4)},
                            {"elsewhere", number(regression.elsewhere, 2)}});
      const Comparison comparison{experiment, regression.data + "-" + regression.variance,
                                  laplace.mean,
                                  " --kernel ghmc:0.8 --per-problem --chains " + chains};
      comparison.compare_schedules(options.full, page);
      comparison.compare_orders(options.full, page);
    }
    add_table(page, "references", "What errors are measured against: long runs from a Laplace base",
              references);
  }

 private:
  struct Comparison {
    const DensityExperiment& experiment;
    std::string stem;
    double truth;
    std::string own;  // flags

    /// Compares every schedule from every start, at several lengths.
    void compare_schedules(bool full, Page& page) const;
    /// Compares constant rate along power paths, stretched to equally many transitions.
    void compare_orders(bool full, Page& page) const;
    Row row_of(const Start& start, const std::string& name, int64_t steps,
               const VariantResult& result) const;
  };
};

void FigureLogreg::Comparison::compare_schedules(bool full, Page& page) const {
  std::vector<Row> rows;
  for (const Start& start : kStarts) {
    const std::string length = "constant-length:" + start.length;
    std::vector<Variant> variants;
    std::vector<int64_t> lengths;
    for (const auto& [name, schedule] : std::vector<std::pair<std::string, std::string>>{
             {"linear", "linear"},
             {"sigmoidal", "sigmoidal"},
             {"geometric", "geometric"},
             {"constant rate", "constant-rate:" + start.rate},
             {"constant length", length},
             {"CESS " + start.cess, "cess:" + start.cess},
             {"ESS 0.5", "ess:0.5"},
             {"SMC, constant length", length}})
      for (const int64_t steps :
           full ? std::vector<int64_t>{16, 64, 256, 1024} : std::vector<int64_t>{16, 128}) {
        const bool resamples = name.rfind("SMC", 0) == 0;
        variants.push_back({name, "--base " + start.base + own +
                                      (resamples ? " --resample systematic --weighted " : " ") +
                                      flags_of_plans(schedule, steps)});
        lengths.push_back(steps);
      }
    const std::vector<VariantResult> results =
        experiment.run(stem + ", from " + start.name, variants);
    for (size_t i = 0; i < variants.size(); ++i)
      rows.push_back(row_of(start, variants[i].name, lengths[i], results[i]));
  }
  add_table(page, stem, stem + ": every schedule, errors of log Z, nats", rows);
}

void FigureLogreg::Comparison::compare_orders(bool full, Page& page) const {
  constexpr int64_t kSteps = 64;
  std::vector<std::string> orders = {"0", "0.5", "1"};
  if (full) orders.insert(orders.end(), {"-0.5", "0.25", "0.75", "2"});
  std::vector<Row> rows;
  for (const Start& start : kStarts)
    for (const std::string& alpha : orders) {
      const MatchedPlans plans = experiment.match(
          "--base " + start.base + own + " --path power:" + alpha + " --schedule constant-rate:@",
          kSteps);
      const VariantResult result =
          experiment.run(stem + ", orders from " + start.name,
                         {{alpha, plans.flags + " --interpolate " + std::to_string(kSteps)}})[0];
      rows.push_back(row_of(start, "alpha " + alpha, kSteps, result));
    }
  add_table(page, stem + "-orders",
            stem + ": constant rate of any order, stretched to 64, errors of log Z, nats", rows);
}

Row FigureLogreg::Comparison::row_of(const Start& start, const std::string& name, int64_t steps,
                                     const VariantResult& result) const {
  const TargetErrors e(result.value[0], truth);
  return {{"start", start.name},
          {"schedule", name},
          {"transitions", steps},
          {"evaluations", result.or_reason(number(result.evaluations(), 0))},
          {"of them base", number(result.base, 0)},
          {"tuning", number(result.tuning, 0)},
          {"bias", number(e.bias, 3)},
          {"SE", number(e.std_error, 3)},
          {"RMSE", number(e.root_mean_square, 3)}};
}

const EnrolExperiment<FigureLogreg> kEnrolFigureLogreg(
    "figure-logreg", "evidence of logistic regressions (Pima, Sonar): error against evaluations");

}  // namespace
}  // namespace crais
