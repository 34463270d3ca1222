#include "programs/eval_loglik/settings.h"

#include <limits>

#include "cli/parse.h"
#include "core/spec.h"
#include "util/error.h"

namespace crais {

Synopsis eval_loglik_synopsis() {
  Synopsis s;
  s.program = "eval-loglik";
  s.summary =
      "Estimates log p(x) in nats, with error bars, for images under a checkpoint's decoder.";
  s.operands = "CHECKPOINT | merge DIR...";
  s.min_operands = 1;
  s.max_operands = 4096;
  s.groups = estimator_options("image", "auto");
  s.presets = estimator_presets(
      "constant rate from the prior as in the paper's experiments with VAEs", "30", "16");
  s.groups.insert(
      s.groups.end(),
      {{"Images",
        {option::text("data-dir", "DIR", {}, "MNIST's files (else $CRAIS_DATA, ./data)"),
         option::choice("split", {"train", "validation", "test"}, "test", "part of the data"),
         option::text(
             "binarisation", "NAME", {},
             "dynamic, static:SEED, threshold:T, none, amat (as the checkpoint was trained; "
             "static:0 for dynamic)"),
         option::number("scale", "S", {}, "divide the numbers of --data by S, as 255").above(0),
         option::text("dequantise", "uniform:SEED", {},
                      "add uniform noise in [0, 1) to whole numbers, then divide by --scale (256)"),
         option::integer("limit", "N", {}, "only the first N images").at_least(1),
         option::text("indices", "A:B", {}, "only images A to B-1"),
         option::integer("simulate", "N", {}, "evaluate N images drawn from the model instead")
             .at_least(1)}},
       {"Running",
        {option::device(), option::threads(),
         option::choice("dtype", {"float32", "float64"}, "float32", "of particles and decoder"),
         option::integer("chunk", "N", EstimateOptions{}.chunk,
                         "images a unit of work; part of what results depend on")
             .at_least(1),
         option::text("memory-limit", "SIZE", {},
                      "as 1G: fewer threads where all would take more; results do not change"),
         option::text("shard", "i/N", "1/1", "only every N-th chunk, from the i-th"),
         option::flag("dry-run", "say what would be done, and its cost")}},
       output_options("summary.json, per_image.csv, schedule.csv and chunks")});
  s.examples =
      "  eval-loglik weights/vae50-mnist.safetensors --limit 1000 --out results/mnist\n"
      "  eval-loglik vae.safetensors --method iwae:5000 --method elbo --base encoder\n"
      "  eval-loglik vae.safetensors --method bidirectional --simulate 1000\n"
      "  eval-loglik vae.safetensors --budget 500\n"
      "  eval-loglik vae.safetensors --preset paper --schedule linear --steps 512\n"
      "  eval-loglik merge results/part1 results/part2 --out results/whole\n";
  return s;
}

namespace {

/// The seed of "uniform:SEED".
uint64_t parse_dequantisation(const std::string& text) {
  Spec spec(text);
  if (spec.name() != "uniform")
    throw argument_error("--dequantise is uniform:SEED, as uniform:0; not '" + text + "'");
  const int64_t seed = spec.integer("seed", 0, std::numeric_limits<int64_t>::max());
  spec.finish();
  return static_cast<uint64_t>(seed);
}

}  // namespace

EvalSettings read_settings(const CommandLine& cli) {
  EvalSettings s{read_run(cli, "image"), cli.operands().front(), {}, {}, {}, cli.flag("dry-run")};
  if (cli.operands().size() > 1)
    throw argument_error("unexpected '" + cli.operands()[1] +
                         "': one checkpoint is evaluated at a time");

  s.images.data_dir = cli.text("data-dir", "");
  s.images.split = cli.text("split");
  s.images.binarisation = cli.text("binarisation", "");
  s.images.indices = cli.text("indices", "");
  if (cli.has("scale")) s.images.scale = cli.number("scale");
  if (cli.has("dequantise")) s.images.dequantise = parse_dequantisation(cli.text("dequantise"));
  if (cli.has("limit")) s.images.limit = cli.integer("limit");
  if (cli.has("simulate")) s.images.simulate = cli.integer("simulate");
  s.images.seed = s.estimator.seed;

  if (cli.has("memory-limit"))
    s.memory_limit = parse_size(cli.text("memory-limit"), "--memory-limit");
  s.shard = parse_shard(cli.text("shard"), "--shard");
  return s;
}

}  // namespace crais
