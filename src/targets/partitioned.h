/// @file
/// The parts of a partition of unity, each a target of its own.
#pragma once

#include <ATen/ATen.h>

#include <memory>
#include <optional>

#include "core/affine_map.h"
#include "core/partition.h"
#include "core/target.h"

namespace crais {

/// Row q is gamma_p(z) r_q(z): a part of problem p = partition.problem[q], whose normal N_q is
/// N(loc_q, A_q A_q^T) of `normals`. A row has mostly one mode, near the normal of that row.
///
/// Cost: that of the target, and a multiplication by D x D a part of the same problem.
class PartitionedTarget : public Target {
 public:
  /// `target` has P problems and can `select`; `normals` have a row for each part.
  PartitionedTarget(const Target& target, const AffineMap& normals, const Partition& partition);

  int64_t num_problems() const override { return own_.size(0); }
  int64_t dim() const override { return rows_->dim(); }
  at::Tensor log_density(const at::Tensor& z) const override;
  Evaluation evaluate(const at::Tensor& z) const override;
  std::shared_ptr<const Target> with_forces(at::ScalarType dtype) const override;
  bool forces_pay(at::ScalarType dtype) const override { return rows_->forces_pay(dtype); }
  bool can_select() const override { return true; }
  std::shared_ptr<const Target> select(const at::Tensor& index) const override;
  at::TensorOptions options() const override { return rows_->options(); }
  /// Draws of the whole problem, the same for each of its parts.
  std::optional<at::Tensor> exact_sample(int64_t k, at::Generator& rng) const override;

  /// log r_q(z) of each row, z [Q,K,D] -> [Q,K] float64.
  at::Tensor log_responsibility(const at::Tensor& z) const;
  /// log(pi_j N_j(z)) of every part j of each row's problem, z [Q,K,D] -> [J,Q,K] float64, -inf
  /// where the problem has fewer than J parts. Part j of a problem stands at place j.
  at::Tensor log_components(const at::Tensor& z) const;
  /// Which place of `log_components` is the row's own: [Q] int64.
  at::Tensor places() const;

 private:
  struct Normals {
    at::Tensor loc;        // [C,D]
    at::Tensor inverse;    // [C,D,D]: A^-1
    at::Tensor log_scale;  // [C] float64: log pi - log|det A| - D/2 log 2 pi
  };
  /// With the gradient of log r.
  Evaluation responsibility(const at::Tensor& z, bool with_gradient) const;

  std::shared_ptr<const Target> whole_, rows_;
  Partition partition_;  // of the whole
  std::shared_ptr<const Normals> normals_;
  at::Tensor own_;      // [Q] int64: the row's normal
  at::Tensor members_;  // [Q,J] int64: normals of its problem; -1: none
};

/// Which part each point belongs to, drawn with probability r_j(z): [P,K] int64 places among the
/// parts of a problem, for logs [J,P,K] of `log_components`.
at::Tensor draw_labels(const at::Tensor& logs, at::Generator& rng);

}  // namespace crais
