#include "models/latent_model.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "util/error.h"
#include "util/format.h"

namespace crais {

void ModelDescription::set_likelihood(const Likelihood& of) {
  likelihood = to_string(of);
  low = high = step = {};
  if (!of.is_of_logits()) return;
  low = 0.0;
  high = 1.0;
  if (of.is_bernoulli()) step = 1.0;
}

int64_t ModelDescription::num_values() const {
  return std::accumulate(data_shape.begin(), data_shape.end(), int64_t{1}, std::multiplies<>());
}

bool ModelDescription::has(const std::string& function) const {
  return std::find(functions.begin(), functions.end(), function) != functions.end();
}

void check_support(const ModelDescription& model, const at::Tensor& data,
                   const std::string& where) {
  const at::Tensor flat = data.flatten(1);  // a log_joint says itself what NaN means
  const bool may_miss = model.likelihood == "log_joint" || model.likelihood.rfind("seen-", 0) == 0;
  at::Tensor bad = may_miss ? flat.isinf() : ~flat.isfinite();
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
    right = model.low == 0.0 && model.high == 1.0 && *model.step == 1.0
                ? "0 or 1"
                : right + " in steps of " + shortest(*model.step);
  }
  const at::Tensor places = bad.nonzero();
  if (places.size(0) == 0) return;
  const auto image = places[0][0].item<int64_t>(), entry = places[0][1].item<int64_t>();
  const auto value = flat[image][entry].item<double>();
  std::string remedy;
  if (model.likelihood == "bernoulli" && value > 0 && value < 1)
    remedy = ": `binarisation` static:0 makes grey pixels binary; ContinuousBernoulli takes them";
  else if (value > 1 && model.high == 1.0)
    remedy = std::string(". Pixels of 0 to 255 need `scale` 255") +
             (model.likelihood == "bernoulli" ? ", or grey ones `binarisation` static:0" : "");
  else if (std::isnan(value))
    remedy = ". Where NaN is a pixel not seen: crais.evaluate(..., missing=\"nan\") in Python";
  throw data_error(where, ": entry ", entry, " of image ", image, " is ", shortest(value),
                   "; the likelihood (", model.likelihood, ") needs ", right, remedy);
}

at::Tensor labels_for(const LabelDescription& labels, const at::Tensor& stored,
                      const std::string& where) {
  const bool is_whole = !at::isFloatingType(stored.scalar_type());
  const bool one_hot =
      is_whole && stored.dim() == 1 && labels.shape.size() == 1 && labels.dtype == at::kFloat;
  if (!one_hot && stored.sizes().slice(1) != at::IntArrayRef(labels.shape))
    throw data_error(where, ": labels are ", shape_text(stored.sizes().slice(1).vec()),
                     ", the model's are ", shape_text(labels.shape));
  if (labels.dtype == at::kLong && !is_whole)
    throw data_error(where, ": labels are floating, the model's are whole numbers");
  if (one_hot || labels.dtype == at::kLong) {
    const at::Tensor flat = stored.to(at::kLong).flatten();
    const int64_t low = one_hot ? 0 : labels.low,
                  high = one_hot ? labels.shape[0] - 1 : labels.high;
    const at::Tensor bad = (flat.lt(low) | flat.gt(high)).nonzero();
    if (bad.size(0) > 0) {
      const auto first = bad[0][0].item<int64_t>();
      throw data_error(where, ": label ", first, " is ", flat[first].item<int64_t>(),
                       "; the model knows ", low, " to ", high);
    }
  } else if (!stored.isfinite().all().item<bool>()) {
    throw data_error(where, ": a label is not finite");
  }
  if (one_hot) return at::one_hot(stored.to(at::kLong), labels.shape[0]).to(at::kFloat);
  return stored.to(labels.dtype);
}

}  // namespace crais
