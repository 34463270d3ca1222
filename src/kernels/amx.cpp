// log p(x, z) of a decoder and its gradient on AMX: forces in bfloat16, values by products of split
// numbers, exact to 1e-3 nats and mostly to 1e-4. A float32 number is the sum of three bfloat16
// numbers, its parts.
//
// A few blocks of 32 particles go through the whole network before the next ones start. Units lie
// in blocks of 32 as well, [unit block][particle][unit], so what one product leaves is, after a
// pass over 4 KB, what the next one reads. Particles are rows of the tiles: each one's sums run in
// one order wherever it stands. While the tiles compute a block of units, the vector units finish
// the one before.
#include "kernels/bfloat16.h"
#include "kernels/pointwise.h"
#include "kernels/tiles.h"

namespace crais {
namespace {

constexpr int64_t kRowVectors = kBlock / kLanes;

// --- numbers ----------------------------------------------------------------------------------

inline void put(HalfVec x, Bfloat16* to) { *reinterpret_cast<HalfVec*>(to) = x; }
/// The lanes that hold the first `rest` numbers.
inline __mmask16 lanes(int64_t rest) {
  return static_cast<__mmask16>(rest >= kLanes ? 0xffff : rest > 0 ? (1 << rest) - 1 : 0);
}
/// Numbers from anywhere, zeros for those past the first `rest`.
inline Vec load(const float* x, int64_t rest) {
  return reinterpret_cast<Vec>(_mm512_maskz_loadu_ps(lanes(rest), x));
}
inline void store(Vec x, float* to, int64_t rest) {
  _mm512_mask_storeu_ps(to, lanes(rest), reinterpret_cast<__m512>(x));
}

/// x as its parts, kBlockNumbers apart.
inline void split(Vec x, Bfloat16* parts) {
  for (int64_t i = 0; i < kParts; ++i) {
    const HalfVec part = rounded(x);
    put(part, parts + i * kBlockNumbers);
    x -= widened(part);
  }
}

inline double sum_of(Vec x) {
  double sum = 0;
  for (int i = 0; i < kLanes; ++i) sum += x[i];
  return sum;
}

// --- the network ------------------------------------------------------------------------------

// Weights come from the second-level cache at best: each is used for so many blocks of particles.
constexpr int64_t kGroup = 2;
constexpr int64_t kGroupRows = kGroup * kBlock;

/// Some consecutive particles of a batch, blocks of 32, on their way through the network.
class Group {
 public:
  Group(const PackedNetwork& network, const FusedBatch& batch, float* workspace)
      : network_(network), batch_(batch) {
    for (float*& sums : sums_) {
      sums = workspace;
      workspace += kBlockNumbers;
    }
    units_ = workspace;
    auto* half =
        reinterpret_cast<Bfloat16*>(units_ + kGroup * hidden_blocks(network) * kBlockNumbers);
    for (Bfloat16*& parts : parts_) {
      parts = half;
      half += kGroup * kParts * widest_input(network) * kBlockNumbers;
    }
    forces_[0] = half;
    forces_[1] = half + kGroup * widest_output(network) * kBlockNumbers;
  }

  static int64_t workspace_size(const PackedNetwork& network) {
    const int64_t inputs = widest_input(network), outputs = widest_output(network);
    const int64_t halves = kGroup * (2 * kParts * inputs + outputs + inputs);
    return kBlockNumbers * (2 + kGroup * hidden_blocks(network)) + kBlockNumbers * halves / 2;
  }

  /// Particles [row, row + count), count <= kGroupRows.
  void run(int64_t row, int64_t count) {
    row_ = row;
    count_ = count;
    begin();
    for (int64_t i = 0; i + 1 < network_.num_layers; ++i) forward(i);
    switch (network_.pixels) {
      case PixelFamily::kBernoulli:
        score<BernoulliPixels<RoughQuotient>>();
        break;
      case PixelFamily::kGaussian:
        score<GaussianPixels>();
        break;
    }
    if (batch_.grad != nullptr)
      for (int64_t i = network_.num_layers - 1; i >= 0; --i) backward(i);
    for (int64_t i = 0; i < count_; ++i) batch_.log_density[row_ + i] = value_[i];
  }

 private:
  static int64_t hidden_blocks(const PackedNetwork& network) {
    int64_t sum = 0;
    for (int64_t i = 1; i < network.num_layers; ++i) sum += blocks(network.layers[i].inputs);
    return sum;
  }
  static int64_t widest_input(const PackedNetwork& network) {
    int64_t most = 0;
    for (int64_t i = 0; i < network.num_layers; ++i) {
      const int64_t here = blocks(network.layers[i].inputs);
      most = here > most ? here : most;
    }
    return most;
  }
  static int64_t widest_output(const PackedNetwork& network) {
    const int64_t inputs = widest_input(network);
    const int64_t outputs = blocks(network.layers[network.num_layers - 1].outputs);
    return inputs > outputs ? inputs : outputs;
  }

  /// Rows of a block that are computed: a tile, or two.
  int64_t rows_of(int64_t block) const {
    return count_ - block * kBlock > kTileRows ? kBlock : kTileRows;
  }
  /// The particle of a row; those past the last one repeat it.
  int64_t particle(int64_t row) const { return row_ + (row < count_ ? row : count_ - 1); }

  /// A block's inputs of a layer but the first, in float32.
  float* inputs_of(int64_t layer, int64_t block) const {
    float* units = units_;
    for (int64_t i = 1; i < layer; ++i)
      units += kGroup * blocks(network_.layers[i].inputs) * kBlockNumbers;
    return units + block * blocks(network_.layers[layer].inputs) * kBlockNumbers;
  }

  /// Latents to parts, and the prior's log-density.
  void begin() {
    const int64_t dim = network_.layers[0].inputs, width = blocks(dim);
    constexpr double kHalfLog2Pi = 0.91893853320467274178;
    for (int64_t block = 0; block < blocks(count_); ++block)
      for (int64_t i = 0; i < rows_of(block); ++i) {
        const int64_t row = block * kBlock + i;
        const float* z = batch_.z + particle(row) * dim;
        Bfloat16* const parts = parts_[0] + block * width * kParts * kBlockNumbers;
        Vec squares = {};
        for (int64_t unit = 0; unit < width; ++unit) {
          const int64_t rest = dim - unit * kBlock;
          for (int64_t v = 0; v < kBlock; v += kLanes) {
            const Vec x = load(z + unit * kBlock + v, rest - v);
            squares += x * x;
            split(x, parts + unit * kParts * kBlockNumbers + i * kBlock + v);
          }
        }
        value_[row] = -0.5 * sum_of(squares) - static_cast<double>(dim) * kHalfLog2Pi -
                      network_.log_normalizer;
        image_[row] = batch_.pixels + particle(row) / batch_.num_particles *
                                          network_.layers[network_.num_layers - 1].outputs;
      }
  }

  /// Multiplies the particles, `count` blocks of units wide, by the weights of each of `units`
  /// blocks of units. `finish(block, unit, sums, begin, end)` takes rows [begin, end) of a block's
  /// sums.
  template <int64_t kWeights, class Finish>
  void multiply_all(const Bfloat16* particles, const Bfloat16* weights, int64_t count,
                    int64_t units, const Finish& finish) {
    constexpr int64_t kOfWeights = kWeights * kBlockNumbers;
    constexpr int64_t kOfParticles = kParticles<kWeights> * kBlockNumbers;
    const int64_t all = blocks(count_), products = count * kProducts<kWeights>;
    const int64_t step = (kBlock + products - 1) / products;
    int64_t before = 0, unit_before = 0, rows_before = 0;  // what waits to be finished
    int64_t turn = 0;
    for (int64_t unit = 0; unit < units; ++unit, weights += count * kOfWeights)
      for (int64_t block = 0; block < all; ++block, ++turn) {
        const float* waiting = sums_[(turn + 1) % 2];
        const auto meanwhile = [&](int64_t i) {
          const int64_t begin = i * step, end = begin + step;
          if (begin < rows_before)
            finish(before, unit_before, waiting, begin, end < rows_before ? end : rows_before);
        };
        const Bfloat16* own = particles + block * count * kOfParticles;
        if (rows_of(block) == kBlock)
          multiply<kWeights, true>(own, weights, count, sums_[turn % 2], meanwhile);
        else
          multiply<kWeights, false>(own, weights, count, sums_[turn % 2], meanwhile);
        before = block;
        unit_before = unit;
        rows_before = rows_of(block);
      }
    finish(before, unit_before, sums_[(turn + 1) % 2], 0, rows_before);
  }

  /// From a layer's inputs to the next one's.
  void forward(int64_t index) {
    const PackedLayer& layer = network_.layers[index];
    const int64_t width = blocks(layer.outputs);
    Bfloat16* const outputs = parts_[(index + 1) % 2];
    const auto finish = [&](int64_t block, int64_t unit, const float* sums, int64_t begin,
                            int64_t end) {
      const Vec* bias = reinterpret_cast<const Vec*>(layer.bias + unit * kBlock);
      const Vec* sum = reinterpret_cast<const Vec*>(sums);
      Vec* const h = reinterpret_cast<Vec*>(inputs_of(index + 1, block) + unit * kBlockNumbers);
      Bfloat16* const parts = outputs + (block * width + unit) * kParts * kBlockNumbers;
      for (int64_t i = begin * kRowVectors; i < end * kRowVectors; ++i)
        h[i] = sum[i] + bias[i % kRowVectors];
      activate(network_.activation, h + begin * kRowVectors, (end - begin) * kRowVectors);
      for (int64_t i = begin * kRowVectors; i < end * kRowVectors; ++i)
        split(h[i], parts + i * kLanes);
    };
    multiply_all<kPartsOfHidden>(parts_[index % 2], layer.forward, blocks(layer.inputs), width,
                                 finish);
  }

  /// Adds log p(x | h), and leaves its gradient with respect to the outputs in forces_[0].
  template <class Pixels>
  void score() {
    const int64_t last = network_.num_layers - 1;
    const PackedLayer& layer = network_.layers[last];
    const int64_t width = blocks(layer.outputs);
    Pixels pixels[kGroupRows];
    const auto finish = [&](int64_t block, int64_t unit, const float* sums, int64_t begin,
                            int64_t end) {
      const Vec* bias = reinterpret_cast<const Vec*>(layer.bias + unit * kBlock);
      const int64_t rest = layer.outputs - unit * kBlock;
      const bool collect = (unit + 1) * kRowVectors % kMostPixels < kRowVectors;
      Bfloat16* const forces = forces_[0] + (block * width + unit) * kBlockNumbers;
      for (int64_t i = begin; i < end; ++i) {
        const int64_t row = block * kBlock + i;
        const Vec* sum = reinterpret_cast<const Vec*>(sums + i * kBlock);
        const float* x = image_[row] + unit * kBlock;
        for (int64_t v = 0; v < kRowVectors; ++v) {
          const Vec force =
              pixels[row].add(load(x + v * kLanes, rest - v * kLanes), sum[v] + bias[v], network_);
          put(rounded(force), forces + i * kBlock + v * kLanes);
        }
        if (collect) pixels[row].collect();
      }
    };
    multiply_all<kPartsOfOutput>(parts_[last % 2], layer.forward, blocks(layer.inputs), width,
                                 finish);
    for (int64_t row = 0; row < count_; ++row) {
      pixels[row].collect();
      value_[row] += sum_of(pixels[row].total());
    }
  }

  /// From the gradient with respect to a layer's outputs to its inputs', which it leaves in the
  /// other half of forces_, or, of the latents, in the batch.
  void backward(int64_t index) {
    const PackedLayer& layer = network_.layers[index];
    const int64_t done = network_.num_layers - 1 - index, width = blocks(layer.inputs);
    Bfloat16* const to = forces_[(done + 1) % 2];
    const auto finish = [&](int64_t block, int64_t unit, const float* sums, int64_t begin,
                            int64_t end) {
      if (index == 0) return this->end(block, unit, sums, begin, end);
      Vec* const h = reinterpret_cast<Vec*>(inputs_of(index, block) + unit * kBlockNumbers);
      const int64_t first = begin * kRowVectors, count = (end - begin) * kRowVectors;
      back_through(network_.activation, reinterpret_cast<const Vec*>(sums) + first, h + first,
                   count);
      for (int64_t i = first; i < first + count; ++i)
        put(rounded(h[i]), to + (block * width + unit) * kBlockNumbers + i * kLanes);
    };
    multiply_all<1>(forces_[done % 2], layer.back, blocks(layer.outputs), width, finish);
  }

  /// The gradient with respect to a block of latents; the prior's is -z.
  void end(int64_t block, int64_t unit, const float* sums, int64_t begin, int64_t end) const {
    const int64_t dim = network_.layers[0].inputs, rest = dim - unit * kBlock;
    for (int64_t i = begin; i < end && block * kBlock + i < count_; ++i) {
      const int64_t at = (row_ + block * kBlock + i) * dim + unit * kBlock;
      for (int64_t v = 0; v < kBlock; v += kLanes) {
        const Vec force = *reinterpret_cast<const Vec*>(sums + i * kBlock + v);
        store(force - load(batch_.z + at + v, rest - v), batch_.grad + at + v, rest - v);
      }
    }
  }

  const PackedNetwork& network_;
  const FusedBatch& batch_;
  int64_t row_ = 0, count_ = 0;
  float* sums_[2];       // of the block at work, and of the one before
  float* units_;         // of hidden layers, in float32
  Bfloat16* parts_[2];   // of a layer's inputs, and of its outputs
  Bfloat16* forces_[2];  // with respect to a layer's outputs, and to its inputs
  const float* image_[kGroupRows] = {};
  double value_[kGroupRows] = {};
};

void evaluate(const PackedNetwork& network, const FusedBatch& batch, float* workspace) {
  const TileUnit tiles;
  Group group(network, batch, workspace);
  const int64_t rows = batch.num_images * batch.num_particles;
  for (int64_t row = 0; row < rows; row += kGroupRows)
    group.run(row, rows - row < kGroupRows ? rows - row : kGroupRows);
}

/// Sums of tiles that nothing loads or stores. Returns the floating-point operations done.
double multiply_adds(int64_t rounds) {
  const TileUnit tiles;
  Tiles<true>::clear();
  _tile_zero(4);
  _tile_zero(5);
  _tile_zero(6);
  _tile_zero(7);
  for (int64_t i = 0; i < rounds; ++i) Tiles<true>::multiply();
  return 4.0 * 2 * kTileRows * kTileNumbers * static_cast<double>(rounds);
}

}  // namespace

constinit const FusedKernel kAmxKernel = {"fused-amx",           Packing::kTiles, kBlock,
                                          Group::workspace_size, evaluate,        multiply_adds};
}  // namespace crais
