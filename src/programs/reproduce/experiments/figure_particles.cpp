// Particles in the plane, schedule beside schedule: where they end, and which modes they reach.
#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/rng.h"
#include "io/json.h"
#include "programs/estimate_logz/settings.h"
#include "programs/plane.h"
#include "programs/reproduce/density_experiment.h"
#include "programs/reproduce/experiments/particle_cloud.h"
#include "report/plot.h"
#include "util/format.h"

namespace crais {
namespace {

using nlohmann::json;

constexpr int64_t kChains = 1024;
constexpr size_t kEss = 5, kAstray = 10;  // columns of the table of everything
constexpr double kReached = 0.1;          // of its mass: what makes a mode one that was reached

/// A target, where to look, and a rate at which constant rate takes about kQuickSteps.
struct Picture {
  std::string target;
  Window window;
  std::string rate;
  int64_t transitions;  // that constant rate takes at delta = 1/32, step size 0.5
};
const std::vector<Picture> kPictures = {{"u1", {-3.5, 3.5, -3.5, 3.5}, "0.035", 154},
                                        {"u2:4", {-4.6, 4.6, -4, 4}, "0.031", 127},
                                        {"u3:4", {-4.6, 4.6, -5, 3}, "0.029", 120},
                                        {"u4:4", {-4.6, 4.6, -5, 3}, "0.025", 104},
                                        {"u5:s=std", {-3.8, 3.8, -3.8, 3.8}, "1.4", 5916},
                                        {"u6", {0.5, 1.5, 0.5, 1.5}, "1.5", 6351},
                                        {"u10:s=std", {-3, 4.5, -4.2, 3.3}, "0.0095", 40},
                                        {"u11:s=std", {-4, 5, -5.5, 4.5}, "0.0055", 21}};
constexpr int64_t kQuickSteps = 128;
const std::string kStep = " --step-size 0.5";  // the paper's
const std::string kPilots = " --pilot-chains " + std::to_string(kChains) + " --pilot-problems 1";

class FigureParticles : public Experiment {
 public:
  std::string title() const override { return "Particles in the plane"; }

  void run(const ExperimentOptions& options, Page& page) const override {
    const int64_t runs = options.seeds > 0 ? options.seeds : options.full ? 20 : 8;
    page.paragraph(
        "The geometric path from N(0, I), " + std::to_string(kChains) + " chains, HMC, " +
        (options.full ? "one leapfrog step of 0.5, and for each target as many transitions as "
                        "constant rate takes at delta = 1/32 there"
                      : "step sizes tuned, " + std::to_string(kQuickSteps) +
                            " transitions (the published number differs from target to target, up "
                            "to 6,000: --full)") +
        ". Every schedule has exactly as many transitions: the plans that constant rate and CESS "
        "find are stretched to them, and their tuning is counted beside. " +
        std::to_string(runs) + " independent runs under one plan. Pictures show the first: " +
        std::to_string(kDrawnParticles) +
        " particles, resampled by their weights, over lines around 50% and 95% of the target's "
        "mass. The ESS of SMC is that of the weights since the last resampling. U2 to U4 have "
        "walls "
        "at |z1| = 4. Mixtures have the widths of their components as "
        "standard deviations.");
    Findings found;
    plane(options, runs, found);
    wide(options, runs, found);
    page.table("ess", "Effective fraction of the particles, schedule by schedule",
               matrix_headers(kSchedules), found.ess);
    page.table("astray", "Mass astray, schedule by schedule: of targets that know their modes",
               matrix_headers(kSchedules), found.astray);
    page.table("wide", "Mass astray on wide mixtures, 200 transitions", matrix_headers(kSamplers),
               found.wide);
    page.folded_table("figure-particles", "Every target and sampler: cost, errors, modes reached",
                      {"target", "sampler", "M", "evaluations", "+ tuning", "ESS", "log Z error",
                       "SE", "modes reached", "of", "mass astray", "SE"},
                      found.rows);
    page.paragraph(
        "A mode is reached if the weighted particles of a run give it a tenth of its mass or more; "
        "the number is the mean over runs. Mass astray is the total variation between the masses "
        "that one run finds and the true ones, sum |found - true| / 2, mean over runs: 0 is right, "
        "1 is every particle in a mode without mass. A particle between modes counts for each by "
        "its share in the density there, so the true masses are exact. Evaluations are of one run; "
        "tuning is shared by all runs, and divided between them.");
    page.folded_table("modes", "The mass of every mode, all runs together",
                      {"target", "sampler", "mode", "mass", "SE", "truth", "error / SE"},
                      found.masses);
    page.folded_table("commands", "The same with `estimate-logz TARGET FLAGS`",
                      {"target", "sampler", "flags"}, found.commands);
    for (const auto& [stem, scatter] : found.scatters) page.scatter(stem, scatter);
  }

 private:
  struct Findings {
    std::vector<std::vector<Cell>> ess, astray, wide;  // a row a target, a column a sampler
    std::vector<std::vector<Cell>> rows, masses, commands;
    std::vector<std::pair<std::string, Scatter>> scatters;
  };

  static const std::vector<std::string> kSchedules, kSamplers;

  static std::vector<std::string> matrix_headers(std::vector<std::string> names) {
    names.insert(names.begin(), "target");
    return names;
  }

  /// The cells of column `column` in the last `count` rows, as a row of their target; with a
  /// standard error in the column after.
  static std::vector<Cell> as_row(const Findings& found, size_t count, size_t column) {
    const size_t begin = found.rows.size() - count;
    std::vector<Cell> row = {found.rows[begin][0]};
    for (size_t i = begin; i < found.rows.size(); ++i) {
      const Cell& value = found.rows[i][column];
      row.push_back(column == kEss || value.text == "-"
                        ? value
                        : Cell(value.text + " +- " + found.rows[i][column + 1].text));
    }
    return row;
  }

  /// The paper's targets: samples, schedule by schedule.
  static void plane(const ExperimentOptions& options, int64_t runs, Findings& found) {
    for (const Picture& picture : kPictures) {
      const int64_t steps = options.full ? picture.transitions : kQuickSteps;
      const std::string rate = options.full ? "0.03125" : picture.rate;
      const std::string own = std::string(" --kernel hmc") + (options.full ? kStep : "");
      const std::string known = own + (options.full ? "" : kPilots), rule = own + kPilots;
      show(options, picture.target, picture.window, runs,
           {{kSchedules[0], flags_of_plans("linear", steps) + known},
            {kSchedules[1], flags_of_plans("geometric", steps) + known},
            {kSchedules[2], flags_of_plans("sigmoidal", steps) + known},
            {kSchedules[3], flags_of_plans("cess:0.998", steps) + rule},
            {kSchedules[4], flags_of_plans("constant-rate:" + rate, steps) + rule}},
           found);
      found.ess.push_back(as_row(found, kSchedules.size(), kEss));
      if (found.rows.back()[kAstray].text != "-")
        found.astray.push_back(as_row(found, kSchedules.size(), kAstray));
    }
  }

  /// The wide mixtures: SMC beside AIS.
  static void wide(const ExperimentOptions& options, int64_t runs, Findings& found) {
    const std::string own = " --kernel ghmc:0.8" + kPilots;
    const std::string systematic = " --resample systematic";
    for (const int64_t components : {16, 24, 32, 48}) {
      if (!options.full && components != 16 && components != 48) continue;
      show(options, "smc-mixture:" + std::to_string(components), {-21, 21, -21, 21}, runs,
           {{kSamplers[0], flags_of_plans("linear", 200) + own},
            {kSamplers[1], flags_of_plans("constant-rate:0.03125", 200) + own},
            {kSamplers[2], flags_of_plans("linear", 200) + own + systematic},
            {kSamplers[3], flags_of_plans("cess:0.99", 200) + own + systematic},
            {kSamplers[4],
             flags_of_plans("constant-rate:0.03125", 200) + " --weighted" + own + systematic}},
           found);
      found.wide.push_back(as_row(found, kSamplers.size(), kAstray));
    }
  }

  static void show(const ExperimentOptions& options, const std::string& name, const Window& window,
                   int64_t runs, const std::vector<Variant>& variants, Findings& found) {
    const auto target = std::shared_ptr<const Target>(TargetRegistry::instance().make(
        "target", name,
        {runs, at::TensorOptions().device(options.device).dtype(at::kDouble), options.data_dir}));
    const at::Tensor origin = at::zeros({runs, 1, 2}, target->options());
    const auto components = target->components(origin);
    std::vector<Task> tasks;
    tasks.reserve(variants.size());
    for (const Variant& variant : variants) {
      const std::string flags = variant.flags + " --chains " + std::to_string(kChains) +
                                " --problems " + std::to_string(runs) + " --chunk " +
                                std::to_string(runs) + (components ? " --expect modes" : "");
      found.commands.push_back({name, variant.name, flags});
      const LogzSettings settings = read_logz_settings(
          CommandLine(estimate_logz_synopsis(), arguments_of(name, with_base(flags), 0)));
      EstimateOptions estimate = settings.estimator;
      estimate.keep_particles = true;
      tasks.push_back({{{"target", name},
                        {"log_density", json_number(probe(*target->slice(0, 1)))},
                        {"drawn", kDrawnParticles},
                        {"settings", deciding_settings(settings)}},
                       [estimate, problems = ProblemSource::of(target)] {
                         return cloud_cell(estimate, problems);
                       }});
    }
    const std::vector<json> cells = run_tasks(options, name, tasks);
    std::string stem = name;
    std::replace_if(
        stem.begin(), stem.end(), [](char c) { return c == ':' || c == '='; }, '-');
    found.scatters.push_back({stem, {name, window, contours_of(*target, window), {}, 3}});
    Scatter& scatter = found.scatters.back().second;
    for (size_t i = 0; i < variants.size(); ++i) {
      const Cloud cloud(cells[i]);
      if (cloud.failed.empty())
        scatter.panels.push_back(
            {variants[i].name + ", ESS " + fixed(cloud.ess, 2), cloud.x, cloud.y});
      add_rows(name, variants[i].name, cloud, *target, components, found);
    }
    at::Generator rng = make_generator(derive_seed(0, Purpose::kSimulate), options.device);
    if (const auto exact = target->slice(0, 1)->exact_sample(kDrawnParticles, rng))
      scatter.panels.push_back({"exact draws", to_column((*exact)[0].select(-1, 0)),
                                to_column((*exact)[0].select(-1, 1))});
  }

  static void add_rows(const std::string& target, const std::string& sampler, const Cloud& cloud,
                       const Target& density, const std::optional<Components>& components,
                       Findings& found) {
    if (!cloud.failed.empty()) {
      found.rows.push_back(
          {target, sampler, "no plan", "-", "-", "-", "-", "-", "-", "-", "-", "-"});
      return;
    }
    std::vector<Cell> row = {target,
                             sampler,
                             Cell::number(cloud.transitions, 0),
                             Cell::number(cloud.estimating, 0),
                             Cell::number(cloud.tuning, 0),
                             Cell::number(cloud.ess, 3),
                             "-",
                             "-",
                             "-",
                             "-",
                             "-",
                             "-"};
    if (const auto truth = density.true_log_normalizer()) {
      const Spread error(at::tensor(cloud.log_normalizer, at::kDouble) -
                         (*truth)[0].item<double>());
      row[6] = Cell::number(error.mean, 3);
      row[7] = Cell::number(error.std_error, 3);
    }
    if (components) {
      const std::vector<double> masses = to_column(components->masses);
      std::vector<double> reached, astray;
      reached.reserve(cloud.run_masses.size());
      astray.reserve(cloud.run_masses.size());
      for (const auto& run : cloud.run_masses) {
        double modes = 0, distance = 0;
        for (size_t c = 0; c < masses.size(); ++c) {
          modes += run[c] >= kReached * masses[c] ? 1 : 0;
          distance += 0.5 * std::abs(run[c] - masses[c]);
        }
        reached.push_back(modes);
        astray.push_back(distance);
      }
      const Spread distance(at::tensor(astray, at::kDouble));
      row[8] = Cell::number(at::tensor(reached, at::kDouble).mean().item<double>(), 1);
      row[9] = static_cast<int64_t>(masses.size());
      row[10] = Cell::number(distance.mean, 3);
      row[11] = Cell::number(distance.std_error, 3);
      for (size_t c = 0; c < masses.size(); ++c)
        found.masses.push_back(
            {target, sampler, static_cast<int64_t>(c + 1), Cell::number(cloud.masses[c], 4),
             Cell::number(cloud.mass_errors[c], 4), Cell::number(masses[c], 4),
             Cell::number((cloud.masses[c] - masses[c]) / cloud.mass_errors[c], 1)});
    }
    found.rows.push_back(std::move(row));
  }
};

const std::vector<std::string> FigureParticles::kSchedules = {"linear", "geometric", "sigmoidal",
                                                              "CESS", "constant rate"};
const std::vector<std::string> FigureParticles::kSamplers = {
    "linear AIS", "constant-rate AIS", "linear SMC", "CESS SMC", "constant-rate SMC"};

const Enrol<ExperimentRegistry> kEnrolFigureParticles(
    "figure-particles",
    {"figure-particles", "particles on the plane's targets, schedule by schedule; modes and masses",
     "figure-particles", [](Spec&) { return std::make_unique<FigureParticles>(); }});

}  // namespace
}  // namespace crais
