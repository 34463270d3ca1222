// Samplers on wide mixtures: whether resampling, and where the temperatures are, keeps the modes.
#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "programs/reproduce/density_experiment.h"
#include "util/format.h"

namespace crais {
namespace {

/// One seed each, from the paper: its table, and the notebook released with it, which is another
/// run of the same experiment.
struct PublishedSmc {
  double adaptive, constant_rate;
  double notebook_adaptive, notebook_constant_rate;
};
constexpr int64_t kQuickPublishedSeeds = 8;
constexpr double kApart = 0.6;  // between points of one mixture in the picture
const std::map<int64_t, PublishedSmc> kPublishedSmc = {{16, {5.387, 5.967, 5.698, 5.979}},
                                                       {24, {6.285, 6.125, 5.707, 6.414}},
                                                       {32, {5.891, 6.634, 6.731, 6.437}},
                                                       {48, {6.808, 6.974, 5.682, 6.314}}};

class TableSmc : public Experiment {
 public:
  std::string title() const override { return "SMC and AIS on wide mixtures"; }

  void run(const ExperimentOptions& options, Page& page) const override {
    const int64_t seeds = options.seeds > 0 ? options.seeds : options.full ? 50 : 20;
    const int64_t chains = options.full ? 2048 : 512;
    const int64_t steps = options.full ? 400 : 200;
    page.paragraph(
        "Mixtures of 16 to 48 normals (sd 2) scattered over [-15, 15]^2, " +
        std::to_string(chains) + " chains, " + std::to_string(seeds) +
        " seeds, each with a plan that a pilot of its own tuned and froze. Every plan is stretched "
        "to " +
        std::to_string(steps) +
        " transitions, so that all estimates cost the same; the cost of tuning is beside it. "
        "Resampling once the ESS is below one half." +
        (options.full ? ""
                      : " The quick form leaves out the mixtures of 24 and 32, and repeats the "
                        "published settings with " +
                            std::to_string(std::min(seeds, kQuickPublishedSeeds)) + " seeds."));
    const std::string own = " --chains " + std::to_string(chains) + " --per-problem";
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

  /// The mixtures that are done: the smallest and the largest in the quick form.
  static std::map<int64_t, PublishedSmc> mixtures(const ExperimentOptions& options) {
    if (options.full) return kPublishedSmc;
    return {*kPublishedSmc.begin(), *kPublishedSmc.rbegin()};
  }

  static void compare(const std::string& stem, const std::string& title, const std::string& kernel,
                      int64_t steps, int64_t seeds, const ExperimentOptions& options, Page& page) {
    std::vector<std::vector<Cell>> rows;
    std::map<std::string, Series> errors;
    const std::vector<Variant> all = variants(kernel, steps);
    for (const auto& [components, published] : mixtures(options)) {
      const DensityExperiment experiment(options, "smc-mixture:" + std::to_string(components),
                                         seeds);
      const std::vector<VariantResult> results =
          experiment.run(stem + ", " + std::to_string(components), all);
      const double truth = *experiment.truth();
      for (size_t i = 0; i < all.size(); ++i) {
        if (!results[i].failed.empty()) {
          rows.push_back(
              {components, all[i].name, results[i].reason(), "-", "-", "-", "-", "-", "-", "-"});
          continue;
        }
        const TargetErrors e(results[i].value, truth);
        // The variants share their seeds, and so their starting particles.
        const Paired worse((results[i].value[0] - truth).abs(),
                           (results[0].value[0] - truth).abs());
        rows.push_back({components, all[i].name, Cell::number(results[i].estimating, 0),
                        Cell::number(results[i].tuning, 0), Cell::number(e.bias, 3),
                        Cell::number(e.std_error, 3), Cell::number(e.absolute, 3),
                        Cell::number(e.root_mean_square, 3),
                        i == 0 ? Cell("-") : Cell::number(worse.difference.mean, 3),
                        i == 0 ? Cell("-") : Cell::number(worse.t, 1)});
        const Spread absolute((results[i].value[0] - truth).abs());
        const double aside = kApart * (static_cast<double>(i) - 3.5);
        errors[all[i].name].add(static_cast<double>(components) + aside, absolute.mean,
                                absolute.std_error);
      }
    }
    page.table(stem, title + ": errors of log Z, nats",
               {"components", "sampler", "evaluations", "+ tuning", "bias", "SE", "mean |error|",
                "RMSE", "|error| above the first", "t, paired"},
               rows);
    Plot plot{title, "components", "mean |error|, nats", false, false, {}};
    for (const Variant& variant : all) {
      errors[variant.name].name = variant.name;
      errors[variant.name].joined = false;  // other mixtures, not more of the same
      plot.series.push_back(errors[variant.name]);
    }
    page.plot(stem, plot);
  }

  /// The paper's settings: N = 2048, delta = 1/128, CESS 0.9 with steps of at most 1/512.
  static void beside_the_paper(const ExperimentOptions& options, int64_t seeds, Page& page) {
    const std::string own =
        " --chains 2048 --per-problem --kernel hmc --step-size 0.5 --resample "
        "multinomial:0.9,of=last --weighted";
    const std::vector<Variant> both = {
        {"CR-SMC", "--schedule constant-rate:0.0078125" + own},
        {"Adaptive SMC", "--schedule cess:0.9 --max-step 0.001953125" + own}};
    std::vector<std::vector<Cell>> rows;
    for (const auto& [components, published] : mixtures(options)) {
      const DensityExperiment experiment(options, "smc-mixture:" + std::to_string(components),
                                         seeds);
      const std::vector<VariantResult> results =
          experiment.run("as published, " + std::to_string(components), both);
      for (size_t i = 0; i < both.size(); ++i) {
        if (!results[i].failed.empty()) {
          rows.push_back({components, both[i].name, results[i].reason(), "-", "-", "-", "-", "-"});
          continue;
        }
        const at::Tensor values = results[i].value[0];
        rows.push_back(
            {components, both[i].name, Cell::number(*experiment.truth(), 3),
             Cell::number(results[i].transitions, 0), Cell::number(values.mean().item<double>(), 3),
             Cell::number(values.std(0, true).item<double>(), 3),
             Cell::number(i == 0 ? published.constant_rate : published.adaptive, 3),
             Cell::number(i == 0 ? published.notebook_constant_rate : published.notebook_adaptive,
                          3)});
      }
    }
    page.table("published", "The paper's settings: log Z, nats",
               {"components", "sampler", "truth", "transitions", "mean", "sd of one seed",
                "paper (one seed)", "its notebook (one seed)"},
               rows);
    page.paragraph(
        "The published numbers are one seed each: beside the spread of a seed they do not rank the "
        "samplers.");
  }
};

const Enrol<ExperimentRegistry> kEnrolTableSmc(
    "table-smc", {"table-smc", "CR-SMC, adaptive SMC and AIS on wide mixtures, seeds paired",
                  "table-smc", [](Spec&) { return std::make_unique<TableSmc>(); }});

}  // namespace
}  // namespace crais
