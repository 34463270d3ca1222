#include "programs/reproduce/experiments/small_vae.h"

#include <gtest/gtest.h>

#include <cmath>

#include "support/temporary_folder.h"
#include "targets/decoder_posterior.h"

namespace crais {
namespace {

/// Two latents, 2 x 2 pixels, a linear decoder.
Vae linear_vae(double scale) {
  VaeArchitecture architecture;
  architecture.image_rows = architecture.image_cols = 2;
  architecture.latent = 2;
  architecture.hidden = {};
  Vae vae = make_vae(architecture, 3);
  Layer& layer = vae.decoder.layers[0];
  layer.weight = scale * layer.weight;
  layer.bias = at::tensor({0.5f, -1.0f, 2.0f, 0.0f});
  return vae;
}

TEST(SmallVae, IsIntegrated) {
  const testing::TemporaryFolder folder;
  ExperimentOptions options;
  options.cells = folder.path() / "cells";
  options.quiet = true;
  // Decoders that do not look at the latent: pixels are independent.
  const VaeExperiment blind(options, linear_vae(0), 8);
  const at::Tensor logits = blind.vae().decoder.layers[0].bias.expand({8, 4});
  const at::Tensor known = Likelihood{}.log_prob(blind.images().pixels, logits).to(at::kDouble);
  EXPECT_LT((integrated(options, blind, 128) - known).abs().max().item<double>(), 1e-6);
  // One that does: importance sampling from the prior finds the same.
  const VaeExperiment sighted(options, linear_vae(2), 8);
  const VariantResult found =
      sighted.run("importance", {{"", "--method iwae:100000 --base prior"}}, /*seeds=*/1)[0];
  const at::Tensor error = found.value[0] - integrated(options, sighted, 256);
  EXPECT_LT((error / found.std_error[0]).abs().max().item<double>(), 5);
  EXPECT_LT(found.std_error.max().item<double>(), 0.02);
  EXPECT_GT((integrated(options, sighted, 256) - known).abs().max().item<double>(), 0.1);
}

}  // namespace
}  // namespace crais
