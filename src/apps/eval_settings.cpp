#include "apps/eval_settings.h"

#include "core/error.h"
#include "core/registry.h"
#include "estimates/method.h"

namespace crais {
namespace {

template <typename R>
std::string choices(const std::string& what) {
  std::string text = what + ":";
  for (const auto& [name, entry] : R::instance().entries())
    text += "\n" + entry.usage + "  " + entry.summary;
  return text;
}

}  // namespace

Synopsis eval_loglik_synopsis() {
  Synopsis s;
  s.program = "eval-loglik";
  s.summary =
      "Estimates log p(x) in nats, with error bars, for images under a checkpoint's decoder.";
  s.operands = "CHECKPOINT | merge DIR...";
  s.min_operands = 1;
  s.max_operands = 4096;
  s.groups = {
      {"Method",
       {option::texts("method", "ais|iwae:K|elbo:K", {"ais"}, choices<MethodRegistry>("repeatable"))
            .uncut(),
        option::text(
            "base", "prior|encoder[:W]", "encoder",
            "where chains start: N(0, I), or the encoder's q(z|x), its standard deviations "
            "times W"),
        option::integer("chains", "K", 16, "annealed chains an image").at_least(1),
        option::integer("repeats", "R", 1, "independent repeats under the same plan").at_least(1),
        option::integer("seed", "N", 0, "decides every random number").at_least(0)}},
      {"Annealing",
       {option::text("schedule", "NAME", "linear", choices<ScheduleRegistry>("temperatures")),
        option::integer("steps", "T", 128, "transitions of a heuristic schedule").at_least(1),
        option::text("path", "NAME", "geometric", choices<PathRegistry>("bridge")),
        option::text("kernel", "NAME", "hmc", choices<TransitionRegistry>("transition")),
        option::integer("leapfrog", "L", 1, "leapfrog steps a transition").at_least(1),
        option::text("step-size", "E|adapt", "adapt",
                     "of the leapfrog; adapt: a pilot tunes one per temperature, then freezes it"),
        option::number("target-acceptance", "A", {}, "of the adaptation (the kernel's own)")
            .between(0.05, 0.99)}},
      {"Pilot",
       {option::flag("per-image",
                     "a plan for each image; else one for all. A pilot tunes plans on seeds of "
                     "its own, then they are frozen"),
        option::integer("pilot-chains", "K", {}, "chains an image (as --chains)").at_least(2),
        option::integer("pilot-images", "N", 64, "images that a shared plan is tuned on")
            .at_least(1),
        option::number("min-step", "B", 0.0, "least step of beta, adaptive schedules")
            .between(0, 1),
        option::number("max-step", "B", 0.125, "greatest step of beta, adaptive schedules")
            .between(1e-9, 1),
        option::integer("max-steps", "T", 8192, "more transitions than this are an error")
            .at_least(1),
        option::number("tolerance", "V", 1e-3, "constant-rate: variance at which it has arrived")
            .above(0),
        option::flag("weighted", "cess, constant-rate: statistics under the importance weights"),
        option::integer("interpolate", "T", {}, "stretch the tuned plan to T transitions")
            .at_least(1)}},
      {"Images",
       {option::text("data-dir", "DIR", {}, "MNIST's files (else $CRAIS_DATA, ./data)"),
        option::choice("split", {"train", "validation", "test"}, "test", "part of the data"),
        option::text(
            "binarisation", "NAME", {},
            "dynamic, static:SEED, threshold:T, none, amat (as the checkpoint was trained; "
            "static:0 for dynamic)"),
        option::integer("limit", "N", {}, "only the first N images").at_least(1),
        option::text("indices", "A:B", {}, "only images A to B-1"),
        option::integer("simulate", "N", {}, "evaluate N images drawn from the model instead")
            .at_least(1)}},
      {"Running",
       {option::device(), option::threads(),
        option::choice("dtype", {"float32", "float64"}, "float32", "of particles and decoder"),
        option::integer("chunk", "N", 64, "images a unit of work; part of what results depend on")
            .at_least(1),
        option::text("shard", "i/N", "1/1", "only every N-th chunk, from the i-th"),
        option::flag("dry-run", "say what would be done, and its cost")}},
      {"Output",
       {option::text("out", "DIR", {}, "summary.json, per_image.csv, schedule.csv and chunks"),
        option::flag("resume", "go on with what DIR holds"),
        option::flag("overwrite", "replace what DIR holds"), option::quiet()}}};
  s.examples =
      "  eval-loglik weights/vae50-mnist.safetensors --limit 1000 --out results/mnist\n"
      "  eval-loglik vae.safetensors --method iwae:5000 --method elbo --base encoder\n"
      "  eval-loglik vae.safetensors --base prior --step-size 0.5 --schedule constant-rate:32\n"
      "  eval-loglik merge results/part1 results/part2 --out results/whole\n";
  return s;
}

EvalSettings read_settings(const CommandLine& cli) {
  EvalSettings s;
  s.checkpoint = cli.operands().front();
  if (cli.operands().size() > 1)
    throw usage_error("unexpected '" + cli.operands()[1] +
                      "': one checkpoint is evaluated at a time");

  EstimatorSettings& e = s.estimator;
  e.methods = cli.texts("method");
  e.schedule = cli.text("schedule");
  e.path = cli.text("path");
  e.base = cli.text("base");
  e.kernel = cli.text("kernel");
  e.schedule_options = {cli.integer("steps"), cli.number("min-step"), cli.number("max-step"),
                        cli.number("tolerance"), cli.flag("weighted")};
  if (e.schedule_options.min_step > e.schedule_options.max_step)
    throw usage_error("--min-step must not be larger than --max-step");
  e.transition_options = {cli.integer("leapfrog")};
  e.chains = cli.integer("chains");
  e.repeats = cli.integer("repeats");
  e.seed = static_cast<uint64_t>(cli.integer("seed"));
  e.pilot.num_particles = cli.integer("pilot-chains", std::max<int64_t>(2, e.chains));
  e.pilot.max_steps = cli.integer("max-steps");
  e.pilot.shared = !cli.flag("per-image");
  e.pilot.target_acceptance = cli.number("target-acceptance", 0.0);
  e.pilot.interpolate = cli.integer("interpolate", 0);
  if (const std::string step_size = cli.text("step-size"); step_size != "adapt") {
    e.pilot.step_size = parse_number(step_size, "--step-size");
    if (*e.pilot.step_size <= 0) throw usage_error("--step-size: must be above 0, or 'adapt'");
  }
  e.pilot_images = cli.integer("pilot-images");

  s.images.data_dir = cli.text("data-dir", "");
  s.images.split = cli.text("split");
  s.images.binarisation = cli.text("binarisation", "");
  s.images.indices = cli.text("indices", "");
  if (cli.has("limit")) s.images.limit = cli.integer("limit");
  if (cli.has("simulate")) s.images.simulate = cli.integer("simulate");
  s.images.seed = e.seed;

  s.device = parse_device(cli.text("device"));
  s.dtype = parse_dtype(cli.text("dtype"));
  s.threads = cli.integer("threads");
  s.chunk = cli.integer("chunk");
  s.shard = parse_shard(cli.text("shard"), "--shard");
  s.out = cli.text("out", "");
  s.resume = cli.flag("resume");
  s.overwrite = cli.flag("overwrite");
  s.dry_run = cli.flag("dry-run");
  s.quiet = cli.flag("quiet");
  if (s.resume && s.overwrite) throw usage_error("--resume and --overwrite exclude each other");
  if ((s.resume || s.overwrite) && s.out.empty())
    throw usage_error(std::string(s.resume ? "--resume" : "--overwrite") + " needs --out DIR");
  s.resolved = cli.settings();
  return s;
}

nlohmann::json deciding_settings(const EvalSettings& settings) {
  nlohmann::json deciding = settings.resolved;
  // Images and checkpoint enter by their digests, the device by its kind.
  for (const char* operational :
       {"data-dir", "device", "threads", "shard", "out", "resume", "overwrite", "dry-run", "quiet"})
    deciding.erase(operational);
  deciding["device"] = settings.device.is_cpu() ? "cpu" : "cuda";
  return deciding;
}

}  // namespace crais
