#include "targets/replicated.h"

namespace crais {

/// Another number of replicates of the same density.
class Replicated::View : public Replicated {
 public:
  View(const Replicated& whole, int64_t num_problems)
      : Replicated(whole), whole_(std::static_pointer_cast<const Replicated>(whole.shared())) {
    num_problems_ = num_problems;
  }

  at::Tensor log_density(const at::Tensor& z) const override { return whole_->log_density(z); }
  Evaluation evaluate(const at::Tensor& z) const override { return whole_->evaluate(z); }
  at::Tensor curvature(const at::Tensor& z) const override { return whole_->curvature(z); }
  std::optional<Components> components(const at::Tensor& z) const override {
    return whole_->components(z);
  }

 protected:
  std::optional<at::Tensor> draw(const at::Tensor& like, at::Generator& rng) const override {
    return whole_->draw(like, rng);
  }

 private:
  std::shared_ptr<const Replicated> whole_;
};

std::shared_ptr<const Target> Replicated::select(const at::Tensor& index) const {
  return std::make_shared<View>(*this, index.numel());
}

}  // namespace crais
