#include "programs/reproduce/experiments/vae_diffusion.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "util/format.h"

namespace crais {
namespace {

constexpr int64_t kLearnedOn = 1000;  // images, of those that are estimated

struct DiffusionRow {
  Variant variant;
  std::string base;
  bool learns;
};

/// 64 moves each.
std::vector<DiffusionRow> diffusion_rows(bool full) {
  const auto mcd = [](const std::string& name, const std::string& base,
                      const std::string& training) {
    return DiffusionRow{
        {name, "--base " + base + " --chains 16 --pilot-images " + std::to_string(kLearnedOn) +
                   " --method mcd:64,patience=0," + training},
        base,
        true};
  };
  std::vector<DiffusionRow> rows;
  rows.push_back(
      full ? mcd("MCD, 100 iterations, the paper's form", "prior", "iterations=100,hidden=512")
           : mcd("MCD, 20 iterations, narrower", "prior", "iterations=20,hidden=64"));
  for (const char* base : {"prior", "encoder", "laplace"}) {
    // Whitened moves may be longer.
    const std::string step = std::string(base) == "prior" ? "" : ",step=0.1,rate=0.003";
    if (std::string(base) != "prior")
      rows.push_back(mcd("MCD, untrained", base, "iterations=0" + step));
    if (full)
      rows.push_back(mcd("MCD, 2,000 iterations, amortised", base,
                         "iterations=2000,hidden=64,linear=1" + step));
    else if (std::string(base) == "encoder")
      rows.push_back(
          mcd("MCD, 40 iterations, amortised", base, "iterations=40,hidden=64,linear=1" + step));
    rows.push_back({{"AIS, 64 transitions",
                     std::string("--base ") + base + " --schedule linear --steps 64 --chains 16"},
                    base,
                    false});
  }
  return rows;
}

}  // namespace

std::optional<Series> diffusion_table(const VaeExperiment& experiment, const at::Tensor& truth,
                                      const ExperimentOptions& options, Page& page) {
  const int64_t trainings = options.seeds > 0 ? options.seeds : options.full ? 3 : 2;
  const std::vector<DiffusionRow> list = diffusion_rows(options.full);
  std::vector<Variant> variants;
  variants.reserve(list.size());
  for (const DiffusionRow& row : list) variants.push_back(row.variant);
  const std::vector<VariantResult> results = experiment.run("diffusion", variants, trainings);
  const auto images = static_cast<double>(experiment.images().size());

  std::optional<Series> best;
  double highest = -std::numeric_limits<double>::infinity();
  std::vector<std::vector<Cell>> rows;
  for (size_t i = 0; i < list.size(); ++i) {
    const VariantResult& result = results[i];
    if (!result.failed.empty()) {
      rows.push_back({list[i].variant.name, list[i].base, result.reason(), "-", "-", "-", "-", "-",
                      "-", "-", "-", list[i].variant.flags});
      continue;
    }
    const at::Tensor value = result.value.slice(1, 0, truth.size(0));
    const at::Tensor error = value - truth;
    const Spread bound(value.mean(1)), bias(error.mean(1));
    rows.push_back({list[i].variant.name, list[i].base, Cell::number(bound.mean, 3),
                    Cell::number(bound.std_error, 3), Cell::number(bias.mean, 3),
                    Cell::number(bias.std_error, 3),
                    Cell::number(error.square().mean().sqrt().item<double>(), 3),
                    Cell::number(result.ess.slice(1, 0, truth.size(0)).mean().item<double>(), 3),
                    Cell::number(result.base + result.estimating, 0),
                    Cell::number(result.tuning * images, 0),
                    list[i].learns ? Cell::number(result.training_seconds / 60, 1) : Cell("-"),
                    list[i].variant.flags});
    if (list[i].learns && bound.mean > highest) {
      highest = bound.mean;
      best = Series{"MCD, trained, " + list[i].base, {}, {}, {}};
      best->add(result.base + result.estimating, std::abs(bias.mean), bias.std_error);
    }
  }
  page.table(
      "diffusion",
      "Monte Carlo Diffusion of 64 moves against annealing of 64, 16 chains, " +
          std::to_string(trainings) + " trainings: log p(x) of " + std::to_string(truth.size(0)) +
          " images, nats",
      {"method", "base", "log p(x)", "SE", "error", "SE of that", "rms an image", "ESS",
       "evaluations an image", "evaluations of tuning or training", "minutes of training", "flags"},
      rows);
  page.paragraph(
      "Error is the mean over images against the reference. A training's evaluations and minutes, "
      "on one thread, are of one training, which serves all images; those of a row of AIS are its "
      "pilot's. MCD learns on the first " +
      with_commas(std::min(experiment.images().size(), kLearnedOn)) +
      " images that it estimates, at most 128 of them an iteration: in the coordinates of an "
      "image's own base one set of parameters serves all.");
  return best;
}

}  // namespace crais
