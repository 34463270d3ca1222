// Plain data that the fused evaluators of all instruction sets share, without any library.
#pragma once

#include <cstddef>
#include <cstdint>

#include "models/activation_kind.h"

namespace crais {

// Inputs in fixed point: the largest input of a particle has kInputSteps steps. Low parts of
// weights multiply inputs in coarse steps of 2^kCoarseBits. An offset of kCoarseOffset keeps coarse
// inputs from being negative.
constexpr int kCoarseBits = 5, kInputSteps = 127 << kCoarseBits, kCoarseOffset = 128;
// In the backward pass a number is a byte. An offset of kByteOffset keeps weights from being
// negative.
constexpr int kByteSteps = 127, kByteOffset = 128;
/// The most inputs of a layer in fixed point whose sums cannot overflow.
constexpr int64_t kWidestFixedPoint = 1 << 15;

/// W [outputs, inputs] = unit (high + low / 2^kLowBits), with one unit for each output. Sums of low
/// products, divided by 2^kLowShift, have the unit of high products.
constexpr int kLowBits = 8, kLowShift = kLowBits - kCoarseBits;
struct FixedPointWeights {
  const uint32_t* high;  // of int16: [panels of outputs][inputs / 2, filled][panel_rows] pairs
  const uint32_t* low;   // of int8: [panels of outputs][inputs / 4, filled][panel_rows] fours
  const int32_t* start;  // [outputs, filled]: start of low sums; removes the offset and rounds
  const float* unit;     // [outputs, filled]
};

/// Consecutive inputs that multiply consecutive columns of the weights.
struct GatherRun {
  int32_t input, weight, count;
};
/// The sums that fill the register tile, all over the same runs: either panel_rows channels of one
/// place (the first `rows` of them used, from `output` on), or one channel of panel_rows places.
struct GatherTile {
  int32_t panel;  // of the weights: of panel_rows channels or of one channel
  int32_t first_run, num_runs;
  int32_t output;  // or the first of the tile's places
  int32_t rows;
};
/// The offset of a place's inputs from the inputs of the tile's first place.
struct GatherPlace {
  int32_t shift, output;
};

/// A sum over some inputs for each output, with weights that depend on their relative position: a
/// convolution, transposed or not, or its adjoint. Units of images are [place][channel].
struct PackedGather {
  int64_t num_tiles;  // 0: the layer is dense
  int64_t columns;    // columns of the weights, filled
  const GatherTile* tiles;
  const GatherRun* runs;
  const GatherPlace* places;  // null: each tile has one place
  const float* weight;        // [panels of channels][columns][panel_rows], or [channels][columns]
  const uint32_t* fours;      // or as bytes: [panels of channels][columns / 4][panel_rows]
  const float* unit;          // units of the bytes: [channels, filled]
};

/// A weighted sum over some places of the input for each place of the output, with equal weights
/// for all channels. Units are [place][channel].
struct PackedInterpolation {
  int64_t taps;  // 0: the layer is not an interpolation
  int64_t channels, places, input_places;
  const int32_t* inputs;  // [places][taps]
  const float* weight;    // [places][taps]
};

/// Normalisation of groups of channels over all their places: each unit minus its group's mean,
/// divided by the standard deviation, then scaled and shifted. Units are [place][channel].
struct PackedNormalisation {
  int64_t groups;  // 0: no normalisation
  int64_t places, channels;
  float eps;                   // added to a variance
  const float *scale, *shift;  // [units]
};

/// One linear layer, W [outputs, inputs].
///
/// A panel holds as many rows side by side as a kernel's register tile has. Zeros fill the last
/// panel, and its columns up to a multiple of that number.
struct PackedLayer {
  int64_t inputs;
  int64_t outputs;
  const float* bias;        // [outputs, filled]
  const float* weight;      // panels: [panels of outputs][inputs, filled][panel_rows]
  FixedPointWeights fixed;  // in place of `weight`, if the layer has such weights
  // W for the backward pass in fixed point, with one unit for each input:
  const uint32_t* back_fours;  // of bytes: [panels of inputs][outputs / 4, filled][panel_rows]
  const float* back_unit;      // [inputs, filled]
  // For a convolution, in place of all weights above; the bias is then [channels, filled].
  PackedGather gather, gather_back;
  PackedInterpolation interpolation;  // or an interpolation, with a bias [channels, filled] too
  PackedNormalisation normalisation;  // after the layer
  Activation activation;              // after the normalisation
  // True if units keep the layer's sums, without normalisation and activation.
  bool keeps_input;
  // The layers that a residual connection joins, or -1. The kept units of layer skip_from are added
  // to the sums of this layer, and those of this layer to the sums of layer skip_to.
  int64_t skip_from = -1, skip_to = -1;
};

enum class PixelFamily { kBernoulli, kGaussian, kContinuousBernoulli };

/// A decoder whose last layer gives the logits of Bernoulli pixels or the means of normal pixels,
/// which are linear, a sigmoid or a tanh.
struct PackedNetwork {
  PixelFamily pixels;
  float precision;        // of normal pixels: 1 / variance
  double log_normalizer;  // for normal pixels: sum over an image of log(sd sqrt(2 pi)), nats
  int64_t num_layers;
  const PackedLayer* layers;
  // The latent of each input, and the pixel of each output; null: in order.
  const int32_t* latent_order;
  const int32_t* pixel_order;
};

/// Particles of some images. The particles of an image are consecutive.
struct FusedBatch {
  const float* z;       // [images, particles, latent]
  const float* pixels;  // [images, pixels], in [0, 1] for Bernoulli pixels
  int64_t num_images;
  int64_t num_particles;  // of each image
  double* log_density;    // [images, particles]: log N(z; 0, I) + log p(x | z), nats
  float* grad;            // [images, particles, latent], or null: values only
};

/// Points to decode, without images.
struct FusedPoints {
  const float* z;  // [points, latent]
  int64_t num_points;
  float* outputs;  // [points, pixels]: logits or means
};

/// The evaluator for one instruction set. Each result depends on its own particle and image alone,
/// bit for bit, at every position in the batch.
struct FusedKernel {
  const char* name;
  bool in_fixed_point;  // logits and forces; else all is float32
  int64_t panel_rows;
  int64_t (*workspace_size)(const PackedNetwork&);  // floats
  /// `workspace` and all arrays of the network are aligned to 64 bytes.
  void (*evaluate)(const PackedNetwork&, const FusedBatch&, float* workspace);
  /// Null in fixed point: outputs are rounded, and only the gradient corrects the value.
  void (*decode)(const PackedNetwork&, const FusedPoints&, float* workspace);
};

// Each kernel is defined in the source file of its name, compiled for that instruction set.
extern const FusedKernel kAvx512VnniKernel;
extern const FusedKernel kAvx512Kernel;
extern const FusedKernel kAvx2Kernel;
extern const FusedKernel kPortableKernel;

}  // namespace crais
