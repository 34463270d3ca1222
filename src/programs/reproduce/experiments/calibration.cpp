// Do estimates and their error bars keep what they promise? Every way to estimate, on images whose
// log p(x) is known.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "core/divergence.h"
#include "core/transition.h"
#include "programs/reproduce/experiments/small_vae.h"
#include "samplers/resampling.h"
#include "util/format.h"

namespace crais {
namespace {

constexpr double kLeastEss = 0.1;  // where less is left, error bars promise nothing

/// How estimates [N] of log Z stand to the truth.
struct Calibration {
  double mean, std_error;     // of Zhat / Z, or of its inverse for an upper bound
  double within, within_two;  // shares of estimates at most 1 and 1.96 errors off
  double spread;              // their standard deviation over the errors' root mean square
  double bias, reported_bias;
  double ess;
  double wrong, caught, alarms;  // shares: off by half a nat; of them flagged; of the others

  double z() const { return (mean - 1) / std_error; }
  bool promises() const { return ess >= kLeastEss; }
};

double mean_of(const at::Tensor& values) { return values.to(at::kDouble).mean().item<double>(); }

/// `sign` is 1 for lower bounds, whose weights have mean Z, and -1 for upper ones, of mean 1 / Z.
Calibration calibrate(const at::Tensor& value, const at::Tensor& std_error,
                      const VariantResult& result, const at::Tensor& truth, int sign) {
  constexpr double kWrong = 0.5;  // nats
  const at::Tensor error = value - truth, ratio = (sign * error).exp();
  const at::Tensor wrong = error.abs() > kWrong, flagged = result.flags[0] != 0;
  return {mean_of(ratio),
          std_error_of_mean(ratio),
          mean_of(error.abs() <= std_error),
          mean_of(error.abs() <= 1.96 * std_error),
          error.std().item<double>() / std::sqrt(mean_of(std_error.square())),
          mean_of(error),
          sign > 0 ? mean_of(result.bias[0]) : 0.5 * mean_of(std_error.square()),
          mean_of(result.ess),
          mean_of(wrong),
          mean_of(flagged.masked_select(wrong)),
          mean_of(flagged.masked_select(~wrong))};
}

/// One way to estimate, and how it did.
struct CalibrationRow {
  std::string images, method, base, path, kernel, flags;
  Calibration found;
};

template <typename R>
std::vector<std::string> examples_of() {
  std::vector<std::string> all;
  for (const auto& [name, entry] : R::instance().entries()) all.push_back(entry.example);
  return all;
}

/// Images, and what is tried on them.
struct CalibrationDesign {
  std::string name;
  int64_t side;  // pixels
  std::vector<int64_t> hidden;
  std::vector<std::string> paths, kernels, bases;
};

std::vector<CalibrationDesign> calibration_designs(bool full) {
  if (!full)
    return {{"log-concave", 7, {}, {"geometric", "power:0.5"}, {"ghmc:0.8"}, {"prior", "laplace"}},
            {"hard", 14, {16, 16}, {"geometric"}, {"ghmc:0.8"}, {"prior", "laplace"}}};
  const std::vector<std::string> kernels = examples_of<TransitionRegistry>();
  const std::string pilot = "pilot:32,steps=16,rounds=2";  // costs more than the rest of a run
  CalibrationDesign concave{"log-concave",
                            7,
                            {},
                            {"geometric", "power:-0.5", "power:0.5", "power:1"},
                            kernels,
                            {"encoder", "laplace", "prior"}};
  for (const auto& divergence : examples_of<DivergenceRegistry>())
    concave.paths.push_back("f:" + divergence);
  CalibrationDesign hard{"hard",        14,           {16, 16},
                         {"geometric"}, {"ghmc:0.8"}, {"encoder", "laplace", pilot, "prior"}};
  return {concave, {"log-concave", 7, {}, {"geometric"}, kernels, {pilot}}, hard};
}

class CalibrationExperiment : public Experiment {
 public:
  std::string title() const override { return "Do error bars keep what they promise?"; }
  std::set<std::string> flags() const override { return {}; }

  void run(const ExperimentOptions& options, Page& page) const override {
    const int64_t images = options.full ? 10000 : 1000, points = options.full ? 1024 : 512;
    std::vector<CalibrationRow> rows;
    double resolution = 0;
    for (const CalibrationDesign& design : calibration_designs(options.full)) {
      const VaeExperiment experiment(options, small_vae(design.side, design.hidden), images);
      const at::Tensor truth = integrated(options, experiment, points);
      const at::Tensor coarse = integrated(options, experiment, points / 2);
      resolution = std::max(resolution, (truth - coarse).abs().max().item<double>());
      for (const std::string& base : design.bases) {
        for (const std::string& path : design.paths)
          annealed(experiment, truth, design, base, path, rows);
        straight(experiment, truth, design, base, rows);
      }
    }
    page.paragraph(
        std::to_string(images) +
        " images simulated from a VAE of two latents trained on drawn digits, each with its log "
        "p(x) by a grid of " +
        std::to_string(points) + " x " + std::to_string(points) +
        " latents; half as many points a side differ by " + significant(resolution, 2) +
        " nats at most. 'log-concave' has 7 x 7 pixels and a linear decoder; 'hard' 14 x 14 and "
        "16-16 hidden units, whose posteriors have several modes, and plateaus where the units "
        "saturate. Weights have mean Z whatever the method, path, kernel and base: z says by how "
        "many standard errors the mean of Zhat / Z (Z / Zhat of upper bounds) misses 1. Coverage "
        "is of estimate +- 1 and +- 1.96 reported errors, 68% and 95% if errors were normal and "
        "estimates without bias; spread is the estimates' standard deviation about the truth over "
        "the reported error. The reverse chains of an upper bound share one exact draw, of which "
        "their error knows nothing: only over images does it show. Wrong is an estimate that is "
        "off by more than half a nat; caught says how many of these are flagged, alarms how many "
        "of the others. Methods do not cost the same: rows say whether errors are true, not which "
        "method is better. Resampling and the pilot base are on the geometric path. Only ways "
        "with a mean ESS of 0.1 or more are summarised.");
    summarise(rows, page);
    details(rows, page);
  }

 private:
  static constexpr const char* kCommon = " --chunk 500";
  static constexpr const char* kAnnealed = " --chains 16 --steps 24";

  /// Forward and back; resampled in each way on the geometric path.
  static void annealed(const VaeExperiment& experiment, const at::Tensor& truth,
                       const CalibrationDesign& design, const std::string& base,
                       const std::string& path, std::vector<CalibrationRow>& rows) {
    std::vector<CalibrationRow> heads;
    for (const std::string& kernel : design.kernels) {
      const std::string flags =
          "--base " + base + " --path " + path + " --kernel " + kernel + kCommon + kAnnealed;
      const auto add = [&](const std::string& method, const std::string& more) {
        heads.push_back({design.name, method, base, path, kernel, flags + more, {}});
      };
      add("ais", " --method bidirectional");
      if (path != "geometric") continue;
      for (const std::string& resampling : examples_of<ResamplingRegistry>())
        add("ais, " + resampling, " --resample " + resampling + ":0.9");
    }
    measure(experiment, truth, design.name + ", " + base + ", " + path, heads, rows);
  }

  static void straight(const VaeExperiment& experiment, const at::Tensor& truth,
                       const CalibrationDesign& design, const std::string& base,
                       std::vector<CalibrationRow>& rows) {
    std::vector<CalibrationRow> heads;
    const auto add = [&](const std::string& method, const std::string& more) {
      const std::string flags = "--method " + method + " --base " + base + kCommon + more;
      heads.push_back({design.name, method, base, "-", "-", flags, {}});
    };
    add("iwae:64", "");
    add("mcd:16,iterations=500", " --chains 16");
    measure(experiment, truth, design.name + ", " + base + ", no annealing", heads, rows);
  }

  /// Adds what becomes of `heads`, a row for each bound that they give.
  static void measure(const VaeExperiment& experiment, const at::Tensor& truth,
                      const std::string& label, const std::vector<CalibrationRow>& heads,
                      std::vector<CalibrationRow>& rows) {
    std::vector<Variant> variants;
    variants.reserve(heads.size());
    for (const CalibrationRow& head : heads) variants.push_back({head.method, head.flags});
    const std::vector<VariantResult> results = experiment.run(label, variants, /*seeds=*/1);
    for (size_t i = 0; i < results.size(); ++i) {
      const VariantResult& result = results[i];
      if (!result.failed.empty()) continue;
      CalibrationRow row = heads[i];
      row.found = calibrate(result.value[0], result.std_error[0], result, truth, 1);
      rows.push_back(row);
      if (!result.upper.defined()) continue;
      row.method = "upper bound";
      row.found = calibrate(result.upper[0], result.upper_std_error[0], result, truth, -1);
      rows.push_back(row);
    }
  }

  /// What the rows of one method and base have in common.
  static void summarise(const std::vector<CalibrationRow>& rows, Page& page) {
    std::map<std::array<std::string, 3>, std::vector<const CalibrationRow*>> groups;
    for (const CalibrationRow& row : rows)
      groups[{row.images, row.method, row.base}].push_back(&row);
    std::vector<std::vector<Cell>> table;
    for (const auto& [key, group] : groups) {
      std::vector<Calibration> kept;
      for (const CalibrationRow* row : group)
        if (row->found.promises()) kept.push_back(row->found);
      std::vector<Cell> line(key.begin(), key.end());
      line.emplace_back(static_cast<int64_t>(group.size()));
      line.emplace_back(static_cast<int64_t>(kept.size()));
      if (kept.empty()) {
        for (int i = 0; i < 9; ++i) line.emplace_back("-");
      } else {
        const auto number = [&](double Calibration::*member, int decimals, double scale = 1) {
          return range(
              kept, [=](const Calibration& c) { return scale * (c.*member); }, decimals);
        };
        double largest = 0;
        for (const Calibration& c : kept) largest = std::max(largest, std::abs(c.z()));
        line.push_back(Cell::number(largest, 1));
        line.push_back(number(&Calibration::within, 0, 100));
        line.push_back(number(&Calibration::within_two, 0, 100));
        line.push_back(number(&Calibration::spread, 2));
        line.push_back(number(&Calibration::bias, 4));
        line.push_back(number(&Calibration::reported_bias, 4));
        line.push_back(number(&Calibration::wrong, 1, 100));
        line.push_back(number(&Calibration::caught, 0, 100));
        line.push_back(number(&Calibration::alarms, 1, 100));
      }
      table.push_back(line);
    }
    page.table(
        "calibration", "Every path and kernel: the median and, in brackets, the range",
        {"images", "method", "base", "ways", "of ESS >= 0.1", "largest |z|", "within 1 %",
         "within 1.96 %", "spread", "bias, nats", "reported", "wrong %", "caught %", "alarms %"},
        table);
  }

  template <typename F>
  static Cell range(const std::vector<Calibration>& kept, const F& value, int decimals) {
    std::vector<double> sorted;
    for (const Calibration& c : kept)
      if (!std::isnan(value(c))) sorted.push_back(value(c));
    if (sorted.empty()) return "-";
    std::sort(sorted.begin(), sorted.end());
    const double median = sorted[sorted.size() / 2];
    std::string text = fixed(median, decimals);
    if (sorted.size() > 1)
      text +=
          " (" + fixed(sorted.front(), decimals) + " to " + fixed(sorted.back(), decimals) + ")";
    Cell cell(text);
    cell.value = {{"median", median}, {"least", sorted.front()}, {"greatest", sorted.back()}};
    return cell;
  }

  static void details(const std::vector<CalibrationRow>& rows, Page& page) {
    std::vector<std::vector<Cell>> table;
    for (const CalibrationRow& row : rows) {
      const Calibration& c = row.found;
      const Cell caught = std::isnan(c.caught) ? Cell("-") : Cell::number(100 * c.caught, 1);
      table.push_back(
          {row.images, row.method, row.base, row.path, row.kernel, Cell::number(c.ess, 3),
           Cell::number(c.mean, 4), Cell::number(c.std_error, 4), Cell::number(c.z(), 1),
           Cell::number(100 * c.within, 1), Cell::number(100 * c.within_two, 1),
           Cell::number(c.spread, 3), Cell::number(c.bias, 4), Cell::number(c.reported_bias, 4),
           Cell::number(100 * c.wrong, 2), caught, Cell::number(100 * c.alarms, 2), row.flags});
    }
    page.folded_table("calibration-all", "Every method, base, path and kernel",
                      {"images", "method", "base", "path", "kernel", "ESS", "Zhat / Z", "SE", "z",
                       "within 1 %", "within 1.96 %", "spread", "bias, nats", "reported", "wrong %",
                       "caught %", "alarms %", "flags"},
                      table);
  }
};

const Enrol<ExperimentRegistry> kEnrolCalibration(
    "calibration",
    {"calibration",
     "every method, path, kernel and base against known log p(x): coverage of errors",
     "calibration", [](Spec&) { return std::make_unique<CalibrationExperiment>(); }});

}  // namespace
}  // namespace crais
