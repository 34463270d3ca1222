// Accuracy against cost on real images: IWAE, and AIS from each base.
#include <cmath>
#include <string>
#include <vector>

#include "programs/reproduce/vae_experiment.h"
#include "util/format.h"

namespace crais {
namespace {

/// The reference [N]: the mean of two long runs from different bases, which must agree.
at::Tensor accuracy_reference(const VaeExperiment& experiment, Page& page) {
  const std::vector<Variant> variants = {
      {"laplace", "--base laplace --kernel ghmc:0.8 --chains 32 --steps 1024"},
      {"encoder", "--base encoder:1.2 --kernel ghmc:0.8 --chains 32 --steps 2048"}};
  const std::vector<VariantResult> runs = experiment.run("reference", variants, 1, 1000);
  std::vector<Row> rows;
  for (size_t i = 0; i < 2; ++i) {
    const at::Tensor& error = runs[i].std_error;
    rows.push_back({{"flags", variants[i].flags},
                    {"evaluations", number(runs[i].evaluations(), 0)},
                    {"log p(x)", number(runs[i].value.mean().item<double>(), 4)},
                    {"MC SE", number(error.square().sum().sqrt().item<double>() /
                                         static_cast<double>(error.numel()),
                                     4)}});
  }
  add_table(page, "reference", "Reference: two runs that know nothing of each other", rows);
  const at::Tensor difference = (runs[0].value - runs[1].value)[0];
  page.paragraph("They differ by " + fixed(difference.mean().item<double>(), 4) +
                 " nats in the mean, by at most " +
                 fixed(difference.abs().max().item<double>(), 3) +
                 " for an image. The reference below is their average, weighted by precision.");
  const at::Tensor wa = runs[0].std_error[0].square().reciprocal();
  const at::Tensor wb = runs[1].std_error[0].square().reciprocal();
  return (wa * runs[0].value[0] + wb * runs[1].value[0]) / (wa + wb);
}

/// Ways to spend each number of evaluations an image, if they can.
std::vector<Variant> spenders(const std::vector<int64_t>& budgets, int64_t laplace_cost) {
  std::vector<Variant> all;
  const auto annealed = [&](const std::string& name, const std::string& flags, int64_t fixed,
                            const std::string& schedule = "linear") {
    for (const int64_t budget : budgets) {
      const int64_t chains = budget - fixed >= 128 ? 16 : 4;
      const int64_t steps = (budget - fixed) / chains - 1;
      if (steps >= 2)
        all.push_back({name, flags + " --chains " + std::to_string(chains) + " " +
                                 flags_of_plans(schedule, steps)});
    }
  };
  for (const int64_t budget : budgets)
    all.push_back({"IWAE, encoder", "--base encoder --method iwae:" + std::to_string(budget)});
  // The estimate of most papers.
  all.push_back({"IWAE, encoder", "--base encoder --method iwae:5000"});
  annealed("AIS, prior, linear", "--base prior --kernel hmc", 0);
  annealed("AIS, prior, constant rate", "--base prior --kernel hmc", 0, "constant-rate:8");
  annealed("AIS, encoder", "--base encoder --kernel hmc", 0);
  annealed("AIS, encoder, persistent", "--base encoder --kernel ghmc:0.8", 0);
  annealed("AIS, Laplace", "--base laplace --kernel hmc", laplace_cost);
  annealed("AIS, Laplace, persistent", "--base laplace --kernel ghmc:0.8", laplace_cost);
  for (const int64_t budget : budgets)
    if (budget > 2 * laplace_cost)
      all.push_back({"recommended, --budget", "--budget " + std::to_string(budget)});
  return all;
}

class Accuracy : public Experiment {
 public:
  std::set<std::string> flags() const override { return {"seeds", "checkpoint", "data-dir"}; }

  void run(const ExperimentOptions& options, Page& page) const override {
    const int64_t seeds = options.num_seeds(5, 3);
    const VaeExperiment experiment(options, options.pick(500, 64));
    page.paragraph(experiment.described() + ", " + std::to_string(seeds) +
                   " seeds. Evaluations are of the decoder, an image: base (Jacobians at their "
                   "multiply-adds), pilots and estimate, all told.");
    const at::Tensor truth = accuracy_reference(experiment, page);
    std::vector<int64_t> budgets = {64, 100, 256, 1024};
    if (options.full) budgets.push_back(4096);
    const std::vector<Variant> variants = spenders(budgets, experiment.laplace_cost());
    const std::vector<VariantResult> results = experiment.run("accuracy", variants, seeds);
    std::vector<Row> rows;
    for (size_t i = 0; i < variants.size(); ++i) {
      const VariantResult& result = results[i];
      const at::Tensor error = result.value - truth;
      const Spread bias(error.mean(1));  // of the mean over images, across seeds
      const at::Tensor flagged = result.flags != 0;
      rows.push_back(
          {{"variant", variants[i].name},
           {"flags", variants[i].flags},
           {"evaluations", result.or_reason(number(result.evaluations(), 0))},
           {"bias", number(bias.mean, 4)},
           {"SE", number(bias.std_error, 4)},
           {"rms an image", number(error.square().mean().sqrt().item<double>(), 3)},
           {"worst image", number(error.abs().max().item<double>(), 2)},
           {"flagged %", number(100 * flagged.to(at::kDouble).mean().item<double>(), 1)},
           {"off by > 1, unflagged", ((error.abs() > 1) & ~flagged).sum().item<int64_t>()}});
    }
    add_table(page, "accuracy", "Error of the mean log p(x) over images, in nats", rows);
  }
};

const EnrolExperiment<Accuracy> kEnrolAccuracy(
    "accuracy", "error against evaluations: IWAE, and AIS from every base (real MNIST)");

}  // namespace
}  // namespace crais
