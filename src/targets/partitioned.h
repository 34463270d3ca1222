/// @file
/// The parts of a partition of unity, each as a target of its own.
#pragma once

#include <ATen/ATen.h>

#include <memory>
#include <optional>

#include "core/affine_map.h"
#include "core/partition.h"
#include "core/target.h"

namespace crais {

/// Row q is gamma_p(z) r_q(z): a part of problem p = partition.problem[q], with the normal N_q =
/// N(loc_q, A_q A_q^T) of `normals`. A row usually has one mode, near its normal.
///
/// Cost: one evaluation of the target, and one product with a D x D matrix for each part of the
/// problem.
class PartitionedTarget : public Target {
 public:
  /// `target` has P problems and can `select`. `normals` has one row for each part.
  PartitionedTarget(const Target& target, const AffineMap& normals, const Partition& partition);

  int64_t num_problems() const override { return own_.size(0); }
  int64_t dim() const override { return rows_->dim(); }
  at::Tensor log_density(const at::Tensor& z) const override;
  Evaluation evaluate(const at::Tensor& z) const override;
  std::shared_ptr<const Target> with_forces(at::ScalarType dtype) const override;
  std::shared_ptr<const Target> select(const at::Tensor& index) const override;
  /// Draws of the whole problem: equal for all its parts.
  std::optional<at::Tensor> exact_sample(int64_t k, at::Generator& rng) const override;

  /// The target whose problems have these parts.
  const Target& whole() const { return *whole_; }
  /// log r_q(z) of each row at z [Q,K,D]: [Q,K] float64.
  at::Tensor log_responsibility(const at::Tensor& z) const;
  /// log(pi_j N_j(z)) of every part j of each row's problem, z [Q,K,D] -> [J,Q,K] float64. Part j
  /// has index j; the entry is -inf if the problem has fewer parts.
  at::Tensor log_components(const at::Tensor& z) const;
  /// The index of each row's own part in `log_components`: [Q] int64.
  at::Tensor places() const;

 private:
  struct Normals {
    at::Tensor loc;        // [C,D]
    at::Tensor inverse;    // [C,D,D]: A^-1
    at::Tensor log_scale;  // [C] float64: log pi - log|det A| - D/2 log 2 pi
  };
  /// log r and, if `with_gradient`, its gradient.
  Evaluation responsibility(const at::Tensor& z, bool with_gradient) const;

  std::shared_ptr<const Target> whole_, rows_;
  Partition partition_;  // of all rows
  std::shared_ptr<const Normals> normals_;
  at::Tensor own_;      // [Q] int64: the row's normal
  at::Tensor members_;  // [Q,J] int64: normals of its problem; -1: none
};

/// Draws the part of each point with probability r_j(z): [P,K] int64, indices among the parts of a
/// problem, for logs [J,P,K] of `log_components`.
at::Tensor draw_labels(const at::Tensor& logs, at::Generator& rng);

}  // namespace crais
