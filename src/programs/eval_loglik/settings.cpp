#include "programs/eval_loglik/settings.h"

#include <limits>
#include <utility>

#include "cli/parse.h"
#include "core/spec.h"
#include "util/error.h"

namespace crais {

namespace {

constexpr double kDefaultError = 0.05;              // nats
constexpr double kDefaultMostEvaluations = 20'000;  // of an image

}  // namespace

Synopsis eval_loglik_synopsis() {
  Synopsis s;
  s.program = "eval-loglik";
  s.summary =
      "Estimates log p(x) in nats, with error bars, for images under a model with latents: a "
      "checkpoint of train-vae, a model of crais.export (.pt2, .pt), a decoder in TorchScript.";
  s.operands = "MODEL | compare DIR... | diagnose DIR | merge DIR...";
  s.min_operands = 1;
  s.max_operands = 4096;
  s.groups = estimator_options("image");
  s.presets = estimator_presets(
      "constant rate from the prior as in the paper's experiments with VAEs", "30", "16");
  s.groups.insert(
      s.groups.end(),
      {{"Images",
        {option::text("data", "FILE[:KEY]", {},
                      "an array: .npy, .npz, IDX, or synthetic:N (else MNIST)")
             .basic(),
         option::text("labels", "FILE[:KEY]", {},
                      "labels for a conditional model p(x | y) (default: those beside the images)"),
         option::text("data-dir", "DIR", {},
                      "folder of MNIST's files (default: $CRAIS_DATA, ./data)")
             .basic(),
         option::text("split", "train|validation|test", {"test"}, "part of the data"),
         option::text("binarisation", "NAME", {},
                      "dynamic, static:SEED, threshold:T, none, amat (default: as in training, but "
                      "static:0 for dynamic)"),
         option::number("scale", "S", {}, "divide the numbers of --data by S, such as 255")
             .above(0),
         option::text("dequantise", "uniform:SEED", {},
                      "add uniform noise in [0, 1) to whole numbers, then divide by --scale (256)"),
         option::integer("limit", "N", {}, "only the first N images").at_least(1).basic(),
         option::text("indices", "A:B", {}, "only images A to B-1"),
         option::integer("simulate", "N", {}, "evaluate N images drawn from the model instead")
             .at_least(1)
             .basic()}},
       {"A decoder in TorchScript that crais.export did not write",
        {option::text("likelihood", "NAME", {},
                      "bernoulli (of logits; bernoulli:probs after a sigmoid), "
                      "continuous-bernoulli or gaussian:SD"),
         option::integer("latent", "D", {}, "number of latents").between(1, kMostLatents)}},
       {"Running",
        {option::device().basic(), option::threads().basic(),
         option::text("dtype", "float32|float64", {"float32"}, "type of particles and decoder"),
         estimator_option("chunk", "image")
             .by_default(
                 {},
                 " (64; on a CPU fewer if there are under 512 images, so that threads share them)"),
         option::integer("control", "C", {},
                         "number of images that the model draws for the control; 0 leaves it out "
                         "(default: an eighth of the images, from 16 to 32)")
             .at_least(0),
         estimator_option("error", "image"),
         option::text("shard", "i/N", {"1/1"}, "only every N-th chunk, starting with the i-th"),
         option::flag("accept-prior",
                      "accept a prior that does not integrate to 1, with a warning"),
         option::flag("dry-run", "describe the run and its cost without running it").basic()}},
       output_options("summary.json, report.html, per_image.csv, schedule.csv and chunks")});
  s.examples =
      "  eval-loglik weights/vae50-mnist.safetensors --limit 1000 --out results/mnist\n"
      "  eval-loglik conv.pt2 --data images.npz:test --scale 255\n"
      "  eval-loglik vae.safetensors --method bidirectional --simulate 1000\n"
      "  eval-loglik vae.safetensors --method iwae:5000 --method elbo --base encoder\n"
      "  eval-loglik vae.safetensors --budget 500\n"
      "  eval-loglik vae.safetensors --preset paper --schedule linear --steps 512\n"
      "  eval-loglik compare results/epoch10 results/epoch50\n"
      "  eval-loglik diagnose results/mnist\n"
      "  eval-loglik merge results/part1 results/part2 --out results/whole\n";
  return s;
}

namespace {

/// Parses the seed of "uniform:SEED".
uint64_t parse_dequantisation(const std::string& text) {
  Spec spec(text);
  if (spec.name() != "uniform")
    throw argument_error("--dequantise is uniform:SEED, as uniform:0; not '" + text + "'");
  const int64_t seed = spec.integer("seed", 0, std::numeric_limits<int64_t>::max());
  spec.finish();
  return static_cast<uint64_t>(seed);
}

/// True where no flag says how long chains are, or leaves out the control that would.
bool has_default_error(const CommandLine& cli, const EvalSettings& settings) {
  const EstimateOptions& o = settings.estimator;
  return !given_length(cli) && !o.plan_per_problem && settings.control != 0 &&
         o.resampling.empty() && o.methods == std::vector<std::string>{"ais"} &&
         cli.text("preset") == "recommended";
}

}  // namespace

EvalSettings read_settings(const CommandLine& cli) {
  EvalSettings s;
  static_cast<RunSettings&>(s) = read_run(cli, "image");
  s.checkpoint = cli.operands().front();
  s.dry_run = cli.flag("dry-run");
  if (cli.has("control")) s.control = cli.integer("control");
  s.script.likelihood = cli.text("likelihood", "");
  if (cli.has("latent")) s.script.latent = cli.integer("latent");

  s.images.data = cli.text("data", "");
  s.images.labels = cli.text("labels", "");
  s.images.data_dir = cli.text("data-dir", "");
  s.images.split = cli.text("split");
  s.images.binarisation = cli.text("binarisation", "");
  s.images.indices = cli.text("indices", "");
  if (cli.has("scale")) s.images.scale = cli.number("scale");
  if (cli.has("dequantise")) s.images.dequantise = parse_dequantisation(cli.text("dequantise"));
  if (cli.has("limit")) s.images.limit = cli.integer("limit");
  if (cli.has("simulate")) s.images.simulate = cli.integer("simulate");
  s.images.seed = s.estimator.seed;
  if (!s.estimator.error && has_default_error(cli, s)) s.estimator.error = kDefaultError;
  if (s.estimator.error && !cli.given("max-evals"))
    s.resolved["max-evals"] = s.estimator.max_evaluations = kDefaultMostEvaluations;
  s.accept_prior = cli.flag("accept-prior");
  s.images.given = cli.given();

  refuse_idle(cli, s.estimator, "image");
  s.shard = parse_shard(cli.text("shard"), "--shard");
  return s;
}

}  // namespace crais
