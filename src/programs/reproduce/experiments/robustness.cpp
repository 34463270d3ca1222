// Where estimates break: decoders made to be hard, and whether anything says so.
#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/rng.h"
#include "estimates/estimate.h"
#include "programs/reproduce/vae_experiment.h"
#include "util/format.h"

namespace crais {
namespace {

/// A decoder-only VAE of random weights, `gain` times Glorot's; biases random.
Vae random_decoder(int64_t latent, double gain, uint64_t seed) {
  VaeArchitecture architecture;
  architecture.image_rows = architecture.image_cols = 14;
  architecture.latent = latent;
  architecture.hidden = {64, 64};
  Vae vae = make_vae(architecture, seed);
  vae.encoder = {};
  at::Generator rng = make_generator(mix64(seed));
  for (Layer& layer : vae.decoder.layers) {
    layer.weight = gain * layer.weight;
    layer.bias = 0.3 * at::empty_like(layer.bias).normal_(0, 1, rng);
  }
  return vae;
}

/// The same whatever the sign of the first latent: hidden units come in pairs, one for each sign.
Vae even_decoder() {
  Vae vae = random_decoder(2, 2.0, 3);
  Layer& first = vae.decoder.layers[0];
  Layer& second = vae.decoder.layers[1];
  const at::Tensor flip = at::tensor({-1.0f, 1.0f}), stretch = at::tensor({2.0f, 1.0f});
  const at::Tensor half = first.weight.slice(0, 0, 32) * stretch;
  first.weight = at::cat({half, half * flip});
  first.bias = at::cat({first.bias.slice(0, 0, 32), first.bias.slice(0, 0, 32)});
  const at::Tensor outward = second.weight.slice(1, 0, 32);
  second.weight = at::cat({outward, outward}, 1);
  vae.decoder.layers.back().weight = 2.0 * vae.decoder.layers.back().weight;
  return vae;
}

/// A narrow peak where the hidden units move, and plateaus of prior mass where they saturate.
Vae plateau_decoder() {
  Vae vae = random_decoder(2, 1.0, 4);
  vae.decoder.layers[0].weight = 8.0 * vae.decoder.layers[0].weight;
  vae.decoder.layers.back().weight = 0.5 * vae.decoder.layers.back().weight;
  return vae;
}

Vae collapsed_decoder() {
  Vae vae = random_decoder(10, 1.0, 5);
  vae.decoder.layers[0].weight = at::zeros_like(vae.decoder.layers[0].weight);
  return vae;
}

Vae saturated_decoder() {
  Vae vae = random_decoder(10, 1.5, 6);
  vae.decoder.layers.back().weight = 20.0 * vae.decoder.layers.back().weight;
  return vae;
}

struct HardCase {
  std::string name;
  Vae vae;
};

std::vector<HardCase> hard_cases() {
  return {{"even in a latent, d = 2", even_decoder()},
          {"peak and plateaus, d = 2", plateau_decoder()},
          {"untrained, d = 10", random_decoder(10, 1.0, 7)},
          {"collapsed, d = 10", collapsed_decoder()},
          {"saturated logits, d = 10", saturated_decoder()},
          {"d = 2", random_decoder(2, 2.0, 8)},
          {"d = 10", random_decoder(10, 2.0, 9)},
          {"d = 50", random_decoder(50, 2.0, 10)},
          {"d = 100", random_decoder(100, 2.0, 11)}};
}

class Robustness : public Experiment {
 public:
  std::string title() const override { return "Where estimates break, and what tells"; }

  void run(const ExperimentOptions& options, Page& page) const override {
    const int64_t images = options.full ? 200 : 40;
    const int64_t seeds = options.seeds > 0 ? options.seeds : options.full ? 5 : 2;
    page.paragraph(
        "Decoders without an encoder (14 x 14 pixels, 64-64 tanh units), " +
        std::to_string(images) + " images simulated from each, " + std::to_string(seeds) +
        " seeds. The truth is bracketed by long forward and reverse runs from the prior and from "
        "Laplace bases, of which the tighter counts. An estimate is wrong if it is farther from "
        "their middle than 5 standard errors and the bracket allow; a certificate speaks up if its "
        "gap exceeds 0.1 nats by 3 standard errors, or half a nat.");
    const std::vector<Variant> variants = {
        {"recommended", "--method bidirectional"},
        {"Laplace", "--method bidirectional --base laplace"},
        {"Laplace, 4 starts", "--method bidirectional --base laplace:1,starts=4"},
        {"pilot", "--method bidirectional --base pilot:256,rounds=2"},
        {"prior", "--method bidirectional --base prior --steps 512"}};
    std::vector<std::vector<Cell>> rows;
    for (const HardCase& hard : hard_cases()) {
      const VaeExperiment experiment(options, hard.vae, images);
      const Bracket truth = bracket(experiment, hard.name);
      const std::vector<VariantResult> results = experiment.run(hard.name, variants, seeds);
      for (size_t i = 0; i < variants.size(); ++i)
        rows.push_back(row_of(hard.name, variants[i].name, results[i], truth));
    }
    page.table("robustness", "Errors in nats, and what says so",
               {"decoder", "settings", "evaluations", "log p(x)", "bracket +-", "mean error", "SE",
                "wrong %", "of them flagged %", "flagged %", "gap", "SE of gap", "verdict"},
               rows);
  }

 private:
  struct Bracket {
    at::Tensor middle, half_width;  // [N]
  };

  static Bracket bracket(const VaeExperiment& experiment, const std::string& name) {
    const std::vector<VariantResult> runs = experiment.run(
        name + ", reference",
        {{"prior", "--method bidirectional --base prior --chains 64 --steps 2048"},
         {"laplace", "--method bidirectional --base laplace --chains 64 --steps 1024"}},
        1, 1000);
    const auto width = [](const VariantResult& run) { return (run.upper - run.value)[0].abs(); };
    const VariantResult& best =
        width(runs[0]).mean().item<double>() <= width(runs[1]).mean().item<double>() ? runs[0]
                                                                                     : runs[1];
    return {0.5 * (best.value + best.upper)[0], 0.5 * width(best) + best.std_error[0]};
  }

  static std::vector<Cell> row_of(const std::string& hard, const std::string& settings,
                                  const VariantResult& result, const Bracket& truth) {
    const at::Tensor error = result.value - truth.middle;
    const at::Tensor wrong = error.abs() > 5 * result.std_error + 2 * truth.half_width + 0.02;
    const at::Tensor flagged = result.flags != 0;
    const auto percent = [](const at::Tensor& mask) {
      return 100 * mask.to(at::kDouble).mean().item<double>();
    };
    const at::Tensor gap = (result.upper - result.value).mean(0);
    const double mean_gap = gap.mean().item<double>(), gap_error = std_error_of_mean(gap);
    const bool certificate_speaks = mean_gap > 0.1 + 3 * gap_error || mean_gap > 0.5;
    const double silent = percent(wrong & ~flagged);
    const std::string verdict = percent(wrong) < 0.5 ? "right"
                                : silent < 0.5       ? "flagged"
                                : certificate_speaks ? "flagged by the certificate"
                                                     : "wrong, unnoticed";
    return {hard,
            settings,
            Cell::number(result.evaluations(), 0),
            Cell::number(truth.middle.mean().item<double>(), 3),
            Cell::number(truth.half_width.mean().item<double>(), 3),
            Cell::number(error.mean().item<double>(), 3),
            Cell::number(std_error_of_mean(error.mean(0)), 3),
            Cell::number(percent(wrong), 1),
            percent(wrong) > 0 ? Cell::number(100 - 100 * silent / percent(wrong), 0) : Cell("-"),
            Cell::number(percent(flagged), 1),
            Cell::number(mean_gap, 3),
            Cell::number(gap_error, 3),
            verdict};
  }
};

const Enrol<ExperimentRegistry> kEnrolRobustness(
    "robustness", {"robustness", "decoders made to be hard, and what tells that an estimate is off",
                   "robustness", [](Spec&) { return std::make_unique<Robustness>(); }});

}  // namespace
}  // namespace crais
