// Schedules in 128 and 512 dimensions, fairly chosen.
#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "programs/reproduce/density_experiment.h"
#include "util/format.h"

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
  std::string options;
};

std::vector<HighTarget> high_targets(int64_t dim) {
  const auto d = static_cast<double>(dim);
  const double stretch = std::sqrt(d / 128);
  return {{"normal", 97.197 * d, 43.61 * stretch, ""},
          {"mixture", 3 * 9.139 + 12.5 * (d - 3), 56.46 * stretch, ""},
          {"laplace", 0.0721 * d, 5.49 * stretch, ""},
          {"student-t", 0.0691 * d, 6.24 * stretch, ""}};
}

constexpr int64_t kSteps = 64;
constexpr double kMostSteps = 70;  // of a schedule that is not stretched to 64

/// Estimates of one trained MCD.
constexpr int64_t kReplicates = 10;

struct Training {
  std::string name, flags;
  int64_t seeds;  // each learns anew
};

/// A rule with the settings that it is chosen from.
struct Family {
  std::string name;
  std::vector<Variant> variants;  // named by what they set
  bool stretched = false;         // or known to have 64 transitions
};

/// Constant rate of the power path of every order, stretched. Away from order 0 no chain gets to
/// the target in high dimensions, V keeps its largest value and about log(1e12) V / delta
/// transitions are made; near the target it takes D / delta.
std::vector<Variant> orders(const std::string& own) {
  std::vector<Variant> variants;
  const auto add = [&](double alpha, std::vector<double> deltas) {
    for (const double delta : deltas) {
      const std::string order = shortest(alpha), rate = significant(delta, 3);
      variants.push_back(
          {"alpha " + order + ", " + rate,
           "--path power:" + order + " --max-steps 1024 --schedule constant-rate:" + rate + own});
    }
  };
  for (const double alpha : {0.25, 0.5, 0.75}) {
    const double largest = 1 / (alpha * (1 - alpha));  // what D_f can be
    add(alpha, {largest / 2, largest / 16});
  }
  // Here V is bounded by the number of pilot chains only.
  add(1, {100, 1});
  add(2, {1e6, 1e3});
  add(-0.5, {1e3, 3});
  return variants;
}

std::vector<Family> families(const HighTarget& target, bool every_order) {
  const std::string steps = " --steps " + std::to_string(kSteps);
  const std::string stretch = " --interpolate " + std::to_string(kSteps);
  Family cess{"CESS*", {}, true}, rate{"constant rate", {}, false},
      rate_stretched{"constant rate*", {}, true}, length{"constant length*", {}, true};
  for (const char* ratio : {"0.6", "0.7", "0.8", "0.9"})
    cess.variants.push_back({ratio, "--schedule cess:" + std::string(ratio) + stretch});
  const auto delta_of = [&](int k) { return significant(target.kl / std::exp2(k), 3); };
  for (int k = 3; k <= 6; ++k)
    rate.variants.push_back({delta_of(k), "--schedule constant-rate:" + delta_of(k)});
  for (int k = 4; k <= 8; ++k) {
    const std::string delta = delta_of(k);
    rate_stretched.variants.push_back({delta, "--schedule constant-rate:" + delta + stretch});
    const std::string step = significant(target.length / std::exp2(k), 3);
    length.variants.push_back({step, "--schedule constant-length:" + step + stretch});
  }
  const auto heuristic = [&](const std::string& name) {
    return Family{name, {{"-", "--schedule " + name + steps}}, true};
  };
  std::vector<Family> all = {heuristic("linear"),
                             heuristic("sigmoidal"),
                             heuristic("geometric"),
                             cess,
                             rate,
                             rate_stretched,
                             length};
  if (every_order) {
    Family any{"constant rate*, any alpha", orders(stretch), true};
    any.variants.insert(any.variants.end(), rate_stretched.variants.begin(),
                        rate_stretched.variants.end());
    all.push_back(any);
  }
  return all;
}

class TableHighDim : public Experiment {
 public:
  /// 0: 128, and with --full 512 too.
  explicit TableHighDim(int64_t dim) : dim_(dim) {}

  std::string title() const override {
    return "Schedules in " + (dim_ > 0 ? std::to_string(dim_) : "high") + " dimensions";
  }
  std::vector<Fault> faults() const override {
    return {
        {"mean-zero", "the target normal has mean 1", "mean 0, as the text says",
         "the published numbers are those of mean 1, as are the rows here; mean 0 beside them"},
        {"", "ESS and CESS are of weights without the last density, and one of them twice",
         "increments of the weights, by bisection on cached densities",
         "the baseline's schedules, and their cost: a right search evaluates nothing"},
        {"", "MCD's network has one output, misses its last block and keeps the step size fixed",
         "an output for each coordinate, all blocks, learned steps",
         "its errors: compare the last table"},
        {"", "constant rate of order 0.5 and 1 underflows and jumps to the target at once",
         "everything in logarithms, a mass ratio that is never below its bound",
         "which orders there are to choose from"}};
  }

  void run(const ExperimentOptions& options, Page& page) const override {
    if (dim_ == 0) {
      TableHighDim(128).run(options, page);
      if (options.full) TableHighDim(512).run(options, page);
      return;
    }
    const Design design = design_of(options, true);
    page.paragraph(
        "At most 70 transitions, " + std::to_string(design.choosing) + " + " +
        std::to_string(design.reporting) +
        " seeds, each with a plan of its own. A star: the tuned plan stretched to 64 transitions. "
        "A "
        "rule's setting is chosen on the first seeds by the highest mean log Z (every estimate is "
        "a "
        "lower bound on average, so no truth is needed), errors are those of the others; the "
        "oracle's setting has the least error there, which is how the published numbers were "
        "chosen. t compares |error| with linear, seed by seed. Evaluations of density and gradient "
        "are a chain's, tuning included: of the chosen setting alone, and of all that were tried; "
        "Comput is the paper's unit, transitions with those of a pilot of as many chains.");
    block("fixed", "step size 0.5, as in the paper", " --kernel hmc --step-size 0.5", true, options,
          page);
    block("tuned", "step sizes tuned, persistent momentum", " --kernel ghmc:0.8", false, options,
          page);
    diffusion(dim_, options, page);
  }

 private:
  struct Design {
    int64_t chains, choosing, reporting;
  };
  /// Chains as in the paper for its own settings; a quarter says enough of others.
  Design design_of(const ExperimentOptions& options, bool as_published) const {
    const int64_t chains = !options.full ? 256 : as_published ? 4096 : 1024;
    Design design{chains, options.full ? 10 : 6, options.full ? 20 : 6};
    if (dim_ > 128) design.choosing = design.reporting = 5;
    if (options.seeds > 0) {
      design.choosing = std::max<int64_t>(1, options.seeds / 3);
      design.reporting = options.seeds - design.choosing;
    }
    return design;
  }

  /// Monte Carlo Diffusion, trained for as little as in the paper and properly.
  static void diffusion(int64_t dim, const ExperimentOptions& options, Page& page) {
    const std::string own =
        " --dtype float32 --chains " + std::to_string(options.full ? 4096 : 512);
    const std::string shape = "--method mcd:64,patience=0,";
    std::vector<Training> trainings;
    if (options.full)
      trainings.push_back(
          {"100 iterations, as in the paper", shape + "iterations=100,hidden=512" + own, 3});
    else
      trainings.push_back({"100 iterations", shape + "iterations=100" + own, 2});
    if (options.full && dim == 128)
      trainings.push_back({"10,000 iterations", shape + "iterations=10000,batch=64" + own, 1});
    std::vector<std::vector<Cell>> rows;
    const std::vector<HighTarget> targets = high_targets(dim);
    for (size_t t = 0; t < targets.size(); ++t) {
      const DensityExperiment experiment(options, targets[t].name + ":" + std::to_string(dim),
                                         kReplicates);
      for (const Training& training : trainings) {
        const VariantResult result =
            experiment.run("mcd, " + targets[t].name + ", " + training.name,
                           {{training.name, training.flags}}, training.seeds)[0];
        const Published& published = kPublished.at(dim).at("MCD")[t];
        const Cell theirs = Cell::with_spread(published.error, published.spread, 2);
        if (!result.failed.empty()) {
          rows.push_back({targets[t].name, training.name, training.seeds, result.reason(), "-", "-",
                          "-", "-", "-", "-", theirs});
          continue;
        }
        const TargetErrors e(result.value, *experiment.truth());
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

  void block(const std::string& stem, const std::string& title, const std::string& kernel,
             bool as_published, const ExperimentOptions& options, Page& page) const {
    const std::string size = std::to_string(dim_);
    const Design design = design_of(options, as_published);
    const std::string own =
        kernel + " --dtype float32 --chains " + std::to_string(design.chains) + " --per-problem";
    std::vector<std::vector<Cell>> rows;
    std::vector<HighTarget> targets = high_targets(dim_);
    if (options.has("mean-zero") && as_published) {
      // KL(N(0, 1) || N(0, 0.01)) and about the length of its geometric path, log(100) / sqrt(2).
      const auto d = static_cast<double>(dim_);
      targets.push_back({"normal", 47.197 * d, 3.26 * std::sqrt(d), ",mean=0"});
    }
    for (size_t t = 0; t < targets.size(); ++t) {
      const std::string name = targets[t].name + ":" + size + targets[t].options;
      const DensityExperiment experiment(options, name, design.choosing + design.reporting);
      at::Tensor linear;  // |error| of each seed
      Plot plot{name + ", " + title,
                "evaluations a chain, tuning included",
                "mean |error|, nats",
                true,
                true,
                {}};
      for (const Family& family :
           families(targets[t], as_published && targets[t].options.empty())) {
        std::vector<Variant> variants = family.variants;
        for (Variant& variant : variants) variant.flags += own;
        const std::vector<VariantResult> results =
            experiment.run(stem + ", " + name + ", " + family.name, variants);
        const auto known = kPublished.at(dim_).find(family.name);
        const bool published = known != kPublished.at(dim_).end() && t < known->second.size();
        rows.push_back(row_of(name, family, results, *experiment.truth(),
                              published ? &known->second[t] : nullptr, design, linear));
        plot.series.push_back(errors_of(family, results, *experiment.truth(), design));
      }
      page.plot("highdim-" + size + "-" + stem + "-" + targets[t].name +
                    (targets[t].options.empty() ? "" : "-mean-zero"),
                plot);
    }
    page.table("highdim-" + size + "-" + stem,
               size + " dimensions, " + std::to_string(design.chains) + " chains, " + title +
                   ": errors, nats",
               {"target", "schedule", "setting", "transitions", "evaluations", "with search",
                "Comput", "bias", "SE", "mean |error|", "RMSE", "t", "oracle's setting",
                "oracle's bias", "paper", "its Comput"},
               rows);
  }

  /// Pilots have fewer chains than the estimate here, so they cost less than they count.
  static double comput(const VariantResult& result, const Design& design) {
    const auto pilots = static_cast<double>(std::min<int64_t>(design.chains, 256));
    return result.transitions + std::max(0.0, result.tuning / pilots - 1);
  }

  /// Every setting of a rule, cheapest first.
  static Series errors_of(const Family& family, const std::vector<VariantResult>& results,
                          double truth, const Design& design) {
    std::vector<std::pair<double, Spread>> points;
    for (const VariantResult& result : results)
      if (result.failed.empty())
        points.emplace_back(result.evaluations() / static_cast<double>(design.chains),
                            Spread((result.value[0] - truth).abs()));
    std::sort(points.begin(), points.end(),
              [](const auto& a, const auto& b) { return a.first < b.first; });
    Series series{family.name, {}, {}, {}};
    for (const auto& [cost, error] : points) {
      series.add(cost, error.mean, error.std_error);
    }
    return series;
  }

  static std::vector<Cell> row_of(const std::string& target, const Family& family,
                                  const std::vector<VariantResult>& results, double truth,
                                  const Published* published, const Design& design,
                                  at::Tensor& linear) {
    const Cell theirs =
        published ? Cell::with_spread(published->error, published->spread, 2) : Cell("-");
    const Cell their_cost = published ? Cell::number(published->cost, 1) : Cell("-");
    const auto per_chain = [&](double evaluations) {
      return evaluations / static_cast<double>(design.chains);
    };
    const auto reported = [&](size_t i) {  // by the seeds that have not chosen
      return results[i].value[0].slice(0, design.choosing);
    };
    constexpr size_t kNone = static_cast<size_t>(-1);
    double search = 0, best_log_z = -INFINITY, least_error = INFINITY;
    size_t chosen = kNone, oracle = kNone;
    for (size_t i = 0; i < results.size(); ++i) {
      if (!results[i].failed.empty()) continue;
      search += per_chain(results[i].evaluations());
      if (!family.stretched && results[i].transitions > kMostSteps) continue;
      const double log_z = results[i].value[0].slice(0, 0, design.choosing).mean().item<double>();
      const double error = std::abs(reported(i).mean().item<double>() - truth);
      if (log_z > best_log_z) {
        best_log_z = log_z;
        chosen = i;
      }
      if (error < least_error) {
        least_error = error;
        oracle = i;
      }
    }
    if (chosen == kNone)
      return {target, family.name, "none", "-", "-", "-", "-",    "-",
              "-",    "-",         "-",    "-", "-", "-", theirs, their_cost};
    const VariantResult& best = results[chosen];
    const TargetErrors e(reported(chosen), truth);
    const at::Tensor absolute = (reported(chosen) - truth).abs();
    Cell t = "-";
    if (linear.defined())
      t = Cell::number(Paired(absolute, linear).t, 1);
    else
      linear = absolute;
    return {target,
            family.name,
            family.variants[chosen].name,
            Cell::number(best.transitions, 0),
            Cell::number(per_chain(best.evaluations()), 0),
            Cell::number(search, 0),
            Cell::number(comput(best, design), 0),
            Cell::number(e.bias, 2),
            Cell::number(e.std_error, 2),
            Cell::number(e.absolute, 2),
            Cell::number(e.root_mean_square, 2),
            t,
            family.variants[oracle].name,
            Cell::number(reported(oracle).mean().item<double>() - truth, 2),
            theirs,
            their_cost};
  }

  int64_t dim_;
};

const Enrol<ExperimentRegistry> kEnrol(
    "table-highdim",
    {"table-highdim[:DIM]", "schedules and MCD in 128 and 512 dimensions (or DIM alone)",
     "table-highdim",
     [](Spec& spec) { return std::make_unique<TableHighDim>(read_published_dim(spec)); }});

}  // namespace
}  // namespace crais
