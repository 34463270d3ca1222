#include "models/checkpoint.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <vector>

#include "io/safetensors.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"
#include "util/digest.h"
#include "util/error.h"
#include "util/files.h"

namespace crais {
namespace {

using nlohmann::json;
using testing::TemporaryFolder;

VaeArchitecture small_architecture() {
  return {.image_rows = 3,
          .image_cols = 2,
          .latent = 2,
          .hidden = {5, 4},
          .activation = Activation::kElu,
          .likelihood = {Likelihood::Family::kGaussian, 0.3}};
}

Checkpoint small_checkpoint() {
  CheckpointInfo info{.binarisation = "static:3",
                      .objective = "iwae:5",
                      .data = "synthetic:60",
                      .data_md5 = "0123",
                      .seed = 18446744073709551615U,
                      .epochs = 12,
                      .validation_elbo = -91.25};
  return {make_vae(small_architecture(), 1), info, ""};
}

/// The file of small_checkpoint after `change` to its content.
std::filesystem::path changed_file(const TemporaryFolder& scratch,
                                   const std::function<void(SafeTensors&, json&)>& change) {
  const auto path = scratch.path() / "changed.safetensors";
  write_checkpoint(path, small_checkpoint());
  SafeTensors content = read_safetensors(path);
  json metadata = json::parse(content.metadata.at("crais"));
  change(content, metadata);
  content.metadata["crais"] = metadata.dump();
  write_safetensors(path, content);
  return path;
}

at::Tensor& named(SafeTensors& content, const std::string& name) {
  for (auto& [known, tensor] : content.tensors)
    if (known == name) return tensor;
  throw std::runtime_error("no " + name);
}

void expect_rejected(const std::function<void(SafeTensors&, json&)>& change,
                     const std::vector<std::string>& words) {
  const TemporaryFolder scratch;
  const auto path = changed_file(scratch, change);
  expect_error(ErrorKind::kData, {path.string()}, [&] { read_checkpoint(path); });
  expect_error(ErrorKind::kData, words, [&] { read_checkpoint(path); });
}

TEST(Checkpoint, RoundTripKeepsEverything) {
  const TemporaryFolder scratch;
  const auto path = scratch.path() / "vae.safetensors";
  const Checkpoint written = small_checkpoint();
  write_checkpoint(path, written);
  const Checkpoint read = read_checkpoint(path);
  EXPECT_EQ(read.sha256, sha256(read_file(path)));
  EXPECT_EQ(read.info.seed, written.info.seed);
  EXPECT_EQ(read.vae.decoder.layers.front().activation, Activation::kElu);
  EXPECT_EQ(read.vae.named_tensors().size(), 12U);
  write_checkpoint(scratch.path() / "again", read);
  EXPECT_EQ(read_file(scratch.path() / "again"), read_file(path));
  const at::Tensor x = at::rand({4, 6});
  EXPECT_TRUE(at::equal(read.vae.encode(x).mean, written.vae.encode(x).mean));
}

TEST(Checkpoint, ADecoderAloneIsEnough) {
  const TemporaryFolder scratch;
  Checkpoint checkpoint = small_checkpoint();
  checkpoint.vae.encoder = {};
  write_checkpoint(scratch.path() / "d.safetensors", checkpoint);
  const Checkpoint read = read_checkpoint(scratch.path() / "d.safetensors");
  EXPECT_TRUE(read.vae.encoder.empty());
  const at::Tensor z = at::rand({4, 2});
  EXPECT_TRUE(at::equal(read.vae.decoder.forward(z), checkpoint.vae.decoder.forward(z)));
}

TEST(Checkpoint, RejectsTensorsThatDoNotFit) {
  const auto without = [](const char* name) {
    return [name](SafeTensors& content, json&) {
      std::erase_if(content.tensors, [&](const auto& tensor) { return tensor.first == name; });
    };
  };
  const auto with = [](const char* name, const at::Tensor& tensor) {
    return [=](SafeTensors& content, json&) { named(content, name) = tensor; };
  };
  expect_rejected(without("decoder.2.weight"), {"decoder.2.weight", "[5, 4]"});
  expect_rejected(without("encoder.0.bias"), {"encoder.0.bias", "[5]"});  // is part of an encoder
  expect_rejected(with("decoder.0.weight", at::zeros({2, 4})),
                  {"decoder.0.weight", "[2, 4]", "expected Float [4, 2]"});
  expect_rejected(with("decoder.0.bias", at::zeros({4}, at::kDouble)),
                  {"decoder.0.bias", "Double", "Float"});
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()})
    expect_rejected(with("encoder.4.bias", at::full({4}, bad)), {"encoder.4.bias", "NaN"});
  expect_rejected([](SafeTensors& content,
                     json&) { content.tensors.emplace_back("decoder.6.weight", at::zeros({1})); },
                  {"decoder.6.weight", "no place"});
}

TEST(Checkpoint, RejectsEveryMissingOrMistypedField) {
  for (const char* key :
       {"format_version", "architecture", "likelihood", "prior", "binarisation", "objective",
        "data", "data_md5", "seed", "epochs", "validation_elbo", "libtorch_version"}) {
    expect_rejected([&](SafeTensors&, json& metadata) { metadata.erase(key); }, {key});
    expect_rejected([&](SafeTensors&, json& metadata) { metadata[key] = json::array(); }, {key});
  }
  for (const char* key : {"image_rows", "image_cols", "latent", "hidden", "activation"})
    expect_rejected([&](SafeTensors&, json& metadata) { metadata["architecture"].erase(key); },
                    {"architecture", key});
}

TEST(Checkpoint, RejectsFieldsOutOfRange) {
  const std::vector<std::tuple<const char*, json, std::vector<std::string>>> cases = {
      {"/format_version", 2, {"version 2", "version 1"}},
      {"/prior", "vamp", {"vamp", "standard-normal"}},
      {"/likelihood", "gaussian:-1", {"gaussian:-1"}},
      {"/architecture/latent", 0, {"latent", "1048576"}},
      {"/architecture/latent", 3, {"decoder.0.weight", "[4, 2]", "expected Float [4, 3]"}},
      {"/architecture/image_rows", 1e18, {"image_rows"}},
      {"/architecture/hidden", std::vector<int>(65, 1), {"hidden", "64"}},
      {"/architecture/activation", "sine", {"sine", "tanh"}},
  };
  for (const auto& [place, value, words] : cases)
    expect_rejected(
        [&, where = place, what = value](SafeTensors&, json& metadata) {
          metadata[json::json_pointer(where)] = what;
        },
        words);
}

TEST(Checkpoint, RejectsAnotherProgramsFile) {
  const TemporaryFolder scratch;
  const auto path = scratch.path() / "x.safetensors";
  write_safetensors(path, {{{"a", at::zeros({1})}}, {{"format", "pt"}}});
  expect_error(ErrorKind::kData, {path.string(), "not a checkpoint of train-vae", "crais.export("},
               [&] { read_checkpoint(path); });
  write_safetensors(path, {{}, {{"crais", std::string(100, '[')}}});
  expect_error(ErrorKind::kData, {path.string(), "nested deeper"}, [&] { read_checkpoint(path); });
}

}  // namespace
}  // namespace crais
