#include "programs/estimator_flags.h"

#include <algorithm>

#include "bases/base.h"
#include "core/registry.h"
#include "estimates/method.h"
#include "util/error.h"

namespace crais {
namespace {

constexpr int64_t kMostPilotChains = 256;  // by default: more find no better plan

template <typename R>
std::string choices(const std::string& what) {
  std::string text = what + ":";
  for (const auto& [name, entry] : R::instance().entries())
    text += "\n" + entry.usage + "  " + entry.summary;
  return text;
}

}  // namespace

std::vector<OptionGroup> estimator_options(const std::string& problem,
                                           const std::string& default_base) {
  const std::string one = (problem == "image" ? "an " : "a ") + problem;
  return {
      {"Method",
       {option::texts("method", "NAME", {"ais"}, choices<MethodRegistry>("repeatable")).uncut(),
        option::text("base", "NAME", default_base,
                     choices<BaseRegistry>("where chains start") +
                         "\nauto  laplace, unless pilots find clearly more from encoder or prior; "
                         "encoder if nothing is annealed"),
        option::integer("chains", "K", 16, "annealed chains " + one).at_least(1),
        option::number("budget", "EVALS", {},
                       "evaluations " + one +
                           ", base and pilots and all: a pilot divides them "
                           "between chains and temperatures, in place of --chains and --steps")
            .above(0),
        option::number("target-error", "NATS", {},
                       "as many chains for each " + problem +
                           " as bring its standard error and "
                           "bias below; pilot chains decide, fresh ones estimate")
            .above(0),
        option::number("max-evals", "EVALS", 1e5,
                       "--target-error stops here; what has not got there is flagged")
            .above(0),
        option::integer("repeats", "R", 1, "independent repeats under the same plan").at_least(1),
        option::integer("seed", "N", 0, "decides every random number").at_least(0)}},
      {"Annealing",
       {option::text("schedule", "NAME", "linear", choices<ScheduleRegistry>("temperatures")),
        option::integer("steps", "T", 48, "transitions of a heuristic schedule").at_least(1),
        option::text("path", "NAME", "geometric", choices<PathRegistry>("bridge")),
        option::text("kernel", "NAME", "ghmc:0.8", choices<TransitionRegistry>("transition")),
        option::integer("leapfrog", "L", 1, "leapfrog steps a transition").at_least(1),
        option::text("step-size", "E|adapt", "adapt",
                     "of the leapfrog; adapt: a pilot tunes one per temperature, then freezes it"),
        option::text("resample", "NAME", {}, choices<ResamplingRegistry>("SMC in place of AIS")),
        option::number("target-acceptance", "A", {}, "of the adaptation (the kernel's own)")
            .between(0.05, 0.99)}},
      {"Pilot",
       {option::flag("per-" + problem,
                     "a plan for each " + problem +
                         "; else one for all. A pilot tunes plans on seeds of its own, then they "
                         "are frozen"),
        option::integer(
            "pilot-chains", "K", {},
            "chains " + one + " (as --chains, up to " + std::to_string(kMostPilotChains) + ")")
            .at_least(2),
        option::integer("pilot-" + problem + "s", "N", 16,
                        problem + "s that a shared plan is tuned on")
            .at_least(1),
        option::number("min-step", "B", 0.0, "least step of beta, adaptive schedules")
            .between(0, 1),
        option::number("max-step", "B", 0.125, "greatest step of beta, adaptive schedules")
            .between(1e-9, 1),
        option::integer("max-steps", "T", 8192, "more transitions than this are an error")
            .at_least(1),
        option::number("tolerance", "V", 1e-3, "constant-rate: variance at which it has arrived")
            .above(0),
        option::flag("weighted", "adaptive schedules: statistics under the importance weights"),
        option::integer("interpolate", "T", {}, "stretch the tuned plan to T transitions")
            .at_least(1)}}};
}

std::vector<Preset> estimator_presets(const std::string& paper_summary, const std::string& rate,
                                      const std::string& chains) {
  return {{"recommended", "what the other defaults say", {}},
          {"paper",
           paper_summary,
           {{"base", "prior"},
            {"kernel", "hmc"},
            {"step-size", "0.5"},
            {"schedule", "constant-rate:" + rate},
            {"chains", chains}}}};
}

EstimatorSettings read_estimator(const CommandLine& cli, const std::string& problem) {
  EstimatorSettings e;
  e.methods = cli.texts("method");
  e.schedule = cli.text("schedule");
  e.path = cli.text("path");
  e.base = cli.text("base");
  e.kernel = cli.text("kernel");
  e.resample = cli.text("resample", "");
  e.schedule_options = {cli.integer("steps"), cli.number("min-step"), cli.number("max-step"),
                        cli.number("tolerance"), cli.flag("weighted")};
  if (e.schedule_options.min_step > e.schedule_options.max_step)
    throw usage_error("--min-step must not be larger than --max-step");
  e.transition_options = {cli.integer("leapfrog")};
  e.chains = cli.integer("chains");
  if (cli.has("budget")) e.budget = cli.number("budget");
  if (cli.has("target-error")) e.target_error = cli.number("target-error");
  if (e.budget && e.target_error)
    throw usage_error("--budget and --target-error exclude each other");
  e.max_evaluations = cli.number("max-evals");
  e.repeats = cli.integer("repeats");
  e.seed = static_cast<uint64_t>(cli.integer("seed"));
  e.pilot.num_particles =
      cli.integer("pilot-chains", std::clamp<int64_t>(e.chains, 2, kMostPilotChains));
  e.pilot.max_steps = cli.integer("max-steps");
  e.pilot.shared = !cli.flag("per-" + problem);
  e.pilot.target_acceptance = cli.number("target-acceptance", 0.0);
  e.pilot.interpolate = cli.integer("interpolate", 0);
  if (const std::string step_size = cli.text("step-size"); step_size != "adapt") {
    e.pilot.step_size = parse_number(step_size, "--step-size");
    if (*e.pilot.step_size <= 0) throw usage_error("--step-size: must be above 0, or 'adapt'");
  }
  e.pilot_problems = cli.integer("pilot-" + problem + "s");
  return e;
}

}  // namespace crais
