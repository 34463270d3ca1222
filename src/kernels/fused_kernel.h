// What the fused evaluators of the instruction sets have in common: plain data, no library.
#pragma once

#include <cstddef>
#include <cstdint>

#include "models/activation.h"

namespace crais {

/// One linear layer. W [outputs, inputs] is stored in panels: as many of its rows as a kernel's
/// register tile has, side by side; zeros fill the last panel and its columns up to such a
/// multiple.
struct PackedLayer {
  int64_t inputs;
  int64_t outputs;
  const float* weight;  // [panels of outputs][inputs, filled][panel_rows]
  const float* bias;    // [panels of outputs][panel_rows]
};

/// A decoder MLP whose last layer gives the logits of Bernoulli pixels.
struct PackedNetwork {
  Activation activation;
  int64_t num_layers;
  const PackedLayer* layers;
};

/// Particles of some images, those of an image in a row.
struct FusedBatch {
  const float* z;       // [images, particles, latent]
  const float* pixels;  // [images, pixels], in [0, 1]
  int64_t num_images;
  int64_t num_particles;  // of each image
  double* log_density;    // [images, particles]: log N(z; 0, I) + log p(x | z), nats
  float* grad;            // [images, particles, latent], or null: values only
};

/// The evaluator for one instruction set. Particles lie on SIMD lanes; each result depends on its
/// own particle and image alone, bit for bit, wherever it stands in the batch.
struct FusedKernel {
  const char* name;
  int64_t panel_rows;
  int64_t (*workspace_size)(const PackedNetwork&);  // floats
  /// `workspace` and all of the network are aligned to 64 bytes.
  void (*evaluate)(const PackedNetwork&, const FusedBatch&, float* workspace);
  /// Keeps the multiply-add units busy, about 2 ns a round, and returns the operations done.
  double (*multiply_adds)(int64_t rounds);
};

// Each is defined in the source file of its name, compiled for that instruction set.
extern const FusedKernel kAvx512Kernel;
extern const FusedKernel kAvx2Kernel;
extern const FusedKernel kPortableKernel;

}  // namespace crais
