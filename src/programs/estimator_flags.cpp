#include "programs/estimator_flags.h"

#include "bases/base.h"
#include "cli/program.h"
#include "core/divergence.h"
#include "core/registry.h"
#include "core/rng.h"
#include "core/schedule.h"
#include "core/spec.h"
#include "estimates/method.h"
#include "util/error.h"
#include "util/files.h"

namespace crais {
namespace {

template <typename R>
std::string choices(const std::string& what) {
  std::string text = what + ":";
  for (const auto& [name, entry] : R::instance().entries())
    text += "\n" + entry.usage + "  " + entry.summary;
  return with_flags("", text);
}

}  // namespace

std::vector<OptionGroup> estimator_options(const std::string& problem,
                                           const std::string& default_base) {
  const EstimateOptions defaults;
  const std::string one = (problem == "image" ? "an " : "a ") + problem;
  return {
      {"Method",
       {option::texts("method", "NAME", defaults.methods, choices<MethodRegistry>("repeatable"))
            .uncut(),
        option::text(
            "base", "NAME", default_base,
            choices<BaseRegistry>("where chains start") +
                "\nauto  laplace, a tenth wider for 64 temperatures and more, unless pilots find "
                "clearly more from encoder or prior; encoder if nothing is annealed"),
        option::integer("chains", "K", defaults.chains, "annealed chains " + one).at_least(1),
        option::number("budget", "EVALS", {},
                       "evaluations " + one +
                           ", base and pilots and all: a pilot divides them "
                           "between chains and temperatures, in place of --chains and --steps")
            .above(0),
        option::number("target-error", "NATS", {},
                       "as many chains for each " + problem +
                           ", --chains at least, as bring its standard error and bias below; "
                           "pilot chains decide, fresh ones estimate")
            .above(0),
        option::number("mean-error", "NATS", {},
                       "as many chains, and where they help most, as bring the error of the mean "
                       "below, of chains and bias together")
            .above(0),
        option::number("max-evals", "EVALS", defaults.max_evaluations,
                       "--target-error and --mean-error stop here; what has not got to its target "
                       "is flagged")
            .above(0),
        option::integer("repeats", "R", defaults.repeats, "independent repeats under the same plan")
            .at_least(1),
        option::seed(static_cast<int64_t>(defaults.seed))}},
      {"Annealing",
       {option::text("schedule", "NAME", defaults.schedule,
                     choices<ScheduleRegistry>("temperatures")),
        option::integer("steps", "T", defaults.steps, "transitions of a heuristic schedule")
            .at_least(1),
        option::text("path", "NAME", defaults.path,
                     choices<PathRegistry>("bridge") + choices<DivergenceRegistry>("\nDIVERGENCE")),
        option::text("kernel", "NAME", defaults.kernel, choices<TransitionRegistry>("transition")),
        option::integer("leapfrog", "L", defaults.num_leapfrog, "leapfrog steps a transition")
            .at_least(1),
        option::text("step-size", "E|adapt", "adapt",
                     "of the leapfrog; adapt: a pilot tunes one per temperature, then freezes it"),
        option::text("resample", "NAME", {}, choices<ResamplingRegistry>("SMC in place of AIS")),
        option::number("target-acceptance", "A", {}, "of the adaptation (the kernel's own)")
            .between(0.05, 0.99),
        option::choice(
            "force-dtype", {"auto", "float32", "bfloat16"}, defaults.force_dtype,
            "of the gradients that move chains; values, which accept and weigh, stay "
            "exact. auto: bfloat16 where it is faster here and pilots accept as often, with values "
            "that agree")}},
      {"Pilot",
       {option::flag("per-" + problem,
                     "a plan for each " + problem +
                         "; else one for all. A pilot tunes plans on seeds of its own, then they "
                         "are frozen"),
        option::integer("pilot-chains", "K", {},
                        "chains " + one +
                            " (as --chains, up to 256; at least 16 where "
                            "particles decide the schedule)")
            .at_least(2),
        option::integer("pilot-" + problem + "s", "N", defaults.pilot_problems,
                        problem + "s that a shared plan is tuned on")
            .at_least(1),
        option::number("min-step", "B", defaults.min_step, "least step of beta, adaptive schedules")
            .between(0, 1),
        option::number("max-step", "B", defaults.max_step,
                       "greatest step of beta, adaptive schedules")
            .between(1e-9, 1),
        option::integer("max-steps", "T", defaults.max_steps,
                        "more transitions than this are an error")
            .at_least(1),
        option::number("tolerance", "V", defaults.tolerance,
                       "constant-rate: variance at which it has arrived")
            .above(0),
        option::flag("weighted", "adaptive schedules: statistics under the importance weights"),
        option::flag("weighted-ratio", "constant rate: only its mass ratio under them"),
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

OptionGroup output_options(const std::string& files) {
  return {
      "Output",
      {option::text("out", "DIR", {}, files), option::flag("resume", "go on with what DIR holds"),
       option::flag("overwrite", "replace what DIR holds"),
       option::flag("accept-other-version", "go on with results of another build of crais"),
       option::choice(
           "queue", {"auto", "none", "store"}, "auto",
           "share chunks with other workers on DIR, by torchrun's store; auto: store under "
           "torchrun, else none"),
       option::text("lease", "TIME", "1m",
                    "of a queue: a worker silent for so long has lost its chunks to the others"),
       option::text("max-time", "TIME", {},
                    "as 55m, 1h30m or HH:MM:SS: begin no chunk that would end later, exit with 75; "
                    "--resume goes on"),
       option::choice("format", {"table", "json", "csv"}, "table",
                      "of what is printed: a table as wide as the terminal, or for programs the "
                      "summary as JSON, or a line a method as CSV"),
       option::quiet()}};
}

namespace {

StoreOptions read_store(const CommandLine& cli) {
  const StoreOptions options{cli.flag("resume"), cli.flag("overwrite"),
                             cli.flag("accept-other-version")};
  cli.exclude("resume", "overwrite");
  for (const char* flag : {"resume", "overwrite"})
    if (cli.flag(flag) && !cli.has("out"))
      throw argument_error("--" + std::string(flag) + " needs --out DIR");
  if (!cli.has("out")) cli.refuse_idle("accept-other-version", "without --out DIR");
  return options;
}

Sharing read_sharing(const CommandLine& cli) {
  const std::string queue = cli.text("queue");
  if (queue == "auto") return Sharing::kAuto;
  if (queue == "none") return Sharing::kNone;
  if (!cli.has("out"))
    throw argument_error("--queue " + queue + " needs --out DIR: the folder that workers share");
  return Sharing::kStore;
}

EstimateOptions read_estimator(const CommandLine& cli, const std::string& problem) {
  EstimateOptions o;
  o.methods = cli.texts("method");
  o.base = cli.text("base");
  o.chains = cli.integer("chains");
  if (cli.has("budget")) o.budget = cli.number("budget");
  if (cli.has("mean-error")) o.mean_error = cli.number("mean-error");
  if (cli.has("target-error")) o.target_error = cli.number("target-error");
  o.max_evaluations = cli.number("max-evals");
  o.repeats = cli.integer("repeats");
  o.seed = static_cast<uint64_t>(cli.integer("seed"));
  o.schedule = cli.text("schedule");
  o.steps = cli.integer("steps");
  o.path = cli.text("path");
  o.kernel = cli.text("kernel");
  o.num_leapfrog = cli.integer("leapfrog");
  if (const std::string step_size = cli.text("step-size"); step_size != "adapt")
    o.step_size = parse_number(step_size, "--step-size");
  if (o.step_size && *o.step_size <= 0)
    throw argument_error("--step-size: must be above 0, or 'adapt'");
  o.resampling = cli.text("resample", "");
  if (cli.has("target-acceptance")) o.target_acceptance = cli.number("target-acceptance");
  o.force_dtype = cli.text("force-dtype");
  o.plan_per_problem = cli.flag("per-" + problem);
  if (cli.has("pilot-chains")) o.pilot_chains = cli.integer("pilot-chains");
  o.pilot_problems = cli.integer("pilot-" + problem + "s");
  o.min_step = cli.number("min-step");
  o.max_step = cli.number("max-step");
  o.max_steps = cli.integer("max-steps");
  o.tolerance = cli.number("tolerance");
  o.weighted = cli.flag("weighted");
  o.weighted_ratio = cli.flag("weighted-ratio");
  if (cli.has("interpolate")) o.interpolate = cli.integer("interpolate");
  if (cli.has("chunk")) o.chunk = cli.integer("chunk");
  check(o);
  return o;
}

}  // namespace

RunSettings read_run(const CommandLine& cli, const std::string& problem) {
  RunSettings s;
  s.estimator = read_estimator(cli, problem);
  s.device = parse_device(cli.text("device"));
  s.dtype = parse_dtype(cli.text("dtype"));
  s.threads = cli.integer("threads");
  s.out = cli.text("out", "");
  s.store = read_store(cli);
  if (cli.has("max-time")) s.max_time = parse_duration(cli.text("max-time"), "--max-time");
  if (s.max_time && s.out.empty())
    throw argument_error("--max-time needs --out DIR: nothing would be kept");
  s.sharing = read_sharing(cli);
  s.lease = parse_duration(cli.text("lease"), "--lease");
  s.format = parse_format(cli.text("format"));
  s.quiet = cli.flag("quiet");
  s.resolved = cli.settings();
  return s;
}

nlohmann::json deciding_settings(const RunSettings& settings) {
  nlohmann::json deciding = settings.resolved;
  for (const char* operational :
       {"data-dir", "threads", "memory-limit", "shard", "out", "resume", "overwrite",
        "accept-other-version", "max-time", "format", "dry-run", "queue", "lease", "quiet",
        "save-particles", "resampled"})
    deciding.erase(operational);
  if (deciding.contains("expect") && deciding["expect"].empty()) deciding.erase("expect");
  // The temperatures decide, not where they stand.
  if (const std::string& schedule = settings.estimator.schedule; schedule.rfind("file:", 0) == 0)
    deciding["schedule_sha256"] = sha256(read_file(schedule.substr(5)));
  deciding["stream"] = std::to_string(kStreamVersion);
  deciding["device"] = c10::DeviceTypeName(settings.device.type(), /*lower_case=*/true);
  return deciding;
}

}  // namespace crais
