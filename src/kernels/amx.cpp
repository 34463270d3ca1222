// log p(x, z) of a decoder and its gradient on AMX. Forces have 8 bits or are bfloat16. Values come
// from products of split numbers and are exact to 1e-3 nats, usually to 1e-4. Each number is the
// sum of bfloat16 numbers, its parts: three parts hold a whole float32 number, and inputs have the
// first two. The effect of the third part on the value is known once the gradient is known, and is
// added then.
//
// A few blocks of 32 particles pass through the whole network before the next blocks start. Units
// are stored in blocks too, [unit block][particle][unit], so one pass over 4 KB turns the output of
// one product into the input of the next. Particles are rows of the tiles: the sums of each
// particle run in one order at every position. While the tiles compute a block of units, the vector
// units finish the block before it.
#include "kernels/instructions.h"
#include "kernels/pointwise.h"
#include "kernels/tiles.h"

namespace crais {
namespace {

constexpr int64_t kRowVectors = kBlock / kLanes;

// --- numbers ----------------------------------------------------------------------------------

inline void put(HalfVec x, Bfloat16* to) { *reinterpret_cast<HalfVec*>(to) = x; }
/// The nearest bfloat16 number, in the fewest instructions. Ties round away from zero.
inline Vec leading(Vec x) {
  constexpr int kHalf = 0x8000, kLeading = -0x10000;
  return from_bits((bits(x) + kHalf) & kLeading);
}

/// Splits x into its parts, which are stored kBlockNumbers apart.
inline void split(Vec x, Bfloat16* parts) {
  for (int64_t i = 0; i < kParts; ++i) {
    put(rounded(leading(x)), parts + i * kBlockNumbers<Bfloat16>);
    x -= leading(x);
  }
}

/// The rest of x that `split` drops.
inline Vec rest_of(Vec x) {
  for (int64_t i = 0; i < kParts; ++i) x -= leading(x);
  return x;
}

/// Stores the rounded force of a pixel. A force of 8 bits is at most 1 and has kByteSteps steps.
inline void put_force(Vec force, Bfloat16* to) { put(rounded(force), to); }
inline void put_force(Vec force, int8_t* to) {
  *reinterpret_cast<ByteVec*>(to) = low_bytes(nearest(force * static_cast<float>(kByteSteps)));
}

inline double sum_of(Vec x) {
  double sum = 0;
  for (int i = 0; i < kLanes; ++i) sum += x[i];
  return sum;
}

// --- the network ------------------------------------------------------------------------------

// Weights come from the second-level cache at best, so each is used for several blocks of
// particles.
constexpr int64_t kGroup = 2;
constexpr int64_t kGroupRows = kGroup * kBlock;

/// Consecutive particles of a batch, in blocks of 32, on their way through the network.
class Group {
 public:
  Group(const PackedNetwork& network, const FusedBatch& batch, float* workspace)
      : network_(network), batch_(batch) {
    for (float*& sums : sums_) {
      sums = workspace;
      workspace += kBlockSums;
    }
    units_ = workspace;
    auto* half = reinterpret_cast<Bfloat16*>(units_ + kGroup * hidden_blocks(network) * kBlockSums);
    for (Bfloat16*& parts : parts_) {
      parts = half;
      half += kGroup * kParts * widest_input(network) * kBlockNumbers<Bfloat16>;
    }
    forces_[0] = half;
    forces_[1] = half + kGroup * widest_output(network) * kBlockNumbers<Bfloat16>;
  }

  static int64_t workspace_size(const PackedNetwork& network) {
    const int64_t inputs = widest_input(network), outputs = widest_output(network);
    const int64_t halves = kGroup * (2 * kParts * inputs + outputs + inputs);
    return kBlockSums * (2 + kGroup * hidden_blocks(network)) +
           kBlockNumbers<Bfloat16> * halves / 2;
  }

  /// Computes particles [row, row + count), count <= kGroupRows.
  void run(int64_t row, int64_t count) {
    row_ = row;
    count_ = count;
    begin();
    for (int64_t i = 0; i + 1 < network_.num_layers; ++i) forward(i);
    const int64_t last = network_.num_layers - 1;
    switch (network_.pixels) {
      case PixelFamily::kBernoulli:
        score<BernoulliPixels<RoughQuotient>, int8_t>();
        backward<int8_t>(last, network_.layers[last].back_bytes);
        break;
      case PixelFamily::kGaussian:
        score<GaussianPixels<OutputIsMean>, Bfloat16>();
        backward<Bfloat16>(last, network_.layers[last].back);
        break;
      default:
        return;  // FusedDecoder::supports rejects all others
    }
    for (int64_t i = last - 1; i >= 0; --i) backward<Bfloat16>(i, network_.layers[i].back);
    for (int64_t i = 0; i < count_; ++i)
      batch_.log_density[row_ + i] = value_[i] + sum_of(missed_[i]);
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

  /// The number of rows of a block that are computed: one tile or two.
  int64_t rows_of(int64_t block) const {
    return count_ - block * kBlock > kTileRows ? kBlock : kTileRows;
  }
  /// The particle of a row. Rows after the last particle repeat it.
  int64_t particle(int64_t row) const { return row_ + (row < count_ ? row : count_ - 1); }

  /// The inputs of a block for any layer but the first, in float32.
  float* inputs_of(int64_t layer, int64_t block) const {
    float* units = units_;
    for (int64_t i = 1; i < layer; ++i)
      units += kGroup * blocks(network_.layers[i].inputs) * kBlockSums;
    return units + block * blocks(network_.layers[layer].inputs) * kBlockSums;
  }

  /// Splits latents into parts, and computes the prior's log-density.
  void begin() {
    const int64_t dim = network_.layers[0].inputs, width = blocks(dim);
    constexpr double kHalfLog2Pi = 0.91893853320467274178;
    for (int64_t block = 0; block < blocks(count_); ++block)
      for (int64_t i = 0; i < rows_of(block); ++i) {
        const int64_t row = block * kBlock + i;
        const float* z = batch_.z + particle(row) * dim;
        Bfloat16* const parts = parts_[0] + block * width * kParts * kBlockNumbers<Bfloat16>;
        Vec squares = {};
        for (int64_t unit = 0; unit < width; ++unit) {
          const int64_t rest = dim - unit * kBlock;
          for (int64_t v = 0; v < kBlock; v += kLanes) {
            const Vec x = load(z + unit * kBlock + v, rest - v);
            squares += x * x;
            split(x, parts + unit * kParts * kBlockNumbers<Bfloat16> + i * kBlock + v);
          }
        }
        value_[row] = -0.5 * sum_of(squares) - static_cast<double>(dim) * kHalfLog2Pi -
                      network_.log_normalizer;
        image_[row] = batch_.pixels + particle(row) / batch_.num_particles *
                                          network_.layers[network_.num_layers - 1].outputs;
        missed_[row] = Vec{};
      }
  }

  /// Multiplies the particles, `count` blocks of units wide, by the weights of each of `units`
  /// blocks of units. `finish(block, unit, sums, begin, end)` processes rows [begin, end) of the
  /// sums of a block.
  template <class Number, int64_t kWeights, class Finish>
  void multiply_all(const Number* particles, const Number* weights, int64_t count, int64_t units,
                    const Finish& finish) {
    constexpr int64_t kOfWeights = kWeights * kBlockNumbers<Number>;
    constexpr int64_t kOfParticles = kParticles<kWeights> * kBlockNumbers<Number>;
    const int64_t all = blocks(count_), products = count * kProducts<kWeights>;
    // NOLINTNEXTLINE(clang-analyzer-core.DivideZero): a layer has inputs
    const int64_t step = (kBlock + products - 1) / products;
    int64_t before = 0, unit_before = 0, rows_before = 0;  // the block that is not finished yet
    int64_t turn = 0;
    for (int64_t unit = 0; unit < units; ++unit, weights += count * kOfWeights)
      for (int64_t block = 0; block < all; ++block, ++turn) {
        float* const waiting = sums_[(turn + 1) % 2];
        const auto meanwhile = [&](int64_t i) {
          const int64_t begin = i * step, end = begin + step;
          if (begin < rows_before)
            finish(before, unit_before, waiting, begin, end < rows_before ? end : rows_before);
        };
        const Number* own = particles + block * count * kOfParticles;
        if (rows_of(block) == kBlock)
          multiply<Number, kWeights, true>(own, weights, count, sums_[turn % 2], meanwhile);
        else
          multiply<Number, kWeights, false>(own, weights, count, sums_[turn % 2], meanwhile);
        before = block;
        unit_before = unit;
        rows_before = rows_of(block);
      }
    finish(before, unit_before, sums_[(turn + 1) % 2], 0, rows_before);
  }

  /// Computes the inputs of the next layer from the inputs of layer `index`.
  void forward(int64_t index) {
    const PackedLayer& layer = network_.layers[index];
    const int64_t width = blocks(layer.outputs);
    Bfloat16* const outputs = parts_[(index + 1) % 2];
    const auto finish = [&](int64_t block, int64_t unit, const float* sums, int64_t begin,
                            int64_t end) {
      const Vec* bias = reinterpret_cast<const Vec*>(layer.bias + unit * kBlock);
      const Vec* sum = reinterpret_cast<const Vec*>(sums);
      Vec* const h = reinterpret_cast<Vec*>(inputs_of(index + 1, block) + unit * kBlockSums);
      Bfloat16* const parts = outputs + (block * width + unit) * kParts * kBlockNumbers<Bfloat16>;
      for (int64_t i = begin * kRowVectors; i < end * kRowVectors; ++i)
        h[i] = sum[i] + bias[i % kRowVectors];
      activate(layer.activation, h + begin * kRowVectors, h + begin * kRowVectors,
               (end - begin) * kRowVectors);
      for (int64_t i = begin * kRowVectors; i < end * kRowVectors; ++i)
        split(h[i], parts + i * kLanes);
    };
    multiply_all<Bfloat16, kPartsOfHidden>(parts_[index % 2], layer.forward, blocks(layer.inputs),
                                           width, finish);
  }

  /// Adds log p(x | h), and leaves its gradient with respect to the outputs in forces_[0].
  template <class Pixels, class Number>
  void score() {
    const int64_t last = network_.num_layers - 1;
    const PackedLayer& layer = network_.layers[last];
    const int64_t width = row_blocks<Number>(layer.outputs);
    Pixels pixels[kGroupRows];
    Vec finite[kGroupRows] = {};  // 0, or NaN if a force is not finite, which a byte cannot show
    const auto finish = [&](int64_t block, int64_t unit, const float* sums, int64_t begin,
                            int64_t end) {
      const Vec* bias = reinterpret_cast<const Vec*>(layer.bias + unit * kBlock);
      const int64_t first = unit * kBlock, rest = layer.outputs - first;
      const bool collect = (unit + 1) * kRowVectors % kMostPixels < kRowVectors;
      Number* const forces = reinterpret_cast<Number*>(forces_[0]) +
                             (block * width + first / kRowNumbers<Number>)*kBlockNumbers<Number> +
                             first % kRowNumbers<Number>;
      for (int64_t i = begin; i < end; ++i) {
        const int64_t row = block * kBlock + i;
        const Vec* sum = reinterpret_cast<const Vec*>(sums + i * kBlock);
        const float* x = image_[row] + first;
        for (int64_t v = 0; v < kRowVectors; ++v) {
          const Vec force =
              pixels[row].add(load(x + v * kLanes, rest - v * kLanes), sum[v] + bias[v], network_);
          put_force(force, forces + i * kRowNumbers<Number> + v * kLanes);
          if constexpr (sizeof(Number) == 1) finite[row] += 0 * force;
        }
        if (collect) pixels[row].collect();
      }
    };
    multiply_all<Bfloat16, kPartsOfOutput>(parts_[last % 2], layer.forward, blocks(layer.inputs),
                                           blocks(layer.outputs), finish);
    for (int64_t row = 0; row < count_; ++row) {
      pixels[row].collect();
      value_[row] += sum_of(pixels[row].total());
      step_[row] = static_cast<float>(1.0 / kByteSteps + sum_of(finite[row]));
    }
  }

  /// Computes the gradient with respect to the inputs of a layer from that with respect to its
  /// outputs. The result goes to the other half of forces_ or, for latents, to the batch.
  template <class Number>
  void backward(int64_t index, const Number* weights) {
    const PackedLayer& layer = network_.layers[index];
    const int64_t done = network_.num_layers - 1 - index, width = blocks(layer.inputs);
    Bfloat16* const to = forces_[(done + 1) % 2];
    const auto finish = [&](int64_t block, int64_t unit, float* sums, int64_t begin, int64_t end) {
      if constexpr (sizeof(Number) == 1) {
        const Vec* units = reinterpret_cast<const Vec*>(layer.back_unit + unit * kBlock);
        for (int64_t i = begin; i < end; ++i) {
          Vec* const sum = reinterpret_cast<Vec*>(sums + i * kBlock);
          for (int64_t v = 0; v < kRowVectors; ++v)
            sum[v] =
                __builtin_convertvector(bits(sum[v]), Vec) * (units[v] * step_[block * kBlock + i]);
        }
      }
      if (index == 0) return this->end(block, unit, sums, begin, end);
      Vec* const h = reinterpret_cast<Vec*>(inputs_of(index, block) + unit * kBlockSums);
      const Vec* const grad = reinterpret_cast<const Vec*>(sums);
      const int64_t first = begin * kRowVectors, count = (end - begin) * kRowVectors;
      for (int64_t i = first; i < first + count; ++i)
        missed_[block * kBlock + i / kRowVectors] += rest_of(h[i]) * grad[i];
      back_through(network_.layers[index - 1].activation, /*is_input=*/false, grad + first,
                   h + first, count);
      for (int64_t i = first; i < first + count; ++i)
        put(rounded(h[i]), to + (block * width + unit) * kBlockNumbers<Bfloat16> + i * kLanes);
    };
    multiply_all<Number, 1>(reinterpret_cast<const Number*>(forces_[done % 2]), weights,
                            row_blocks<Number>(layer.outputs), width, finish);
  }

  /// Stores the gradient with respect to a block of latents, including the prior's gradient -z.
  void end(int64_t block, int64_t unit, const float* sums, int64_t begin, int64_t end) {
    const int64_t dim = network_.layers[0].inputs, first = unit * kBlock;
    for (int64_t i = begin; i < end && block * kBlock + i < count_; ++i) {
      const int64_t row = block * kBlock + i, at = (row_ + row) * dim + first;
      for (int64_t v = 0; v < kBlock; v += kLanes) {
        const int64_t rest = dim - first - v;
        const Vec force = *reinterpret_cast<const Vec*>(sums + i * kBlock + v);
        const Vec z = load(batch_.z + at + v, rest);
        missed_[row] += rest_of(z) * force;
        if (batch_.grad != nullptr) store(force - z, batch_.grad + at + v, rest);
      }
    }
  }

  const PackedNetwork& network_;
  const FusedBatch& batch_;
  int64_t row_ = 0, count_ = 0;
  float* sums_[2];       // of the current block and of the one before
  float* units_;         // of hidden layers, in float32
  Bfloat16* parts_[2];   // of the inputs of a layer and of its outputs
  Bfloat16* forces_[2];  // with respect to the outputs of a layer and to its inputs
  const float* image_[kGroupRows] = {};
  double value_[kGroupRows] = {};
  Vec missed_[kGroupRows] = {};  // correction of the value for the third parts of inputs
  float step_[kGroupRows] = {};  // step of 8-bit forces; NaN if a force is not finite
};

void evaluate(const PackedNetwork& network, const FusedBatch& batch, float* workspace) {
  const TileUnit tiles;
  Group group(network, batch, workspace);
  const int64_t rows = batch.num_images * batch.num_particles;
  for (int64_t row = 0; row < rows; row += kGroupRows)
    group.run(row, rows - row < kGroupRows ? rows - row : kGroupRows);
}

}  // namespace

constinit const FusedKernel kAmxKernel = {.name = "fused-amx",
                                          .packing = Packing::kTiles,
                                          .panel_rows = kBlock,
                                          .workspace_size = Group::workspace_size,
                                          .evaluate = evaluate,
                                          .decode = nullptr};
}  // namespace crais
