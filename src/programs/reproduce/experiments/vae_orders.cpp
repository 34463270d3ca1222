#include "programs/reproduce/experiments/vae_orders.h"

#include <cmath>
#include <string>
#include <vector>

#include "programs/reproduce/choice.h"
#include "util/format.h"

namespace crais {
namespace {

constexpr int64_t kOrderSteps = 64;

std::vector<double> path_orders(bool full) {
  return full ? std::vector<double>{-0.5, 0, 0.25, 0.5, 0.75, 1, 2}
              : std::vector<double>{-0.5, 0, 0.5, 1};
}

struct OrderSetting {
  std::string name, flags;
  std::vector<double> deltas;  // of constant rate at order 0
};

struct OrderTrial {
  double alpha;
  std::string delta;  // "-" of a schedule without one
  Variant variant;
};

/// A rule on one setting, with the orders that it is chosen from.
struct OrderFamily {
  std::string setting, schedule;
  std::vector<OrderTrial> trials;
};

/// Away from order 0 the divergence cannot be larger than 1 / (alpha (1 - alpha)), and far from the
/// target it is about that: so is V, as long as no chain has got there.
std::vector<double> deltas_of(double alpha, const OrderSetting& setting) {
  if (alpha == 0) return setting.deltas;
  if (alpha == 1) return {100, 1};
  if (alpha == 2) return {1e6, 1e3};
  if (alpha < 0) return {1e3, 3};
  const double largest = 1 / (alpha * (1 - alpha));
  return {largest / 2, largest / 16};
}

std::vector<OrderFamily> order_families(bool full) {
  const std::vector<OrderSetting> settings = {
      {"prior, the paper's settings", "--preset paper", {30, 8}},
      {"encoder, step sizes tuned", "--base encoder --chains 16", {1, 0.25}}};
  const std::string steps = std::to_string(kOrderSteps);
  std::vector<OrderFamily> families;
  for (const OrderSetting& setting : settings) {
    OrderFamily linear{setting.name, "linear", {}};
    OrderFamily rate{setting.name, "constant rate*", {}};
    for (const double alpha : path_orders(full)) {
      const std::string path = setting.flags + " --path power:" + shortest(alpha);
      linear.trials.push_back(
          {alpha, "-", {"linear", path + " --schedule linear --steps " + steps}});
      std::vector<double> deltas = deltas_of(alpha, setting);
      if (!full) deltas.resize(1);
      for (const double value : deltas) {
        const std::string delta = significant(value, 3);
        rate.trials.push_back(
            {alpha,
             delta,
             {"constant rate*", path + " --max-steps 1024 --schedule " + "constant-rate:" + delta +
                                    " --interpolate " + steps}});
      }
    }
    families.insert(families.end(), {linear, rate});
  }
  return families;
}

/// What one trial found on the seeds that are reported.
struct OrderFinding {
  at::Tensor means;  // [S] of log p(x)
  Spread value, error;

  OrderFinding(const at::Tensor& values, const at::Tensor& truth)
      : means(values.mean(1)), value(means), error((values - truth).mean(1)) {}
};

}  // namespace

void orders_tables(const VaeExperiment& experiment, const at::Tensor& truth,
                   const ExperimentOptions& options, Page& page) {
  const int64_t choosing = options.full ? 2 : 1, reporting = options.full ? 3 : 2;
  std::vector<std::vector<Cell>> chosen, grid;
  for (const OrderFamily& family : order_families(options.full)) {
    std::vector<Variant> variants;
    variants.reserve(family.trials.size());
    for (const OrderTrial& trial : family.trials) variants.push_back(trial.variant);
    const std::vector<VariantResult> results = experiment.run(
        "alpha, " + family.setting + ", " + family.schedule, variants, choosing + reporting);

    std::vector<at::Tensor> values(results.size()), plain_values(results.size());
    double search = 0, plain_search = 0;  // evaluations; plain: of alpha = 0
    for (size_t i = 0; i < results.size(); ++i) {
      const OrderTrial& trial = family.trials[i];
      if (!results[i].failed.empty()) {
        grid.push_back({family.setting, family.schedule, Cell::number(trial.alpha, 2), trial.delta,
                        results[i].reason(), "-", "-", "-", "-", trial.variant.flags});
        continue;
      }
      values[i] = results[i].value;
      const double spent = static_cast<double>(choosing) * results[i].evaluations();
      search += spent;
      if (trial.alpha == 0) {
        plain_values[i] = values[i];
        plain_search += spent;
      }
      const OrderFinding found(values[i].slice(0, choosing), truth);
      grid.push_back({family.setting, family.schedule, Cell::number(trial.alpha, 2), trial.delta,
                      Cell::number(found.value.mean, 3), Cell::number(found.value.std_error, 3),
                      Cell::number(found.error.mean, 3),
                      Cell::number(results[i].ess.mean().item<double>(), 3),
                      Cell::number(results[i].evaluations(), 0), trial.variant.flags});
    }
    const Choice choice = choose(values, choosing, [&](const at::Tensor& reported) {
      return std::abs((reported - truth).mean().item<double>());
    });
    const size_t plain = choose(plain_values, choosing).chosen;
    const auto add = [&](const std::string& how, size_t place, double cost) {
      if (place == Choice::kNone) {
        chosen.push_back({family.setting, family.schedule, how, "none got there", "-", "-", "-",
                          "-", "-", "-", "-"});
        return;
      }
      const OrderFinding found(values[place].slice(0, choosing), truth);
      const bool differs = plain != Choice::kNone && place != plain;
      const Paired above(found.means, values[differs ? plain : place].slice(0, choosing).mean(1));
      chosen.push_back({family.setting, family.schedule, how,
                        Cell::number(family.trials[place].alpha, 2), family.trials[place].delta,
                        Cell::number(found.value.mean, 3), Cell::number(found.value.std_error, 3),
                        Cell::number(found.error.mean, 3),
                        differs ? Cell::number(above.difference.mean, 3) : Cell("-"),
                        differs ? Cell::number(above.t, 1) : Cell("-"), Cell::number(cost, 0)});
    };
    add("alpha = 0", plain, plain_search);
    add("honestly", choice.chosen, search);
    add("by the oracle", choice.oracle, search);
  }
  page.table("orders",
             "Order of the path, 64 transitions, 16 chains: log p(x), nats, on " +
                 std::to_string(reporting) + " seeds",
             {"setting", "schedule", "alpha chosen", "alpha", "delta", "log p(x)", "SE", "error",
              "above alpha = 0", "t", "evaluations of choosing"},
             chosen);
  page.paragraph(
      "Constant rate* is stretched to 64 transitions. Honestly: the highest mean log p(x) on " +
      std::to_string(choosing) +
      " other seeds, for every estimate is a lower bound on average. By the oracle: the least "
      "error "
      "on the seeds that are reported, so of the noise too. The difference to alpha = 0 is paired "
      "by seeds; evaluations are an image's, all trials told.");
  page.table("orders-all", "Every order that they were chosen from",
             {"setting", "schedule", "alpha", "delta", "log p(x)", "SE", "error", "ESS",
              "evaluations an image", "flags"},
             grid);
}

}  // namespace crais
