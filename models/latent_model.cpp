#include "models/latent_model.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "util/error.h"
#include "util/format.h"

namespace crais {

int64_t ModelDescription::num_values() const {
  return std::accumulate(data_shape.begin(), data_shape.end(), int64_t{1}, std::multiplies<>());
}

bool ModelDescription::has(const std::string& function) const {
  return std::find(functions.begin(), functions.end(), function) != functions.end();
}

LatentModel::Draws LatentModel::draw(uint64_t /*seed*/, int64_t /*i*/) const {
  throw internal_error("a model without draws was asked for one");
}

void check_support(const ModelDescription& model, const at::Tensor& data,
                   const std::string& where) {
  const at::Tensor flat = data.flatten(1);
  at::Tensor bad = ~flat.isfinite();
  std::string right = "a finite number";
  if (model.low) {
    bad = bad | (flat < *model.low);
    right = "at least " + shortest(*model.low);
  }
  if (model.high) {
    bad = bad | (flat > *model.high);
    right = (model.low ? "a number in [" + shortest(*model.low) + ", " : "at most ") +
            shortest(*model.high) + (model.low ? "]" : "");
  }
  if (model.step) {
    const at::Tensor steps = (flat - model.low.value_or(0.0)) / *model.step;
    bad = bad | ((steps - steps.round()).abs() > 1e-3);
    right += " in steps of " + shortest(*model.step);
  }
  const at::Tensor found = bad.nonzero();
  if (found.size(0) == 0) return;
  const auto image = found[0][0].item<int64_t>(), entry = found[0][1].item<int64_t>();
  const auto value = flat[image][entry].item<double>();
  throw data_error(where + ": entry " + std::to_string(entry) + " of image " +
                   std::to_string(image) + " is " + shortest(value) + "; the likelihood (" +
                   model.likelihood + ") needs " + right +
                   (value > 1 && model.high == 1.0 ? ". Pixels of 0 to 255 want `scale` 255" : ""));
}

}  // namespace crais
