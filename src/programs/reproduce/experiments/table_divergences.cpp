// Annealing paths of other f-divergences than KL: is any better than the geometric?
#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "programs/reproduce/choice.h"
#include "programs/reproduce/density_experiment.h"
#include "programs/reproduce/experiments/highdim_design.h"
#include "programs/reproduce/vae_experiment.h"
#include "util/format.h"

namespace crais {
namespace {

constexpr int64_t kDivergenceSteps = 64;  // transitions of every plan that is compared

/// A path, and how large its divergence is at the start: KL(q0 || pi) times this, or at most that.
struct DivergencePath {
  std::string name;
  double of_kl, most;
};
const std::vector<DivergencePath> kDivergencePaths = {{"geometric", 1, INFINITY},
                                                      {"f:alpha:0.5", INFINITY, 4},
                                                      {"f:jensen-shannon", INFINITY, std::log(2.0)},
                                                      {"f:le-cam", INFINITY, 2},
                                                      {"f:jeffreys", 2, INFINITY},
                                                      {"f:total-variation:0.1", INFINITY, 1}};

/// A target seen from a base; about KL(base || target), nats.
struct DivergencePlace {
  std::string target, base;
  double kl;
};

std::vector<DivergencePlace> divergence_places(bool full) {
  const std::string pima = "logistic-regression:pima,variance=5";
  if (!full)
    return {{"u1", "prior", 4.6},          {"u6", "prior", 166}, {"u11:s=std", "prior", 0.6},
            {"laplace:128", "prior", 9.2}, {pima, "prior", 450}, {pima, "laplace", 0.5}};
  std::vector<DivergencePlace> places = {
      {"u1", "prior", 4.6}, {"u6", "prior", 166}, {"u11:s=std", "prior", 0.6}};
  for (const highdim::HighTarget& target : highdim::high_targets(128))
    places.push_back({target.name + ":128", "prior", target.kl});
  for (const char* data : {"pima", "sonar"}) {
    const std::string name = "logistic-regression:" + std::string(data) + ",variance=5";
    places.push_back({name, "prior", 450});
    places.push_back({name, "laplace", 0.5});
  }
  return places;
}

struct DivergenceSizes {
  int64_t chains, choosing, reporting, images, vae_choosing, vae_reporting, knots;
  bool every_rule;
};
DivergenceSizes divergence_sizes(const ExperimentOptions& options) {
  DivergenceSizes sizes = options.full ? DivergenceSizes{256, 10, 30, 100, 4, 8, 512, true}
                                       : DivergenceSizes{32, 4, 8, 4, 1, 4, 48, false};
  if (options.seeds > 0) {
    sizes.choosing = sizes.vae_choosing = std::max<int64_t>(1, options.seeds / 3);
    sizes.reporting = sizes.vae_reporting = std::max<int64_t>(2, options.seeds - sizes.choosing);
  }
  return sizes;
}

/// Samples [S] of what is better the less it is: |error|, or minus the estimate without a truth.
using DivergenceLoss = std::function<at::Tensor(const VariantResult&)>;

/// The two-sided probability of |t| or more with n - 1 degrees of freedom: with t = sqrt(n - 1) tan
/// x Student's density goes like cos(x)^(n - 2).
double divergence_p_value(double t, int64_t n) {
  const double from = std::atan(std::abs(t) / std::sqrt(static_cast<double>(n - 1)));
  const auto mass = [n](double low) {
    const at::Tensor x = at::linspace(low, 0.5 * M_PI, 20001, at::kDouble);
    return at::trapezoid(x.cos().pow(n - 2), x).item<double>();
  };
  return mass(from) / mass(0);
}

class TableDivergences : public Experiment {
 public:
  std::string title() const override { return "Annealing paths of f-divergences"; }
  std::set<std::string> flags() const override { return {"seeds", "checkpoint", "data-dir"}; }

  void run(const ExperimentOptions& options, Page& page) const override {
    const DivergenceSizes sizes = divergence_sizes(options);
    page.paragraph(
        "Paths of steepest descent of other divergences than KL, which a pilot learns, against the "
        "geometric path. Every plan has " +
        std::to_string(kDivergenceSteps) +
        " transitions of persistent momentum with tuned step sizes, so estimates cost the same; "
        "evaluations a chain include pilots and centres, which f paths have more of. Each path's "
        "schedule is chosen on seeds of its own by the highest mean log Z (" +
        std::to_string(sizes.choosing) + " seeds; the VAE " + std::to_string(sizes.vae_choosing) +
        "), and reported by " + std::to_string(sizes.reporting) + " others (the VAE " +
        std::to_string(sizes.vae_reporting) +
        "). t compares |error| with the geometric path's, seed by seed: below 0 the path is "
        "better. For the VAE, without a truth, it compares mean lower bounds. Length is the sum of "
        "the standard deviations of log-weight increments along the path: 64 perfect moves lose "
        "length^2 / 128 nats; what is lost beyond that, moves have not kept up.");
    std::vector<std::vector<Cell>> rows;
    std::map<std::string, Tally> tallies;
    for (const DivergencePlace& place : divergence_places(options.full))
      density(place, sizes, options, rows, tallies);
    if (options.full) vae({"VAE", "prior", 2000}, sizes, options, rows, tallies);
    vae({"VAE", "encoder", 15}, sizes, options, rows, tallies);
    page.table(
        "divergences-summary",
        "Where each path is clearly better or worse than the geometric one: p below 0.05 over the "
        "number of comparisons",
        {"path", "better", "worse", "neither", "no plan"}, summary(tallies));
    page.table("divergences", "Paths at " + std::to_string(kDivergenceSteps) + " transitions, nats",
               {"target", "base", "path", "schedule", "evaluations a chain", "bias or log p(x)",
                "SE", "mean |error|", "t", "p", "ESS", "accepted", "length", "length^2 / 128"},
               rows);
  }

 private:
  /// How a path compares, target by target.
  struct Tally {
    int64_t none = 0;                                 // without a plan
    std::vector<std::pair<double, double>> compared;  // t and p
  };

  /// Schedules that are stretched to as many steps, and last the one that measures the length.
  static std::vector<Variant> variants(const DivergencePath& path, const DivergencePlace& place,
                                       const DivergenceSizes& sizes, const std::string& own) {
    const bool is_learned = path.name.substr(0, 2) == "f:";
    const std::string knots = is_learned ? ",knots=" + std::to_string(sizes.knots) : "";
    const std::string common = "--path " + path.name + knots + " --base " + place.base + own;
    const double whole = std::min(path.most, path.of_kl * place.kl);
    std::vector<Variant> all;
    const std::string most = " --max-steps 2048", by_length = "constant-length:0.25";
    const auto add = [&](const std::string& schedule, const std::string& more) {
      all.push_back({schedule, common + " " + flags_of_plans(schedule, kDivergenceSteps) + more});
    };
    add(by_length, most + " --max-step 1");
    if (sizes.every_rule) {
      add("linear", "");
      add("constant-length:2", most);
      add("cess:0.7", most);
      add("cess:0.95", most);
      add("constant-rate:" + significant(whole / 16, 3), most);
      add("constant-rate:" + significant(whole / 64, 3), most);
    }
    all.push_back({by_length, common + most + " --max-step 1 --schedule " + by_length});
    return all;
  }

  static void density(const DivergencePlace& place, const DivergenceSizes& sizes,
                      const ExperimentOptions& options, std::vector<std::vector<Cell>>& rows,
                      std::map<std::string, Tally>& tallies) {
    const DensityExperiment experiment(options, place.target, sizes.choosing + sizes.reporting);
    const double truth = experiment.truth() ? *experiment.truth() : reference(experiment, place);
    const std::string own =
        " --kernel ghmc:0.8 --per-problem --chains " + std::to_string(sizes.chains);
    Paths paths{place,
                sizes,
                own,
                static_cast<double>(sizes.chains),
                sizes.choosing,
                [truth](const VariantResult& r) { return (r.value[0] - truth).abs(); },
                [truth](const VariantResult& r) { return r.value[0] - truth; },
                true};
    compare(
        paths,
        [&](const std::string& label, const std::vector<Variant>& list) {
          return experiment.run(label, list);
        },
        rows, tallies);
  }

  static void vae(const DivergencePlace& place, const DivergenceSizes& sizes,
                  const ExperimentOptions& options, std::vector<std::vector<Cell>>& rows,
                  std::map<std::string, Tally>& tallies) {
    const VaeExperiment experiment(options, sizes.images, /*simulated=*/false);
    const int64_t seeds = sizes.vae_choosing + sizes.vae_reporting;
    const auto mean = [](const VariantResult& r) { return r.value.mean(1); };
    Paths paths{place,
                sizes,
                " --kernel ghmc:0.8 --chains 16 --pilot-images 8",
                16,
                sizes.vae_choosing,
                [mean](const VariantResult& r) { return -mean(r); },
                mean,
                false};
    compare(
        paths,
        [&](const std::string& label, const std::vector<Variant>& list) {
          return experiment.run(label, list, seeds);
        },
        rows, tallies);
  }

  /// A long run from a Laplace base.
  static double reference(const DensityExperiment& experiment, const DivergencePlace& place) {
    return experiment
        .run(place.target + ", reference",
             {{"reference", "--base laplace:1.1 --kernel ghmc:0.8 --chains 64 --steps 512"}}, 1,
             1000)[0]
        .value.mean()
        .item<double>();
  }

  /// One target, seen from one base.
  struct Paths {
    DivergencePlace place;
    DivergenceSizes sizes;
    std::string own;
    double chains;
    int64_t choosing;
    DivergenceLoss loss, value;  // the latter: bias of log Z, or log p(x)
    bool has_truth;
  };

  template <typename Run>
  static void compare(const Paths& paths, const Run& run, std::vector<std::vector<Cell>>& rows,
                      std::map<std::string, Tally>& tallies) {
    at::Tensor geometric;  // losses of the first path, seed by seed
    for (const DivergencePath& path : kDivergencePaths) {
      const std::vector<Variant> list = variants(path, paths.place, paths.sizes, paths.own);
      const std::vector<VariantResult> results =
          run(paths.place.target + ", " + paths.place.base + ", " + path.name, list);
      Tally& tally = tallies[path.name];
      std::vector<at::Tensor> values(results.size() - 1);  // the last measures the length
      for (size_t i = 0; i < values.size(); ++i)
        if (results[i].failed.empty()) values[i] = paths.value(results[i]);
      const size_t best = choose(values, paths.choosing).chosen;
      if (best == Choice::kNone) {
        ++tally.none;
        rows.push_back({paths.place.target, paths.place.base, path.name, results.front().reason(),
                        "-", "-", "-", "-", "-", "-", "-", "-", "-", "-"});
        continue;
      }
      const VariantResult& result = results[best];
      const at::Tensor losses = paths.loss(result).slice(0, paths.choosing);
      const Spread value(paths.value(result).slice(0, paths.choosing));
      const double t = geometric.defined() ? Paired(losses, geometric).t : NAN;
      if (!geometric.defined()) geometric = losses;
      const double p = std::isnan(t) ? NAN : divergence_p_value(t, losses.size(0));
      if (!std::isnan(t)) tally.compared.push_back({t, p});
      const VariantResult& pilot = results.back();
      const double length = pilot.failed.empty() ? 0.25 * pilot.transitions : NAN;
      const auto number = [](double x, int decimals) {
        return std::isnan(x) ? Cell("-") : Cell::number(x, decimals);
      };
      rows.push_back({paths.place.target, paths.place.base, path.name, list[best].name,
                      Cell::number(result.evaluations() / paths.chains, 0),
                      Cell::number(value.mean, 3), Cell::number(value.std_error, 3),
                      paths.has_truth ? Cell::number(losses.mean().item<double>(), 3) : Cell("-"),
                      number(t, 1), number(p, 4), Cell::number(result.ess.mean().item<double>(), 3),
                      Cell::number(result.accept_prob, 2), number(length, 1),
                      number(length * length / 128, 2)});
    }
  }

  static std::vector<std::vector<Cell>> summary(const std::map<std::string, Tally>& tallies) {
    size_t comparisons = 0;
    for (const auto& [name, tally] : tallies) comparisons += tally.compared.size();
    std::vector<std::vector<Cell>> rows;
    for (const DivergencePath& path : kDivergencePaths) {
      if (path.name == "geometric") continue;
      const Tally& tally = tallies.at(path.name);
      int64_t better = 0, worse = 0, neither = 0;
      for (const auto& [t, p] : tally.compared) {
        const bool is_clear = p < 0.05 / static_cast<double>(comparisons);
        ++(!is_clear ? neither : t < 0 ? better : worse);
      }
      rows.push_back({path.name, better, worse, neither, tally.none});
    }
    return rows;
  }
};

const Enrol<ExperimentRegistry> kEnrolTableDivergences(
    "table-divergences",
    {"table-divergences", "annealing paths of other f-divergences against the geometric path",
     "table-divergences", [](Spec&) { return std::make_unique<TableDivergences>(); }});

}  // namespace
}  // namespace crais
