// Calibration of estimates and error bars: all methods, on images whose log p(x) is known.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "core/divergence.h"
#include "core/transition.h"
#include "programs/reproduce/experiments/small_vae.h"
#include "samplers/resampling.h"
#include "util/format.h"

namespace crais {
namespace {

/// Images and the methods that are tried on them.
struct CalibrationDesign {
  std::string name;
  int64_t side;  // pixels
  std::vector<int64_t> hidden;
  std::vector<std::string> paths, kernels, bases;
};

template <typename R>
std::vector<std::string> examples_of() {
  std::vector<std::string> all;
  for (const auto& [name, entry] : R::instance().entries()) all.push_back(entry.example);
  return all;
}

std::vector<CalibrationDesign> calibration_designs(bool full) {
  const std::string pilot = "pilot:32,steps=16,rounds=2";  // costs more than the rest of a run
  CalibrationDesign concave{"log-concave",       7, {}, {"geometric", "power:0.5"}, {"ghmc:0.8"},
                            {"laplace", "prior"}};
  CalibrationDesign hard{"hard", 14, {16, 16}, {"geometric"}, {"ghmc:0.8"}, {"laplace", "prior"}};
  if (full) {
    concave.paths = {"geometric", "power:-0.5", "power:0.5", "power:1"};
    for (const auto& divergence : examples_of<DivergenceRegistry>())
      concave.paths.push_back("f:" + divergence);
    concave.kernels = examples_of<TransitionRegistry>();
    for (CalibrationDesign* design : {&concave, &hard})
      design->bases.insert(design->bases.end(), {"encoder", pilot});
  }
  return {concave, hard};
}

/// One method.
struct CalibratedWay {
  std::string method, path, kernel, flags;
};

std::vector<CalibratedWay> ways_of(const CalibrationDesign& design, const std::string& base) {
  const std::string common = "--chunk 500 --base " + base + " ";
  std::vector<CalibratedWay> ways;
  for (const std::string& path : design.paths)
    for (const std::string& kernel : design.kernels) {
      if (path != "geometric" && base.rfind("pilot", 0) == 0) continue;
      const std::string flags =
          common + "--path " + path + " --kernel " + kernel + " --chains 16 --steps 24 ";
      ways.push_back({"ais", path, kernel, flags + "--method bidirectional"});
      if (path != "geometric") continue;
      for (const std::string& resampling : examples_of<ResamplingRegistry>())
        ways.push_back(
            {"ais, " + resampling, path, kernel, flags + "--resample " + resampling + ":0.9"});
    }
  ways.push_back({"iwae:64", "-", "-", common + "--method iwae:64"});
  const std::string mcd = "mcd:16,iterations=500";
  ways.push_back({mcd, "-", "-", common + "--method " + mcd + " --chains 16"});
  return ways;
}

double share(const at::Tensor& mask) { return 100 * mask.to(at::kDouble).mean().item<double>(); }

class Calibration : public Experiment {
 public:
  std::set<std::string> flags() const override { return {}; }

  void run(const ExperimentOptions& options, Page& page) const override {
    const int64_t images = options.pick(10000, 1000), points = options.pick(1024, 512);
    double resolution = 0;
    std::string summaries;
    std::vector<Row> rows;
    for (const CalibrationDesign& design : calibration_designs(options.full)) {
      const VaeExperiment experiment(options, small_vae(design.side, design.hidden), images);
      Summary summary;
      const at::Tensor truth = integrated(options, experiment, points);
      const at::Tensor coarse = integrated(options, experiment, points / 2);
      resolution = std::max(resolution, (truth - coarse).abs().max().item<double>());
      for (const std::string& base : design.bases) {
        const std::vector<CalibratedWay> ways = ways_of(design, base);
        std::vector<Variant> variants;
        for (const CalibratedWay& way : ways) variants.push_back({way.method, way.flags});
        const std::vector<VariantResult> results =
            experiment.run(design.name + ", " + base, variants);
        for (size_t i = 0; i < ways.size(); ++i) {
          const VariantResult& r = results[i];
          if (!r.failed.empty()) continue;
          const auto add = [&](const std::string& method, const at::Tensor& value,
                               const at::Tensor& std_error, double reported_bias, int sign) {
            Row row = {{"images", design.name},
                       {"method", method},
                       {"base", base},
                       {"path", ways[i].path},
                       {"kernel", ways[i].kernel},
                       {"ESS", number(r.mean_ess(), 3)}};
            const Row errors_row =
                calibrate(value - truth, std_error, r.flags[0] != 0, reported_bias, sign,
                          r.mean_ess() >= kLeastEss ? &summary : nullptr);
            row.insert(row.end(), errors_row.begin(), errors_row.end());
            row.emplace_back("flags", ways[i].flags);
            rows.push_back(row);
          };
          add(ways[i].method, r.value[0], r.std_error[0], r.bias.mean().item<double>(), 1);
          if (r.upper.defined())
            add("upper bound", r.upper[0], r.upper_std_error[0],
                0.5 * r.upper_std_error.square().mean().item<double>(), -1);
        }
      }
      summaries += "Of the images called " + design.name + " " + std::to_string(summary.ways) +
                   " lower bounds have a mean ESS of 0.1 or more: |z| is at most " +
                   fixed(summary.largest_z, 1) + ", and " + fixed(summary.least_within, 0) +
                   " to " + fixed(summary.most_within, 0) +
                   "% of the estimates are within one reported error of the truth. ";
    }
    page.paragraph(
        std::to_string(images) +
        " images simulated from a VAE of two latents trained on drawn digits, each with its log "
        "p(x) by a grid of " +
        std::to_string(points) + " x " + std::to_string(points) +
        " latents; half as many points a side differ by " + significant(resolution, 2) +
        " nats at most. 'log-concave' has a linear decoder; posteriors of 'hard' have several "
        "modes, and plateaus. z says by how many standard errors the mean of Zhat / Z (Z / Zhat of "
        "upper bounds) misses 1. Within 1 and 1.96 reported errors are 68% and 95% if errors are "
        "normal; spread is the estimates' standard deviation about the truth over the reported "
        "error. The reverse chains of an upper bound share one exact draw, of which their error "
        "knows nothing. Wrong is off by more than half a nat; caught says how many of these are "
        "flagged, alarms how many of the others. Methods do not cost the same.");
    page.paragraph(summaries);
    add_table(page, "calibration", "Every method, base, path and kernel", rows);
  }

 private:
  static constexpr double kLeastEss = 0.1;  // with a smaller ESS, error bars promise nothing

  /// The summary of the lower bounds whose error bars promise something.
  struct Summary {
    int64_t ways = 0;
    double largest_z = 0, least_within = 100, most_within = 0;
  };

  /// The calibration of estimates of log Z from their `errors` [N]. `sign` is 1 for lower bounds,
  /// whose weights have mean Z, and -1 for upper bounds, whose weights have mean 1 / Z.
  static Row calibrate(const at::Tensor& errors, const at::Tensor& std_error,
                       const at::Tensor& flagged, double reported_bias, int sign,
                       Summary* summary) {
    const Spread ratio((sign * errors).exp());
    const double z = (ratio.mean - 1) / ratio.std_error;
    const double within = share(errors.abs() <= std_error);
    const double rms = std::sqrt(std_error.square().mean().item<double>());
    const at::Tensor wrong = errors.abs() > 0.5;  // nats
    if (summary && sign > 0) {
      ++summary->ways;
      summary->largest_z = std::max(summary->largest_z, std::abs(z));
      summary->least_within = std::min(summary->least_within, within);
      summary->most_within = std::max(summary->most_within, within);
    }
    return {{"Zhat / Z", number(ratio.mean, 4)},
            {"SE", number(ratio.std_error, 4)},
            {"z", number(z, 1)},
            {"within 1 %", number(within, 1)},
            {"within 1.96 %", number(share(errors.abs() <= 1.96 * std_error), 1)},
            {"spread", number(errors.std().item<double>() / rms, 3)},
            {"bias, nats", number(errors.mean().item<double>(), 4)},
            {"reported", number(reported_bias, 4)},
            {"wrong %", number(share(wrong), 2)},
            {"caught %", number(share(flagged.masked_select(wrong)), 1)},
            {"alarms %", number(share(flagged.masked_select(~wrong)), 2)}};
  }
};

const EnrolExperiment<Calibration> kEnrolCalibration(
    "calibration",
    "every method, path, kernel and base against known log p(x): coverage of errors");

}  // namespace
}  // namespace crais
