#include "models/activation.h"

#include <cmath>
#include <vector>

#include "core/spec.h"
#include "util/error.h"
#include "util/format.h"

namespace crais {
namespace {

at::Tensor normal_density(const at::Tensor& x) {
  return (-0.5 * x.square()).exp_().div_(std::sqrt(2 * M_PI));
}

using at::Tensor;

struct Entry {
  Activation::Kind kind;
  const char* name;  // null: not an option
  Tensor (*value)(const Tensor& x, double leak);
  Tensor (*slope)(const Tensor& x, const Tensor& y, double leak);  // y: the value at x
};

const std::vector<Entry> kTable = {
    {Activation::kIdentity, nullptr, [](const Tensor& x, double) { return x; },
     [](const Tensor&, const Tensor& y, double) { return at::ones_like(y); }},
    {Activation::kTanh, "tanh", [](const Tensor& x, double) { return at::tanh(x); },
     [](const Tensor&, const Tensor& y, double) { return 1 - y.square(); }},
    {Activation::kElu, "elu", [](const Tensor& x, double) { return at::elu(x); },
     [](const Tensor&, const Tensor& y, double) {
       return at::where(y > 0, at::ones_like(y), y + 1);
     }},
    {Activation::kRelu, "relu", [](const Tensor& x, double) { return at::relu(x); },
     [](const Tensor&, const Tensor& y, double) { return (y > 0).to(y.scalar_type()); }},
    {Activation::kLeakyRelu, "leaky-relu",
     [](const Tensor& x, double leak) { return at::leaky_relu(x, leak); },
     [](const Tensor&, const Tensor& y, double leak) {
       return at::where(y > 0, at::ones_like(y), at::full_like(y, leak));
     }},
    {Activation::kSoftplus, "softplus", [](const Tensor& x, double) { return at::softplus(x); },
     [](const Tensor&, const Tensor& y, double) { return -at::expm1(-y); }},
    {Activation::kSigmoid, "sigmoid", [](const Tensor& x, double) { return at::sigmoid(x); },
     [](const Tensor&, const Tensor& y, double) { return y * (1 - y); }},
    {Activation::kSilu, "silu", [](const Tensor& x, double) { return at::silu(x); },
     [](const Tensor& x, const Tensor&, double) {
       const Tensor s = at::sigmoid(x);
       return s * (1 + x * (1 - s));
     }},
    {Activation::kGelu, "gelu", [](const Tensor& x, double) { return at::gelu(x); },
     [](const Tensor& x, const Tensor&, double) {
       return at::special_ndtr(x).addcmul_(x, normal_density(x));
     }},
    {Activation::kMish, "mish", [](const Tensor& x, double) { return at::mish(x); },
     [](const Tensor& x, const Tensor&, double) {
       const Tensor t = at::tanh(at::softplus(x));
       return t + x * (1 - t.square()) * at::sigmoid(x);
     }}};

const Entry& entry_of(Activation activation) {
  for (const Entry& entry : kTable)
    if (entry.kind == activation.kind) return entry;
  throw internal_error("unknown activation");
}

}  // namespace

Activation parse_activation(const std::string& text) {
  Spec spec(text);
  for (const Entry& entry : kTable) {
    if (entry.name == nullptr || entry.name != spec.name()) continue;
    Activation activation = entry.kind;
    if (entry.kind == Activation::kLeakyRelu)
      activation.leak = spec.number("slope", 0.0, 1.0, activation.leak);
    spec.finish();
    return activation;
  }
  throw argument_error("unknown activation '", text, "'; choose from ", activation_names());
}

std::string activation_names() {
  std::vector<std::string> names;
  for (const Entry& entry : kTable)
    if (entry.name != nullptr)
      names.push_back(std::string(entry.name) +
                      (entry.kind == Activation::kLeakyRelu ? "[:SLOPE]" : ""));
  return join(names);
}

std::string to_string(Activation activation) {
  const char* name = entry_of(activation).name;
  if (name == nullptr) throw internal_error("an activation without a name");
  return activation == Activation(activation.kind)
             ? name
             : std::string(name) + ":" + shortest(activation.leak);
}

at::Tensor activate(Activation activation, const at::Tensor& x) {
  return entry_of(activation).value(x, activation.leak);
}

at::Tensor slope(Activation activation, const at::Tensor& input, const at::Tensor& output) {
  return entry_of(activation).slope(input, output, activation.leak);
}

}  // namespace crais
