// Particles in the plane for several schedules: their final positions, and the modes that they
// reach.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "core/rng.h"
#include "io/json.h"
#include "programs/plane.h"
#include "programs/reproduce/density_experiment.h"
#include "util/format.h"

namespace crais {
namespace {

using nlohmann::json;

/// A target, and a rate at which constant rate takes about kQuickSteps steps.
struct Picture {
  std::string target;
  std::string rate;
  int64_t transitions;  // of constant rate at delta = 1/32, step size 0.5
};
const std::vector<Picture> kPictures = {{"u1", "0.035", 154},        {"u2:4", "0.031", 127},
                                        {"u3:4", "0.029", 120},      {"u4:4", "0.025", 104},
                                        {"u5:s=std", "1.4", 5916},   {"u6", "1.5", 6351},
                                        {"u10:s=std", "0.0095", 40}, {"u11:s=std", "0.0055", 21}};
constexpr int64_t kQuickSteps = 128, kDrawn = 500;
const std::string kPilots = " --pilot-chains 1024 --pilot-problems 1";

/// Adds particles of the first run, with equal weights, and the mass of each mode in each run.
void add_cloud(const RunResults& results, json& cell) {
  const ChunkRun& first = results.chunks.begin()->second.runs.front();
  const at::Tensor drawn =
      thinned(first.particles->z[0], first.particles->log_w[0], kDrawn, /*seed=*/0);
  cell["x"] = to_column(drawn.select(1, 0));
  cell["y"] = to_column(drawn.select(1, 1));
  const auto modes = first.expectations.find("modes");
  if (modes == first.expectations.end()) return;
  for (int64_t r = 0; r < modes->second.mean.size(0); ++r)
    cell["masses"].push_back(to_column(modes->second.mean[r]));
}

class FigureParticles : public Experiment {
 public:
  void run(const ExperimentOptions& options, Page& page) const override {
    const int64_t runs = options.num_seeds(20, 8);
    page.paragraph(
        "The geometric path from N(0, I), 1024 chains, HMC, " +
        (options.full ? "one leapfrog step of 0.5, and for each target as many transitions as "
                        "constant rate takes at delta = 1/32 there"
                      : "step sizes tuned, " + std::to_string(kQuickSteps) + " transitions") +
        ". Every schedule has exactly as many: plans that constant rate and CESS find are "
        "stretched. " +
        std::to_string(runs) + " independent runs under one plan. particles.csv has " +
        std::to_string(kDrawn) +
        " particles of the first, resampled by their weights. A mode is reached if a run gives it "
        "a tenth of its mass or more. Mass astray is the "
        "total variation between the masses that one run finds and the true ones; a particle "
        "counts for each mode by its share in the density there. Tuning is divided between runs.");
    Findings found{options, runs, {}, {}};
    std::vector<Row> ess, astray, wide;  // one row a target, one column a sampler
    for (const Picture& picture : kPictures) {
      const int64_t steps = options.pick(picture.transitions, kQuickSteps);
      const std::string rate = options.pick<std::string>("0.03125", picture.rate);
      const std::string own = std::string(" --kernel hmc") + options.pick(" --step-size 0.5", "");
      const std::string known = own + options.pick<std::string>("", kPilots), rule = own + kPilots;
      const Shown shown =
          found.show(picture.target,
                     {{"linear", flags_of_plans("linear", steps) + known},
                      {"geometric", flags_of_plans("geometric", steps) + known},
                      {"sigmoidal", flags_of_plans("sigmoidal", steps) + known},
                      {"CESS", flags_of_plans("cess:0.998", steps) + rule},
                      {"constant rate", flags_of_plans("constant-rate:" + rate, steps) + rule}});
      ess.push_back(shown.ess);
      if (shown.has_modes) astray.push_back(shown.astray);
    }
    const std::string own = " --kernel ghmc:0.8" + kPilots, smc = own + " --resample systematic";
    const std::string linear = flags_of_plans("linear", 200);
    const std::string constant_rate = flags_of_plans("constant-rate:0.03125", 200);
    for (const int64_t components : {16, 24, 32, 48}) {
      if (!options.full && components != 16 && components != 48) continue;
      wide.push_back(found
                         .show("smc-mixture:" + std::to_string(components),
                               {{"linear AIS", linear + own},
                                {"constant-rate AIS", constant_rate + own},
                                {"linear SMC", linear + smc},
                                {"CESS SMC", flags_of_plans("cess:0.99", 200) + smc},
                                {"constant-rate SMC", constant_rate + " --weighted" + smc}})
                         .astray);
    }
    add_table(page, "ess", "Effective fraction of the particles, schedule by schedule", ess);
    add_table(page, "astray", "Mass astray, schedule by schedule: of targets that know their modes",
              astray);
    add_table(page, "wide", "Mass astray on wide mixtures, 200 transitions", wide);
    add_table(page, "figure-particles",
              "Every target and sampler: cost, errors, modes reached, and the flags that repeat it",
              found.rows, /*folded=*/true);
    add_table(page, "particles", "Particles of the first run, and exact draws", found.particles,
              /*folded=*/true);
  }

 private:
  /// The results for a target, for each sampler.
  struct Shown {
    Row ess, astray;
    bool has_modes;
  };

  struct Findings {
    const ExperimentOptions& options;
    int64_t runs;
    std::vector<Row> rows, particles;

    Shown show(const std::string& name, const std::vector<Variant>& variants);
    void add_particles(const std::string& target, const std::string& sampler,
                       const std::vector<double>& x, const std::vector<double>& y);
  };
};

FigureParticles::Shown FigureParticles::Findings::show(const std::string& name,
                                                       const std::vector<Variant>& variants) {
  const DensityExperiment experiment(options, name, runs);
  const Target& target = experiment.target();
  const auto components = target.components(at::zeros({runs, 1, 2}, target.options()));
  std::vector<std::string> flags;
  std::vector<Task> tasks;
  for (const Variant& variant : variants) {
    flags.push_back(variant.flags + " --chains 1024 --chunk " + std::to_string(runs) +
                    (components ? " --expect modes" : ""));
    tasks.push_back(experiment.task_with(flags.back(), 0, {{"drawn", kDrawn}}, add_cloud));
  }
  const std::vector<json> cells = run_tasks(options, name, tasks);
  Shown shown{{{"target", name}}, {{"target", name}}, components.has_value()};
  for (size_t i = 0; i < variants.size(); ++i) {
    const VariantResult result = result_of({cells[i]});
    const Spread error(result.value[0] - experiment.truth());
    double reached = NAN;
    Spread distance(at::full({1}, NAN));
    if (components && result.failed.empty()) {
      std::vector<at::Tensor> masses;
      for (const auto& run : cells[i].at("masses"))
        masses.push_back(at::tensor(run.get<std::vector<double>>(), at::kDouble));
      const at::Tensor all = at::stack(masses), truth = components->masses.to(at::kDouble);
      distance = Spread(0.5 * (all - truth).abs().sum(1));
      reached = (all >= 0.1 * truth).sum(1).to(at::kDouble).mean().item<double>();
    }
    if (result.failed.empty())
      add_particles(name, variants[i].name, cells[i].at("x").get<std::vector<double>>(),
                    cells[i].at("y").get<std::vector<double>>());
    shown.ess.emplace_back(variants[i].name, number(result.mean_ess(), 3));
    shown.astray.emplace_back(variants[i].name, with_spread(distance.mean, distance.std_error, 3));
    rows.push_back({{"target", name},
                    {"sampler", variants[i].name},
                    {"M", result.or_reason(number(result.transitions, 0))},
                    {"evaluations", number(result.estimating, 0)},
                    {"+ tuning", number(result.tuning, 0)},
                    {"ESS", number(result.mean_ess(), 3)},
                    {"log Z error", number(error.mean, 3)},
                    {"SE", number(error.std_error, 3)},
                    {"modes reached", number(reached, 1)},
                    {"of", components ? Cell(components->masses.numel()) : Cell("-")},
                    {"mass astray", number(distance.mean, 3)},
                    {"SE", number(distance.std_error, 3)},
                    {"flags", flags[i] + " --problems " + std::to_string(runs)}});
  }
  at::Generator rng = make_generator(derive_seed(0, Purpose::kSimulate), options.device);
  if (const auto exact = target.slice(0, 1)->exact_sample(kDrawn, rng))
    add_particles(name, "exact draws", to_column((*exact)[0].select(-1, 0)),
                  to_column((*exact)[0].select(-1, 1)));
  return shown;
}

void FigureParticles::Findings::add_particles(const std::string& target, const std::string& sampler,
                                              const std::vector<double>& x,
                                              const std::vector<double>& y) {
  for (size_t i = 0; i < x.size(); ++i)
    particles.push_back({{"target", target},
                         {"sampler", sampler},
                         {"x", significant(x[i], 4)},
                         {"y", significant(y[i], 4)}});
}

const EnrolExperiment<FigureParticles> kEnrolFigureParticles(
    "figure-particles", "particles on the plane's targets, schedule by schedule; modes and masses");

}  // namespace
}  // namespace crais
