// Independent Student-t coordinates: heavy tails.
#include <cmath>
#include <memory>

#include "targets/product.h"

namespace crais {
namespace {

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
    "student-t", {"student-t[:DIM,nu=NU]",
                  "independent Student-t in DIM (128) dimensions, NU (3) degrees of freedom",
                  "student-t:3", [](Spec& spec, const TargetOptions& options) {
                    const int64_t dim = read_dim(spec);
                    return std::make_unique<StudentT>(options, dim,
                                                      spec.number("nu", 0.5, 1000, 3));
                  }});

}  // namespace
}  // namespace crais
