// log p(x, z) of a Bernoulli decoder and its gradient, fused. Included once by the source file of
// each instruction set, which defines kPanelRows and kTileVectors to fit its registers.
//
// A tile of particles goes through the whole network before the next one starts. Its activations
// lie [unit][lane], so a weight is one broadcast, each particle's sums run in one order whatever
// its lane, and what is between the layers stays in the nearest cache. Logits exist for a group of
// pixels at a time: one sweep turns them into their share of the value and of the gradient, which
// goes back through the last matrix at once.
#pragma once

#include "kernels/fused_kernel.h"
#include "kernels/simd.h"

namespace crais {
namespace {

// At most 120 factors 1 + exp(-|l|) <= 2 multiply to less than the largest float.
constexpr int64_t kGroupPanels = 120 / kPanelRows;

inline int64_t panels(int64_t units) { return (units + kPanelRows - 1) / kPanelRows; }
inline int64_t padded(int64_t units) { return panels(units) * kPanelRows; }

/// The register tile: kPanelRows sums for each of N vectors of particles.
template <int N>
struct Sums {
  Vec of[kPanelRows][N];

  /// of[i] += w[i stride] x.
  template <int kStride>
  [[gnu::always_inline]] void add(const float* w, const Vec* x) {
#pragma GCC unroll 16
    for (int i = 0; i < kPanelRows; ++i) {
      const Vec weight = splat(w[i * kStride]);
#pragma GCC unroll 4
      for (int v = 0; v < N; ++v) of[i][v] += weight * x[v];
    }
  }

  [[gnu::always_inline]] void start(const float* bias) {
#pragma GCC unroll 16
    for (int i = 0; i < kPanelRows; ++i)
#pragma GCC unroll 4
      for (int v = 0; v < N; ++v) of[i][v] = splat(bias[i]);
  }
  [[gnu::always_inline]] void load(const Vec* x) {
#pragma GCC unroll 16
    for (int i = 0; i < kPanelRows; ++i)
#pragma GCC unroll 4
      for (int v = 0; v < N; ++v) of[i][v] = x[i * N + v];
  }
  [[gnu::always_inline]] void store(Vec* x) const {
#pragma GCC unroll 16
    for (int i = 0; i < kPanelRows; ++i)
#pragma GCC unroll 4
      for (int v = 0; v < N; ++v) x[i * N + v] = of[i][v];
  }
};

/// Outputs [first, first + count) of a layer, `first` at the start of a panel, and zeros up to the
/// end of the last: out [count][N] = W in [inputs][N] + bias.
template <int N>
void multiply(const PackedLayer& layer, int64_t first, int64_t count, const Vec* in, Vec* out) {
  const float* w = layer.weight + first * padded(layer.inputs);
  const float* bias = layer.bias + first;
  for (int64_t panel = panels(count); panel > 0; --panel) {
    Sums<N> sums;
    sums.start(bias);
    for (int64_t k = 0; k < layer.inputs; ++k) sums.template add<1>(w + k * kPanelRows, in + k * N);
    sums.store(out);
    w += padded(layer.inputs) * kPanelRows;
    bias += kPanelRows;
    out += kPanelRows * N;
  }
}

/// The other way: out [inputs][N] += W^T in, for in [count][N] of outputs [first, first + count).
template <int N>
void multiply_back(const PackedLayer& layer, int64_t first, int64_t count, const Vec* in,
                   Vec* out) {
  const int64_t stride = padded(layer.inputs) * kPanelRows;
  const float* w = layer.weight + first * padded(layer.inputs);
  for (int64_t panel = panels(layer.inputs); panel > 0; --panel) {
    Sums<N> sums;
    sums.load(out);
    const float* block = w;  // kPanelRows x kPanelRows of W
    const Vec* x = in;
    for (int64_t rest = count; rest > 0; rest -= kPanelRows, block += stride) {
      const int64_t rows = rest < kPanelRows ? rest : kPanelRows;
      for (int64_t j = 0; j < rows; ++j, x += N) sums.template add<kPanelRows>(block + j, x);
    }
    sums.store(out);
    w += kPanelRows * kPanelRows;
    out += kPanelRows * N;
  }
}

using Product = void (*)(const PackedLayer&, int64_t first, int64_t count, const Vec* in, Vec* out);
constexpr Product kMultiply[] = {nullptr, multiply<1>, multiply<2>, multiply<3>};
constexpr Product kMultiplyBack[] = {nullptr, multiply_back<1>, multiply_back<2>, multiply_back<3>};
static_assert(kTileVectors <= 3);

template <class Function>
inline void for_each(Vec* h, int64_t count, Function function) {
  for (int64_t i = 0; i < count; ++i) h[i] = function(i, h[i]);
}

void activate(Activation activation, Vec* x, int64_t count) {
  switch (activation) {
    case Activation::kTanh:
      return for_each(x, count, [](int64_t, Vec a) { return tanh(a); });
    case Activation::kElu:
      return for_each(x, count, [](int64_t, Vec a) { return elu(a); });
    case Activation::kRelu:
      return for_each(x, count, [](int64_t, Vec a) { return relu(a); });
    case Activation::kSoftplus:
      return for_each(x, count, [](int64_t, Vec a) { return softplus(a); });
  }
}

/// The activation's output h becomes g times its slope there.
void back_through(Activation activation, const Vec* g, Vec* h, int64_t count) {
  const Vec one = splat(1.0F), zero = {};
  switch (activation) {
    case Activation::kTanh:
      return for_each(h, count, [=](int64_t i, Vec a) { return g[i] * (1 - a * a); });
    case Activation::kElu:
      return for_each(h, count, [=](int64_t i, Vec a) { return g[i] * (a > 0 ? one : a + 1); });
    case Activation::kRelu:
      return for_each(h, count, [=](int64_t i, Vec a) { return g[i] * (a > 0 ? one : zero); });
    case Activation::kSoftplus:
      return for_each(h, count, [=](int64_t i, Vec a) { return -g[i] * scaled_exp(-a).expm1(); });
  }
}

/// One column of lanes of a group's logits l. Returns sum_j log p(x_j | l_j); for a gradient,
/// x_j - sigmoid(l_j) replaces l_j.
///
/// log p = x l - max(l, 0) - log(1 + exp(-|l|)), whose terms do not cancel each other; the
/// logarithms are taken as one of a product.
template <bool kGradient>
Vec bernoulli(const Vec* x, Vec* logits, int64_t stride, int64_t count) {
  Vec product = splat(1.0F), sum = {};
  for (int64_t j = 0; j < count; ++j, logits += stride) {
    const Vec l = *logits, e = scaled_exp(minus_abs(l)).exp();
    product *= 1 + e;
    sum += x[j] * l - (l > 0 ? l : Vec{});
    if (kGradient) *logits = x[j] - (l > 0 ? splat(1.0F) : e) / (1 + e);
  }
  return sum - log(product);  // a NaN among the logits is in the sum
}

/// Some consecutive particles of a batch on their way through the network.
class Tile {
 public:
  Tile(const PackedNetwork& network, const FusedBatch& batch, float* workspace)
      : network_(network), batch_(batch) {
    units_ = reinterpret_cast<Vec*>(workspace);
    grad_ = units_ + kTileVectors * all_units(network);
    logits_ = grad_ + kTileVectors * widest(network);
    pixels_ = logits_ + kTileVectors * kGroupPanels * kPanelRows;
  }

  static int64_t workspace_size(const PackedNetwork& network) {
    const int64_t group = kGroupPanels * kPanelRows;
    return kLanes * (kTileVectors * (all_units(network) + widest(network) + group) + group);
  }

  /// Particles [row, row + vectors kLanes), as far as there are any.
  void run(int64_t row, int64_t vectors) {
    row_ = row;
    vectors_ = vectors;
    load();
    Vec* input = units_;
    for (int64_t i = 0; i + 1 < network_.num_layers; ++i) {
      const PackedLayer& layer = network_.layers[i];
      Vec* output = input + padded(layer.inputs) * vectors_;
      kMultiply[vectors_](layer, 0, layer.outputs, input, output);
      activate(network_.activation, output, layer.outputs * vectors_);
      input = output;
    }
    score(network_.layers[network_.num_layers - 1], input);
    if (batch_.grad != nullptr) backward(input);
    store();
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

  /// The particle on a lane; those past the last one repeat it.
  int64_t particle(int64_t lane) const {
    const int64_t last = batch_.num_images * batch_.num_particles - 1;
    return row_ + lane < last ? row_ + lane : last;
  }

  /// Latents to lanes, and the prior's log-density.
  void load() {
    const int64_t dim = network_.layers[0].inputs, lanes = vectors_ * kLanes;
    float* unit = reinterpret_cast<float*>(units_);
    for (int64_t lane = 0; lane < lanes; ++lane) {
      const float* z = batch_.z + particle(lane) * dim;
      for (int64_t d = 0; d < dim; ++d) unit[d * lanes + lane] = z[d];
    }
    constexpr double kHalfLog2Pi = 0.91893853320467274178;
    for (int64_t v = 0; v < vectors_; ++v) {
      Vec sum = {};
      for (int64_t d = 0; d < dim; ++d) sum += units_[d * vectors_ + v] * units_[d * vectors_ + v];
      for (int i = 0; i < kLanes; ++i)
        value_[v * kLanes + i] = -0.5 * sum[i] - static_cast<double>(dim) * kHalfLog2Pi;
    }
  }

  /// Adds log p(x | h), and makes grad_ its gradient with respect to h, the last layer's input.
  void score(const PackedLayer& layer, const Vec* h) {
    const int64_t all = panels(layer.outputs), groups = (all + kGroupPanels - 1) / kGroupPanels;
    const int64_t size = (all + groups - 1) / groups * kPanelRows;  // even groups
    const bool gradient = batch_.grad != nullptr;
    if (gradient) clear_grad(layer.inputs);
    for (int64_t first = 0; first < layer.outputs; first += size) {
      const int64_t rest = layer.outputs - first, count = size < rest ? size : rest;
      kMultiply[vectors_](layer, first, count, h, logits_);
      for (int64_t v = 0; v < vectors_; ++v) {
        load_pixels(v, layer.outputs, first, count);
        const auto sweep = gradient ? bernoulli<true> : bernoulli<false>;
        const Vec value = sweep(pixels_, logits_ + v, vectors_, count);
        for (int i = 0; i < kLanes; ++i) value_[v * kLanes + i] += value[i];
      }
      if (gradient) kMultiplyBack[vectors_](layer, first, count, logits_, grad_);
    }
  }

  /// Takes grad_ from the last layer's input to the latents; the activations are used up.
  void backward(Vec* h) {
    for (int64_t i = network_.num_layers - 2; i >= 0; --i) {
      const PackedLayer& layer = network_.layers[i];
      back_through(network_.activation, grad_, h, layer.outputs * vectors_);
      clear_grad(layer.inputs);
      kMultiplyBack[vectors_](layer, 0, layer.outputs, h, grad_);
      h -= padded(layer.inputs) * vectors_;
    }
  }

  void clear_grad(int64_t units) {
    for (int64_t i = 0; i < padded(units) * vectors_; ++i) grad_[i] = Vec{};
  }

  /// Pixels [begin, begin + count) of each lane's image.
  void load_pixels(int64_t vector, int64_t size, int64_t begin, int64_t count) {
    const auto image = [&](int64_t lane) {
      return batch_.pixels + particle(vector * kLanes + lane) / batch_.num_particles * size + begin;
    };
    const float* x = image(0);
    if (x == image(kLanes - 1)) {
      for (int64_t j = 0; j < count; ++j) pixels_[j] = splat(x[j]);
      return;
    }
    float* out = reinterpret_cast<float*>(pixels_);
    for (int lane = 0; lane < kLanes; ++lane) {
      x = image(lane);
      for (int64_t j = 0; j < count; ++j) out[j * kLanes + lane] = x[j];
    }
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
        batch_.grad[row + d] = grad[d * lanes + lane] - batch_.z[row + d];
    }
  }

  const PackedNetwork& network_;
  const FusedBatch& batch_;
  int64_t row_ = 0, vectors_ = 0;
  Vec *units_, *grad_, *logits_, *pixels_;
  double value_[kTileVectors * kLanes];
};

void evaluate(const PackedNetwork& network, const FusedBatch& batch, float* workspace) {
  Tile tile(network, batch, workspace);
  const int64_t rows = batch.num_images * batch.num_particles;
  for (int64_t row = 0; row < rows; row += kTileVectors * kLanes) {
    const int64_t vectors = (rows - row + kLanes - 1) / kLanes;
    tile.run(row, vectors < kTileVectors ? vectors : kTileVectors);
  }
}

}  // namespace
}  // namespace crais
