// How far from the truth, for how many evaluations: bases, kernels and schedules on real images.
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "programs/reproduce/experiments/vae_diffusion.h"
#include "programs/reproduce/vae_experiment.h"
#include "util/error.h"
#include "util/format.h"

namespace crais {
namespace {

std::string number(int64_t value) { return std::to_string(value); }

/// Errors of a variant against the reference [N].
struct Errors {
  Spread bias;        // of the mean over images, across seeds
  double rms, worst;  // of single images
  double flagged;     // fraction of images
  int64_t missed;     // farther than a nat off and not flagged

  Errors(const VariantResult& variant, const at::Tensor& reference)
      : bias((variant.value - reference).mean(1)) {
    const at::Tensor error = variant.value - reference;
    rms = error.square().mean().sqrt().item<double>();
    worst = error.abs().max().item<double>();
    flagged = (variant.flags != 0).to(at::kDouble).mean().item<double>();
    missed = ((error.abs() > 1) & (variant.flags == 0)).sum().item<int64_t>();
  }
};

/// The largest T with chains (1 + T) + fixed <= budget, or 0.
int64_t steps_within(int64_t budget, int64_t fixed, int64_t chains) {
  return std::max<int64_t>(0, (budget - fixed) / chains - 1);
}

/// A variant that spends a number of evaluations an image; no flags where it cannot.
struct Spender {
  std::string name;
  std::function<std::string(int64_t budget)> flags;
};

class Accuracy : public Experiment {
 public:
  std::string title() const override { return "Error against evaluations, base by base"; }
  std::set<std::string> flags() const override { return {"seeds", "checkpoint", "data-dir"}; }

  void run(const ExperimentOptions& options, Page& page) const override {
    const int64_t seeds = options.seeds > 0 ? options.seeds : options.full ? 5 : 3;
    const VaeExperiment experiment(options, options.full ? 500 : 64, /*simulated=*/false);
    page.paragraph("The first " + number(experiment.images().size()) + " images of " +
                   std::filesystem::path(experiment.images().source).filename().string() + " (" +
                   experiment.images().binarisation + "), " + number(seeds) +
                   " seeds, checkpoint " + options.checkpoint +
                   ". Evaluations are of the decoder, an image: base (Jacobians at their multiply-"
                   "adds), pilots and estimate, all told.");
    const at::Tensor truth = reference(experiment, page);
    Plot plot = errors_against_evaluations(experiment, truth, seeds, options, page);
    compare_schedules(experiment, truth, seeds, page);
    const VaeExperiment diffusion(options, num_diffusion_images(options.full), /*simulated=*/false);
    if (const auto mcd = diffusion_table(diffusion, truth, options, page))
      plot.series.push_back(*mcd);
    page.plot("accuracy", plot);
    certificates(options, seeds, page);
  }

 private:
  /// Two long runs from different bases that must agree; the truth is their mean, [N].
  static at::Tensor reference(const VaeExperiment& experiment, Page& page) {
    const std::vector<Variant> variants = {
        {"laplace", "--base laplace --kernel ghmc:0.8 --chains 32 --steps 1024"},
        {"encoder", "--base encoder:1.2 --kernel ghmc:0.8 --chains 32 --steps 2048"}};
    const std::vector<VariantResult> runs = experiment.run("reference", variants, 1, 1000);
    const at::Tensor a = runs[0].value[0], b = runs[1].value[0];
    const at::Tensor error = (runs[0].std_error.square() + runs[1].std_error.square())[0].sqrt();
    const Spread difference(a - b);
    const double expected =
        error.square().sum().sqrt().item<double>() / static_cast<double>(error.numel());
    page.table(
        "reference", "Reference: two runs that know nothing of each other",
        {"flags", "evaluations", "log p(x)", "MC SE"}, [&] {
          std::vector<std::vector<Cell>> rows;
          for (size_t i = 0; i < 2; ++i)
            rows.push_back({variants[i].flags, Cell::number(runs[i].evaluations(), 0),
                            Cell::number(runs[i].value.mean().item<double>(), 4),
                            Cell::number(runs[i].std_error.square().sum().sqrt().item<double>() /
                                             static_cast<double>(error.numel()),
                                         4)});
          return rows;
        }());
    page.paragraph("They differ by " + fixed(difference.mean, 4) + " nats in the mean (expected " +
                   fixed(expected, 4) + "), by at most " +
                   fixed((a - b).abs().max().item<double>(), 3) +
                   " for an image. The reference below is their average, weighted by precision.");
    const at::Tensor wa = runs[0].std_error[0].square().reciprocal();
    const at::Tensor wb = runs[1].std_error[0].square().reciprocal();
    return (wa * a + wb * b) / (wa + wb);
  }

  static std::vector<Spender> spenders(int64_t laplace_cost) {
    const auto annealed = [](const std::string& name, const std::string& flags, int64_t fixed,
                             const std::string& schedule = "linear") {
      return Spender{name, [=](int64_t budget) -> std::string {
                       const int64_t chains = budget - fixed >= 128 ? 16 : 4;
                       const int64_t steps = steps_within(budget, fixed, chains);
                       if (steps < 2) return "";
                       return flags + " --chains " + number(chains) + " " +
                              flags_of_plans(schedule, steps);
                     }};
    };
    const auto prior = [&](const std::string& name, const std::string& schedule,
                           const std::string& more = "") {
      return annealed("AIS, prior, " + name, "--base prior --kernel hmc" + more, 0, schedule);
    };
    return {{"IWAE, encoder",
             [](int64_t budget) { return "--base encoder --method iwae:" + number(budget); }},
            {"IS, Laplace",
             [=](int64_t budget) -> std::string {
               // One round of Newton's method where two cost too much.
               const std::string rounds = budget > 2 * laplace_cost ? "2" : "1";
               const int64_t base = rounds == "2" ? laplace_cost : (laplace_cost + 1) / 2;
               return "--base laplace:1,rounds=" + rounds +
                      " --method iwae:" + number(budget - base);
             }},
            prior("linear, step 0.5", "linear", " --step-size 0.5"),
            prior("linear", "linear"),
            prior("sigmoidal", "sigmoidal"),
            prior("geometric", "geometric"),
            prior("constant rate", "constant-rate:8"),
            annealed("AIS, encoder", "--base encoder --kernel hmc", 0),
            annealed("AIS, encoder, persistent", "--base encoder --kernel ghmc:0.8", 0),
            annealed("AIS, Laplace", "--base laplace --kernel hmc", laplace_cost),
            annealed("AIS, Laplace, persistent", "--base laplace --kernel ghmc:0.8", laplace_cost),
            {"recommended, --budget", [=](int64_t budget) -> std::string {
               return budget > 2 * laplace_cost ? "--budget " + number(budget) : "";
             }}};
  }

  /// A picture holds eight series, one of them Monte Carlo Diffusion's.
  static bool is_drawn(const std::string& name) {
    const std::vector<std::string> names = {"IWAE, encoder",
                                            "IS, Laplace",
                                            "AIS, prior, linear",
                                            "AIS, prior, constant rate",
                                            "AIS, encoder, persistent",
                                            "AIS, Laplace, persistent",
                                            "recommended, --budget"};
    return std::find(names.begin(), names.end(), name) != names.end();
  }

  /// A table of everything, and the picture of some of it.
  static Plot errors_against_evaluations(const VaeExperiment& experiment, const at::Tensor& truth,
                                         int64_t seeds, const ExperimentOptions& options,
                                         Page& page) {
    std::vector<int64_t> budgets = {64, 100, 256, 1024};
    if (options.full) budgets.push_back(4096);
    std::vector<Variant> variants;
    for (const Spender& spender : spenders(experiment.laplace_cost())) {
      for (const int64_t budget : budgets)
        if (const std::string flags = spender.flags(budget); !flags.empty())
          variants.push_back({spender.name, flags});
      // What most papers report.
      if (spender.name == "IWAE, encoder")
        variants.push_back({spender.name, "--base encoder --method iwae:5000"});
    }
    const std::vector<VariantResult> results = experiment.run("accuracy", variants, seeds);

    std::vector<std::vector<Cell>> rows;
    Plot plot{"Error of the mean log p(x)",
              "decoder evaluations an image",
              "error, nats",
              true,
              true,
              {}};
    for (size_t i = 0; i < variants.size(); ++i) {
      const Errors e(results[i], truth);
      rows.push_back({variants[i].name, variants[i].flags,
                      Cell::number(results[i].evaluations(), 0), Cell::number(e.bias.mean, 4),
                      Cell::number(e.bias.std_error, 4), Cell::number(e.rms, 3),
                      Cell::number(e.worst, 2), Cell::number(100 * e.flagged, 1), e.missed});
      if (!is_drawn(variants[i].name)) continue;
      if (plot.series.empty() || plot.series.back().name != variants[i].name)
        plot.series.push_back({variants[i].name, {}, {}, {}});
      plot.series.back().add(results[i].evaluations(), std::abs(e.bias.mean), e.bias.std_error);
    }
    page.table("accuracy", "Error of the mean log p(x) over images, in nats",
               {"variant", "flags", "evaluations", "bias", "SE", "rms an image", "worst image",
                "flagged %", "off by > 1, unflagged"},
               rows);
    return plot;
  }

  static void compare_schedules(const VaeExperiment& experiment, const at::Tensor& truth,
                                int64_t seeds, Page& page) {
    struct Setting {
      std::string name, flags;
      int64_t steps;
    };
    const std::vector<Setting> settings = {{"prior", "--chains 16 --base prior --kernel hmc", 64},
                                           {"encoder", "--chains 16 --base encoder", 64},
                                           {"Laplace", "--chains 16 --base laplace", 16},
                                           {"Laplace", "--chains 16 --base laplace", 64}};
    std::vector<Variant> variants;
    std::vector<std::string> schedules;
    for (const Setting& s : settings) {
      std::vector<std::string> own = {"linear", "sigmoidal", "geometric"};
      for (const std::string rule : {"constant-rate", "constant-length", "cess"})
        own.push_back(
            rule + ":" +
            experiment.match(s.flags + " --schedule " + rule + ":@", s.steps, seeds).setting);
      for (const std::string& schedule : own) {
        schedules.push_back(schedule);
        variants.push_back({s.name, s.flags + " " + flags_of_plans(schedule, s.steps)});
      }
    }
    const std::vector<VariantResult> results = experiment.run("schedules", variants, seeds);
    std::vector<std::vector<Cell>> rows;
    const size_t group = schedules.size() / settings.size();
    for (size_t i = 0; i < variants.size(); ++i) {
      const Errors e(results[i], truth);
      // Seeds are shared by the variants, images too: the difference has an error of its own.
      const Spread apart((results[i].value - results[i / group * group].value).mean(1));
      rows.push_back({variants[i].name, schedules[i], settings[i / group].steps,
                      Cell::number(results[i].evaluations(), 0), Cell::number(e.bias.mean, 4),
                      Cell::number(e.bias.std_error, 4), Cell::number(apart.mean, 4),
                      Cell::number(apart.std_error, 4), Cell::number(e.rms, 3)});
    }
    page.table("schedules", "Schedules at as many transitions, 16 chains, step sizes tuned",
               {"base", "schedule", "transitions", "evaluations", "bias", "SE", "above linear",
                "SE of that", "rms an image"},
               rows);
  }

  static void certificates(const ExperimentOptions& options, int64_t seeds, Page& page) {
    const VaeExperiment experiment(options, options.full ? 1000 : 100, /*simulated=*/true);
    const int64_t laplace_cost = experiment.laplace_cost();
    std::vector<Variant> variants;
    for (const int64_t budget : {int64_t{512}, int64_t{1024}, int64_t{2048}, int64_t{4096}}) {
      const auto both = [&](const std::string& name, const std::string& flags, int64_t fixed) {
        const int64_t steps = steps_within(budget, fixed, 32);
        variants.push_back(
            {name, flags + " --method bidirectional --chains 16 --steps " + number(steps)});
      };
      both("prior", "--base prior --kernel hmc", 0);
      both("encoder", "--base encoder --kernel hmc", 0);
      both("encoder, persistent", "--base encoder --kernel ghmc:0.8", 0);
      both("Laplace, persistent", "--base laplace --kernel ghmc:0.8", laplace_cost);
    }
    const std::vector<VariantResult> results = experiment.run("certificates", variants, seeds);
    std::vector<std::vector<Cell>> rows;
    Plot plot{"Gap between upper and lower bound, simulated images",
              "decoder evaluations an image",
              "gap, nats",
              true,
              true,
              {}};
    for (const char* name : {"prior", "encoder", "encoder, persistent", "Laplace, persistent"}) {
      Series series{name, {}, {}, {}};
      for (size_t i = 0; i < variants.size(); ++i) {
        if (variants[i].name != name) continue;
        const at::Tensor gap = results[i].upper - results[i].value;
        const Spread over_images(gap.mean(0));
        rows.push_back({name, variants[i].flags, Cell::number(results[i].evaluations(), 0),
                        Cell::number(results[i].value.mean().item<double>(), 3),
                        Cell::number(results[i].upper.mean().item<double>(), 3),
                        Cell::number(over_images.mean, 4), Cell::number(over_images.std_error, 4),
                        Cell::number(gap.max().item<double>(), 2)});
        series.add(results[i].evaluations(), over_images.mean, over_images.std_error);
      }
      plot.series.push_back(std::move(series));
    }
    page.table("certificates",
               "Bounds on the mean log p(x) of " + number(experiment.images().size()) +
                   " simulated images, nats",
               {"base", "flags", "evaluations", "lower", "upper", "gap", "SE", "largest gap"},
               rows);
    page.plot("certificates", plot);
  }
};

const Enrol<ExperimentRegistry> kEnrolAccuracy(
    "accuracy", {"accuracy",
                 "error against evaluations from every base, schedules "
                 "compared, certificates (real MNIST)",
                 "accuracy", [](Spec&) { return std::make_unique<Accuracy>(); }});

}  // namespace
}  // namespace crais
