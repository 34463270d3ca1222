// A model in memory: here its functions are those of a file.
#include "models/function_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>

#include "io/zip.h"
#include "models/script_model.h"
#include "targets/decoder_posterior.h"
#include "util/error.h"
#include "util/files.h"

namespace crais {
namespace {

const std::string kFile = std::string(CRAIS_SOURCE) + "/tests/models/data/linear_gaussian.pt";

ModelManifest manifest() {
  const std::string bytes = read_file(kFile);
  ZipArchive archive(bytes, kFile);
  for (const std::string& name : archive.names())
    if (name.find("extra/crais.safetensors") != std::string::npos)
      return read_manifest(archive.read(name), name);
  throw std::runtime_error("no manifest in " + kFile);
}

TEST(FunctionModel, IsWhatItsFunctionsAre) {
  const auto file = read_script_model(kFile);
  std::vector<std::string> called;
  const auto model = function_model(
      manifest(),
      [&](const std::string& name, const std::vector<at::Tensor>& inputs) {
        called.push_back(name);
        if (name == "joint") {
          EXPECT_EQ(inputs.size(), 2u);  // there are no labels
          const LatentModel::Density found = file->joint(inputs[0], inputs[1], {});
          return std::vector<at::Tensor>{found.value, found.grad};
        }
        const LatentModel::Output found = *file->output(inputs[0], {});
        return std::vector<at::Tensor>{found.value, found.weight};
      },
      at::kCPU);
  EXPECT_EQ(model->description().kind, "in memory");
  EXPECT_FALSE(model->is_network());
  const at::Tensor x = at::rand({4, 2, 3}), z = at::randn({4, 5, 3});
  const Evaluation ours = DecoderPosterior(model, x).evaluate(z);
  const Evaluation theirs = DecoderPosterior(file, x).evaluate(z);
  EXPECT_TRUE(at::allclose(ours.log_density, theirs.log_density, 0, 1e-5));
  EXPECT_TRUE(at::allclose(ours.grad, theirs.grad, 0, 1e-5));
  EXPECT_TRUE(at::equal(model->output(z[0], {})->value, file->output(z[0], {})->value));
  EXPECT_EQ(std::count(called.begin(), called.end(), "output"), 1);
}

TEST(FunctionModel, ForcesInBfloat16AreAFunctionOfItsOwn) {
  const auto functions = [](const std::string& name, const std::vector<at::Tensor>& inputs) {
    const double slope = name == "joint" ? 1 : name == "joint_bfloat16" ? 2 : 3;
    return std::vector<at::Tensor>{inputs[0].sum(1), at::full_like(inputs[0], slope)};
  };
  const auto plain = function_model(manifest(), functions, at::kCPU);
  EXPECT_FALSE(plain->has_forces(at::kBFloat16));
  ModelManifest described = manifest();
  described.model.functions.push_back("joint_bfloat16");
  const auto model = function_model(described, functions, at::kCPU);
  EXPECT_TRUE(model->has_forces(at::kBFloat16));
  EXPECT_FALSE(model->has_forces(at::kHalf));
  const at::Tensor x = at::rand({1, 2, 3}), z = at::randn({1, 5, 3});
  const DecoderPosterior target(model, x);
  EXPECT_EQ(target.evaluate(z).grad.max().item<double>(), 1);
  EXPECT_EQ(target.with_forces(at::kBFloat16)->evaluate(z).grad.min().item<double>(), 2);
}

TEST(FunctionModel, WhatAFunctionReturnsIsCheckedAndWhatItThrowsPasses) {
  const at::Tensor x = at::rand({1, 2, 3}), z = at::randn({1, 1, 3});
  const auto of = [](const std::vector<at::Tensor>& results) {
    return function_model(
        manifest(), [=](const std::string&, const std::vector<at::Tensor>&) { return results; },
        at::kCPU);
  };
  EXPECT_THROW(DecoderPosterior(of({at::zeros({1})}), x).evaluate(z), Error);
  EXPECT_THROW(DecoderPosterior(of({at::zeros({1}), at::zeros({1, 2})}), x).evaluate(z), Error);
  const auto stopped = function_model(
      manifest(),
      [](const std::string&, const std::vector<at::Tensor>&) -> std::vector<at::Tensor> {
        throw Error(ErrorKind::kInterrupted, "a signal");
      },
      at::kCPU);
  try {
    DecoderPosterior(stopped, x).evaluate(z);
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInterrupted);
  }
}

}  // namespace
}  // namespace crais
