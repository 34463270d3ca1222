#include "core/spec.h"
#include "programs/train_vae/train_vae.h"
#include "util/error.h"

namespace crais {
namespace {

void read_data(const CommandLine& cli, TrainVaeOptions& options) {
  constexpr int64_t kDefaultSynthetic = 12000;
  Spec spec(cli.text("data"));
  if (spec.name() == "synthetic")
    options.synthetic_count = spec.integer("images", 6, 10'000'000, kDefaultSynthetic);
  else if (spec.name() != "mnist" && spec.name() != "amat")
    throw argument_error("--data: unknown '", spec.name(),
                         "'; choose from mnist, amat, synthetic[:N]");
  spec.finish();
  if (spec.name() == "synthetic")
    cli.refuse_idle("data-dir", "for --data synthetic, which is drawn");
  options.data = spec.name();
  if (options.synthetic_count > 0) options.data += ":" + std::to_string(options.synthetic_count);

  const bool binary = options.data == "amat";
  options.trainer.binarisation =
      parse_binarisation(cli.text("binarisation", binary ? "amat" : "dynamic"));
  if (binary != (options.trainer.binarisation.kind == Binarisation::Kind::kAmat))
    throw argument_error("--binarisation amat and --data amat need each other");
}

}  // namespace

Synopsis train_vae_synopsis() {
  constexpr double kMaxSize = 1 << 20;
  Synopsis s;
  s.program = "train-vae";
  s.summary = "Trains a variational autoencoder on images and writes its checkpoint.";
  s.groups = {
      {"Data",
       {option::text("data-dir", "DIR", {},
                     "folder of the image files (default: $CRAIS_DATA, ./data)"),
        option::text("data", "SOURCE", {"mnist"},
                     "mnist (IDX files, Fashion-MNIST too), amat (Larochelle's binary files) "
                     "or synthetic[:N] (stroke digits drawn by the program)"),
        option::text("binarisation", "B", {},
                     "dynamic, static:SEED, threshold:T, none or amat (default: dynamic)")}},
      {"Network",
       {option::integer("latent", "N", {"50"}, "latent dimensions").between(1, kMaxSize),
        option::integer("hidden", "N,N", {"200", "200"}, "units of the encoder's hidden layers")
            .listed()
            .between(1, kMaxSize),
        option::text("act", "A", {"tanh"}, "activation: " + activation_names()),
        option::text("likelihood", "L", {"bernoulli"},
                     "bernoulli, continuous-bernoulli or gaussian:SD")}},
      {"Training",
       {option::text("objective", "O", {"elbo"}, "elbo or iwae:K"),
        option::integer("epochs", "N", {"100"}, "passes over the data").at_least(1),
        option::integer("batch", "N", {"128"}, "images a step").at_least(1),
        option::number("lr", "RATE", {"0.001"}, "Adam's learning rate").above(0),
        option::number("betas", "B1,B2", {"0.9", "0.999"}, "Adam's averaging")
            .listed()
            .between(0, 0.999999),
        option::text("decay", "D", {"none"}, "none or cosine:FINAL"),
        option::integer("kl-warmup", "N", {"0"},
                        "epochs over which the weight of the KL term rises to 1")
            .at_least(0),
        option::integer("patience", "N", {"0"},
                        "stop after N epochs without a better validation; 0 never")
            .at_least(0),
        option::seed(1)}},
      {"Run",
       {option::text("out", "DIR", {"results/train-vae"}, "folder of the results"),
        option::integer("checkpoint-every", "N", {"1"}, "epochs between checkpoints").at_least(1),
        option::flag("resume", "continue the stopped run in --out"),
        option::flag("overwrite", "replace the results in --out"), option::device(),
        option::threads(1), option::quiet()}}};
  s.examples =
      "  # The default network on MNIST (./data, $CRAIS_DATA), checkpoint in results/vae:\n"
      "  train-vae --out results/vae\n"
      "  # A long run whose learning rate falls; stop it with Ctrl-C, go on with --resume:\n"
      "  train-vae --epochs 1000 --decay cosine:1e-5 --out results/long\n"
      "  # The importance-weighted bound, ELU units, 32 latent dimensions, drawn digits:\n"
      "  train-vae --data synthetic --objective iwae:5 --act elu --latent 32 --out results/iwae";
  return s;
}

TrainVaeOptions train_vae_options(const CommandLine& cli) {
  TrainVaeOptions options;
  read_data(cli, options);
  options.data_dir = cli.text("data-dir", "");
  options.out = cli.text("out");
  options.architecture.latent = cli.integer("latent");
  options.architecture.hidden = cli.integers("hidden");
  options.architecture.activation = parse_activation(cli.text("act"));
  options.architecture.likelihood = parse_likelihood(cli.text("likelihood"));

  TrainerOptions& trainer = options.trainer;
  trainer.objective = parse_objective(cli.text("objective"));
  trainer.learning_rate = cli.number("lr");
  const std::vector<double> betas = cli.numbers("betas");
  if (betas.size() != 2)
    throw argument_error("--betas: two numbers are needed, as in --betas 0.9,0.999");
  trainer.beta1 = betas[0];
  trainer.beta2 = betas[1];
  trainer.decay = parse_decay(cli.text("decay"));
  trainer.batch = cli.integer("batch");
  trainer.epochs = cli.integer("epochs");
  trainer.patience = cli.integer("patience");
  trainer.kl_warmup = cli.integer("kl-warmup");
  trainer.seed = static_cast<uint64_t>(cli.integer("seed"));

  options.device = cli.text("device");
  options.checkpoint_every = cli.integer("checkpoint-every");
  options.threads = cli.integer("threads");
  options.resume = cli.flag("resume");
  options.overwrite = cli.flag("overwrite");
  options.quiet = cli.flag("quiet");
  cli.exclude("resume", "overwrite");
  return options;
}

}  // namespace crais
