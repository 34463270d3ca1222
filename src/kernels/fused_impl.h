// log p(x, z) of a decoder and its gradient, fused. The source file of each instruction set
// includes this file once. Before that, it defines kPanelRows and kTileVectors to fit its
// registers, and includes float32_layers.h or fixed_layers.h.
//
// A tile of particles passes through the whole network before the next tile starts. Its activations
// are stored as [unit][lane]: a weight is one broadcast, the sums of each particle run in one order
// in every lane, and the data between layers stay in the nearest cache. Logits exist for one group
// of pixels at a time: one sweep turns them into their share of the value and of the gradient,
// which goes back through the last matrix at once. A convolution computes all its outputs at once.
#pragma once

#include "kernels/fused_kernel.h"
#include "kernels/gather.h"
#include "kernels/normalisation.h"
#include "kernels/pointwise.h"
#include "kernels/products.h"
#include "kernels/simd.h"

namespace crais {
namespace {

constexpr int64_t kGroupPanels = kMostPixels / kPanelRows, kGroup = kGroupPanels * kPanelRows;

using Back = void (*)(const PackedLayer&, int64_t first, int64_t count, const Vec* in, Vec* out,
                      Vec* workspace);
constexpr Back kMultiplyBack[] = {nullptr, multiply_back<1>, multiply_back<2>, multiply_back<3>};
using Outputs = void (*)(const PackedLayer&, int64_t first, int64_t count, const OutputInputs& in,
                         Vec* out);
constexpr Outputs kMultiplyOutputs[] = {nullptr, multiply_outputs<1>, multiply_outputs<2>,
                                        multiply_outputs<3>};

using Gather = void (*)(const PackedGather&, const float* start, const Vec* in, Vec* out);
constexpr Gather kGather[] = {nullptr, gather<1>, gather<2>, gather<3>};
using GatherBack = void (*)(const PackedLayer&, const Vec* in, Vec* out, Vec* workspace);
constexpr GatherBack kGatherBack[] = {nullptr, gather_back<1>, gather_back<2>, gather_back<3>};

/// True for a convolution or an interpolation.
inline bool is_of_images(const PackedLayer& layer) {
  return layer.gather.num_tiles > 0 || layer.interpolation.taps > 0;
}

/// Consecutive particles of a batch on their way through the network.
class Tile {
 public:
  Tile(const PackedNetwork& network, const FusedBatch& batch, float* workspace)
      : network_(network), batch_(batch) {
    units_ = reinterpret_cast<Vec*>(workspace);
    grad_ = units_ + kTileVectors * all_units(network);
    logits_ = grad_ + kTileVectors * widest(network);
    pixels_ = logits_ + kTileVectors * outputs_at_once(network);
    inputs_ = pixels_ + kGroup;
    back_ = inputs_ + outputs_workspace(widest(network)) / kLanes;
    active_ = back_ + back_workspace(most_slopes(network)) / kLanes;
  }

  static int64_t workspace_size(const PackedNetwork& network) {
    const int64_t outputs = outputs_at_once(network);
    const int64_t active = keeps_inputs(network) ? widest(network) : 0;
    return kLanes *
               (kTileVectors * (all_units(network) + widest(network) + outputs + active) + kGroup) +
           outputs_workspace(widest(network)) + back_workspace(most_slopes(network));
  }

  /// Computes particles [row, row + vectors kLanes), up to the last one.
  void run(int64_t row, int64_t vectors) {
    const Vec* const input = forward(row, vectors);
    switch (network_.pixels) {
      case PixelFamily::kBernoulli:
        score<BernoulliPixels>(input);
        break;
      case PixelFamily::kContinuousBernoulli:
        score<ContinuousBernoulliPixels>(input);
        break;
      case PixelFamily::kGaussian:
        score_normal(input);
        break;
    }
    if (batch_.grad != nullptr) backward();
    store();
  }

  /// Computes only the outputs [points, pixels] of these points.
  void decode(int64_t row, int64_t vectors, float* outputs) {
    const Vec* const h = forward(row, vectors);
    const PackedLayer& layer = network_.layers[network_.num_layers - 1];
    if (is_of_images(layer)) {
      map_images(layer, h, logits_);
      return store_outputs(layer, 0, layer.outputs, outputs);
    }
    const OutputInputs in(layer, h, vectors_, inputs_);
    for (int64_t first = 0; first < layer.outputs; first += kGroup) {
      const int64_t rest = layer.outputs - first, count = kGroup < rest ? kGroup : rest;
      kMultiplyOutputs[vectors_](layer, first, count, in, logits_);
      store_outputs(layer, first, count, outputs);
    }
  }

 private:
  static int64_t all_units(const PackedNetwork& network) {
    int64_t sum = 0;
    for (int64_t i = 0; i < network.num_layers; ++i) sum += padded(network.layers[i].inputs);
    return sum;
  }
  static int64_t widest(const PackedNetwork& network) {
    int64_t most = 0;
    for (int64_t i = 0; i < network.num_layers; ++i) {
      const int64_t units = padded(network.layers[i].inputs);
      most = units > most ? units : most;
    }
    return most;
  }

  static bool keeps_inputs(const PackedNetwork& network) {
    for (int64_t i = 0; i + 1 < network.num_layers; ++i)
      if (network.layers[i].keeps_input) return true;
    return false;
  }

  /// The most units that go back through a layer at once.
  static int64_t most_slopes(const PackedNetwork& network) {
    const int64_t outputs = outputs_at_once(network), units = widest(network);
    return units > outputs ? units : outputs;
  }

  /// The number of outputs of the last layer that are computed at once.
  static int64_t outputs_at_once(const PackedNetwork& network) {
    const PackedLayer& last = network.layers[network.num_layers - 1];
    return is_of_images(last) ? padded(last.outputs) : kGroup;
  }

  /// The particle of a lane. Lanes after the last particle repeat it.
  int64_t particle(int64_t lane) const {
    const int64_t last = batch_.num_images * batch_.num_particles - 1;
    return row_ + lane < last ? row_ + lane : last;
  }

  /// The index of the j-th output in its image.
  int64_t pixel(int64_t j) const {
    return network_.pixel_order == nullptr ? j : network_.pixel_order[j];
  }

  /// Runs all layers but the last. Returns the input of the last layer.
  const Vec* forward(int64_t row, int64_t vectors) {
    row_ = row;
    vectors_ = vectors;
    load();
    const Vec* input = units_;
    for (int64_t i = 0; i + 1 < network_.num_layers; ++i) {
      const PackedLayer& layer = network_.layers[i];
      Vec* const output = units_of(i);
      if (is_of_images(layer))
        map_images(layer, input, output);
      else
        kMultiply[vectors_](layer, 0, layer.outputs, input, output);
      const int64_t count = layer.outputs * vectors_;
      if (layer.skip_from >= 0) add(units_of(layer.skip_from), output, count);
      Vec* const active = layer.keeps_input ? active_ : output;
      const bool is_normalised = layer.normalisation.groups > 0;
      if (is_normalised) normalise(layer.normalisation, vectors_, output, active);
      activate(layer.activation, is_normalised ? active : output, active, count);
      input = active;
    }
    return input;
  }

  void map_images(const PackedLayer& layer, const Vec* in, Vec* out) const {
    if (layer.interpolation.taps > 0)
      interpolate(layer.interpolation, layer.bias, vectors_, in, out);
    else
      kGather[vectors_](layer.gather, layer.bias, in, out);
  }
  void map_images_back(const PackedLayer& layer, const Vec* out, Vec* in) const {
    if (layer.interpolation.taps > 0)
      interpolate_back(layer.interpolation, vectors_, out, in);
    else
      kGatherBack[vectors_](layer, out, in, back_);
  }

  /// The units of a hidden layer.
  Vec* units_of(int64_t layer) const {
    Vec* units = units_;
    for (int64_t i = 0; i <= layer; ++i) units += padded(network_.layers[i].inputs) * vectors_;
    return units;
  }

  /// The index in z of the d-th input of the network.
  int64_t latent(int64_t d) const {
    return network_.latent_order == nullptr ? d : network_.latent_order[d];
  }

  /// Loads latents into lanes, and computes the prior's log-density.
  void load() {
    const int64_t dim = network_.layers[0].inputs, lanes = vectors_ * kLanes;
    float* unit = reinterpret_cast<float*>(units_);
    for (int64_t lane = 0; lane < lanes; ++lane) {
      const float* z = batch_.z + particle(lane) * dim;
      for (int64_t d = 0; d < dim; ++d) unit[d * lanes + lane] = z[latent(d)];
    }
    constexpr double kHalfLog2Pi = 0.91893853320467274178;
    for (int64_t v = 0; v < vectors_; ++v) {
      Vec sum = {};
      for (int64_t d = 0; d < dim; ++d) sum += units_[d * vectors_ + v] * units_[d * vectors_ + v];
      for (int i = 0; i < kLanes; ++i)
        value_[v * kLanes + i] =
            -0.5 * sum[i] - static_cast<double>(dim) * kHalfLog2Pi - network_.log_normalizer;
    }
  }

  /// Adds log p(x | h), and sets grad_ to its gradient with respect to h, the last layer's input.
  template <class Pixels>
  void score(const Vec* h) {
    const PackedLayer& layer = network_.layers[network_.num_layers - 1];
    if (is_of_images(layer))
      score_at_once<Pixels>(layer, h);
    else
      score_by_groups<Pixels>(layer, h);
  }

  void score_normal(const Vec* h) {
    switch (network_.layers[network_.num_layers - 1].activation.kind) {
      case Activation::kSigmoid:
        return score<GaussianPixels<SigmoidIsMean>>(h);
      case Activation::kTanh:
        return score<GaussianPixels<TanhIsMean>>(h);
      default:
        return score<GaussianPixels<OutputIsMean>>(h);
    }
  }

  template <class Pixels>
  void score_at_once(const PackedLayer& layer, const Vec* h) {
    map_images(layer, h, logits_);
    for (int64_t first = 0; first < layer.outputs; first += kGroup) {
      const int64_t rest = layer.outputs - first, count = kGroup < rest ? kGroup : rest;
      for (int64_t v = 0; v < vectors_; ++v) {
        load_pixels(v, layer.outputs, first, count);
        add_to_value(v, sweep<Pixels>(logits_ + first * vectors_ + v, count));
      }
    }
    if (batch_.grad != nullptr) map_images_back(layer, logits_, grad_);
  }

  template <class Pixels>
  void score_by_groups(const PackedLayer& layer, const Vec* h) {
    const int64_t all = panels(layer.outputs), groups = (all + kGroupPanels - 1) / kGroupPanels;
    const int64_t size = (all + groups - 1) / groups * kPanelRows;  // groups of nearly equal size
    const bool rounds = outputs_round(layer), gradient = batch_.grad != nullptr || rounds;
    if (gradient) clear_grad(layer.inputs);
    const OutputInputs in(layer, h, vectors_, inputs_);
    for (int64_t first = 0; first < layer.outputs; first += size) {
      const int64_t rest = layer.outputs - first, count = size < rest ? size : rest;
      kMultiplyOutputs[vectors_](layer, first, count, in, logits_);
      for (int64_t v = 0; v < vectors_; ++v) {
        load_pixels(v, layer.outputs, first, count);
        add_to_value(v, sweep<Pixels>(logits_ + v, count));
      }
      if (gradient) kMultiplyBack[vectors_](layer, first, count, logits_, grad_, back_);
    }
    if (rounds)
      for (int64_t v = 0; v < vectors_; ++v)
        add_to_value(v, missed(layer, h + v, grad_ + v, vectors_));
  }

  /// Processes one column of a group's outputs: returns sum_j log p(x_j | o_j), and replaces the
  /// outputs by their slopes. Values without slopes use the same loop, because another loop might
  /// round differently.
  template <class Pixels>
  Vec sweep(Vec* output, int64_t count) {
    Pixels pixels;
    for (int64_t j = 0; j < count; ++j, output += vectors_)
      *output = pixels.add(pixels_[j], *output, network_);
    pixels.collect();
    return pixels.total();
  }

  /// Moves grad_ from the last layer's input back to the latents. The gradient with respect to a
  /// layer's sums replaces the units of the layer.
  void backward() {
    for (int64_t i = network_.num_layers - 2; i >= 0; --i) {
      const PackedLayer& layer = network_.layers[i];
      const int64_t count = layer.outputs * vectors_;
      Vec* const h = units_of(i);
      const Vec* const skipped = layer.skip_to >= 0 ? units_of(layer.skip_to) : nullptr;
      if (skipped != nullptr && !layer.keeps_input) add(skipped, grad_, count);
      if (layer.normalisation.groups > 0) {
        normalise(layer.normalisation, vectors_, h, active_);
        back_through(layer.activation, /*is_input=*/true, grad_, active_, count);
        normalise_back(layer.normalisation, vectors_, active_, h);
      } else {
        back_through(layer.activation, layer.keeps_input, grad_, h, count);
      }
      if (skipped != nullptr && layer.keeps_input) add(skipped, h, count);
      if (is_of_images(layer)) {
        map_images_back(layer, h, grad_);
      } else {
        clear_grad(layer.inputs);
        kMultiplyBack[vectors_](layer, 0, layer.outputs, h, grad_, back_);
      }
    }
  }

  void add_to_value(int64_t vector, Vec share) {
    for (int i = 0; i < kLanes; ++i) value_[vector * kLanes + i] += share[i];
  }

  void clear_grad(int64_t units) {
    for (int64_t i = 0; i < padded(units) * vectors_; ++i) grad_[i] = Vec{};
  }

  /// Loads pixels [begin, begin + count) of the image of each lane.
  void load_pixels(int64_t vector, int64_t size, int64_t begin, int64_t count) {
    const auto image = [&](int64_t lane) {
      return batch_.pixels + particle(vector * kLanes + lane) / batch_.num_particles * size;
    };
    const float* x = image(0);
    for (int64_t j = 0; j < count; ++j) pixels_[j] = splat(x[pixel(begin + j)]);
    for (int lane = 1; lane < kLanes; ++lane) {  // another image takes all following lanes
      if (x == image(lane)) continue;
      x = image(lane);
      const IntVec is_later = lane_numbers() >= lane;
      for (int64_t j = 0; j < count; ++j)
        pixels_[j] = is_later ? splat(x[pixel(begin + j)]) : pixels_[j];
    }
  }

  /// Stores outputs [first, first + count) of the point of each lane.
  void store_outputs(const PackedLayer& layer, int64_t first, int64_t count, float* outputs) const {
    activate(layer.activation, logits_, logits_, count * vectors_);
    const int64_t lanes = vectors_ * kLanes, rest = batch_.num_images * batch_.num_particles - row_;
    const float* const found = reinterpret_cast<const float*>(logits_);
    for (int64_t lane = 0; lane < (lanes < rest ? lanes : rest); ++lane)
      for (int64_t j = 0; j < count; ++j)
        outputs[(row_ + lane) * layer.outputs + pixel(first + j)] = found[j * lanes + lane];
  }

  void store() const {
    const int64_t dim = network_.layers[0].inputs, lanes = vectors_ * kLanes;
    const int64_t rest = batch_.num_images * batch_.num_particles - row_;
    const float* grad = reinterpret_cast<const float*>(grad_);
    for (int64_t lane = 0; lane < (lanes < rest ? lanes : rest); ++lane) {
      batch_.log_density[row_ + lane] = value_[lane];
      if (batch_.grad == nullptr) continue;
      const int64_t row = (row_ + lane) * dim;
      for (int64_t d = 0; d < dim; ++d)
        batch_.grad[row + latent(d)] = grad[d * lanes + lane] - batch_.z[row + latent(d)];
    }
  }

  const PackedNetwork& network_;
  const FusedBatch& batch_;
  int64_t row_ = 0, vectors_ = 0;
  Vec *units_, *grad_, *logits_, *pixels_, *inputs_, *back_;
  Vec* active_;  // active units of the current layer, if its units keep the activation's input
  double value_[kTileVectors * kLanes];
};

/// Calls `use` for each tile with its first particle and its number of vectors.
template <class Use>
void for_tiles(int64_t particles, Use use) {
  for (int64_t row = 0; row < particles; row += kTileVectors * kLanes) {
    const int64_t vectors = (particles - row + kLanes - 1) / kLanes;
    use(row, vectors < kTileVectors ? vectors : int64_t{kTileVectors});
  }
}

void evaluate(const PackedNetwork& network, const FusedBatch& batch, float* workspace) {
  Tile tile(network, batch, workspace);
  for_tiles(batch.num_images * batch.num_particles,
            [&](int64_t row, int64_t vectors) { tile.run(row, vectors); });
}

void decode(const PackedNetwork& network, const FusedPoints& points, float* workspace) {
  const FusedBatch batch{points.z, nullptr, 1, points.num_points, nullptr, nullptr};
  Tile tile(network, batch, workspace);
  for_tiles(points.num_points,
            [&](int64_t row, int64_t vectors) { tile.decode(row, vectors, points.outputs); });
}

/// The kernel of the source file that includes this file.
constexpr FusedKernel fused_kernel(const char* name, bool in_fixed_point) {
  return {.name = name,
          .in_fixed_point = in_fixed_point,
          .panel_rows = kPanelRows,
          .workspace_size = Tile::workspace_size,
          .evaluate = evaluate,
          .decode = in_fixed_point ? nullptr : decode};
}

}  // namespace
}  // namespace crais
