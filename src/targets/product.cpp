// The curvature of products, and the named ones: normal, Laplace and Student-t coordinates.
#include "targets/product.h"

#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <memory>

namespace crais {
namespace {

/// A narrow normal with its mean away from the base:
/// log gamma = -|z - mean|^2 / (2 sd^2); log Z = D (log(2 pi) / 2 + log sd).
///
/// The paper's text has mean 0, but its experiments and this target have mean 1.
class NarrowNormal : public Product {
 public:
  NarrowNormal(const TargetOptions& options, int64_t dim, double mean, double sd)
      : Product(options, dim, static_cast<double>(dim) * (0.5 * std::log(2 * M_PI) + std::log(sd))),
        mean_(mean),
        sd_(sd) {}

 protected:
  std::optional<at::Tensor> draw(const at::Tensor& like, at::Generator& rng) const override {
    return at::empty_like(like).normal_(mean_, sd_, rng);
  }
  at::Tensor log_factors(const at::Tensor& z) const override {
    return (z - mean_).square() * (-0.5 / (sd_ * sd_));
  }
  at::Tensor slopes(const at::Tensor& z) const override { return (mean_ - z) / (sd_ * sd_); }

 private:
  double mean_, sd_;
};

const Enrol<TargetRegistry> kEnrolNormal("normal[:DIM,mean=1,sd=0.1]",
                                         "N(mean, sd^2 I) in DIM (128) dimensions", "normal:5",
                                         [](Spec& spec, const TargetOptions& options) {
                                           const int64_t dim = read_dim(spec);
                                           const double mean = spec.number("mean", -1e6, 1e6, 1);
                                           return std::make_unique<NarrowNormal>(
                                               options, dim, mean,
                                               spec.number("sd", 1e-6, 1e6, 0.1));
                                         });

const Enrol<TargetRegistry> kEnrolPlane("u6", "N((1, 1), 0.01 I) in the plane", "u6",
                                        [](Spec&, const TargetOptions& options) {
                                          return std::make_unique<NarrowNormal>(options, 2, 1, 0.1);
                                        });

/// log gamma = -sum |z_d| - D log 2; Z = 1. The gradient at a kink is 0.
class Laplace : public Product {
 public:
  Laplace(const TargetOptions& options, int64_t dim) : Product(options, dim, 0.0) {}

 protected:
  /// The difference of two exponential variables is a Laplace variable.
  std::optional<at::Tensor> draw(const at::Tensor& like, at::Generator& rng) const override {
    const at::Tensor first = at::empty_like(like).exponential_(1, rng);
    return first - at::empty_like(like).exponential_(1, rng);
  }
  at::Tensor log_factors(const at::Tensor& z) const override { return -z.abs() - std::log(2.0); }
  at::Tensor slopes(const at::Tensor& z) const override { return -z.sign(); }
};

const Enrol<TargetRegistry> kEnrolLaplace("laplace[:DIM]",
                                          "independent Laplace(0, 1) in DIM (128) dimensions",
                                          "laplace:4",
                                          [](Spec& spec, const TargetOptions& options) {
                                            return std::make_unique<Laplace>(options,
                                                                             read_dim(spec));
                                          });

/// Each coordinate is Student-t with nu degrees of freedom; Z = 1.
class StudentT : public Product {
 public:
  StudentT(const TargetOptions& options, int64_t dim, double nu)
      : Product(options, dim, 0.0),
        nu_(nu),
        log_peak_(std::lgamma(0.5 * (nu + 1)) - std::lgamma(0.5 * nu) - 0.5 * std::log(nu * M_PI)) {
  }

 protected:
  /// A normal variable divided by the root of an independent chi-square over its degrees of
  /// freedom.
  std::optional<at::Tensor> draw(const at::Tensor& like, at::Generator& rng) const override {
    const at::Tensor chi_square =
        2 * at::_standard_gamma(at::full_like(like, 0.5 * nu_), rng) / nu_;
    return at::empty_like(like).normal_(0, 1, rng) / chi_square.sqrt();
  }
  at::Tensor log_factors(const at::Tensor& z) const override {
    return log_peak_ - 0.5 * (nu_ + 1) * (z.square() / nu_).log1p();
  }
  at::Tensor slopes(const at::Tensor& z) const override {
    return -(nu_ + 1) * z / (nu_ + z.square());
  }

 private:
  double nu_;
  double log_peak_;
};

const Enrol<TargetRegistry> kEnrolStudentT(
    "student-t[:DIM,nu=NU]",
    "independent Student-t in DIM (128) dimensions, NU (3) degrees of freedom", "student-t:3",
    [](Spec& spec, const TargetOptions& options) {
      const int64_t dim = read_dim(spec);
      return std::make_unique<StudentT>(options, dim, spec.number("nu", 0.5, 1000, 3));
    });

}  // namespace

at::Tensor Product::curvature(const at::Tensor& z) const {
  const c10::AutoGradMode with_grad(true);
  const at::Tensor leaf = z.detach().requires_grad_(true);
  const at::Tensor slope =
      torch::autograd::grad({log_factors(leaf).sum()}, {leaf}, {}, true, /*create_graph=*/true)[0];
  const at::Tensor second =
      slope.requires_grad() ? torch::autograd::grad({slope.sum()}, {leaf})[0] : at::zeros_like(z);
  return at::diag_embed(-second);
}

}  // namespace crais
