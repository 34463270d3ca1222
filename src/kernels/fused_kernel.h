// What the fused evaluators of the instruction sets have in common: plain data, no library.
#pragma once

#include <cstddef>
#include <cstdint>

#include "models/activation_kind.h"

namespace crais {

/// How a kernel wants the weights of a layer.
enum class Packing {
  kPanels,      // float32
  kBytesBack,   // float32, but bytes for the way back
  kFixedPoint,  // float32, but fixed point for logits and for the way back
  kTiles,       // bfloat16, in parts for the way forward; of logits, bytes for the way back
};

/// The parts of a weight on the way forward by tiles: bfloat16 numbers, each the rounded rest of
/// those before. Three are all of a float32 number. The last layer, which is the largest, does with
/// two: what hidden units lack reaches every pixel, what a logit lacks one.
constexpr int64_t kPartsOfHidden = 3, kPartsOfOutput = 2;
/// Rows and columns of a block of weights: two tiles side by side.
constexpr int64_t kTileBlock = 32;

// Inputs in fixed point: the largest of a particle is kInputSteps steps. Low parts of weights meet
// them in coarse steps of 2^kCoarseBits, kCoarseOffset more, so that none is negative.
constexpr int kCoarseBits = 5, kInputSteps = 127 << kCoarseBits, kCoarseOffset = 128;
// On the way back, a number is a byte. Those of weights are kByteOffset more, so that none is
// negative.
constexpr int kByteSteps = 127, kByteOffset = 128;
/// So many products of two bytes do not overflow their sum.
constexpr int64_t kMostByteProducts = 1 << 17;
static_assert(kMostByteProducts * kByteSteps * kByteSteps < INT32_MAX);
/// Inputs that a layer in fixed point has at most, lest its sums overflow.
constexpr int64_t kWidestFixedPoint = 1 << 15;

/// W [outputs, inputs] = unit (high + low / 2^kLowBits), each output with a unit of its own. Sums
/// of low products, divided by 2^kLowShift, are in the unit of high ones.
constexpr int kLowBits = 8, kLowShift = kLowBits - kCoarseBits;
struct FixedPointWeights {
  const uint32_t* high;  // of int16: [panels of outputs][inputs / 2, filled][panel_rows] pairs
  const uint32_t* low;   // of int8: [panels of outputs][inputs / 4, filled][panel_rows] fours
  const int32_t* start;  // [outputs, filled]: of low sums; takes the offset back and rounds
  const float* unit;     // [outputs, filled]
};

/// Inputs in a row that meet columns of the weights in a row.
struct GatherRun {
  int32_t input, weight, count;
};
/// What fills the register tile: sums over the same runs. Either for `rows` channels of one place,
/// which begin at `output`, or for one channel of panel_rows places.
struct GatherTile {
  int32_t panel;  // of the weights: of panel_rows channels, or of one
  int32_t first_run, num_runs;
  int32_t output;  // or the first of the tile's places
  int32_t rows;
};
/// A place whose inputs lie so far from those of the tile's first place.
struct GatherPlace {
  int32_t shift, output;
};

/// A sum over some inputs for each output, whose weights depend on how the two lie to each other: a
/// convolution, transposed or not, or the adjoint of one. Units of images are [place][channel].
struct PackedGather {
  int64_t num_tiles;  // 0: the layer is dense
  int64_t columns;    // of the weights, filled
  const GatherTile* tiles;
  const GatherRun* runs;
  const GatherPlace* places;  // null: tiles are of one place
  const float* weight;        // [panels of channels][columns][panel_rows], or [channels][columns]
  const uint32_t* fours;      // or bytes: [panels of channels][columns / 4][panel_rows]
  const float* unit;          // of these: [channels, filled]
};

/// A sum over some places of the input for each place, the same for all channels. Units are
/// [place][channel].
struct PackedInterpolation {
  int64_t taps;  // 0: the layer is none
  int64_t channels, places, input_places;
  const int32_t* inputs;  // [places][taps]
  const float* weight;    // [places][taps]
};

/// Of groups of channels, at all their places: each unit less its group's mean, divided by its
/// standard deviation, then scaled and shifted. Units are [place][channel].
struct PackedNormalisation {
  int64_t groups;  // 0: there is none
  int64_t places, channels;
  float eps;                   // added to a variance
  const float *scale, *shift;  // [units]
};

/// One linear layer, W [outputs, inputs].
///
/// Panels hold as many rows as a kernel's register tile has, side by side; zeros fill the last
/// panel and its columns up to such a multiple. Tiles hold weights as TDPBF16PS and TDPBSSD take
/// them: 16 pairs or fours of rows, 16 columns; zeros fill the last block. Numbers in bfloat16
/// stand as their bits.
struct PackedLayer {
  int64_t inputs;
  int64_t outputs;
  const float* bias;        // [outputs, filled]
  const float* weight;      // panels: [panels of outputs][inputs, filled][panel_rows]
  FixedPointWeights fixed;  // or, where there are such, in place of `weight`
  // W for the way back in fixed point, each input with a unit of its own:
  const uint32_t* back_fours;  // of bytes: [panels of inputs][outputs / 4, filled][panel_rows]
  const int8_t* back_bytes;    // [blocks of inputs][outputs / 64, filled][2 tiles][16][16][4]
  const float* back_unit;      // [inputs, filled]
  // W^T as [blocks of outputs][blocks of inputs][parts][2 tiles][16][16][2]
  const uint16_t* forward;
  const uint16_t* back;  // W as [blocks of inputs][blocks of outputs][2 tiles][16][16][2]
  // Of a convolution, in place of all weights above; its bias is [channels, filled].
  PackedGather gather, gather_back;
  PackedInterpolation interpolation;  // or this; its bias is [channels, filled] too
  PackedNormalisation normalisation;  // after the layer
  Activation activation;              // after that
  // Units keep the layer's sums, not what normalisation and activation make of them.
  bool keeps_input;
  // Layers that a residual connection joins, or -1: the one whose units, as they are kept, are
  // added to this one's sums, and the one to whose sums this one's are.
  int64_t skip_from = -1, skip_to = -1;
};

enum class PixelFamily { kBernoulli, kGaussian, kContinuousBernoulli };

/// A decoder whose last layer gives the logits of Bernoulli pixels, or the means of normal ones, as
/// they are or by a sigmoid or tanh.
struct PackedNetwork {
  PixelFamily pixels;
  float precision;        // of normal pixels: 1 / variance
  double log_normalizer;  // of an image, for normal pixels: sum of log(sd sqrt(2 pi)), nats
  int64_t num_layers;
  const PackedLayer* layers;
  // Where each input lies among the latents, and each output in its image; null: in their order.
  const int32_t* latent_order;
  const int32_t* pixel_order;
};

/// Particles of some images, those of an image in a row.
struct FusedBatch {
  const float* z;       // [images, particles, latent]
  const float* pixels;  // [images, pixels], in [0, 1] for Bernoulli pixels
  int64_t num_images;
  int64_t num_particles;  // of each image
  double* log_density;    // [images, particles]: log N(z; 0, I) + log p(x | z), nats
  float* grad;            // [images, particles, latent], or null: values only
};

/// Points to decode, with nothing to compare their outputs with.
struct FusedPoints {
  const float* z;  // [points, latent]
  int64_t num_points;
  float* outputs;  // [points, pixels]: logits or means
};

/// The evaluator for one instruction set. Each result depends on its own particle and image alone,
/// bit for bit, wherever it stands in the batch.
struct FusedKernel {
  const char* name;
  Packing packing;
  int64_t panel_rows;
  int64_t (*workspace_size)(const PackedNetwork&);  // floats
  /// `workspace` and all of the network are aligned to 64 bytes.
  void (*evaluate)(const PackedNetwork&, const FusedBatch&, float* workspace);
  /// Null where outputs are rounded and the gradient makes up for it.
  void (*decode)(const PackedNetwork&, const FusedPoints&, float* workspace);
};

// Each is defined in the source file of its name, compiled for that instruction set.
extern const FusedKernel kAvx512Kernel;
extern const FusedKernel kAvx2Kernel;
extern const FusedKernel kPortableKernel;
// The forces of these are cheap: of 8 bits, but by tiles in bfloat16 where they leave hidden layers
// or are those of normal pixels.
extern const FusedKernel kAmxKernel;
extern const FusedKernel kAvx512VnniKernel;
extern const FusedKernel kAvxVnniKernel;
extern const FusedKernel kAvx2BytesKernel;

}  // namespace crais
