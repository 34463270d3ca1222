// The normal nearest to the target in KL(q || p), by Newton steps from a fit at the mode.
//                                              [Opper & Archambeau 2009; Khan & Lin 2017]
//
// At the optimum, the mean gradient of log gamma over q is zero, and the precision of q is the mean
// curvature. A fit at the mode uses gradient and curvature at one point. If log gamma is skewed or
// has kinks, that point says little about the mass around it. In many dimensions curvatures are
// dear, and the mean alone is worth most of the gain.
//
// Where a target's curvature is that of data which the model expects, the observed one is the mean
// of -e grad^T in q's coordinates (Stein's identity), by D pairs of draws at right angles.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "bases/base.h"
#include "core/rng.h"
#include "targets/transformed.h"
#include "util/interrupt.h"

namespace crais {
namespace {

class Variational : public BaseRule {
 public:
  Variational(std::unique_ptr<BaseRule> from, const NearestOptions& options)
      : options_(options), curvatures_(options.with_curvatures ? 2 : 0), from_(std::move(from)) {
    name = c10::str("variational:", options.widening);
    const auto add = [&](const char* key, const auto& value, const auto& usual) {
      if (value != usual) name += c10::str(",", key, "=", value);
    };
    const bool has_commas = from_->name.find(',') != std::string::npos;
    add("from", has_commas ? "(" + from_->name + ")" : from_->name, "laplace");
    add("rounds", options.rounds, 2);
    add("pairs", options.pairs, 8);
    add("curvatures", options.with_curvatures, true);
    add("observed", options.observed, false);
  }

  Base build(const Target& target, at::Generator& rng) const override {
    Base base = from_->build(target, rng);
    const auto whole = transformed(target.shared(), base.bijection);
    const auto rows = base.partition ? whole->select(base.partition->problem) : whole;
    at::Tensor length = at::ones({base.map.num_problems(), 1}, base.map.options());
    for (int64_t round = 0; round < options_.rounds; ++round) {
      stop_if_interrupted();
      const int64_t known = 1 + std::min<int64_t>(round, 8) * curvatures_;  // the first ones fade
      at::Tensor damped = length;
      const AffineMap next = nearer(*rows, base.map, known, damped, rng);
      if (round > 0) length = damped;  // the second of two rounds is a whole step
      base.map =
          base.tails.defined() ? chosen(~base.tails, next.loc(), next.matrix(), base.map) : next;
      const int64_t count = cost_of_round(*rows);
      base.cost += base.map.num_problems() * Cost{count, count - 2 * judges_of(rows->dim())};
    }
    base.map = base.map.widened(options_.widening);
    return base;
  }

  /// Cost if the fit has one part.
  std::optional<double> expected_cost(const Target& target) const override {
    const std::optional<double> fit = from_->expected_cost(target);
    return fit ? std::optional(*fit + static_cast<double>(options_.rounds * cost_of_round(target)))
               : fit;
  }

 private:
  /// Pairs of draws of a round, of which the first `judges` tell whether the bound rises.
  int64_t draws_of(int64_t dim) const { return options_.observed ? dim : options_.pairs; }
  int64_t judges_of(int64_t dim) const { return std::min(options_.pairs, draws_of(dim)); }

  int64_t cost_of_round(const Target& target) const {
    return 2 * (draws_of(target.dim()) + judges_of(target.dim())) +
           (options_.observed ? 0 : curvatures_ * target.curvature_cost());
  }

  /// A Newton step from q, of `length` [P,1]. The precision of q counts as the mean of `known`
  /// curvatures. A problem keeps its q, and halves its length, if the evidence lower bound does not
  /// rise. Both bounds use the same draws, which come in pairs, e and -e.
  AffineMap nearer(const Target& target, const AffineMap& q, int64_t known, at::Tensor& length,
                   at::Generator& rng) const {
    const int64_t problems = q.num_problems(), dim = q.dim(), count = draws_of(dim);
    at::Tensor half = fill_normal(at::empty({problems, count, dim}, q.options()), rng);
    if (options_.observed)  // at right angles, as long as draws are
      half = std::sqrt(static_cast<double>(dim)) * std::get<0>(at::linalg_qr(half));
    const at::Tensor e = at::cat({half, -half}, 1);  // [P,2S,D]
    const at::Tensor z = q.to_z(e);
    const Evaluation evaluation = target.evaluate(z);
    const at::Tensor root = q.matrix().to(at::kDouble), root_t = root.transpose(1, 2);
    // The coordinates in which q is N(0, I).
    at::Tensor precision = known * at::eye(dim, root.options()).expand({problems, dim, dim});
    if (options_.observed) {
      const at::Tensor seen =
          at::matmul(at::matmul(e.transpose(1, 2), evaluation.grad).to(at::kDouble), root);
      const double share = curvatures_ / (4.0 * static_cast<double>(dim));
      precision = precision - share * (seen + seen.transpose(1, 2));
    }
    for (int64_t i = 0; i < curvatures_ && !options_.observed; ++i) {
      const int64_t draw = i * count;  // a draw and its mirror image
      const at::Tensor curvature = target.curvature(z.select(1, draw)).to(at::kDouble);
      precision = precision + at::matmul(root_t, at::matmul(curvature, root));
    }
    const Factored factored =
        factor_precision(precision / static_cast<double>(known + curvatures_));
    const at::Tensor fitted = at::matmul(root, factored.covariance_root);  // [P,D,D]
    const at::Tensor slope = evaluation.grad.to(at::kDouble).mean(1).unsqueeze(2);
    const at::Tensor step = at::matmul(fitted, at::matmul(fitted.transpose(1, 2), slope));
    const at::Tensor loc = q.loc() + length * step.squeeze(2).to(q.options());
    const at::Tensor usable =
        ~factored.failed & fitted.isfinite().flatten(1).all(-1) & loc.isfinite().all(-1);
    const AffineMap next = chosen(usable, loc, fitted.to(q.options()), q);
    const auto judging = [&, judges = judges_of(dim)](const at::Tensor& x) {
      return at::cat({x.slice(1, 0, judges), x.slice(1, count, count + judges)}, 1);
    };
    const at::Tensor few = judging(e);
    const at::Tensor rises = evidence_bound(target.log_density(next.to_z(few)), few, next) >
                             evidence_bound(judging(evaluation.log_density), few, q);
    length = at::where(rises.unsqueeze(1), (1.5 * length).clamp_max(1), 0.5 * length);
    return chosen(rises, next.loc(), next.matrix(), q);
  }

  NearestOptions options_;
  int64_t curvatures_;  // of a round
  std::unique_ptr<const BaseRule> from_;
};

const Enrol<BaseRegistry> kEnrolVariationalBase(
    "variational[:W]",
    "the normal nearest to the target by KL(q || p), its standard deviations times W: from=BASE "
    "(laplace), then rounds=2 of Newton's method on the evidence lower bound by pairs=8 of draws "
    "(curvatures=0: of the mean alone; observed=1: with curvatures by gradients of 2 D draws); a "
    "round that does not raise the bound is taken back",
    "variational", [](Spec& spec, const BaseOptions& options) {
      const NearestOptions nearest{
          spec.number("widening", 0.1, 10.0, 1.0), spec.integer("rounds", 1, 100, 2),
          spec.integer("pairs", 1, 100'000, 8), spec.integer("curvatures", 0, 1, 1) == 1,
          spec.integer("observed", 0, 1, 0) == 1};
      return make_variational(make_base(spec.word("from", "laplace"), options), nearest);
    });

}  // namespace

std::unique_ptr<BaseRule> make_variational(std::unique_ptr<BaseRule> from,
                                           const NearestOptions& options) {
  return std::make_unique<Variational>(std::move(from), options);
}

}  // namespace crais
