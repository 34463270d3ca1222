// Schedules in 128 and 512 dimensions, fairly chosen.
#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "apps/target_study.h"
#include "core/format.h"

namespace crais {
namespace {

/// From the paper's table of high-dimensional targets: error, spread, and transitions in units of
/// one per chain, tuning and all.
struct Published {
  double error, spread, cost;
};
using PublishedRow = std::vector<Published>;  // Normal, Mixture, Laplace, Student-t
const std::map<int64_t, std::map<std::string, PublishedRow>> kPublished = {
    {128,
     {{"linear", {{991.90, 69.87, 64}, {230.65, 6.16, 64}, {0.36, 0.22, 64}, {1.37, 0.19, 64}}},
      {"sigmoidal", {{907.57, 24.04, 64}, {270.55, 6.42, 64}, {0.07, 1.14, 64}, {1.46, 0.14, 64}}},
      {"geometric", {{780.58, 40.02, 64}, {507.43, 15.04, 64}, {1.21, 0.51, 64}, {2.04, 0.31, 64}}},
      {"CESS*",
       {{856.33, 29.96, 125.8}, {250.06, 6.14, 99.6}, {0.37, 0.90, 73.4}, {1.66, 0.15, 73.8}}},
      {"constant rate",
       {{788.67, 36.25, 78.0}, {308.82, 6.81, 112.0}, {0.68, 0.31, 117.2}, {0.69, 0.27, 98.4}}},
      {"constant rate*",
       {{807.77, 4.36, 88.2}, {228.54, 0.00, 72.0}, {0.01, 0.00, 72.0}, {1.53, 0.00, 73.0}}},
      {"MCD",
       {{114.18, 15.83, 12800},
        {680.60, 13.68, 12800},
        {1.01, 1.33, 12800},
        {1.99, 1.26, 12800}}}}},
    {512,
     {{"linear", {{5279.55, 79.56, 64}, {1087.38, 22.68, 64}, {9.03, 0.77, 64}, {8.16, 0.45, 64}}},
      {"sigmoidal",
       {{4757.13, 59.34, 64}, {1022.60, 23.55, 64}, {6.95, 2.48, 64}, {8.71, 1.24, 64}}},
      {"geometric",
       {{4435.05, 110.36, 64}, {1683.21, 13.73, 64}, {13.17, 0.40, 64}, {13.98, 1.08, 64}}},
      {"CESS*",
       {{4423.42, 204.04, 117.4}, {1272.70, 158.61, 85.2}, {8.27, 1.33, 94.8}, {9.30, 0.56, 81.6}}},
      {"constant rate",
       {{4413.95, 95.75, 129.6}, {1200.12, 27.12, 140.0}, {8.75, 1.84, 110.8}, {8.40, 1.28, 98.4}}},
      {"constant rate*",
       {{4546.65, 57.80, 128.8}, {1069.32, 1.96, 75.0}, {7.93, 0.74, 78.6}, {8.98, 0.00, 73.0}}},
      {"MCD",
       {{707.85, 110.02, 12800},
        {2173.25, 43.78, 12800},
        {16.94, 2.51, 12800},
        {20.95, 0.93, 12800}}}}}};

/// What fixes the scale of the rules' parameters: KL(N(0, I) || target) and the thermodynamic
/// length of the geometric path, in nats.
struct HighTarget {
  std::string name;
  double kl, length;
};

std::vector<HighTarget> high_targets(int64_t dim) {
  const auto d = static_cast<double>(dim);
  const double stretch = std::sqrt(d / 128);
  return {{"normal", 97.197 * d, 43.61 * stretch},
          {"mixture", 3 * 9.139 + 12.5 * (d - 3), 56.46 * stretch},
          {"laplace", 0.0721 * d, 5.49 * stretch},
          {"student-t", 0.0691 * d, 6.24 * stretch}};
}

constexpr int64_t kSteps = 64;
constexpr double kMostSteps = 70;  // of a schedule that is not stretched to 64

/// Estimates of one trained MCD.
constexpr int64_t kReplicates = 10;

struct Training {
  std::string name, flags;
  int64_t seeds;  // each learns anew
};

/// A schedule with the values its parameter is chosen from.
struct Family {
  std::string name;
  std::vector<std::string> flags;
  bool stretched = false;  // or known to have 64 transitions
};

std::vector<Family> families(const HighTarget& target, bool full) {
  const std::string steps = " --steps " + std::to_string(kSteps);
  const std::string stretch = " --interpolate " + std::to_string(kSteps);
  Family cess{"CESS*", {}, true}, rate{"constant rate", {}, false},
      rate_stretched{"constant rate*", {}, true}, length{"constant length*", {}, true};
  for (const char* ratio : {"0.6", "0.7", "0.8", "0.9"})
    cess.flags.push_back("--schedule cess:" + std::string(ratio) + stretch);
  for (int k = full ? 3 : 4; k <= (full ? 9 : 7); ++k) {
    const std::string flags =
        "--schedule constant-rate:" + significant(target.kl / std::exp2(k), 3);
    rate.flags.push_back(flags);
    rate_stretched.flags.push_back(flags + stretch);
    length.flags.push_back(
        "--schedule constant-length:" + significant(target.length / std::exp2(k), 3) + stretch);
  }
  return {{"linear", {"--schedule linear" + steps}, true},
          {"sigmoidal", {"--schedule sigmoidal" + steps}, true},
          {"geometric", {"--schedule geometric" + steps}, true},
          cess,
          rate,
          rate_stretched,
          length};
}

class TableHighDim : public Experiment {
 public:
  std::string title() const override { return "Schedules in high dimensions"; }

  void run(const ExperimentOptions& options, Page& page) const override {
    const int64_t seeds = options.seeds > 0 ? options.seeds : options.full ? 40 : 12;
    const int64_t chains = options.full ? 4096 : 256;
    page.paragraph(
        std::to_string(chains) + " chains, at most 70 transitions of the geometric path, " +
        std::to_string(seeds) +
        " seeds, each with a plan of its own. A star: the tuned plan stretched to 64 transitions. "
        "A "
        "rule's parameter is chosen on the first half of the seeds by the highest mean log Z "
        "(every "
        "estimate is a lower bound on average, so no truth is needed), errors are those of the "
        "second half; the oracle's parameter has the least error there, which is how the published "
        "numbers were chosen. Costs are evaluations a chain, tuning included: of the chosen "
        "parameter alone, and of all that were tried.");
    const std::string own = " --chains " + std::to_string(chains) + " --per-problem";
    for (const int64_t dim :
         options.full ? std::vector<int64_t>{128, 512} : std::vector<int64_t>{128}) {
      block(dim, "fixed", "step size 0.5, as in the paper", " --kernel hmc --step-size 0.5" + own,
            chains, seeds, options, page);
      block(dim, "tuned", "step sizes tuned, persistent momentum", " --kernel ghmc:0.8" + own,
            chains, seeds, options, page);
      diffusion(dim, options, page);
    }
  }

 private:
  /// Monte Carlo Diffusion, trained for as little as in the paper and properly.
  static void diffusion(int64_t dim, const ExperimentOptions& options, Page& page) {
    const std::string own =
        " --dtype float32 --chains " + std::to_string(options.full ? 4096 : 512);
    const std::string shape = "--method mcd:64,patience=0,";
    std::vector<Training> trainings = {{"100 iterations, as in the paper",
                                        shape + "iterations=100,hidden=512" + own,
                                        options.full ? 3 : 2}};
    if (!options.full) trainings = {{"100 iterations", shape + "iterations=100" + own, 2}};
    if (options.full && dim == 128)
      trainings.push_back({"10,000 iterations", shape + "iterations=10000,batch=64" + own, 1});
    std::vector<std::vector<Cell>> rows;
    const std::vector<HighTarget> targets = high_targets(dim);
    for (size_t t = 0; t < targets.size(); ++t) {
      const TargetStudy study(options, targets[t].name + ":" + std::to_string(dim), kReplicates);
      for (const Training& training : trainings) {
        const ArmResult result = study.run("mcd, " + targets[t].name + ", " + training.name,
                                           {{training.name, training.flags}}, training.seeds)[0];
        const Published& published = kPublished.at(dim).at("MCD")[t];
        const std::string theirs = fixed(published.error, 2) + " +- " + fixed(published.spread, 2);
        if (!result.failed.empty()) {
          rows.push_back({targets[t].name, training.name, training.seeds, result.failed, "-", "-",
                          "-", "-", "-", "-", theirs});
          continue;
        }
        const TargetErrors e(result.value, *study.truth());
        rows.push_back({targets[t].name, training.name, training.seeds,
                        Cell::number(result.training_seconds, 0),
                        Cell::number(result.tuning * kReplicates, 0),
                        Cell::number(result.estimating, 0), Cell::number(e.bias, 2),
                        Cell::number(e.std_error, 2), Cell::number(e.absolute, 2),
                        Cell::number(e.root_mean_square, 2), theirs});
      }
    }
    page.table("highdim-" + std::to_string(dim) + "-mcd",
               std::to_string(dim) + " dimensions, Monte Carlo Diffusion of 64 moves: errors, nats",
               {"target", "training", "trainings", "seconds each", "evaluations of one training",
                "evaluations of one estimate", "bias", "SE", "mean |error|", "RMSE", "paper"},
               rows);
  }

  static void block(int64_t dim, const std::string& stem, const std::string& title,
                    const std::string& kernel, int64_t chains, int64_t seeds,
                    const ExperimentOptions& options, Page& page) {
    const std::string size = std::to_string(dim);
    std::vector<std::vector<Cell>> rows;
    const std::vector<HighTarget> targets = high_targets(dim);
    for (size_t t = 0; t < targets.size(); ++t) {
      const TargetStudy study(options, targets[t].name + ":" + size, seeds);
      for (const Family& family : families(targets[t], options.full)) {
        std::vector<Arm> arms;
        for (const auto& flags : family.flags) arms.push_back({family.name, flags + kernel});
        const std::vector<ArmResult> results =
            study.run(stem + ", " + targets[t].name + ", " + family.name, arms);
        const auto known = kPublished.at(dim).find(family.name);
        const Published* published =
            known == kPublished.at(dim).end() ? nullptr : &known->second[t];
        rows.push_back(row_of(targets[t].name, family, results, *study.truth(), chains, published));
      }
    }
    page.table("highdim-" + size + "-" + stem, size + " dimensions, " + title + ": errors, nats",
               {"target", "schedule", "parameter", "transitions", "cost", "with search", "bias",
                "SE", "mean |error|", "RMSE", "oracle's bias", "paper", "its cost"},
               rows);
  }

  static std::vector<Cell> row_of(const std::string& target, const Family& family,
                                  const std::vector<ArmResult>& results, double truth,
                                  int64_t chains, const Published* published) {
    const Cell theirs =
        published ? Cell(fixed(published->error, 2) + " +- " + fixed(published->spread, 2))
                  : Cell("-");
    const Cell their_cost = published ? Cell::number(published->cost, 1) : Cell("-");
    const auto per_chain = [&](double evaluations) {
      return evaluations / static_cast<double>(chains);
    };
    double search = 0, best_log_z = -INFINITY, least_error = INFINITY, oracle_bias = NAN;
    const ArmResult* chosen = nullptr;
    std::string parameter = "-";
    for (size_t i = 0; i < results.size(); ++i) {
      const ArmResult& result = results[i];
      if (!result.failed.empty()) continue;
      search += per_chain(result.evaluations());
      if (!family.stretched && result.transitions > kMostSteps) continue;
      const int64_t half = result.value.size(1) / 2;
      const double log_z = result.value[0].slice(0, 0, half).mean().item<double>();
      const double bias = reported(result).mean().item<double>() - truth;
      if (log_z > best_log_z) {
        best_log_z = log_z;
        chosen = &result;
        const auto colon = family.flags[i].find(':');
        if (colon != std::string::npos)
          parameter =
              family.flags[i].substr(colon + 1, family.flags[i].find(' ', colon) - colon - 1);
      }
      if (std::abs(bias) < least_error) {
        least_error = std::abs(bias);
        oracle_bias = bias;
      }
    }
    if (!chosen)
      return {target, family.name, "none", "-", "-",    "-",       "-",
              "-",    "-",         "-",    "-", theirs, their_cost};
    const TargetErrors e(reported(*chosen), truth);
    return {target,
            family.name,
            parameter,
            Cell::number(chosen->transitions, 0),
            Cell::number(per_chain(chosen->evaluations()), 0),
            Cell::number(search, 0),
            Cell::number(e.bias, 2),
            Cell::number(e.std_error, 2),
            Cell::number(e.absolute, 2),
            Cell::number(e.root_mean_square, 2),
            Cell::number(oracle_bias, 2),
            theirs,
            their_cost};
  }

  /// The seeds that have not chosen.
  static at::Tensor reported(const ArmResult& result) {
    return result.value[0].slice(0, result.value.size(1) / 2);
  }
};

const Enrol<ExperimentRegistry> kEnrol(
    "table-highdim",
    {"table-highdim", "schedules in 128 (and 512) dimensions, step sizes fixed and tuned",
     "table-highdim", [](Spec&) { return std::make_unique<TableHighDim>(); }});

}  // namespace
}  // namespace crais
