// Evidence of Bayesian logistic regressions: error against evaluations, base by base.
#include <cmath>
#include <string>
#include <vector>

#include "apps/target_study.h"

namespace crais {
namespace {

struct Regression {
  std::string data;
  double variance;   // of the prior
  double published;  // log Z to about 0.005 (Pima) and 0.05 (Sonar), by independent Laplace and AIS

  std::string target() const {
    return "logistic-regression:" + data + ",variance=" + std::to_string(std::lround(variance));
  }
};
const std::vector<Regression> kRegressions = {
    {"pima", 25, -438.98}, {"pima", 5, -432.70}, {"sonar", 25, -144.53}, {"sonar", 5, -125.92}};

/// A base with the rates at which its pilot takes a few dozen steps.
struct Start {
  std::string name, flags, rate, length, cess;
};
const std::vector<Start> kStarts = {{"prior", "--base prior", "8", "1", "0.6"},
                                    {"Laplace", "--base laplace", "0.02", "0.05", "0.98"},
                                    {"pilot", "--base pilot:64,steps=32", "0.05", "0.1", "0.95"}};

/// An arm at any length.
struct Line {
  std::string name, flags;
  bool drawn;
};

std::vector<Line> lines(const std::string& own) {
  std::vector<Line> all;
  for (const Start& start : kStarts) {
    const auto add = [&](const std::string& sampler, const std::string& schedule,
                         const std::string& flags, bool drawn) {
      all.push_back({sampler + ", " + start.name + ", " + schedule.substr(0, schedule.find(':')),
                     start.flags + own + " --schedule " + schedule + flags, drawn});
    };
    add("AIS", "linear", "", true);
    add("AIS", "sigmoidal", "", false);
    add("AIS", "geometric", "", false);
    add("AIS", "constant-rate:" + start.rate, "", true);
    add("AIS", "constant-length:" + start.length, "", true);
    add("AIS", "cess:" + start.cess, "", false);
    add("SMC", "constant-length:" + start.length, " --resample systematic --weighted", true);
  }
  return all;
}

class FigureLogreg : public Experiment {
 public:
  std::string title() const override { return "Evidence of logistic regressions"; }

  void run(const ExperimentOptions& options, Page& page) const override {
    const int64_t seeds = options.seeds > 0 ? options.seeds : options.full ? 20 : 8;
    const int64_t chains = options.full ? 256 : 64;
    page.paragraph(
        "Pima (768 cases, 8 features) and Sonar (208 cases, 60 features), standardised, no "
        "intercept, prior N(0, variance I). " +
        std::to_string(chains) + " chains, " + std::to_string(seeds) +
        " seeds, each with a base and a plan of its own; persistent momentum, tuned step sizes. "
        "Evaluations are all there are: base (curvatures at their multiply-adds), pilot and "
        "estimate. A plan that a rule found is stretched to the length that is asked for.");
    const std::string own = " --kernel ghmc:0.8 --per-problem --chains " + std::to_string(chains);
    std::vector<std::vector<Cell>> references;
    for (const Regression& regression : kRegressions) {
      const TargetStudy study(options, regression.target(), seeds);
      const double truth = reference(study, regression, references);
      compare(study, regression, truth, own, options.full, page);
    }
    page.table("references", "What errors are measured against: long runs from a Laplace base",
               {"target", "log Z", "SE", "from another base", "its SE", "elsewhere"}, references);
  }

 private:
  /// Two long runs from different bases; the one from the Laplace base counts.
  static double reference(const TargetStudy& study, const Regression& regression,
                          std::vector<std::vector<Cell>>& rows) {
    const std::string own = " --kernel ghmc:0.8 --chains 64 --steps 1024";
    const std::vector<ArmResult> runs = study.run(
        regression.target() + ", reference",
        {{"laplace", "--base laplace:1.1" + own}, {"pilot", "--base pilot" + own}}, 1, 1000);
    const Spread laplace(runs[0].value[0]), pilot(runs[1].value[0]);
    rows.push_back({regression.target(), Cell::number(laplace.mean, 4),
                    Cell::number(laplace.std_error, 4), Cell::number(pilot.mean, 4),
                    Cell::number(pilot.std_error, 4), Cell::number(regression.published, 2)});
    return laplace.mean;
  }

  static void compare(const TargetStudy& study, const Regression& regression, double truth,
                      const std::string& own, bool full, Page& page) {
    std::vector<int64_t> lengths = {16, 64, 256};
    if (full) lengths.insert(lengths.end(), {1024, 4096});
    std::vector<Arm> arms;
    const std::vector<Line> all = lines(own);
    for (const Line& line : all)
      for (const int64_t steps : lengths)
        arms.push_back({line.name, line.flags + " --steps " + std::to_string(steps) +
                                       " --interpolate " + std::to_string(steps)});
    const std::vector<ArmResult> results = study.run(regression.target(), arms);
    std::vector<std::vector<Cell>> rows;
    Plot plot{regression.target(), "evaluations", "RMSE of log Z, nats", true, true, {}};
    for (size_t i = 0; i < arms.size(); ++i) {
      const ArmResult& result = results[i];
      const size_t length = i % lengths.size();
      const bool drawn = all[i / lengths.size()].drawn;
      if (drawn && length == 0) plot.series.push_back({arms[i].name, {}, {}, {}});
      if (!result.failed.empty()) {
        rows.push_back({arms[i].name, lengths[length], result.failed, "-", "-", "-", "-", "-"});
        continue;
      }
      const TargetErrors e(result.value[0], truth);
      rows.push_back({arms[i].name, lengths[length], Cell::number(result.evaluations(), 0),
                      Cell::number(result.base, 0), Cell::number(result.tuning, 0),
                      Cell::number(e.bias, 3), Cell::number(e.std_error, 3),
                      Cell::number(e.root_mean_square, 3)});
      if (!drawn) continue;
      plot.series.back().x.push_back(result.evaluations());
      plot.series.back().y.push_back(e.root_mean_square);
    }
    const std::string stem =
        regression.data + "-" + std::to_string(std::lround(regression.variance));
    page.table(
        stem, regression.target() + ": errors of log Z, nats",
        {"arm", "transitions", "evaluations", "of them base", "tuning", "bias", "SE", "RMSE"},
        rows);
    page.plot(stem, plot);
  }
};

const Enrol<ExperimentRegistry> kEnrol(
    "figure-logreg",
    {"figure-logreg", "evidence of logistic regressions (Pima, Sonar): error against evaluations",
     "figure-logreg", [](Spec&) { return std::make_unique<FigureLogreg>(); }});

}  // namespace
}  // namespace crais
