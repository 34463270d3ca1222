// Evidence of Bayesian logistic regressions: error against evaluations, base by base.
#include <cmath>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "data/two_class.h"
#include "programs/reproduce/density_experiment.h"
#include "util/files.h"

namespace crais {
namespace {

struct Regression {
  std::string data;
  double variance;  // of the prior
  // log Z to about 0.005 (Pima) and 0.05 (Sonar), by independent Laplace and AIS
  double published;
  double without_first_line;  // the same with a case less; NAN: not there

  std::string target() const {
    return "logistic-regression:" + data + ",variance=" + std::to_string(std::lround(variance));
  }
};
const std::vector<Regression> kRegressions = {{"pima", 25, -438.98, NAN},
                                              {"pima", 5, -432.70, NAN},
                                              {"sonar", 25, -144.53, -144.94},
                                              {"sonar", 5, -125.92, -126.10}};

/// A base with the rates at which its pilot takes a few dozen steps.
struct Start {
  std::string name, flags, rate, length, cess;
};
const std::vector<Start> kStarts = {{"prior", "--base prior", "8", "1", "0.6"},
                                    {"Laplace", "--base laplace", "0.02", "0.05", "0.98"},
                                    {"pilot", "--base pilot:64,steps=32", "0.05", "0.1", "0.95"}};

/// A variant at any length.
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

/// The prior over the likelihood where their product is meant: log p(w) - log p(y | X, w).
class FlippedLikelihood : public Target {
 public:
  FlippedLikelihood(std::shared_ptr<const Target> posterior, double variance)
      : posterior_(std::move(posterior)), variance_(variance) {}

  int64_t num_problems() const override { return posterior_->num_problems(); }
  int64_t dim() const override { return posterior_->dim(); }
  at::TensorOptions options() const override { return posterior_->options(); }
  at::Tensor log_density(const at::Tensor& w) const override {
    return 2 * log_prior(w) - posterior_->log_density(w);
  }
  Evaluation evaluate(const at::Tensor& w) const override {
    const Evaluation posterior = posterior_->evaluate(w);
    return {2 * log_prior(w) - posterior.log_density, -2 * w / variance_ - posterior.grad};
  }
  bool can_select() const override { return true; }
  std::shared_ptr<const Target> select(const at::Tensor& index) const override {
    return std::make_shared<FlippedLikelihood>(posterior_->select(index), variance_);
  }

 private:
  at::Tensor log_prior(const at::Tensor& w) const {
    return -0.5 / variance_ * w.square().sum(-1) -
           0.5 * static_cast<double>(dim()) * std::log(2 * M_PI * variance_);
  }

  std::shared_ptr<const Target> posterior_;
  double variance_;
};

/// A copy of a table without its first line, which the released code took for a header.
std::filesystem::path without_first_line(const Regression& regression,
                                         const ExperimentOptions& options) {
  const std::string table = read_file(read_two_class(regression.data, options.data_dir).source);
  const std::filesystem::path copy = options.out / (regression.data + "-first-line-lost.csv");
  make_output_folder(options.out);
  write_file_atomic(copy, table.substr(table.find('\n') + 1));
  return copy;
}

class FigureLogreg : public Experiment {
 public:
  std::string title() const override { return "Evidence of logistic regressions"; }
  std::vector<Fault> faults() const override {
    return {{"likelihood-sign", "the loss is added to the log prior", "subtracted",
             "the target is another density: its log Z is positive"},
            {"header", "the first case is read as a header", "every line is a case",
             "Sonar has 207 cases (up to 0.5 nats), Pima 767"},
            {"", "the prior's variance is 25 where the text says 5", "either, said",
             "6 nats for Pima, 19 for Sonar"}};
  }

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
    with_faults(options, seeds, references);
    for (const Regression& regression : kRegressions) {
      const DensityExperiment experiment(options, regression.target(), seeds);
      const double truth = reference(experiment, regression, regression.target(), references);
      compare(experiment, regression, truth, own, options.full, page);
    }
    page.table("references", "What errors are measured against: long runs from a Laplace base",
               {"target", "log Z", "SE", "from another base", "its SE", "elsewhere"}, references);
  }

 private:
  /// What the faults do to log Z, by runs as long as the references'.
  static void with_faults(const ExperimentOptions& options, int64_t seeds,
                          std::vector<std::vector<Cell>>& rows) {
    for (const Regression& regression : kRegressions) {
      if (options.has("header")) {
        const std::string name =
            "logistic-regression:" + without_first_line(regression, options).string() +
            ",variance=" + std::to_string(std::lround(regression.variance));
        const DensityExperiment experiment(options, name, seeds);
        Regression lost = regression;
        lost.published = regression.without_first_line;
        reference(experiment, lost, regression.target() + " (fault: header)", rows);
      }
      if (options.has("likelihood-sign")) {
        const DensityExperiment experiment(
            options, "fault:likelihood-sign:" + regression.target(), seeds,
            [regression](const TargetOptions& target_options) {
              return std::make_unique<FlippedLikelihood>(
                  TargetRegistry::instance().make("target", regression.target(), target_options),
                  regression.variance);
            });
        const VariantResult found =
            experiment.run(regression.target() + ", fault",
                           {{"prior", "--kernel ghmc:0.8 --chains 64 --steps 1024"}}, 1, 1000)[0];
        const Spread log_normalizer(found.value[0]);
        rows.push_back({regression.target() + " (fault: likelihood-sign)",
                        Cell::number(log_normalizer.mean, 4),
                        Cell::number(log_normalizer.std_error, 4), "-", "-", "-"});
      }
    }
  }

  /// Two long runs from different bases; the one from the Laplace base counts.
  static double reference(const DensityExperiment& experiment, const Regression& regression,
                          const std::string& name, std::vector<std::vector<Cell>>& rows) {
    const std::string own = " --kernel ghmc:0.8 --chains 64 --steps 1024";
    const std::vector<VariantResult> runs = experiment.run(
        name + ", reference",
        {{"laplace", "--base laplace:1.1" + own}, {"pilot", "--base pilot" + own}}, 1, 1000);
    const Spread laplace(runs[0].value[0]), pilot(runs[1].value[0]);
    rows.push_back(
        {name, Cell::number(laplace.mean, 4), Cell::number(laplace.std_error, 4),
         Cell::number(pilot.mean, 4), Cell::number(pilot.std_error, 4),
         std::isnan(regression.published) ? Cell("-") : Cell::number(regression.published, 2)});
    return laplace.mean;
  }

  static void compare(const DensityExperiment& experiment, const Regression& regression,
                      double truth, const std::string& own, bool full, Page& page) {
    std::vector<int64_t> lengths = {16, 64, 256};
    if (full) lengths.insert(lengths.end(), {1024, 4096});
    std::vector<Variant> variants;
    const std::vector<Line> all = lines(own);
    for (const Line& line : all)
      for (const int64_t steps : lengths)
        variants.push_back({line.name, line.flags + " --steps " + std::to_string(steps) +
                                           " --interpolate " + std::to_string(steps)});
    const std::vector<VariantResult> results = experiment.run(regression.target(), variants);
    std::vector<std::vector<Cell>> rows;
    Plot plot{regression.target(), "evaluations", "RMSE of log Z, nats", true, true, {}};
    for (size_t i = 0; i < variants.size(); ++i) {
      const VariantResult& result = results[i];
      const size_t length = i % lengths.size();
      const bool drawn = all[i / lengths.size()].drawn;
      if (drawn && length == 0) plot.series.push_back({variants[i].name, {}, {}, {}});
      if (!result.failed.empty()) {
        rows.push_back(
            {variants[i].name, lengths[length], result.reason(), "-", "-", "-", "-", "-"});
        continue;
      }
      const TargetErrors e(result.value[0], truth);
      rows.push_back({variants[i].name, lengths[length], Cell::number(result.evaluations(), 0),
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
        {"variant", "transitions", "evaluations", "of them base", "tuning", "bias", "SE", "RMSE"},
        rows);
    page.plot(stem, plot);
  }
};

const Enrol<ExperimentRegistry> kEnrolFigureLogreg(
    "figure-logreg",
    {"figure-logreg", "evidence of logistic regressions (Pima, Sonar): error against evaluations",
     "figure-logreg", [](Spec&) { return std::make_unique<FigureLogreg>(); }});

}  // namespace
}  // namespace crais
