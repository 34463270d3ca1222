// A model in memory: here its functions are those of a file.
#include "models/function_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>

#include "io/zip.h"
#include "models/script_model.h"
#include "targets/model_posterior.h"
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
  EXPECT_EQ(model->vae(), nullptr);
  const at::Tensor x = at::rand({4, 2, 3}), z = at::randn({4, 5, 3});
  const Evaluation ours = ModelPosterior(model, x).evaluate(z);
  const Evaluation theirs = ModelPosterior(file, x).evaluate(z);
  EXPECT_TRUE(at::allclose(ours.log_density, theirs.log_density, 0, 1e-5));
  EXPECT_TRUE(at::allclose(ours.grad, theirs.grad, 0, 1e-5));
  EXPECT_TRUE(at::equal(model->output(z[0], {})->value, file->output(z[0], {})->value));
  EXPECT_EQ(std::count(called.begin(), called.end(), "output"), 1);
}

TEST(FunctionModel, WhatAFunctionReturnsIsCheckedAndWhatItThrowsPasses) {
  const at::Tensor x = at::rand({1, 2, 3}), z = at::randn({1, 1, 3});
  const auto of = [](const std::vector<at::Tensor>& results) {
    return function_model(
        manifest(), [=](const std::string&, const std::vector<at::Tensor>&) { return results; },
        at::kCPU);
  };
  EXPECT_THROW(ModelPosterior(of({at::zeros({1})}), x).evaluate(z), Error);
  EXPECT_THROW(ModelPosterior(of({at::zeros({1}), at::zeros({1, 2})}), x).evaluate(z), Error);
  const auto stopped = function_model(
      manifest(),
      [](const std::string&, const std::vector<at::Tensor>&) -> std::vector<at::Tensor> {
        throw Error(ErrorKind::kInterrupted, "a signal");
      },
      at::kCPU);
  try {
    ModelPosterior(stopped, x).evaluate(z);
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInterrupted);
  }
}

}  // namespace
}  // namespace crais
