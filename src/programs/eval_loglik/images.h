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
  at::Tensor pixels;             // [N, D] float32 in the likelihood's form, on the CPU
  std::vector<int64_t> shape;    // of one image, from its file or its model
  at::Tensor latents;            // [N, latent] of simulated images; else undefined
  at::Tensor labels;             // [N, ...] for a conditional model; else undefined
  std::vector<int64_t> indices;  // index of each image in its split (or among simulated images)
  std::string source;            // a path, or "simulated"
  std::string data_md5;          // of the file; empty for simulated images
  std::string binarisation;      // "static:0"; "none" for simulated images
  std::string dequantisation;    // "uniform:0"; "" without added noise
  double scale = 1.0;            // divisor of the stored numbers
  std::string digest;            // sha256 of pixels and indices, which identifies the images
  std::string warning;           // set if the binarisation differs from the model's
  bool is_grey = false;          // grey pixels under bernoulli, by `--binarisation none`

  int64_t size() const { return pixels.defined() ? pixels.size(0) : 0; }
};

/// Draws `begin` to `end` - 1 of the model, float32 on the CPU.
LatentModel::Draws draws_of(const EvalModel& model, uint64_t seed, int64_t begin, int64_t end);

/// Chooses the images of the settings. Without --simulate, without --data-dir and without data it
/// falls back to 100 simulated images; `notice` then says so and how to download MNIST. Throws
/// Error: kNoInput that lists every searched path; kData if the images do not fit the model or its
/// likelihood; kArgument for an empty or impossible selection.
EvalImages choose_images(const ImageSettings& settings, const EvalModel& model,
                         std::string& notice);

/// Chooses images of an array, as if it came from a file.
EvalImages choose_images(const ImageSettings& settings, const EvalModel& model,
                         const ArrayFile& given);

}  // namespace crais
