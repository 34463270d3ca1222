// TorchScript of another program: a decoder, perhaps an encoder, and nothing that says what it is.
#include <gtest/gtest.h>
#include <torch/script.h>

#include <cmath>
#include <string>

#include "core/rng.h"
#include "models/script_model.h"
#include "support/expect_error.h"
#include "support/statistics.h"
#include "support/temporary_folder.h"
#include "targets/decoder_posterior.h"

namespace crais {
namespace {

using testing::max_abs_diff;
using testing::TemporaryFolder;

constexpr double kNoise = 0.5;

/// Modules with a matrix `weight` [3,6] and an offset `bias` [6], written as another program would.
class PlainScript : public ::testing::Test {
 protected:
  PlainScript() {
    at::Generator rng = make_generator(3);
    weight_ = at::empty({3, 6}, at::kFloat).normal_(0, 1, rng);
    bias_ = at::empty({6}, at::kFloat).normal_(0, 1, rng);
  }

  std::string written(const std::string& methods) const {
    torch::jit::Module module("Decoder");
    module.register_parameter("weight", weight_, false);
    module.register_parameter("bias", bias_, false);
    module.define(methods);
    std::string path = (folder_.path() / "plain.pt").string();
    module.save(path);
    return path;
  }
  std::shared_ptr<const LatentModel> read(const std::string& methods,
                                          const ScriptOptions& options) const {
    return read_script_model(written(methods), at::kCPU, at::kFloat, options);
  }
  void expect_refused(ErrorKind kind, const std::vector<std::string>& words,
                      const std::string& methods, const ScriptOptions& options) const {
    expect_error(kind, words, [&] { read(methods, options); });
  }

  TemporaryFolder folder_;
  at::Tensor weight_, bias_;
};

const std::string kForward = R"(
def forward(self, z):
    return (torch.matmul(z, self.weight) + self.bias).reshape(z.shape[0], 2, 3)
)";
const std::string kEncode = R"(
def encode(self, x):
    h = torch.matmul(x.flatten(1), self.weight.t())
    return 0.1 * h, 0.2 * h - 1.0
)";
const ScriptOptions kGaussian = {"gaussian:0.5", 3}, kBernoulli = {"bernoulli", 3},
                    kProbs = {"bernoulli:probs", 3};

TEST_F(PlainScript, SaysWhatWasFoundOut) {
  const auto model = read(kForward + kEncode, kGaussian);
  const ModelDescription& d = model->description();
  EXPECT_EQ(d.kind, kPlainScript);
  EXPECT_EQ(d.name, "plain.pt");
  EXPECT_EQ(d.latent, 3);
  EXPECT_EQ(d.data_shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(d.likelihood, "gaussian:0.5");
  EXPECT_TRUE(d.has("encode"));
  EXPECT_FALSE(d.low.has_value());
  EXPECT_EQ(model->evaluator(), "torchscript");

  const auto binary = read(kForward, kBernoulli);
  EXPECT_FALSE(binary->description().has("encode"));
  EXPECT_EQ(binary->description().low, 0.0);
  EXPECT_EQ(binary->description().high, 1.0);
  EXPECT_EQ(binary->description().step, 1.0);
}

TEST_F(PlainScript, IsWhatTheSameWeightsAreAsAnMlp) {
  const auto model = read(kForward + kEncode, kBernoulli);
  Vae vae{.architecture = {2, 3, 3, {}, Activation::kTanh, parse_likelihood("bernoulli")}};
  vae.decoder.layers = {{weight_.t().contiguous(), bias_}};
  const at::Tensor x = at::tensor({1, 0, 1, 1, 0, 0}, at::kFloat).view({1, 2, 3});
  const at::Tensor z = at::linspace(-2, 2, 15, at::kFloat).view({5, 3});
  const Evaluation expected = DecoderPosterior(vae, x.flatten(1)).evaluate(z.unsqueeze(0));
  const LatentModel::Density found = model->joint(z, x.expand({5, 2, 3}), {});
  EXPECT_LT(max_abs_diff(found.value, expected.log_density[0]), 1e-5);
  EXPECT_LT(max_abs_diff(found.grad, expected.grad[0]), 1e-5);

  const at::Tensor logits = at::matmul(z, weight_) + bias_, p = at::sigmoid(logits);
  EXPECT_LT(max_abs_diff(model->output(z, {})->value, logits), 1e-6);
  EXPECT_LT(max_abs_diff(model->output(z, {})->weight, p * (1 - p)), 1e-6);

  const at::Tensor h = at::matmul(x.flatten(1), weight_.t());
  const LatentModel::Posterior q = *model->encode(x, {});
  EXPECT_LT(max_abs_diff(q.loc, 0.1 * h), 1e-6);
  EXPECT_LT(max_abs_diff(q.scale, (0.1 * h - 0.5).exp()), 1e-6);
}

TEST_F(PlainScript, DrawsFromTheDecoder) {
  constexpr int64_t kDraws = 4000;
  for (const ScriptOptions& options : {kGaussian, kBernoulli}) {
    const auto model = read(kForward, options);
    std::vector<at::Tensor> residuals;
    for (int64_t i = 0; i < kDraws; ++i) {
      const LatentModel::Draws drawn = model->draw(5, i);
      const at::Tensor output = model->output(drawn.latents, {})->value;
      const bool bernoulli = options.likelihood == "bernoulli";
      const at::Tensor mean = bernoulli ? at::sigmoid(output) : output;
      const at::Tensor spread = bernoulli ? (mean * (1 - mean)).sqrt() : at::full({1, 6}, kNoise);
      residuals.push_back((drawn.data.flatten(1) - mean) / spread);
    }
    const at::Tensor r = at::cat(residuals).to(at::kDouble);
    EXPECT_LT(r.mean(0).abs().max().item<double>(), 5 / std::sqrt(kDraws)) << options.likelihood;
    EXPECT_NEAR(r.square().mean().item<double>(), 1, 0.05) << options.likelihood;
    EXPECT_TRUE(at::equal(model->draw(5, 7).data, model->draw(5, 7).data));
    EXPECT_FALSE(at::equal(model->draw(5, 7).latents, model->draw(6, 7).latents));
  }
}

TEST_F(PlainScript, DecodeGoesBeforeForward) {
  const auto model = read(
      "def forward(self, x):\n    return x\n"
      "def decode(self, z):\n    return 2.0 * torch.matmul(z, self.weight)\n",
      kGaussian);
  const at::Tensor z = at::ones({1, 3});
  EXPECT_LT(max_abs_diff(model->output(z, {})->value, 2 * at::matmul(z, weight_)), 1e-6);
}

TEST_F(PlainScript, AsksForWhatItDoesNotSay) {
  for (const ScriptOptions& options :
       {ScriptOptions{}, ScriptOptions{"", 3}, ScriptOptions{"bernoulli", 0}})
    expect_refused(ErrorKind::kArgument, {"plain.pt", "`likelihood`", "`latent`", "export"},
                   kForward, options);
  expect_refused(ErrorKind::kData, {"'forward' fails"}, kForward, {"bernoulli", 4});
  expect_refused(ErrorKind::kArgument, {"likelihood"}, kForward, {"cauchy", 3});
}

TEST_F(PlainScript, ProbabilitiesAreThoseOfTheirLogits) {
  const std::string head =
      "def forward(self, z):\n    h = torch.matmul(z, self.weight) + self.bias\n";
  const auto logits = read(head + "    return h\n", kBernoulli);
  const auto probs = read(head + "    return torch.sigmoid(h)\n", kProbs);
  EXPECT_EQ(probs->description().likelihood, "bernoulli");
  const at::Tensor x = at::tensor({1, 0, 1, 1, 0, 0}, at::kFloat).expand({5, 6});
  const at::Tensor z = at::linspace(-2, 2, 15, at::kFloat).view({5, 3});
  const LatentModel::Density expected = logits->joint(z, x, {}), found = probs->joint(z, x, {});
  EXPECT_LT(max_abs_diff(found.value, expected.value), 1e-4);
  EXPECT_LT(max_abs_diff(found.grad, expected.grad), 1e-4);
  EXPECT_LT(max_abs_diff(probs->output(z, {})->value, logits->output(z, {})->value), 1e-4);
  EXPECT_TRUE(at::equal(probs->draw(5, 7).data, logits->draw(5, 7).data));
  // A sigmoid that was rounded has a finite value and gradient.
  const LatentModel::Density far = probs->joint(200 * z, x, {});
  EXPECT_TRUE(far.value.isfinite().all().item<bool>() && far.grad.isfinite().all().item<bool>());
}

TEST_F(PlainScript, RefusesWhatIsNoDecoder) {
  const auto forward = [](const std::string& result) {
    return "def forward(self, z):\n    h = torch.matmul(z, self.weight)\n    return " + result +
           "\n";
  };
  expect_refused(ErrorKind::kData, {"'forward' fails"}, kEncode, kGaussian);
  expect_refused(ErrorKind::kArgument, {"'forward'", "sigmoid", "bernoulli:probs", "logits"},
                 forward("torch.sigmoid(h)"), kBernoulli);
  expect_refused(ErrorKind::kArgument, {"outside [0, 1]", "bernoulli:probs"}, forward("h"), kProbs);
  EXPECT_NO_THROW(read(forward("torch.sigmoid(h)"), kGaussian));
  expect_refused(ErrorKind::kData, {"each call", "drawn inside"}, forward("h + torch.randn([1])"),
                 kGaussian);
  expect_refused(ErrorKind::kData, {"different values for a row"}, forward("h - h.mean(0)"),
                 kGaussian);
  expect_refused(ErrorKind::kData, {"not finite"}, forward("torch.log(h)"), kGaussian);
  for (const char* result : {"(h, h)", "h.sum()"})
    expect_refused(ErrorKind::kData, {"does not make one tensor"}, forward(result), kGaussian);

  const auto one_head = read(kForward + "def encode(self, x):\n    return x\n", kGaussian);
  expect_error(ErrorKind::kData, {"'encode' makes no mean"}, [&] {
    one_head->encode(at::zeros({1, 2, 3}), {});
  });
}

}  // namespace
}  // namespace crais
