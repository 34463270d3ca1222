// Samplers on wide mixtures: the effect of resampling and of the temperatures on lost modes.
#include <algorithm>
#include <string>
#include <vector>

#include "programs/reproduce/density_experiment.h"

namespace crais {
namespace {

/// Results for one seed each, from the paper: its table, and the notebook released with it, which
/// is another run of the same experiment.
struct PublishedSmc {
  int64_t components;
  double adaptive, constant_rate;
  double notebook_adaptive, notebook_constant_rate;
};
constexpr int64_t kQuickPublishedSeeds = 8;
const std::vector<PublishedSmc> kPublishedSmc = {{16, 5.387, 5.967, 5.698, 5.979},
                                                 {24, 6.285, 6.125, 5.707, 6.414},
                                                 {32, 5.891, 6.634, 6.731, 6.437},
                                                 {48, 6.808, 6.974, 5.682, 6.314}};

class TableSmc : public Experiment {
 public:
  void run(const ExperimentOptions& options, Page& page) const override {
    const int64_t seeds = options.num_seeds(50, 20);
    const std::string chains = options.pick("2048", "512");
    const int64_t steps = options.pick(400, 200);
    page.paragraph(
        "Mixtures of 16 to 48 normals (sd 2) scattered over [-15, 15]^2, " + chains + " chains, " +
        std::to_string(seeds) +
        " seeds, each with a plan that a pilot of its own tuned and froze. Every plan is stretched "
        "to " +
        std::to_string(steps) +
        " transitions, so that all estimates cost the same; the cost of tuning is beside it. "
        "Resampling once the ESS is below one half. The quick form leaves out the mixtures of 24 "
        "and 32. The published numbers are one seed each: beside the spread of a seed they do not "
        "rank the samplers.");
    const std::string own = " --chains " + chains + " --per-problem";
    compare("paper", "Step size 0.5, as in the paper", own + " --kernel hmc --step-size 0.5", steps,
            seeds, options, page);
    compare("tuned", "Step sizes tuned, persistent momentum", own + " --kernel ghmc:0.8", steps,
            seeds, options, page);
    beside_the_paper(options, options.full ? seeds : std::min(seeds, kQuickPublishedSeeds), page);
  }

 private:
  static std::vector<Variant> variants(const std::string& kernel, int64_t steps) {
    const std::string length = " --interpolate " + std::to_string(steps);
    const std::string linear = flags_of_plans("linear", steps) + " " + without_pilot(kernel);
    const std::string rate = " --schedule constant-rate:0.03125" + length;
    const std::string cess = " --schedule cess:0.99" + length;
    const std::string systematic = " --resample systematic";
    const std::string multinomial = " --resample multinomial";
    return {{"CR-SMC, systematic", "--weighted" + systematic + rate + kernel},
            {"CR-SMC, multinomial", "--weighted" + multinomial + rate + kernel},
            {"CESS-SMC, systematic", systematic + cess + kernel},
            {"CESS-SMC, multinomial", multinomial + cess + kernel},
            {"linear SMC, systematic", linear + systematic},
            {"CR-AIS", rate + kernel},
            {"CESS-AIS", cess + kernel},
            {"linear AIS", linear}};
  }

  /// The chosen mixtures: all of them, or the smallest and the largest in the quick form.
  static std::vector<PublishedSmc> mixtures(const ExperimentOptions& options) {
    if (options.full) return kPublishedSmc;
    return {kPublishedSmc.front(), kPublishedSmc.back()};
  }

  static void compare(const std::string& stem, const std::string& title, const std::string& kernel,
                      int64_t steps, int64_t seeds, const ExperimentOptions& options, Page& page) {
    std::vector<Row> rows;
    const std::vector<Variant> all = variants(kernel, steps);
    for (const PublishedSmc& published : mixtures(options)) {
      const std::string components = std::to_string(published.components);
      const DensityExperiment experiment(options, "smc-mixture:" + components, seeds);
      const std::vector<VariantResult> results = experiment.run(stem + ", " + components, all);
      const double truth = experiment.truth();
      for (size_t i = 0; i < all.size(); ++i) {
        const VariantResult& result = results[i];
        const TargetErrors e(result.value, truth);
        const at::Tensor error = (result.value[0] - truth).abs();
        // The variants share their seeds, and so their starting particles.
        const Paired worse(error, (results[0].value[0] - truth).abs());
        rows.push_back(
            {{"components", published.components},
             {"sampler", all[i].name},
             {"evaluations", result.or_reason(number(result.estimating, 0))},
             {"+ tuning", number(result.tuning, 0)},
             {"bias", number(e.bias, 3)},
             {"SE", number(e.std_error, 3)},
             {"mean |error|", number(e.absolute, 3)},
             {"RMSE", number(e.root_mean_square, 3)},
             {"|error| above the first", number(i == 0 ? NAN : worse.difference.mean, 3)},
             {"t, paired", number(worse.t, 1)}});
      }
    }
    add_table(page, stem, title + ": errors of log Z, nats", rows);
  }

  /// Compares with the paper at its settings: N = 2048, delta = 1/128, CESS 0.9 with steps of at
  /// most 1/512.
  static void beside_the_paper(const ExperimentOptions& options, int64_t seeds, Page& page) {
    const std::string own =
        " --chains 2048 --per-problem --kernel hmc --step-size 0.5 --resample "
        "multinomial:0.9,of=last --weighted";
    const std::vector<Variant> both = {
        {"CR-SMC", "--schedule constant-rate:0.0078125" + own},
        {"Adaptive SMC", "--schedule cess:0.9 --max-step 0.001953125" + own}};
    std::vector<Row> rows;
    for (const PublishedSmc& published : mixtures(options)) {
      const std::string components = std::to_string(published.components);
      const DensityExperiment experiment(options, "smc-mixture:" + components, seeds);
      const std::vector<VariantResult> results =
          experiment.run("as published, " + components, both);
      const double table[] = {published.constant_rate, published.adaptive};
      const double notebook[] = {published.notebook_constant_rate, published.notebook_adaptive};
      for (size_t i = 0; i < both.size(); ++i) {
        const at::Tensor values = results[i].value[0];
        rows.push_back({{"components", published.components},
                        {"sampler", both[i].name},
                        {"truth", number(experiment.truth(), 3)},
                        {"transitions", results[i].or_reason(number(results[i].transitions, 0))},
                        {"mean", number(values.mean().item<double>(), 3)},
                        {"sd of one seed", number(values.std(0, true).item<double>(), 3)},
                        {"paper (one seed)", number(table[i], 3)},
                        {"its notebook (one seed)", number(notebook[i], 3)}});
      }
    }
    add_table(page, "published", "The paper's settings: log Z, nats", rows);
  }
};

const EnrolExperiment<TableSmc> kEnrolTableSmc(
    "table-smc", "CR-SMC, adaptive SMC and AIS on wide mixtures, seeds paired");

}  // namespace
}  // namespace crais
