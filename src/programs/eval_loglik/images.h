// The images that eval-loglik evaluates.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <string>
#include <vector>

#include "data/array_file.h"
#include "programs/eval_loglik/model.h"
#include "programs/eval_loglik/settings.h"

namespace crais {

/// Images ready for a likelihood, in the order of evaluation.
struct EvalImages {
  at::Tensor pixels;             // [N, D] float32 as the likelihood takes them, on the CPU
  std::vector<int64_t> shape;    // of one, as its file or its model has it
  at::Tensor latents;            // [N, latent] of simulated images; else undefined
  at::Tensor labels;             // [N, ...] of a conditional model's; else undefined
  std::vector<int64_t> indices;  // each one's place in its split (or among the simulated)
  std::string source;            // a path, or "simulated"
  std::string data_md5;          // of the file; empty for simulated ones
  std::string binarisation;      // "static:0"; "none" for simulated ones
  std::string dequantisation;    // "uniform:0"; "" where no noise was added
  double scale = 1.0;            // that stored numbers were divided by
  std::string digest;            // sha256 of pixels and indices: what was evaluated
  std::string warning;           // where the binarisation is not the model's
  bool is_grey = false;          // under bernoulli, as `--binarisation none` has asked for

  int64_t size() const { return pixels.defined() ? pixels.size(0) : 0; }
};

/// The images asked for. Without --simulate, --data-dir and any data at hand it falls back to 100
/// simulated ones; `notice` then says so and how to fetch MNIST.
/// Throws Error: kNoInput listing every path tried; kData if the images do not fit the model or its
/// likelihood; kArgument for an empty or impossible selection.
EvalImages choose_images(const ImageSettings& settings, const EvalModel& model,
                         std::string& notice);

/// Those of an array, as they would be of a file that holds it.
EvalImages choose_images(const ImageSettings& settings, const EvalModel& model,
                         const ArrayFile& given);

/// sha256 of the first `count` of them: what was evaluated.
std::string digest_of(const EvalImages& images, int64_t count);

}  // namespace crais
