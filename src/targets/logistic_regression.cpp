// The posterior of a Bayesian logistic regression. Its normaliser is the model's evidence.
#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "data/two_class.h"
#include "targets/replicated.h"

namespace crais {
namespace {

/// log gamma(w) = sum_n log sigmoid(y_n x_n . w) + log N(w; 0, variance I), y_n in {-1, 1}. The
/// prior is normalised, so Z = p(y | X).
class LogisticRegression : public Replicated {
 public:
  /// features [N,D], labels [N].
  LogisticRegression(const TargetOptions& options, const at::Tensor& features,
                     const at::Tensor& labels, double variance)
      : Replicated(options, features.size(1), std::nullopt),
        signed_((labels.unsqueeze(1) * features).to(options.tensors)),
        variance_(variance),
        log_peak_(-0.5 * static_cast<double>(dim()) * std::log(2 * M_PI * variance)) {
    // In multiply-adds: N D for the margins, N D for the weights and N D^2 for the product, divided
    // by the 2 N D of one evaluation.
    traits_.curvature_cost = (dim() + 3) / 2;
  }

  at::Tensor log_density(const at::Tensor& w) const override {
    std::vector<at::Tensor> values;
    for (const at::Tensor& block : blocks(w))
      values.push_back(log_joint(block, block.matmul(signed_.t())));
    return at::cat(values).view({w.size(0), w.size(1)});
  }

  Evaluation evaluate(const at::Tensor& w) const override {
    std::vector<at::Tensor> values, grads;
    for (const at::Tensor& block : blocks(w)) {
      const at::Tensor margins = block.matmul(signed_.t());
      values.push_back(log_joint(block, margins));
      grads.push_back(at::sigmoid(-margins).matmul(signed_) - block / variance_);
    }
    return {at::cat(values).view({w.size(0), w.size(1)}), at::cat(grads).view_as(w)};
  }

  /// X^T diag(s (1 - s)) X + I / variance, s = sigmoid(X w): positive definite.
  at::Tensor curvature(const at::Tensor& w) const override {
    const at::Tensor s = at::sigmoid(w.matmul(signed_.t()));  // [P,N]
    const at::Tensor weighted = (s * (1 - s)).unsqueeze(-1) * signed_;
    return signed_.t().matmul(weighted) + at::eye(dim(), w.options()) / variance_;
  }

 private:
  /// Blocks of a few particles, whose margins fit into a core's cache: twice as fast as one block.
  std::vector<at::Tensor> blocks(const at::Tensor& w) const {
    constexpr int64_t kCacheBytes = 256 * 1024;
    const at::Tensor rows = w.reshape({-1, dim()});
    if (!w.is_cpu()) return {rows};
    const int64_t bytes = signed_.size(0) * static_cast<int64_t>(signed_.element_size());
    return rows.split(std::max<int64_t>(1, kCacheBytes / bytes));
  }

  at::Tensor log_joint(const at::Tensor& w, const at::Tensor& margins) const {
    return at::log_sigmoid(margins).sum(-1, /*keepdim=*/false, at::kDouble) -
           0.5 / variance_ * w.square().sum(-1, /*keepdim=*/false, at::kDouble) + log_peak_;
  }

  at::Tensor signed_;  // [N,D]: y_n x_n
  double variance_, log_peak_;
};

const Enrol<TargetRegistry> kEnrolLogisticRegression(
    "logistic-regression:FILE[,variance=V,intercept=0|1]",
    "evidence of a regression on FILE (pima, sonar, a .csv whose last column is the class), "
    "without (0) intercept, prior N(0, V (25) I)",
    "logistic-regression:FILE", [](Spec& spec, const TargetOptions& options) {
      const std::string file = spec.word("file");
      const double variance = spec.number("variance", 1e-6, 1e6, 25);
      const TwoClassData data = read_two_class(file, options.data_dir);
      at::Tensor features = data.features;
      if (spec.integer("intercept", 0, 1, 0) == 1)
        features = at::cat({at::ones_like(features.slice(1, 0, 1)), features}, 1);
      return std::make_unique<LogisticRegression>(options, features, data.labels, variance);
    });

}  // namespace
}  // namespace crais
