// Evidence of Bayesian logistic regressions: error against evaluations, base by base.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "data/two_class.h"
#include "programs/reproduce/choice.h"
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

  std::string stem() const { return data + "-" + std::to_string(std::lround(variance)); }
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
const std::string kOwn = " --kernel ghmc:0.8 --per-problem";
const std::vector<Start> kStarts = {{"prior", "--base prior", "8", "1", "0.6"},
                                    {"laplace", "--base laplace", "0.02", "0.05", "0.98"},
                                    {"pilot", "--base pilot:64,steps=32", "0.05", "0.1", "0.95"}};

/// A sampler and its schedule, at any length.
struct Line {
  std::string name, schedule, flags;

  std::string of_length(int64_t steps) const {
    return flags + " " + flags_of_plans(schedule, steps);
  }
};

/// All that are compared from one start; the first is what others are compared with.
std::vector<Line> lines(const Start& start) {
  std::vector<Line> all;
  const auto add = [&](const std::string& name, const std::string& schedule,
                       const std::string& more = "") {
    all.push_back({name, schedule, start.flags + kOwn + more});
  };
  add("linear", "linear");
  add("sigmoidal", "sigmoidal");
  add("geometric", "geometric");
  add("constant rate", "constant-rate:" + start.rate);
  add("constant length", "constant-length:" + start.length);
  add("CESS " + start.cess, "cess:" + start.cess);
  add("ESS 0.5", "ess:0.5");
  add("SMC, constant length", "constant-length:" + start.length,
      " --resample systematic --weighted");
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
  std::filesystem::path copy = options.out / (regression.data + "-first-line-lost.csv");
  make_output_folder(options.out);
  write_file_atomic(copy, table.substr(table.find('\n') + 1));
  return copy;
}

class FigureLogreg : public Experiment {
 public:
  std::string title() const override { return "Evidence of logistic regressions"; }
  std::set<std::string> flags() const override { return {"seeds", "data-dir"}; }
  std::vector<Fault> faults() const override {
    return {{"likelihood-sign", "the loss is added to the log prior", "subtracted",
             "the target is another density: its log Z is positive"},
            {"header", "the first case is read as a header", "every line is a case",
             "Sonar has 207 cases (up to 0.5 nats), Pima 767"},
            {"", "the prior's variance is 25 where the text says 5", "either, said",
             "6 nats for Pima, 19 for Sonar"}};
  }

  void run(const ExperimentOptions& options, Page& page) const override {
    const int64_t seeds = options.seeds > 0 ? options.seeds : options.full ? 20 : 6;
    const int64_t chains = options.full ? 256 : 64;
    page.paragraph(
        "Pima (768 cases, 8 features) and Sonar (208 cases, 60 features), standardised, no "
        "intercept, prior N(0, variance I). " +
        std::to_string(chains) + " chains, " + std::to_string(seeds) +
        " seeds, each with a base and a plan of its own; persistent momentum, tuned step sizes. "
        "Evaluations are all there are: base (curvatures at their multiply-adds), pilot and "
        "estimate. A plan that a rule found is stretched to the length that is asked for. Half of "
        "the seeds choose by the highest mean log Z, the others are reported; the oracle has the "
        "least error on those.");
    std::vector<std::vector<Cell>> references;
    with_faults(options, seeds, references);
    for (const Regression& regression : kRegressions) {
      if (!options.full && regression.variance != 25) continue;
      const DensityExperiment experiment(options, regression.target(), seeds);
      const double truth = reference(experiment, regression, regression.target(), references);
      const Comparison comparison{experiment, regression.stem(), truth,
                                  " --chains " + std::to_string(chains)};
      compare_schedules(comparison, options.full, page);
      compare_orders(comparison, options.full, page);
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

  struct Comparison {
    const DensityExperiment& experiment;
    std::string stem;
    double truth;
    std::string chains;
  };

  /// Every schedule from every start, at several lengths.
  static void compare_schedules(const Comparison& c, bool full, Page& page) {
    const std::vector<int64_t> lengths =
        full ? std::vector<int64_t>{16, 64, 256, 1024} : std::vector<int64_t>{16, 128};
    std::vector<std::vector<Cell>> best, all;
    for (const Start& start : kStarts) {
      const std::vector<Line> compared = lines(start);
      std::vector<Variant> variants;
      for (const Line& line : compared)
        for (const int64_t steps : lengths)
          variants.push_back({line.name, line.of_length(steps) + c.chains});
      const std::vector<VariantResult> results =
          c.experiment.run(c.stem + ", from " + start.name, variants);
      Plot plot{c.stem + ", from " + start.name,
                "evaluations, base and pilot included",
                "RMSE of log Z, nats",
                true,
                true,
                {}};
      for (size_t i = 0; i < compared.size(); ++i) {
        Series series{compared[i].name, {}, {}, {}};
        for (size_t k = 0; k < lengths.size(); ++k) {
          const VariantResult& result = results[i * lengths.size() + k];
          all.push_back(row_of(start.name, compared[i].name, lengths[k], result, c.truth));
          if (!result.failed.empty()) continue;
          series.x.push_back(result.evaluations());
          series.y.push_back(TargetErrors(result.value[0], c.truth).root_mean_square);
        }
        plot.series.push_back(series);
      }
      page.plot(c.stem + "-" + start.name, plot);
      for (size_t k = 0; k < lengths.size(); ++k) {
        std::vector<VariantResult> same_length;
        same_length.reserve(compared.size());
        for (size_t i = 0; i < compared.size(); ++i)
          same_length.push_back(results[i * lengths.size() + k]);
        best.push_back(best_row(start.name, lengths[k], compared, same_length, "linear", c.truth));
      }
    }
    page.table(c.stem, c.stem + ": the best schedule from each start, errors of log Z, nats",
               {"start", "transitions", "chosen", "evaluations", "bias", "SE", "RMSE",
                "linear's RMSE", "its evaluations", "t", "oracle's", "its RMSE"},
               best);
    page.folded_table(c.stem + "-all", c.stem + ": every schedule, errors of log Z, nats",
                      {"start", "schedule", "transitions", "evaluations", "of them base", "tuning",
                       "bias", "SE", "RMSE"},
                      all);
  }

  /// Constant rate along power paths, all stretched to as many transitions.
  static void compare_orders(const Comparison& c, bool full, Page& page) {
    constexpr int64_t kSteps = 64;
    std::vector<std::string> orders = {"0", "0.5", "1"};
    if (full) orders.insert(orders.end(), {"-0.5", "0.25", "0.75", "2"});
    std::vector<std::vector<Cell>> best, all;
    for (const Start& start : kStarts) {
      std::vector<Line> compared;
      std::vector<Variant> variants;
      for (const std::string& alpha : orders) {
        const MatchedPlans plans =
            c.experiment.match(start.flags + kOwn + c.chains + " --path power:" + alpha +
                                   " --schedule constant-rate:@",
                               kSteps);
        if (plans.transitions == 0) {
          all.push_back({start.name, "alpha " + alpha, kSteps, "no setting makes a plan", "-", "-",
                         "-", "-", "-"});
          continue;
        }
        compared.push_back({"alpha " + alpha, plans.flags, {}});
        variants.push_back(
            {"alpha " + alpha, plans.flags + " --interpolate " + std::to_string(kSteps)});
      }
      const std::vector<VariantResult> results =
          c.experiment.run(c.stem + ", orders from " + start.name, variants);
      for (size_t i = 0; i < compared.size(); ++i)
        all.push_back(row_of(start.name, compared[i].name, kSteps, results[i], c.truth));
      best.push_back(best_row(start.name, kSteps, compared, results, "alpha 0", c.truth));
    }
    page.table(c.stem + "-orders",
               c.stem + ": constant rate of any order, stretched to 64, errors of log Z, nats",
               {"start", "transitions", "chosen", "evaluations", "bias", "SE", "RMSE",
                "alpha 0's RMSE", "its evaluations", "t", "oracle's", "its RMSE"},
               best);
    page.folded_table(c.stem + "-orders-all", c.stem + ": every order, errors of log Z, nats",
                      {"start", "order", "transitions", "evaluations", "of them base", "tuning",
                       "bias", "SE", "RMSE"},
                      all);
  }

  static std::vector<Cell> row_of(const std::string& start, const std::string& name, int64_t steps,
                                  const VariantResult& result, double truth) {
    if (!result.failed.empty())
      return {start, name, steps, result.reason(), "-", "-", "-", "-", "-"};
    const TargetErrors e(result.value[0], truth);
    return {start,
            name,
            steps,
            Cell::number(result.evaluations(), 0),
            Cell::number(result.base, 0),
            Cell::number(result.tuning, 0),
            Cell::number(e.bias, 3),
            Cell::number(e.std_error, 3),
            Cell::number(e.root_mean_square, 3)};
  }

  /// The choice among results of one length, beside the one that is called `usual`.
  static std::vector<Cell> best_row(const std::string& start, int64_t steps,
                                    const std::vector<Line>& compared,
                                    const std::vector<VariantResult>& results,
                                    const std::string& usual, double truth) {
    const auto rmse = [truth](const at::Tensor& log_z) {
      return TargetErrors(log_z, truth).root_mean_square;
    };
    std::vector<at::Tensor> values(results.size());
    int64_t choosing = 0;  // half of the seeds
    for (size_t i = 0; i < results.size(); ++i) {
      if (!results[i].failed.empty()) continue;
      values[i] = results[i].value[0];
      choosing = values[i].size(0) / 2;
    }
    const Choice choice = choose(values, choosing, rmse);
    if (choice.chosen == Choice::kNone)
      return {start, steps, "none", "-", "-", "-", "-", "-", "-", "-", "-", "-"};
    const at::Tensor chosen = values[choice.chosen].slice(0, choosing);
    const TargetErrors e(chosen, truth);
    std::vector<Cell> row = {start,
                             steps,
                             compared[choice.chosen].name,
                             Cell::number(results[choice.chosen].evaluations(), 0),
                             Cell::number(e.bias, 3),
                             Cell::number(e.std_error, 3),
                             Cell::number(e.root_mean_square, 3)};
    const auto named = std::find_if(compared.begin(), compared.end(),
                                    [&](const Line& line) { return line.name == usual; });
    const auto place = static_cast<size_t>(named - compared.begin());
    if (named == compared.end() || !values[place].defined()) {
      row.insert(row.end(), {"no plan", "-", "-"});
    } else {
      const at::Tensor others = values[place].slice(0, choosing);
      row.push_back(Cell::number(rmse(others), 3));
      row.push_back(Cell::number(results[place].evaluations(), 0));
      row.push_back(
          place == choice.chosen
              ? Cell("-")
              : Cell::number(Paired((chosen - truth).abs(), (others - truth).abs()).t, 1));
    }
    row.push_back(compared[choice.oracle].name);
    row.push_back(Cell::number(rmse(values[choice.oracle].slice(0, choosing)), 3));
    return row;
  }
};

const Enrol<ExperimentRegistry> kEnrolFigureLogreg(
    "figure-logreg",
    {"figure-logreg", "evidence of logistic regressions (Pima, Sonar): error against evaluations",
     "figure-logreg", [](Spec&) { return std::make_unique<FigureLogreg>(); }});

}  // namespace
}  // namespace crais
