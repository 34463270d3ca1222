// Annealing paths of f-divergences other than KL, compared with the geometric path.
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "programs/reproduce/density_experiment.h"
#include "programs/reproduce/vae_experiment.h"

namespace crais {
namespace {

class TableDivergences : public Experiment {
 public:
  std::set<std::string> flags() const override { return {"seeds", "checkpoint", "data-dir"}; }

  void run(const ExperimentOptions& options, Page& page) const override {
    const int64_t seeds = options.num_seeds(30, 8), vae_seeds = options.num_seeds(8, 4);
    page.paragraph(
        "Paths of steepest descent of other divergences than KL, which a pilot learns, against the "
        "geometric path: 64 transitions of constant length, persistent momentum with tuned step "
        "sizes, " +
        std::to_string(seeds) + " seeds (the VAE " + std::to_string(vae_seeds) +
        "). Estimates cost the same; evaluations a chain include pilots and centres, which f paths "
        "have more of. t compares |error| with the geometric path's, seed by seed: below 0 the "
        "path is better. For the VAE, without a truth, it compares mean lower bounds. Length is "
        "the sum of the standard deviations of log-weight increments along the path: 64 perfect "
        "moves lose length^2 / 128 nats; what is lost beyond that, moves have not kept up.");
    std::vector<Row> rows;
    const int64_t chains = options.pick(256, 32);
    for (const auto& [target, base] : densities(options.full)) {
      const DensityExperiment experiment(options, target, seeds);
      double truth = experiment.truth();
      if (std::isnan(truth))
        truth = experiment
                    .run(target + ", reference",
                         {{"", "--base laplace:1.1 --kernel ghmc:0.8 --chains 64 --steps 512"}}, 1,
                         1000)[0]
                    .value.mean()
                    .item<double>();
      compare({target, base, " --per-problem --chains ", chains, 1,
               [truth](const VariantResult& r) { return r.value[0] - truth; }},
              experiment, options, /*has_truth=*/true, rows);
    }
    const VaeExperiment vae(options, options.pick(100, 4));
    compare({"VAE", "encoder", " --pilot-images 8 --chains ", 16, vae_seeds,
             [](const VariantResult& r) { return r.value.mean(1); }},
            vae, options, /*has_truth=*/false, rows);
    add_table(page, "divergences", "Paths at 64 transitions, nats", rows);
  }

 private:
  struct Place {
    std::string target, base, flags;
    int64_t chains, seeds;
    std::function<at::Tensor(const VariantResult&)> value;  // [S], bias of log Z or log p(x)
  };

  static std::vector<std::pair<std::string, std::string>> densities(bool full) {
    const std::string pima = "logistic-regression:pima,variance=5";
    std::vector<std::pair<std::string, std::string>> all = {
        {"u1", "prior"},          {"u6", "prior"}, {"u11:s=std", "prior"},
        {"laplace:128", "prior"}, {pima, "prior"}, {pima, "laplace"}};
    const std::string sonar = "logistic-regression:sonar,variance=5";
    if (full)
      all.insert(all.end(), {{"normal:128", "prior"},
                             {"mixture:128", "prior"},
                             {"student-t:128", "prior"},
                             {sonar, "prior"},
                             {sonar, "laplace"}});
    return all;
  }

  static void compare(const Place& place, const Subject& subject, const ExperimentOptions& options,
                      bool has_truth, std::vector<Row>& rows) {
    const std::string knots = ",knots=" + options.pick<std::string>("512", "48");
    at::Tensor geometric;  // losses of the first path, for each seed
    for (const std::string path : {"geometric", "f:alpha:0.5", "f:jensen-shannon"}) {
      const std::string flags = "--path " + path + (path == "geometric" ? "" : knots) + " --base " +
                                place.base + " --kernel ghmc:0.8" + place.flags +
                                std::to_string(place.chains) + " --max-steps 2048 --max-step 1 ";
      const std::string rule = "constant-length:0.25";
      // The second result, unstretched, measures the length.
      const std::vector<VariantResult> results = subject.run(
          place.target + ", " + place.base + ", " + path,
          {{path, flags + flags_of_plans(rule, 64)}, {path, flags + "--schedule " + rule}},
          place.seeds);
      const VariantResult& result = results[0];
      const at::Tensor value = place.value(result), loss = has_truth ? value.abs() : -value;
      const bool is_first = !geometric.defined();
      if (is_first) geometric = loss;
      const Spread spread(value);
      const double length = 0.25 * results[1].transitions;
      rows.push_back(
          {{"target", place.target},
           {"base", place.base},
           {"path", path},
           {"evaluations a chain",
            result.or_reason(number(result.evaluations() / static_cast<double>(place.chains), 0))},
           {"bias or log p(x)", number(spread.mean, 3)},
           {"SE", number(spread.std_error, 3)},
           {"mean |error|", number(has_truth ? loss.mean().item<double>() : NAN, 3)},
           {"t", number(is_first ? NAN : Paired(loss, geometric).t, 1)},
           {"ESS", number(result.mean_ess(), 3)},
           {"accepted", number(result.accept_prob, 2)},
           {"length", number(length, 1)},
           {"length^2 / 128", number(length * length / 128, 2)}});
    }
  }
};

const EnrolExperiment<TableDivergences> kEnrolTableDivergences(
    "table-divergences", "annealing paths of other f-divergences against the geometric path");

}  // namespace
}  // namespace crais
