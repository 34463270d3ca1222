#include "models/state_dict.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "io/safetensors.h"
#include "support/scratch.h"
#include "util/digest.h"
#include "util/files.h"

namespace crais {
namespace {

using testing::Scratch;
using Names = std::vector<std::string>;

/// Tensors whose values depend on their places, so that no two are alike.
class Tensors {
 public:
  Tensors& linear(const std::string& name, int64_t in, int64_t out, bool bias = true) {
    add(name + ".weight", values({out, in}));
    if (bias) add(name + ".bias", values({out}));
    return *this;
  }
  Tensors& add(const std::string& name, const at::Tensor& tensor) {
    state_.tensors.emplace_back(name, tensor);
    return *this;
  }
  Tensors& metadata(const std::string& key, const std::string& value) {
    state_.metadata[key] = value;
    return *this;
  }
  const StateDict& state() const { return state_; }
  at::Tensor at(const std::string& name) const {
    for (const auto& [known, tensor] : state_.tensors)
      if (known == name) return tensor;
    throw std::runtime_error("no " + name);
  }

 private:
  at::Tensor values(const std::vector<int64_t>& shape) {
    ++count_;
    const at::Tensor counted = at::arange(c10::multiply_integers(shape), at::kFloat).view(shape);
    return (counted * 0.7 + static_cast<double>(count_)).sin() * 0.3;
  }

  StateDict state_{{}, "FILE", ""};
  int count_ = 0;
};

/// pytorch/examples' VAE, smaller: 16 pixels, 5 hidden units, 2 latents.
Tensors example_vae(const std::string& prefix = "") {
  return Tensors()
      .linear(prefix + "fc1", 16, 5)
      .linear(prefix + "fc21", 5, 2)
      .linear(prefix + "fc22", 5, 2)
      .linear(prefix + "fc3", 2, 5)
      .linear(prefix + "fc4", 5, 16);
}

StateDictOptions relu() {
  StateDictOptions options;
  options.activation = "relu";
  return options;
}
StateDictOptions with_layers(const std::string& decoder, const std::string& encoder = "") {
  StateDictOptions options = relu();
  options.decoder_layers = decoder;
  options.encoder_layers = encoder;
  return options;
}

at::Tensor linear(const Tensors& tensors, const std::string& name, const at::Tensor& x) {
  return at::linear(x, tensors.at(name + ".weight"), tensors.at(name + ".bias"));
}

/// To a few roundings of float32: libraries of matrix products do not round alike everywhere.
bool close(const at::Tensor& a, const at::Tensor& b) { return at::allclose(a, b, 1e-5, 1e-6); }

void expect_refused(const Tensors& tensors, const StateDictOptions& options, const Names& words,
                    ErrorKind kind = ErrorKind::kArgument) {
  expect_error(kind, {"FILE: "}, [&] { vae_from_state_dict(tensors.state(), options); });
  expect_error(kind, words, [&] { vae_from_state_dict(tensors.state(), options); });
}

/// Both networks of the example compute what the forward of pytorch/examples does.
void expect_example(const RecognisedVae& found, const Tensors& tensors, const std::string& prefix) {
  const at::Tensor x = at::rand({3, 16}), z = at::randn({3, 2});
  const at::Tensor h = at::relu(linear(tensors, prefix + "fc1", x));
  const Vae::Posterior q = found.vae.encode(x);
  EXPECT_TRUE(close(q.mean, linear(tensors, prefix + "fc21", h)));
  EXPECT_TRUE(close(q.log_var, linear(tensors, prefix + "fc22", h)));
  EXPECT_TRUE(close(found.vae.decoder.forward(z),
                    linear(tensors, prefix + "fc4", at::relu(linear(tensors, prefix + "fc3", z)))));
}

TEST(StateDict, TheVaeOfPyTorchExamples) {
  for (const std::string prefix : {"", "module.", "model.net."}) {
    const Tensors tensors = example_vae(prefix);
    const RecognisedVae found = vae_from_state_dict(tensors.state(), relu());
    expect_example(found, tensors, prefix);
    EXPECT_EQ(found.decoder, (Names{prefix + "fc3", prefix + "fc4"}));
    EXPECT_EQ(found.encoder, (Names{prefix + "fc1", prefix + "fc21", prefix + "fc22"}));
    EXPECT_TRUE(found.unused.empty());
    const VaeArchitecture& architecture = found.vae.architecture;
    EXPECT_EQ(architecture.latent, 2);
    EXPECT_EQ(architecture.image_rows, 4);
    EXPECT_EQ(architecture.image_cols, 4);
    EXPECT_EQ(architecture.hidden, std::vector<int64_t>{5});
    EXPECT_EQ(architecture.activation, Activation::kRelu);
    EXPECT_EQ(architecture.likelihood.family, Likelihood::Family::kBernoulli);
  }
}

TEST(StateDict, TheSameByName) {
  const Tensors tensors = example_vae("module.");
  expect_example(vae_from_state_dict(tensors.state(), with_layers("fc3,fc4", "fc1,fc21+fc22")),
                 tensors, "module.");
  expect_example(vae_from_state_dict(tensors.state(), with_layers("module.fc3,fc4")), tensors,
                 "module.");
  // The heads the other way round.
  const RecognisedVae swapped =
      vae_from_state_dict(tensors.state(), with_layers("fc3,fc4", "fc1,fc22+fc21"));
  const at::Tensor x = at::rand({3, 16});
  EXPECT_TRUE(close(swapped.vae.encode(x).mean,
                    linear(tensors, "module.fc22", at::relu(linear(tensors, "module.fc1", x)))));
}

TEST(StateDict, SequentialsCalledEncoderAndDecoder) {
  const Tensors tensors = Tensors()
                              .linear("encoder.0", 6, 7)
                              .linear("encoder.2", 7, 3)
                              .linear("encoder.10", 3, 4)
                              .linear("decoder.0", 2, 3)
                              .linear("decoder.2", 3, 6);
  StateDictOptions options = relu();
  options.activation = "softplus";
  options.likelihood = "gaussian:0.25";
  options.image_rows = 2;
  options.image_cols = 3;
  const RecognisedVae found = vae_from_state_dict(tensors.state(), options);
  EXPECT_EQ(found.encoder, (Names{"encoder.0", "encoder.2", "encoder.10"}));
  EXPECT_EQ(found.decoder, (Names{"decoder.0", "decoder.2"}));
  // The encoder need not mirror the decoder.
  const at::Tensor x = at::rand({3, 6});
  const at::Tensor h =
      at::softplus(linear(tensors, "encoder.2", at::softplus(linear(tensors, "encoder.0", x))));
  EXPECT_TRUE(close(found.vae.encode(x).log_var, linear(tensors, "encoder.10", h).slice(1, 2)));
  EXPECT_EQ(found.vae.architecture.hidden, std::vector<int64_t>{3});
  EXPECT_EQ(found.vae.architecture.likelihood.noise_sd, 0.25);
  EXPECT_EQ(found.vae.architecture.image_cols, 3);
}

TEST(StateDict, DataParallelWithLayersWithinModules) {
  const Tensors tensors = Tensors()
                              .linear("module.dec.layers.0.linear", 2, 3)
                              .linear("module.dec.layers.1.linear", 3, 3)
                              .linear("module.dec.layers.10.linear", 3, 9, /*bias=*/false)
                              .linear("module.enc.layers.0.linear", 9, 8)
                              .linear("module.enc.layers.1.linear", 8, 8)
                              .linear("module.enc.logvar", 8, 2)
                              .linear("module.enc.mu", 8, 2);
  StateDictOptions options = relu();
  options.activation = "elu";
  const RecognisedVae found = vae_from_state_dict(tensors.state(), options);
  EXPECT_EQ(found.decoder, (Names{"module.dec.layers.0.linear", "module.dec.layers.1.linear",
                                  "module.dec.layers.10.linear"}));
  // The mean first, whatever the order of the names.
  EXPECT_EQ(found.encoder, (Names{"module.enc.layers.0.linear", "module.enc.layers.1.linear",
                                  "module.enc.mu", "module.enc.logvar"}));
  EXPECT_TRUE(at::equal(found.vae.decoder.layers[2].bias, at::zeros({9})));
  const at::Tensor x = at::rand({3, 9});
  const at::Tensor h = at::elu(linear(tensors, "module.enc.layers.1.linear",
                                      at::elu(linear(tensors, "module.enc.layers.0.linear", x))));
  EXPECT_TRUE(close(found.vae.encode(x).mean, linear(tensors, "module.enc.mu", h)));
  EXPECT_TRUE(close(found.vae.encode(x).log_var, linear(tensors, "module.enc.logvar", h)));
}

TEST(StateDict, HeadsUnderNamesOfTheirOwn) {
  const Tensors tensors = Tensors()
                              .linear("encoder.0", 9, 4)
                              .linear("fc_var", 4, 2)
                              .linear("fc_mean", 4, 2)
                              .linear("decoder.0", 2, 9);
  EXPECT_EQ(vae_from_state_dict(tensors.state(), relu()).encoder,
            (Names{"encoder.0", "fc_mean", "fc_var"}));
}

TEST(StateDict, ADecoderAlone) {
  for (const std::string prefix : {"decoder.", "generator.net.", ""}) {
    const Tensors tensors =
        Tensors().linear(prefix + "0", 2, 5).linear(prefix + "2", 5, 5).linear(prefix + "4", 5, 9);
    const RecognisedVae found = vae_from_state_dict(tensors.state(), relu());
    EXPECT_EQ(found.decoder, (Names{prefix + "0", prefix + "2", prefix + "4"}));
    EXPECT_TRUE(found.vae.encoder.empty());
    EXPECT_NE(found.describe().find("encoder     none was recognised"), std::string::npos);
  }
  EXPECT_TRUE(vae_from_state_dict(example_vae().state(), with_layers("fc3,fc4", "none"))
                  .vae.encoder.empty());
}

TEST(StateDict, ALinearVae) {
  const Tensors tensors =
      Tensors().linear("enc_mu", 4, 2).linear("enc_logvar", 4, 2).linear("dec", 2, 4);
  const RecognisedVae found = vae_from_state_dict(tensors.state(), relu());
  const at::Tensor x = at::rand({3, 4});
  EXPECT_TRUE(close(found.vae.encode(x).mean, linear(tensors, "enc_mu", x)));
  EXPECT_TRUE(found.vae.architecture.hidden.empty());
}

TEST(StateDict, ACheckpointWithAnOptimizer) {
  Tensors tensors = example_vae("model.");
  tensors.add("optimizer.state.0.exp_avg", at::zeros({5, 16}))
      .add("optimizer.state.0.step", at::ones({}));
  const RecognisedVae found = vae_from_state_dict(tensors.state(), relu());
  expect_example(found, tensors, "model.");
  EXPECT_EQ(found.unused, (Names{"optimizer.state.0.exp_avg", "optimizer.state.0.step"}));
}

TEST(StateDict, OtherPrecisionsBecomeFloat) {
  Tensors tensors;
  tensors.add("decoder.0.weight", at::full({4, 2}, 0.5, at::kDouble))
      .add("decoder.0.bias", at::full({4}, 0.25, at::kHalf));
  const Network decoder = vae_from_state_dict(tensors.state(), relu()).vae.decoder;
  EXPECT_TRUE(at::equal(decoder.layers[0].weight, at::full({4, 2}, 0.5F)));
  EXPECT_TRUE(at::equal(decoder.layers[0].bias, at::full({4}, 0.25F)));
}

TEST(StateDict, TheMetadataMaySayActivationAndLikelihood) {
  Tensors tensors = example_vae();
  tensors.metadata("activation", "elu").metadata("likelihood", "gaussian:0.5");
  RecognisedVae found = vae_from_state_dict(tensors.state(), {});
  EXPECT_EQ(found.vae.decoder.layers.front().activation, Activation::kElu);
  EXPECT_EQ(found.vae.encoder.layers.front().activation, Activation::kElu);
  EXPECT_EQ(found.vae.architecture.likelihood.noise_sd, 0.5);
  // The options go before.
  found = vae_from_state_dict(tensors.state(), relu());
  EXPECT_EQ(found.vae.decoder.layers.front().activation, Activation::kRelu);
}

TEST(StateDict, AnActivationIsNeeded) {
  expect_refused(example_vae(), {},
                 {"`activation`", "tanh, elu, relu, leaky-relu[:SLOPE], softplus"});
  StateDictOptions options = relu();
  options.activation = "swish";
  expect_error(ErrorKind::kArgument, {"gelu"},
               [&] { vae_from_state_dict(example_vae().state(), options); });
}

TEST(StateDict, ImagesHaveAShape) {
  StateDictOptions options = relu();
  const Tensors odd = Tensors().linear("decoder.0", 2, 6);
  expect_refused(odd, options, {"6 pixels", "`image_shape`"});
  options.image_rows = 4;
  expect_refused(odd, options, {"4 x 0"});
  options.image_cols = 2;
  expect_refused(odd, options, {"6 pixels", "4 x 2"});
  options.image_rows = options.image_cols = INT64_MAX;
  expect_refused(odd, options, {"6 pixels"});
  options.image_rows = -2;
  options.image_cols = -3;
  expect_refused(odd, options, {"6 pixels", "-2 x -3"});
}

TEST(StateDict, WhatCannotBeToldApartListsTheLayers) {
  // An autoencoder without heads; two models; a chain that does not fit.
  expect_refused(
      Tensors().linear("fc1", 16, 5).linear("fc2", 5, 2).linear("fc3", 2, 5).linear("fc4", 5, 16),
      relu(),
      {"fc1 16->5, fc2 5->2, fc3 2->5, fc4 5->16", "`decoder` fc3,fc4", "`encoder` fc1,fc21+fc22"});
  expect_refused(Tensors().linear("a", 2, 5).linear("b", 6, 9), relu(), {"a 2->5, b 6->9"});
  Tensors two = example_vae("model.");
  for (const char* name : {"fc1", "fc21", "fc22", "fc3", "fc4"})
    two.add(std::string("ema.") + name + ".weight",
            two.at(std::string("model.") + name + ".weight"));
  expect_refused(two, relu(), {"ema.fc1 16->5", "model.fc4 5->16"});
  expect_refused(two, with_layers("fc3,fc4"), {"'fc3'", "model.fc3 or ema.fc3"});
  expect_refused(Tensors().linear("decoder.0", 2, 5).linear("decoder.1", 4, 9), relu(),
                 {"decoder.0 gives 5", "decoder.1 takes 4"});
}

TEST(StateDict, LayersOfOneShapeNeedAnOrder) {
  // Either could be the first.
  expect_refused(Tensors().linear("dec.a", 2, 2).linear("dec.b", 2, 2).linear("dec.out", 2, 4),
                 relu(), {"one shape", "dec.a 2->2, dec.b 2->2"});
  expect_refused(Tensors()
                     .linear("enc.first", 4, 4)
                     .linear("enc.other", 4, 4)
                     .linear("enc.out", 4, 4)
                     .linear("dec", 2, 4),
                 relu(), {"one shape"});
  for (const auto& [one, other] :
       {std::pair("a", "b"), {"mu", "sigma"}, {"mean", "std"}, {"mean1", "mean2"}})
    expect_refused(Tensors()
                       .linear(std::string("enc.z.") + one, 4, 2)
                       .linear(std::string("enc.z.") + other, 4, 2)
                       .linear("dec", 2, 4),
                   relu(), {"which head gives the mean", std::string("enc.z.") + one});
}

TEST(StateDict, WhatIsNoMlpIsRefused) {
  Tensors normalised = Tensors().linear("decoder.0", 2, 5).linear("decoder.3", 5, 9);
  normalised.add("decoder.1.running_mean", at::zeros({5}));
  expect_refused(normalised, relu(), {"decoder.1.running_mean", "no place in an MLP"});
  // By name, who asks answers for it; the description tells.
  const RecognisedVae found =
      vae_from_state_dict(normalised.state(), with_layers("decoder.0,decoder.3"));
  EXPECT_EQ(found.unused, Names{"decoder.1.running_mean"});
  EXPECT_NE(found.describe().find("not used    decoder.1.running_mean"), std::string::npos);

  Tensors unnamed = example_vae();
  unnamed.add("bn.weight", at::ones({5}));
  expect_refused(unnamed, relu(), {"bn.weight", "no place in an MLP"});
  Tensors convolution;
  convolution.add("decoder.0.weight", at::ones({3, 3, 5, 5}));
  expect_refused(convolution, relu(), {"decoder.0.weight", "convolution", "crais.export("},
                 ErrorKind::kData);
}

TEST(StateDict, NamesThatDoNotFit) {
  expect_refused(example_vae(), with_layers("fc4,fc3"), {"fc4 gives 16", "fc3 takes 2"});
  expect_refused(example_vae(), with_layers("fc3,fc5"), {"'fc5'", "`decoder`", "fc1 16->5"});
  expect_refused(example_vae(), with_layers("fc3,,fc4"), {"no linear layer ''"});
  expect_refused(example_vae(), with_layers("fc3,fc3"), {"'fc3' twice"});
  for (const char* encoder : {"fc1", "fc1,fc21", "fc21+fc22", "fc1,fc3+fc4", "fc1,fc21+fc22+fc3"})
    expect_refused(example_vae(), with_layers("fc3,fc4", encoder),
                   {"`encoder`", encoder, "16 pixels", "2 latents"});
  expect_refused(example_vae(), with_layers("", "fc1,fc21+fc22"), {"needs `decoder`"});
}

TEST(StateDict, ValuesAreChecked) {
  const auto with = [](const at::Tensor& weight, const at::Tensor& bias) {
    return Tensors().add("decoder.0.weight", weight).add("decoder.0.bias", bias);
  };
  const at::Tensor weight = at::ones({4, 2}), bias = at::ones({4});
  const double inf = std::numeric_limits<double>::infinity();
  expect_refused(with(weight * inf, bias), relu(), {"\"decoder.0.weight\"", "NaN"},
                 ErrorKind::kData);
  expect_refused(with(weight, bias * NAN), relu(), {"\"decoder.0.bias\"", "NaN"}, ErrorKind::kData);
  expect_refused(with(at::full({4, 2}, 1e300, at::kDouble), bias), relu(), {"float32"},
                 ErrorKind::kData);
  expect_refused(with(weight.to(at::kLong), bias), relu(), {"Long"}, ErrorKind::kData);
  expect_refused(with(weight, at::ones({3})), relu(), {"\"decoder.0.bias\"", "vector of 4"},
                 ErrorKind::kData);
  expect_refused(with(weight, at::ones({4, 1})), relu(), {"vector of 4"}, ErrorKind::kData);
  expect_refused(with(at::ones({0, 2}), at::ones({0})), relu(), {"no linear layers"},
                 ErrorKind::kData);
}

TEST(StateDict, HostileNamesStayOnOneLine) {
  Tensors many;
  for (int i = 0; i < 500; ++i)
    many.linear("\n\x1b[31m" + std::string(200, 'x') + std::to_string(i), 3, 2);
  try {
    vae_from_state_dict(many.state(), relu());
    FAIL() << "no error was thrown";
  } catch (const Error& error) {
    const std::string message = error.what();
    EXPECT_EQ(message.find_first_of("\n\x1b"), std::string::npos);
    EXPECT_LT(message.size(), 5000U);
    EXPECT_NE(message.find("476 more"), std::string::npos);
  }
  for (int i = 500; i < 1001; ++i) many.linear(std::to_string(i), 3, 2);
  expect_refused(many, relu(), {"1001 linear layers", "at most 1000"}, ErrorKind::kData);
}

TEST(StateDict, DescribesWhatItRecognised) {
  EXPECT_EQ(vae_from_state_dict(example_vae().state(), relu()).describe(),
            "decoder     2 -> 5 -> 16 (fc3, fc4), relu between\n"
            "encoder     16 -> 5 -> 4 (fc1, fc21, fc22), relu between\n"
            "            fc21 gives the mean, fc22 the log-variance\n"
            "likelihood  bernoulli: the outputs are logits\n"
            "images      4 x 4\n");
  const Tensors one_head = Tensors().linear("encoder.0", 4, 4).linear("decoder.0", 2, 4);
  const std::string text = vae_from_state_dict(one_head.state(), relu()).describe();
  EXPECT_NE(text.find("encoder.0 gives the mean, then the log-variance"), std::string::npos);
}

TEST(StateDict, ReadsSafetensorsAndTorchFilesByContent) {
  const Scratch scratch;
  const Tensors tensors = example_vae();
  const auto path = scratch.path() / "model.pt";  // the name does not matter
  write_safetensors(path, {tensors.state().tensors, {{"activation", "relu"}}});
  const StateDict state = read_state_dict(path);
  EXPECT_EQ(state.source, path.string());
  EXPECT_EQ(state.sha256, sha256(read_file(path)));
  expect_example(vae_from_state_dict(state, {}), tensors, "");

  const StateDict saved =
      read_state_dict(std::string(CRAIS_SOURCE) + "/tests/models/data/example_vae.pt");
  EXPECT_EQ(saved.tensors.size(), 11U);
  const RecognisedVae found = vae_from_state_dict(saved, relu());
  EXPECT_EQ(found.encoder, (Names{"model.fc1", "model.fc21", "model.fc22"}));
  EXPECT_EQ(found.unused, Names{"history"});
  // What the module that was saved computes of images of ones.
  const Vae::Posterior q = found.vae.encode(at::ones({1, 16}));
  EXPECT_TRUE(close(q.mean, at::tensor({-0.28229365F, 0.11487601F})));
  EXPECT_TRUE(close(q.log_var, at::tensor({0.16041717F, 0.20149831F})));
  const at::Tensor pixels = at::sigmoid(found.vae.decoder.forward(at::ones({1, 2})));
  EXPECT_NEAR(pixels.sum().item<double>(), 8.2187042, 1e-5);

  expect_error(ErrorKind::kData, {"neither a safetensors file nor one of torch.save"},
               [&] { read_state_dict(scratch.write("x.pt", "text")); });
  expect_error(ErrorKind::kNoInput, {"no such file"},
               [&] { read_state_dict(scratch.path() / "nowhere.pt"); });
}

}  // namespace
}  // namespace crais
