#include "estimates/method.h"

#include "util/error.h"

namespace crais {

PreparedMethod Method::prepare(const Problem& /*pilots*/, uint64_t /*seed*/,
                               const PrepareReport& /*report*/) const {
  throw internal_error("a method that has nothing to learn was asked to");
}

MethodResult joined(const std::vector<MethodResult>& blocks) {
  if (blocks.size() == 1) return blocks.front();
  const auto all = [&](const auto& of) {
    std::vector<at::Tensor> parts;
    parts.reserve(blocks.size());
    for (const MethodResult& block : blocks) parts.push_back(of(block));
    return at::cat(parts, 1);
  };
  MethodResult whole;
  whole.log_w = all([](const MethodResult& block) { return block.log_w; });
  whole.estimate = log_normalizer(whole.log_w);
  if (blocks.front().reverse_log_w.defined()) {
    whole.reverse_log_w = all([](const MethodResult& block) { return block.reverse_log_w; });
    whole.upper = reverse_log_normalizer(whole.reverse_log_w);
  }
  at::Tensor accepted = at::zeros_like(blocks.front().accept_prob);
  for (const MethodResult& block : blocks) {
    accepted += block.accept_prob * static_cast<double>(block.log_w.size(1));
    whole.num_nonfinite += block.num_nonfinite;
    whole.cost += block.cost;
  }
  whole.accept_prob = accepted / static_cast<double>(whole.log_w.size(1));
  if (blocks.front().particles)
    whole.particles = {all([](const MethodResult& block) { return block.particles->z; }),
                       whole.log_w, blocks.front().particles->num_resamplings};
  return whole;
}

}  // namespace crais
