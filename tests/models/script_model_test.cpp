// Exported models, read from files that crais.export wrote (data/make_models.py).
#include "models/script_model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>

#include "core/rng.h"
#include "evaluation/log_normalizer.h"
#include "io/safetensors.h"
#include "kernels/fused_decoder.h"
#include "models/function_model.h"
#include "models/package_model.h"
#include "support/expect_error.h"
#include "support/statistics.h"
#include "support/temporary_folder.h"
#include "support/zip_writer.h"
#include "targets/decoder_posterior.h"
#include "util/files.h"

namespace crais {
namespace {

using testing::max_abs_diff;

std::string file(const std::string& name) {
  return std::string(CRAIS_SOURCE) + "/tests/models/data/" + name;
}

/// The matrix [D,M] and offset [M] of a decoder that is linear.
struct Linear {
  at::Tensor weight, bias;
  explicit Linear(const LatentModel& model) {
    const at::Tensor eye = at::eye(model.description().latent);
    bias = model.output(at::zeros_like(eye.slice(0, 0, 1)), {})->value[0].to(at::kDouble);
    weight = model.output(eye, {})->value.to(at::kDouble) - bias;
  }
};

/// log N(x; b, W^T W + 0.25 I), [P].
at::Tensor exact(const at::Tensor& weight, const at::Tensor& bias, const at::Tensor& x) {
  const int64_t size = weight.size(1);
  const at::Tensor off = x.flatten(1).to(at::kDouble) - bias;
  const at::Tensor covariance = at::matmul(weight.t(), weight) + 0.25 * at::eye(size, at::kDouble);
  return -0.5 * (off * at::linalg_solve(covariance, off.t()).t()).sum(1) -
         0.5 * at::logdet(covariance) - 0.5 * static_cast<double>(size) * std::log(2 * M_PI);
}

/// The estimate from that base is the truth.
double expect_estimate(const Target& target, const std::string& base, const at::Tensor& truth,
                       int64_t chains = EstimateOptions().chains) {
  EstimateOptions options{.base = base, .chains = chains};
  const Result result = estimate_log_normalizer(target, options);
  EXPECT_TRUE(((result.value - truth).abs() < 5 * result.std_error + 1e-5).all().item<bool>())
      << base << result.value << truth;
  return result.std_error.max().item<double>();
}

/// The mean and variance of 2,000 draws are those of a linear decoder with noise of 0.5.
void expect_linear_draws(const LatentModel& model) {
  std::vector<at::Tensor> rows;
  for (int64_t i = 0; i < 2000; ++i) rows.push_back(model.draw(1, i).data.flatten(1));
  const at::Tensor all = at::cat(rows).to(at::kDouble);
  const Linear linear(model);
  const at::Tensor variance = linear.weight.square().sum(0) + 0.25;
  EXPECT_LT(((all.mean(0) - linear.bias) / (variance / 2000).sqrt()).abs().max().item<double>(), 5);
  EXPECT_LT(((all.var(0, true) / variance - 1) / std::sqrt(2.0 / 2000)).abs().max().item<double>(),
            5);
}

TEST(ScriptModel, SaysWhatItIs) {
  const auto model = read_script_model(file("linear_gaussian.pt"));
  const ModelDescription& d = model->description();
  EXPECT_EQ(d.kind, "TorchScript");
  EXPECT_EQ(d.latent, 3);
  EXPECT_EQ(d.data_shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(d.likelihood, "gaussian");
  EXPECT_TRUE(d.has("encode"));
  EXPECT_FALSE(d.has("prior"));
  EXPECT_FALSE(d.is_mass);
  EXPECT_EQ(model->num_draws(), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(model->evaluator(), "torchscript");
}

TEST(ScriptModel, FindsTheExactProbabilityOfALinearGaussianDecoder) {
  const auto model = read_script_model(file("linear_gaussian.pt"));
  const at::Tensor x = at::linspace(-1, 2, 24, at::kFloat).view({4, 2, 3});
  const DecoderPosterior target(model, x);
  const Linear linear(*model);
  const at::Tensor truth = exact(linear.weight, linear.bias, x);
  expect_estimate(target, "prior", truth);
  EXPECT_LT(expect_estimate(target, "laplace", truth), 1e-4);
  EXPECT_LT(expect_estimate(target, "encoder", truth), 1e-4);  // it is the posterior itself
}

TEST(ScriptModel, GradientIsThatOfTheValue) {
  const auto model = read_script_model(file("linear_gaussian.pt"), at::kCPU, at::kDouble);
  const at::Tensor x = at::ones({3, 2, 3}, at::kDouble), z = at::full({3, 3}, 0.3, at::kDouble),
                   steps = 1e-5 * at::eye(3, at::kDouble);
  const at::Tensor slope =
      (model->joint(z + steps, x, {}).value - model->joint(z - steps, x, {}).value) / 2e-5;
  EXPECT_LT(max_abs_diff(model->joint(z, x, {}).grad[0], slope), 1e-6);
}

/// A model of known layers, whose functions are their plain evaluation.
std::shared_ptr<const LatentModel> convolutional(at::ScalarType dtype) {
  const ModelManifest manifest =
      read_manifest(read_file(file("convolutional.safetensors")), "convolutional");
  const Network network = manifest.decoder->to(at::kCPU, dtype);
  const DecoderFunctions functions{
      [=](const at::Tensor& z) { return network.forward(z); }, {}, manifest.decoder->likelihood};
  return std::make_shared<FunctionModel>(
      manifest,
      [=](const std::string& name, const std::vector<at::Tensor>& inputs) {
        return call_decoder(functions, {2, 4, 6}, name, inputs);
      },
      FunctionPlace{at::kCPU, "test", "test"});
}

TEST(KnownLayers, AreFused) {
  const auto model = convolutional(at::kFloat);
  EXPECT_EQ(read_script_model(file("linear_gaussian.pt"))->decoder(), nullptr);
  at::Generator rng = make_generator(1);
  const at::Tensor z = at::randn({3, 17, 4}, rng);
  const at::Tensor x = (at::rand({3, 2, 4, 6}, rng) < 0.4).to(at::kFloat);
  const DecoderPosterior fused(model, x), plain(model, x, {}, {}, nullptr);
  const Evaluation found = fused.evaluate(z), wanted = plain.evaluate(z);
  EXPECT_EQ(found.log_density.scalar_type(), at::kDouble);
  EXPECT_LT(max_abs_diff(found.log_density, wanted.log_density), 1e-4);
  EXPECT_LT(max_abs_diff(found.grad, wanted.grad), 1e-4);
  EXPECT_TRUE(at::equal(fused.log_density(z), found.log_density));
  EXPECT_TRUE(at::equal(fused.select(at::tensor({2}))->evaluate(z.slice(0, 2, 3)).grad,
                        found.grad.slice(0, 2, 3)));
  EXPECT_LT(max_abs_diff(fused.curvature(z.select(1, 0)), plain.curvature(z.select(1, 0))), 1e-4);
  EXPECT_FALSE(plain.traits().forces_pay);
  EXPECT_EQ(fused.traits().forces_pay, fused_decoder_of(*model)->cheap() != nullptr);
  const auto cheap = fused.with_forces(at::kBFloat16);
  if (!cheap) return;  // this processor has no kernel with cheap forces
  const Evaluation forced = cheap->evaluate(z);
  EXPECT_LT(max_abs_diff(forced.log_density, wanted.log_density), 1e-4);
  EXPECT_GT(max_abs_diff(forced.grad, wanted.grad), 1e-6);
  EXPECT_LT(max_abs_diff(forced.grad, wanted.grad), 0.1 * wanted.grad.abs().max().item<double>());
}

TEST(KnownLayers, AreNotFusedInDouble) {
  const auto model = convolutional(at::kDouble);
  const at::Tensor x = at::ones({1, 2, 4, 6}, at::kDouble), z = at::ones({1, 1, 4}, at::kDouble);
  EXPECT_TRUE(at::equal(DecoderPosterior(model, x).evaluate(z).grad,
                        DecoderPosterior(model, x, {}, {}, nullptr).evaluate(z).grad));
}

TEST(ScriptModel, DrawsAreDecidedBySeedAndPlace) {
  const auto model = read_script_model(file("linear_gaussian.pt"));
  const LatentModel::Draws first = model->draw(7, 3), again = model->draw(7, 3);
  EXPECT_TRUE(at::equal(first.data, again.data));
  EXPECT_TRUE(at::equal(first.latents, again.latents));
  EXPECT_FALSE(at::equal(first.data, model->draw(7, 4).data));
  expect_linear_draws(*model);
}

TEST(ScriptModel, WhatItCannotComputeIsOneLine) {
  // Numbers that the encoder closes over stay in float32.
  const auto model = read_script_model(file("linear_gaussian.pt"), at::kCPU, at::kDouble);
  expect_error(ErrorKind::kData, {"'encode' fails"}, [&] {
    model->encode(at::zeros({1, 2, 3}, at::kDouble), {});
  });
  expect_error(ErrorKind::kData, {"'log_joint' fails"}, [&] {
    model->joint(at::zeros({1, 4}, at::kDouble), at::zeros({1, 2, 3}, at::kDouble), {});
  });
}

TEST(ModelFile, SaysWhatItHolds) {
  using Kind = ModelFile::Kind;
  EXPECT_EQ(ModelFile(file("linear_gaussian.pt")).kind, Kind::kScript);
  EXPECT_EQ(ModelFile(file("linear_mlp.pt2")).kind, Kind::kWeights);
  EXPECT_EQ(ModelFile(std::string(CRAIS_SOURCE) + "/weights/vae50-mnist.safetensors").kind,
            Kind::kCheckpoint);
}

TEST(ModelFile, CodeNeedsANameThatSaysSo) {
  const testing::TemporaryFolder folder;
  const std::string script = read_file(file("linear_gaussian.pt")),
                    weights = read_file(file("linear_mlp.pt2")),
                    package = testing::zip_of({{"m/data/aotinductor/joint/x.so", ""}}),
                    numbers = serialise_safetensors({{{"a", at::ones({2})}}, {}});
  const auto expect = [&](const std::string& content, const std::string& name, bool is_read,
                          const std::string& word) {
    const std::string path = folder.file(name, content);
    if (is_read)
      EXPECT_NO_THROW(ModelFile{path}) << name;
    else
      expect_error(ErrorKind::kData, {name + ": holds " + word, "its name says otherwise"},
                   [&] { const ModelFile file(path); });
  };
  for (const char* name :
       {"x.safetensors", "x.pt2", "x.pt", "x.pth", "x", "x.SAFETENSORS", "x.pt.safetensors"}) {
    const std::string ending = std::filesystem::path(name).extension().string();
    const bool is_script = ending == ".pt" || ending == ".pth", is_package = ending == ".pt2";
    expect(script, name, is_script, "TorchScript");
    expect(package, name, is_package, "native code");
    expect(weights, name, is_script || is_package, "weights");
    expect(numbers, name, !is_script && !is_package, "safetensors");
  }
}

TEST(ModelFile, WithoutAModelSaysWhatToTypeInPython) {
  const testing::TemporaryFolder folder;
  for (const std::string& content : {testing::zip_of({{"x/data.pkl", ""}, {"x/data/0", ""}}),
                                     std::string("\x80\x02}q"), std::string()})
    expect_error(ErrorKind::kData,
                 {"x.pth: neither", "crais.evaluate(module, images)", "crais.export(\"model.pt2\""},
                 [path = folder.file("x.pth", content)] { const ModelFile file(path); });
}

TEST(ModelFile, EveryTruncationIsRefused) {
  const testing::TemporaryFolder folder;
  for (const auto& [name, step] :
       {std::pair<const char*, size_t>{"linear_gaussian.pt", 97}, {"linear_mlp.pt2", 23}}) {
    const std::string whole = read_file(file(name));
    for (size_t length = 0; length < whole.size(); length += step)
      expect_error(ErrorKind::kData, {name}, [path = folder.file(name, whole.substr(0, length))] {
        const ModelFile file(path);
      });
  }
}

TEST(NetworkModel, IsWeightsAndComputesWhatTheyDo) {
  const auto model = read_package_model(file("linear_mlp.pt2"));
  ASSERT_TRUE(model->is_network());
  EXPECT_EQ(model->evaluator(), "aten");
  EXPECT_EQ(model->decoder()->layers.size(), 1U);
  EXPECT_TRUE(model->description().has("encode"));
  const at::Tensor x = at::linspace(-1, 2, 24, at::kFloat).view({4, 6});
  const Linear linear(*model);
  const at::Tensor truth = exact(linear.weight, linear.bias, x);
  const auto own = std::make_shared<DecoderPosterior>(model, x);
  const auto general =
      std::make_shared<DecoderPosterior>(model, x, at::Tensor(), at::Tensor(), nullptr);
  const at::Tensor z = at::linspace(-1, 1, 24).view({4, 2, 3});
  EXPECT_LT(max_abs_diff(own->evaluate(z).grad, general->evaluate(z).grad), 1e-4);
  EXPECT_LT(max_abs_diff(own->amortised_base()->matrix(), general->amortised_base()->matrix()),
            1e-6);
  for (const auto& target : {own, general}) expect_estimate(*target, "auto", truth);
  expect_linear_draws(*model);
}

TEST(Labels, AreTakenAsTheModelWants) {
  const at::Tensor whole = at::tensor({2, 0, 1}, at::kByte);
  LabelDescription classes{{}, at::kLong, 0, 2};
  EXPECT_EQ(labels_for(classes, whole, "y").scalar_type(), at::kLong);
  const LabelDescription rows{{3}, at::kFloat};
  EXPECT_TRUE(
      at::equal(labels_for(rows, whole, "y"), at::eye(3).index_select(0, whole.to(at::kLong))));
  EXPECT_TRUE(at::equal(labels_for(rows, at::eye(3), "y"), at::eye(3)));
  classes.high = 1;
  expect_error(ErrorKind::kData, {"y: label 0 is 2", "0 to 1"},
               [&] { labels_for(classes, whole, "y"); });
  expect_error(ErrorKind::kData, {"4", "the model's are 3"}, [&] {
    labels_for(rows, at::zeros({5, 4}), "y");
  });
  expect_error(ErrorKind::kData, {"floating"}, [&] { labels_for(classes, at::zeros({3}), "y"); });
  expect_error(ErrorKind::kData, {"not finite"}, [&] {
    labels_for(rows, at::zeros({1, 3}) / 0.0, "y");
  });
}

}  // namespace
}  // namespace crais
