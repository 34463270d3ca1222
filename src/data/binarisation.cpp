#include "data/binarisation.h"

#include <algorithm>
#include <iterator>
#include <limits>

#include "core/rng.h"
#include "core/spec.h"
#include "util/error.h"

namespace crais {
namespace {

using Kind = Binarisation::Kind;

// In the order of Kind.
constexpr const char* kNames[] = {"dynamic", "static", "threshold", "none", "amat"};

/// Pixel j of file row i is 1 if hashed_uniform(seed', i * D + j) < grey / 255.
at::Tensor draw_static(uint64_t seed, const at::Tensor& pixels, int64_t first_index) {
  at::Tensor result = at::empty(pixels.sizes(), at::kFloat);
  const uint64_t stream = derive_seed(seed, Purpose::kBinarise);
  const uint8_t* const grey = pixels.data_ptr<uint8_t>();
  float* const out = result.data_ptr<float>();
  const int64_t first = first_index * pixels.size(1);
  for (int64_t i = 0; i < pixels.numel(); ++i) {
    // Most pixels are black or white and need no random number.
    if (grey[i] == 0 || grey[i] == 255)
      out[i] = grey[i] == 255;
    else
      out[i] = hashed_uniform(stream, static_cast<uint64_t>(first + i)) < grey[i] / 255.0;
  }
  return result;
}

at::Tensor from_binary_file(const at::Tensor& pixels) {
  const at::Tensor is_white = pixels == 255;
  if (!(is_white | (pixels == 0)).all().item<bool>())
    throw data_error(
        "binarisation amat is for files that are binary already; these images hold grey pixels");
  return is_white.to(at::kFloat);
}

/// True for kinds that draw each pixel with probability grey/255, here or in advance.
bool is_drawn(Kind kind) {
  return kind == Kind::kDynamic || kind == Kind::kStatic || kind == Kind::kAmat;
}

}  // namespace

Binarisation parse_binarisation(const std::string& text) {
  Spec spec(text);
  const auto* const known = std::find(std::begin(kNames), std::end(kNames), spec.name());
  if (known == std::end(kNames))
    throw argument_error("unknown binarisation '", spec.name(),
                         "'; choose from dynamic, static:SEED, threshold:T, none, amat");
  Binarisation result;
  result.kind = static_cast<Kind>(known - std::begin(kNames));
  if (result.kind == Kind::kStatic)
    result.seed =
        static_cast<uint64_t>(spec.integer("seed", 0, std::numeric_limits<int64_t>::max()));
  if (result.kind == Kind::kThreshold) result.threshold = spec.integer("threshold", 0, 254);
  spec.finish();
  return result;
}

std::string to_string(const Binarisation& binarisation) {
  const std::string name = kNames[static_cast<size_t>(binarisation.kind)];
  if (binarisation.kind == Kind::kStatic) return name + ":" + std::to_string(binarisation.seed);
  if (binarisation.kind == Kind::kThreshold)
    return name + ":" + std::to_string(binarisation.threshold);
  return name;
}

bool same_law(const Binarisation& a, const Binarisation& b) {
  if (is_drawn(a.kind) || is_drawn(b.kind)) return is_drawn(a.kind) && is_drawn(b.kind);
  return a.kind == b.kind && (a.kind != Kind::kThreshold || a.threshold == b.threshold);
}

at::Tensor binarise(const Binarisation& binarisation, const at::Tensor& pixels, int64_t first_index,
                    at::Generator& generator) {
  TORCH_CHECK(pixels.dim() == 2 && pixels.scalar_type() == at::kByte,
              "binarise: pixels must be [N, D] uint8, got ", pixels.toString(), " ",
              pixels.sizes());
  switch (binarisation.kind) {
    case Kind::kDynamic: {
      // u is in [0, 1): black never turns on, white always does.
      const at::Tensor u = at::rand(pixels.sizes(), generator, pixels.options().dtype(at::kFloat));
      return u.lt_(pixels.to(at::kFloat).div_(255.0));
    }
    case Kind::kStatic:
      return draw_static(binarisation.seed, pixels.cpu().contiguous(), first_index)
          .to(pixels.device());
    case Kind::kThreshold:
      return pixels.gt(binarisation.threshold).to(at::kFloat);
    case Kind::kNone:
      return pixels.to(at::kFloat).div_(255.0);
    case Kind::kAmat:
      return from_binary_file(pixels);
  }
  throw internal_error("a binarisation without a law");
}

}  // namespace crais
