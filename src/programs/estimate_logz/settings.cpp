#include "core/spec.h"
#include "core/target.h"
#include "programs/estimate_logz/logz_run.h"
#include "util/error.h"
#include "util/memory.h"

namespace crais {

namespace {

constexpr double kDefaultError = 0.1;            // nats
constexpr double kDefaultMostEvaluations = 5e5;  // of a replicate
constexpr const char* kDefaultResampling = "systematic:0.5";
constexpr const char* kDefaultSchedule = "cess:0.9";

/// Targets that read a file say so in their usage.
void refuse_idle_folder(const CommandLine& cli, const std::string& target) {
  const auto& known = TargetRegistry::instance().entries();
  const auto found = known.find(Spec(target).name());
  if (found != known.end() && found->second.usage.find("FILE") == std::string::npos)
    cli.refuse_idle("data-dir", "for " + found->first + ", which reads no file");
}

/// Without a word on how far to go, rounds go on until the error is small, with resampling, which
/// costs nothing where weights stay even. From the prior, which nobody has fitted, the particles
/// decide on the temperatures.
void set_defaults(const CommandLine& cli, LogzSettings& settings) {
  EstimateOptions& o = settings.estimator;
  if (!o.error) {
    if (given_length(cli)) return;
    if (o.methods != std::vector<std::string>{"ais"} || cli.text("preset") != "recommended") return;
    o.error = kDefaultError;
    settings.resolved["error"] = kDefaultError;
  }
  if (!cli.given("max-evals")) {
    o.max_evaluations = kDefaultMostEvaluations;
    settings.resolved["max-evals"] = kDefaultMostEvaluations;
  }
  if (o.resampling.empty() && o.methods == std::vector<std::string>{"ais"}) {
    o.resampling = kDefaultResampling;
    settings.resolved["resample"] = kDefaultResampling;
  }
  if (o.base == "prior" && !cli.given("schedule") && !cli.given("path")) {
    o.schedule = kDefaultSchedule;
    settings.resolved["schedule"] = kDefaultSchedule;
  }
}

}  // namespace

Synopsis estimate_logz_synopsis() {
  Synopsis s;
  s.program = "estimate-logz";
  s.summary =
      "Estimates the log normaliser of a named density, in nats, and compares it with the truth "
      "where that is known.";
  s.operands = "TARGET | list";
  s.min_operands = 1;
  s.max_operands = 4096;
  s.groups = estimator_options("problem");
  s.presets = estimator_presets(
      "constant rate from the prior as in the paper's figure in the plane", "0.03125", "1024");
  s.groups.insert(
      s.groups.end(),
      {{"Target",
        {option::integer("problems", "R", {"10"},
                         "independent replicates of the target: their spread is the error bar")
             .at_least(1)
             .basic(),
         estimator_option("error", "problem"),
         option::text("witness", "auto|none", {"auto"},
                      "flags what an estimate missed: particles settle beside the base mixture; "
                      "another base gets a second opinion by it"),
         option::text("data-dir", "DIR", {},
                      "folder of a target's FILE, also DIR/uci (default: $CRAIS_DATA, ./data)")}},
       {"Particles",
        {estimator_option("expectations", "problem"),
         option::text(
             "save-particles", "FILE.npy|.csv", {},
             "the final particles and their log-weights: an array [problems, chains, dimension + "
             "1] whose last column is the log-weight, or CSV with a line for each particle")
             .basic()}},
       {"Running",
        {option::device().basic(), option::threads().basic(),
         option::text("dtype", "float32|float64", {"float64"}, "of particles"),
         estimator_option("chunk", "problem").by_default({"5"})}},
       output_options("summary.json, per_problem.csv, schedule.csv, expectations.csv and chunks")});
  s.examples =
      "  estimate-logz list\n"
      "  estimate-logz u11 --expect moments --expect modes --save-particles u11.npy\n"
      "  estimate-logz u1 --preset paper --out results/u1\n"
      "  estimate-logz mixture:128 --schedule linear --steps 64 --step-size 0.5 --chains 4096\n"
      "  estimate-logz logistic-regression:pima,variance=5 --base laplace --steps 256\n";
  return s;
}

LogzSettings read_logz_settings(const CommandLine& cli) {
  if (cli.operands().size() > 1)
    throw argument_error("unexpected '", cli.operands()[1], "': one target is estimated at a time");
  LogzSettings settings;
  static_cast<RunSettings&>(settings) = read_run(cli, "problem");
  settings.target = cli.operands().front();
  settings.problems = cli.integer("problems");
  constexpr double kRow = 256;  // bytes: the numbers of a replicate, and their text
  require_memory(kRow * static_cast<double>(settings.problems),
                 "--problems: " + std::to_string(settings.problems) + " replicates");
  settings.data_dir = cli.text("data-dir", "");
  settings.particles_file = cli.text("save-particles", "");
  set_defaults(cli, settings);
  refuse_idle(cli, settings.estimator, "problem");
  refuse_idle_folder(cli, settings.target);
  settings.estimator.witness = cli.text("witness") == "auto";
  settings.estimator.keep_particles = !settings.particles_file.empty();
  return settings;
}

}  // namespace crais
