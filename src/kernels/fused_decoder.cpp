#include "kernels/fused_decoder.h"

#include <ATen/Context.h>
#include <ATen/cpu/Utils.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <set>
#include <type_traits>
#include <utility>

#include "core/plain.h"
#include "kernels/gather_layout.h"
#include "util/error.h"

namespace crais {
namespace {

constexpr int64_t kAlignment = 64;

/// A workspace of this thread, kept for its next evaluation.
float* workspace(int64_t size) {
  thread_local std::vector<float> memory;
  const auto needed = static_cast<size_t>(size + kAlignment);
  if (memory.size() < needed) memory.resize(needed);
  const auto address = reinterpret_cast<uintptr_t>(memory.data());
  return memory.data() + (kAlignment - address % kAlignment) % kAlignment / sizeof(float);
}

// Weights in the order in which the kernels read them.

/// x padded with zeros to a multiple of `rows` and `columns`.
at::Tensor filled(const at::Tensor& x, int64_t rows, int64_t columns) {
  const auto missing = [&](int64_t dim, int64_t unit) {
    return (unit - x.size(dim) % unit) % unit;
  };
  return at::constant_pad_nd(x, {0, missing(1, columns), 0, missing(0, rows)});
}

/// The number of steps [rows, 1], float64, for a number 1 in each row of W [rows, columns] in fixed
/// point.
at::Tensor steps_of(const at::Tensor& w) {
  constexpr double kLargest = 32767, kLargestSum = 0x1p31;
  const at::Tensor size = w.to(at::kDouble).abs();
  // No sum may overflow for factors of at most kInputSteps. One sixteenth is left for rounding,
  // which may add half a step to a weight and half a step to its low part.
  constexpr double kRoom = 15.0 / 16 * kLargestSum / kInputSteps;
  static_assert(kLargestSum / kInputSteps - kRoom > kWidestFixedPoint);
  constexpr double kMostSteps = 1e30;  // for a row of zeros
  return at::minimum(kLargest / size.amax(1), kRoom / size.sum(1))
      .clamp_max(kMostSteps)
      .unsqueeze(1);
}

/// 1 / steps, padded with zeros to a multiple of `rows`.
at::Tensor units_of(const at::Tensor& steps, int64_t rows) {
  return filled((1 / steps).to(at::kFloat).view({-1, 1}), rows, 1).squeeze(1).contiguous();
}

/// W [rows, columns] as [panels][columns / group, filled][panel_rows][group].
at::Tensor panels_of(const at::Tensor& w, int64_t panel_rows, int64_t group = 1) {
  const at::Tensor full = filled(w, panel_rows, panel_rows);
  return full.reshape({-1, panel_rows, full.size(1) / group, group}).transpose(1, 2).contiguous();
}

/// The memory of FixedPointWeights: int16, int8, int32, float32.
struct PackedFixedPoint {
  at::Tensor high, low, start, unit;
};

/// W [outputs, inputs] in fixed point.
PackedFixedPoint fixed_point_of(const at::Tensor& w, int64_t panel_rows) {
  const at::Tensor steps = steps_of(w), scaled = w.to(at::kDouble) * steps, high = scaled.round();
  const at::Tensor low = ((scaled - high) * (1 << kLowBits)).round().clamp(-127, 127);
  const at::Tensor start = (1 << (kLowShift - 1)) - kCoarseOffset * low.sum(1);
  return {panels_of(high.to(at::kShort), panel_rows, 2),
          panels_of(low.to(at::kChar), panel_rows, 4),
          filled(start.to(at::kInt).unsqueeze(1), panel_rows, 1).squeeze(1).contiguous(),
          units_of(steps, panel_rows)};
}

/// W [outputs, inputs] in bytes for the backward pass, and the units of inputs.
struct PackedBytes {
  at::Tensor bytes, unit;
};
PackedBytes panels_of_bytes(const at::Tensor& w, int64_t panel_rows) {
  constexpr double kMostSteps = 1e30;  // for a column of zeros
  const at::Tensor wide = w.to(at::kDouble).t();
  const at::Tensor steps = (kByteSteps / wide.abs().amax(1, true)).clamp_max(kMostSteps);
  const at::Tensor bytes = (wide * steps).round() + kByteOffset;
  return {panels_of(bytes.to(at::kByte), panel_rows, 4), units_of(steps, panel_rows)};
}

}  // namespace

std::vector<const FusedKernel*> available_kernels() {
  std::vector<const FusedKernel*> kernels;
#ifdef CRAIS_X86_KERNELS
  const bool fma = __builtin_cpu_supports("fma");
  if (fma && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq")) {
    if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512vnni"))
      kernels.push_back(&kAvx512VnniKernel);
    kernels.push_back(&kAvx512Kernel);
  }
  if (fma && __builtin_cpu_supports("avx2")) kernels.push_back(&kAvx2Kernel);
#endif
  kernels.push_back(&kPortableKernel);
  return kernels;
}

const FusedKernel& fastest_exact() {
  for (const FusedKernel* kernel : available_kernels())
    if (!kernel->in_fixed_point) return *kernel;
  return kPortableKernel;
}

bool has_bfloat16_products() {
#ifdef CRAIS_X86_KERNELS
  static const bool kHas =
      at::hasMKLDNN() && at::globalContext().userEnabledMkldnn() &&
      (at::cpu::init_amx() || (__builtin_cpu_is("amd") && __builtin_cpu_supports("avx512bf16")));
  return kHas;
#else
  return false;
#endif
}

namespace {

/// The shape of the image that a layer outputs, in the order [place][channel], if a layer of images
/// makes or takes it.
std::optional<Convolution::Shape> image_of(const std::vector<Layer>& layers, size_t i) {
  const Convolution::Shape* image = layers[i].output_image();
  if (image == nullptr && i + 1 < layers.size()) image = layers[i + 1].input_image();
  return image != nullptr ? std::optional(*image) : std::nullopt;
}

/// True for residual connections that the kernels know: at most one from each hidden layer, and
/// only from units that the kernel keeps.
bool skips_are_known(const std::vector<Layer>& layers) {
  std::set<int64_t> sources;
  for (size_t i = 0; i < layers.size(); ++i) {
    if (!layers[i].skip) continue;
    const auto [index, before] = *layers[i].skip;
    const auto from = static_cast<size_t>(index);
    const bool is_kept =
        before || (layers[from].activation.slope_is_of_output() && !layers[from].normalisation);
    if (i + 1 == layers.size() || !is_kept || image_of(layers, from) != image_of(layers, i) ||
        !sources.insert(index).second)
      return false;
  }
  return true;
}

/// True for normalisations that the kernels know: of hidden layers and, if units are an image, of
/// whole channels.
bool normalisations_are_known(const std::vector<Layer>& layers) {
  for (size_t i = 0; i < layers.size(); ++i) {
    if (!layers[i].normalisation) continue;
    const auto image = image_of(layers, i);
    const int64_t channels = image ? image->channels : layers[i].outputs();
    if (i + 1 == layers.size() || channels % layers[i].normalisation->groups != 0) return false;
  }
  return true;
}

}  // namespace

bool FusedDecoder::supports(const DecoderNetwork& network, const FusedKernel& kernel) {
  const auto fits = [&](const Layer& layer) {
    if (!kernel.in_fixed_point || layer.interpolation) return true;
    // Terms of a sum in the forward and backward pass. The outputs of the last dense layer go back
    // in groups.
    const bool is_last_dense = &layer == &network.layers.back() && !layer.convolution;
    const int64_t from = layer.convolution && layer.convolution->transposed ? 0 : 1;
    const int64_t terms = layer.weight.numel() / layer.weight.size(1 - from),
                  terms_back = is_last_dense ? 1 : layer.weight.numel() / layer.weight.size(from);
    return std::max(terms, terms_back) <= kWidestFixedPoint;
  };
  const at::Tensor& first = network.layers.front().weight;
  const Activation::Kind mean = network.layers.back().activation.kind;
  const bool is_known = mean == Activation::kIdentity ||
                        (network.likelihood.family == Likelihood::Family::kGaussian &&
                         (mean == Activation::kSigmoid || mean == Activation::kTanh));
  return is_known && skips_are_known(network.layers) && normalisations_are_known(network.layers) &&
         first.is_cpu() && first.scalar_type() == at::kFloat &&
         std::all_of(network.layers.begin(), network.layers.end(), fits);
}

FusedDecoder::FusedDecoder(const DecoderNetwork& network, const FusedKernel& kernel,
                           std::shared_ptr<const FusedDecoder> cheap)
    : kernel_(kernel),
      likelihood_(network.likelihood),
      latent_(network.layers.front().inputs()),
      pixels_(network.layers.back().outputs()),
      cheap_(std::move(cheap)) {
  TORCH_CHECK(supports(network, kernel), "fused decoder: ", kernel.name,
              " does not take this decoder; FusedDecoder::supports says which it does");
  // Units of an image are in the order [place][channel].
  const auto image_order = [](const at::Tensor& units, const Convolution::Shape& image) {
    return units.unflatten(0, {image.channels, image.places()}).transpose(0, 1).flatten(0, 1);
  };
  const std::vector<Layer>& layers = network.layers;
  for (size_t i = 0; i < layers.size(); ++i) {
    Layer layer = layers[i];
    const bool is_dense = layer.input_image() == nullptr, is_last = i + 1 == layers.size();
    if (is_dense && i > 0 && layers[i - 1].output_image() != nullptr)
      layer.weight = image_order(layer.weight.t(), *layers[i - 1].output_image()).t();
    if (is_dense && !is_last && layers[i + 1].input_image() != nullptr) {
      layer.weight = image_order(layer.weight, *layers[i + 1].input_image());
      layer.bias = image_order(layer.bias, *layers[i + 1].input_image());
    }
    layers_.push_back(pack(layer, is_last));
  }
  for (size_t i = 0; i < layers.size(); ++i) {
    layers_[i].activation = layers[i].activation;
    layers_[i].keeps_input |= !layers[i].activation.slope_is_of_output() || layers[i].normalisation;
    if (const auto& n = layers[i].normalisation) {
      const auto image =
          image_of(layers, i).value_or(Convolution::Shape{layers[i].outputs(), 1, 1});
      const auto packed = [&](const at::Tensor& units) {
        return keep<float>(image_order(units.detach(), image).clone());
      };
      layers_[i].normalisation = {.groups = n->groups,
                                  .places = image.places(),
                                  .channels = image.channels,
                                  .eps = static_cast<float>(n->eps),
                                  .scale = packed(n->scale),
                                  .shift = packed(n->shift)};
    }
    if (!layers[i].skip) continue;
    layers_[i].skip_from = layers[i].skip->from;
    PackedLayer& source = layers_[static_cast<size_t>(layers[i].skip->from)];
    source.skip_to = static_cast<int64_t>(i);
    source.keeps_input |= layers[i].skip->before_activation;
  }
  const auto order_of = [&](const Convolution::Shape& image) {
    return keep<int32_t>(image_order(at::arange(image.units(), at::kInt), image).contiguous());
  };
  if (const auto* first = layers.front().input_image()) latent_order_ = order_of(*first);
  if (const auto* last = layers.back().output_image()) pixel_order_ = order_of(*last);
}

template <class Number>
const Number* FusedDecoder::keep(const at::Tensor& packed) {
  TORCH_CHECK(reinterpret_cast<uintptr_t>(packed.data_ptr()) % kAlignment == 0,
              "fused decoder: LibTorch's memory is not aligned to ", kAlignment, " bytes");
  storage_.push_back(packed);
  return static_cast<const Number*>(packed.data_ptr());
}

template <class Record>
const Record* FusedDecoder::keep(const std::vector<Record>& records) {
  static_assert(std::is_trivially_copyable_v<Record>);
  if (records.empty()) return nullptr;
  const auto size = static_cast<int64_t>(records.size() * sizeof(Record));
  const at::Tensor copy = at::empty({size}, at::kByte);
  std::memcpy(copy.data_ptr(), records.data(), static_cast<size_t>(size));
  return reinterpret_cast<const Record*>(keep<uint8_t>(copy));
}

PackedGather FusedDecoder::pack_gather(const Convolution& convolution, const at::Tensor& weight,
                                       bool adjoint) {
  // [taps][channels][input channels]
  const bool output_first = convolution.transposed == adjoint;
  const at::Tensor by_tap =
      weight.flatten(2).permute(output_first ? at::IntArrayRef{2, 0, 1} : at::IntArrayRef{2, 1, 0});
  const GatherLayout layout = gather_layout(convolution, adjoint, kernel_.panel_rows);
  // [channels][taps, input channels]
  const at::Tensor w =
      by_tap.index_select(0, at::tensor(layout.taps, at::kLong)).transpose(0, 1).flatten(1);
  PackedGather packed{};
  packed.num_tiles = static_cast<int64_t>(layout.tiles.size());
  packed.tiles = keep(layout.tiles);
  packed.runs = keep(layout.runs);
  packed.places = keep(layout.places);
  const bool one_place = layout.places.empty();
  if (adjoint && one_place && kernel_.in_fixed_point && by_tap.size(2) % 4 == 0) {
    const PackedBytes bytes = panels_of_bytes(w.t(), kernel_.panel_rows);
    packed.columns = 4 * bytes.bytes.size(1);
    packed.fours = keep<uint32_t>(bytes.bytes);
    packed.unit = keep<float>(bytes.unit);
    return packed;
  }
  const at::Tensor weights = one_place ? panels_of(w, kernel_.panel_rows) : w.contiguous();
  packed.columns = weights.size(1);
  packed.weight = keep<float>(weights);
  return packed;
}

PackedLayer FusedDecoder::pack(const Layer& layer, bool is_last) {
  const at::Tensor w = layer.weight.detach();
  PackedLayer packed{};
  packed.inputs = layer.inputs();
  packed.outputs = layer.outputs();
  packed.bias = keep<float>(
      at::constant_pad_nd(layer.bias.detach(), {0, kernel_.panel_rows}, 0.0).contiguous());
  if (layer.convolution) {
    packed.gather = pack_gather(*layer.convolution, w, /*adjoint=*/false);
    packed.gather_back = pack_gather(*layer.convolution, w, /*adjoint=*/true);
    return packed;
  }
  if (const auto& map = layer.interpolation) {
    packed.interpolation = {.taps = w.size(1),
                            .channels = map->output.channels,
                            .places = map->output.places(),
                            .input_places = map->input.places(),
                            .inputs = keep<int32_t>(map->places.to(at::kInt)),
                            .weight = keep<float>(w.clone(at::MemoryFormat::Contiguous))};
    return packed;
  }
  if (kernel_.in_fixed_point) {
    const PackedBytes back = panels_of_bytes(w, kernel_.panel_rows);
    packed.back_fours = keep<uint32_t>(back.bytes);
    packed.back_unit = keep<float>(back.unit);
  }
  if (kernel_.in_fixed_point && is_last && likelihood_.is_of_logits()) {
    const PackedFixedPoint fixed = fixed_point_of(w, kernel_.panel_rows);
    packed.fixed = {keep<uint32_t>(fixed.high), keep<uint32_t>(fixed.low),
                    keep<int32_t>(fixed.start), keep<float>(fixed.unit)};
  } else {
    packed.weight = keep<float>(panels_of(w, kernel_.panel_rows));
  }
  return packed;
}

PackedNetwork FusedDecoder::network() const {
  const bool is_gaussian = !likelihood_.is_of_logits();
  const double sd = likelihood_.noise_sd;
  const double log_normalizer = static_cast<double>(pixels_) * std::log(sd * std::sqrt(2 * M_PI));
  return {.pixels = is_gaussian                  ? PixelFamily::kGaussian
                    : likelihood_.is_bernoulli() ? PixelFamily::kBernoulli
                                                 : PixelFamily::kContinuousBernoulli,
          .precision = static_cast<float>(1 / (sd * sd)),
          .log_normalizer = is_gaussian ? log_normalizer : 0.0,
          .num_layers = static_cast<int64_t>(layers_.size()),
          .layers = layers_.data(),
          .latent_order = latent_order_,
          .pixel_order = pixel_order_};
}

void FusedDecoder::run(const at::Tensor& z, const at::Tensor& images, at::Tensor& log_density,
                       at::Tensor* grad) const {
  TORCH_CHECK(is_plain(z) && is_plain(images) && z.dim() == 3 && images.dim() == 2 &&
                  z.size(0) == images.size(0) && z.size(2) == latent_ && images.size(1) == pixels_,
              "fused decoder: wants contiguous float32 z [P,K,", latent_, "] and images [P,",
              pixels_, "] on the CPU, got ", z.sizes(), " and ", images.sizes());
  log_density = at::empty({z.size(0), z.size(1)}, z.options().dtype(at::kDouble));
  if (grad != nullptr) *grad = at::empty_like(z);
  const PackedNetwork network = this->network();
  kernel_.evaluate(network,
                   {.z = z.data_ptr<float>(),
                    .pixels = images.data_ptr<float>(),
                    .num_images = z.size(0),
                    .num_particles = z.size(1),
                    .log_density = log_density.data_ptr<double>(),
                    .grad = grad != nullptr ? grad->data_ptr<float>() : nullptr},
                   workspace(kernel_.workspace_size(network)));
}

at::Tensor FusedDecoder::log_density(const at::Tensor& z, const at::Tensor& images) const {
  at::Tensor log_density;
  run(z, images, log_density, nullptr);
  return log_density;
}

Evaluation FusedDecoder::evaluate(const at::Tensor& z, const at::Tensor& images) const {
  Evaluation evaluation;
  run(z, images, evaluation.log_density, &evaluation.grad);
  return evaluation;
}

at::Tensor FusedDecoder::decode(const at::Tensor& z) const {
  TORCH_CHECK(kernel_.decode != nullptr && is_plain(z) && z.dim() == 2 && z.size(1) == latent_,
              "fused decoder: wants contiguous float32 z [N,", latent_,
              "] on the CPU and a kernel that decodes, got ", z.sizes(), " for ", kernel_.name);
  const PackedNetwork network = this->network();
  at::Tensor outputs = at::empty({z.size(0), pixels_}, z.options());
  kernel_.decode(network, {z.data_ptr<float>(), z.size(0), outputs.data_ptr<float>()},
                 workspace(kernel_.workspace_size(network)));
  return outputs;
}

std::string chosen_evaluator() {
  const char* wanted = std::getenv("CRAIS_EVALUATOR");
  return wanted != nullptr ? wanted : available_kernels().front()->name;
}

std::shared_ptr<const FusedDecoder> make_fused_decoder(const DecoderNetwork& network) {
  const std::string wanted = chosen_evaluator();
  if (wanted == "aten") return nullptr;
  const std::vector<const FusedKernel*> kernels = available_kernels();
  const auto chosen = std::find_if(kernels.begin(), kernels.end(), [&](const FusedKernel* kernel) {
    return wanted == kernel->name;
  });
  if (chosen == kernels.end()) {
    std::string choices;
    for (const FusedKernel* kernel : kernels) choices += std::string(kernel->name) + ", ";
    throw argument_error("CRAIS_EVALUATOR is '", wanted, "'; this processor offers ", choices,
                         "aten");
  }
  const FusedKernel& exact = (*chosen)->in_fixed_point ? fastest_exact() : **chosen;
  if (!FusedDecoder::supports(network, exact)) return nullptr;
  const bool has_cheap = &exact != *chosen && FusedDecoder::supports(network, **chosen);
  return std::make_shared<FusedDecoder>(
      network, exact, has_cheap ? std::make_shared<FusedDecoder>(network, **chosen) : nullptr);
}

}  // namespace crais
