// A log-Gaussian Cox process: pines in a Finnish forest.  [Moller, Syversveen & Waagepetersen 1998]
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "core/triangular.h"
#include "targets/replicated.h"

namespace crais {
namespace {

struct Point {
  double x, y;
};

// 126 pines in the unit square. Some copies of these data have the first pine twice, but keep the
// mean of 126: their log Z is 5.4 nats higher.
const std::vector<Point> kPines = {
    {0.3006125, 0.8929764}, {0.3980099, 0.8412069}, {0.0085929, 0.9985425}, {0.0530038, 0.9452390},
    {0.0696153, 0.8914821}, {0.1185226, 0.8810864}, {0.1576485, 0.8727699}, {0.1869929, 0.8665325},
    {0.0568367, 0.8781427}, {0.4100000, 0.8000002}, {0.1100594, 0.8068074}, {0.3684429, 0.7521175},
    {0.2500718, 0.7283350}, {0.2295406, 0.7275314}, {0.0489471, 0.6358315}, {0.0865348, 0.6495122},
    {0.0892241, 0.6423192}, {0.0959318, 0.6529324}, {0.1825823, 0.6781558}, {0.1849651, 0.5875076},
    {0.0051835, 0.4786643}, {0.4434313, 0.7434316}, {0.1782606, 0.5300302}, {0.2122633, 0.5221375},
    {0.0972335, 0.3026277}, {0.0152691, 0.0535846}, {0.0261619, 0.0703580}, {0.4608563, 0.7419675},
    {0.1555508, 0.2487698}, {0.3039291, 0.4980792}, {0.2774328, 0.4438205}, {0.4099995, 0.6441157},
    {0.2549986, 0.3756484}, {0.1897200, 0.2402444}, {0.1751756, 0.2140059}, {0.1599981, 0.2111038},
    {0.1713678, 0.1819378}, {0.1606312, 0.1877673}, {0.1299979, 0.1591424}, {0.0399974, 0.0032581},
    {0.3563503, 0.4053296}, {0.2298017, 0.0576437}, {0.3058833, 0.0755563}, {0.3032951, 0.0658970},
    {0.3330716, 0.1304965}, {0.3524256, 0.2081201}, {0.3731771, 0.3266967}, {0.4346802, 0.5380204},
    {0.4288029, 0.3962291}, {0.3992822, 0.2288118}, {0.4049391, 0.0258143}, {0.4278728, 0.1137802},
    {0.4999976, 0.0900000}, {0.4999977, 0.1200000}, {0.4999980, 0.2100000}, {0.5382026, 0.0710002},
    {0.5350627, 0.1309181}, {0.5593918, 0.1325493}, {0.5583918, 0.1315493}, {0.5575203, 0.1425113},
    {0.5425492, 0.1914858}, {0.5522912, 0.2022830}, {0.5783938, 0.0541083}, {0.5773485, 0.0640535},
    {0.5637603, 0.1933414}, {0.5627150, 0.2032866}, {0.5616698, 0.2132318}, {0.5595793, 0.2331223},
    {0.5658076, 0.2640248}, {0.5314927, 0.6635881}, {0.5774138, 0.4895051}, {0.5870906, 0.4506932},
    {0.6204589, 0.4501577}, {0.6530154, 0.3556057}, {0.6953639, 0.3397469}, {0.6992711, 0.3305418},
    {0.7031784, 0.3213367}, {0.7198075, 0.2845165}, {0.7188075, 0.2845165}, {0.7237032, 0.2975492},
    {0.7318379, 0.2792782}, {0.8634487, 0.0205739}, {0.7323348, 0.3236382}, {0.7411021, 0.3056623},
    {0.9302621, 0.1374484}, {0.9106847, 0.1427610}, {0.7384621, 0.4183774}, {0.6539145, 0.6029967},
    {0.9719881, 0.2171387}, {0.8583619, 0.4658193}, {0.7120918, 0.6022196}, {0.9457258, 0.5321783},
    {0.8221761, 0.6632427}, {0.8129711, 0.6671501}, {0.6933057, 0.7179456}, {0.9079437, 0.7500316},
    {0.9069437, 0.7490316}, {0.7757459, 0.7513772}, {0.7673722, 0.7624220}, {0.7382109, 0.7707502},
    {0.7696299, 0.7858680}, {0.8305476, 0.7827276}, {0.8295476, 0.7837276}, {0.8595065, 0.7811573},
    {0.8894654, 0.7795871}, {0.9397319, 0.7846421}, {0.7490487, 0.8217889}, {0.9881354, 0.8427063},
    {0.8366912, 0.8473188}, {0.8862046, 0.8542775}, {0.9159126, 0.8584527}, {0.9037712, 0.8711957},
    {0.8325702, 0.8706899}, {0.7934443, 0.8623735}, {0.9733037, 0.9268212}, {0.9698464, 0.9710100},
    {0.8296725, 0.9679764}, {0.5670937, 0.8435711}, {0.7289731, 0.9430781}, {0.5737237, 0.8516218},
    {0.7374739, 0.9992640}, {0.6198207, 0.9845074}, {0.5871423, 0.9341872}, {0.5618047, 0.9028600},
    {0.5207913, 0.8978147}, {0.4860489, 0.9995128}};

constexpr double kVariance = 1.91, kLength = 1.0 / 33;

/// An axis of n cells, x = [first half, middle if n is odd, second half], as what is even under its
/// reflection and what is odd. The change of coordinates is orthogonal.
class Mirror {
 public:
  explicit Mirror(int64_t n) : n_(n), half_(n / 2) {}

  int64_t num_even() const { return n_ - half_; }
  int64_t num_odd() const { return half_; }

  /// Even [...,num_even] and odd [...,num_odd] parts along `axis` of x.
  std::pair<at::Tensor, at::Tensor> parts(const at::Tensor& x, int64_t axis) const {
    const at::Tensor near = x.narrow(axis, 0, half_),
                     far = x.narrow(axis, n_ - half_, half_).flip(axis);
    at::Tensor even = (near + far) * kRoot;
    if (n_ % 2 == 1) even = at::cat({even, x.narrow(axis, half_, 1)}, axis);
    return {even, (near - far) * kRoot};
  }
  at::Tensor joined(const at::Tensor& even, const at::Tensor& odd, int64_t axis) const {
    const at::Tensor pairs = even.narrow(axis, 0, half_) * kRoot, differences = odd * kRoot;
    return at::cat(
        {pairs + differences, even.narrow(axis, half_, n_ % 2), (pairs - differences).flip(axis)},
        axis);
  }

 private:
  static constexpr double kRoot = M_SQRT1_2;
  int64_t n_, half_;
};

/// A root R of a covariance on n x n cells that reflections of either axis do not change. What is
/// even and what is odd are independent, so R R^T consists of four blocks of a quarter of the
/// cells, each with a Cholesky factor of its own.
class MirroredRoot {
 public:
  MirroredRoot(int64_t n, const at::Tensor& covariance) : n_(n), mirror_(n) {
    const at::Tensor half = at::cat(split(covariance), 1);  // [n^2,n^2]
    const std::vector<at::Tensor> rows = split(half.t().contiguous());
    int64_t begin = 0;
    for (const at::Tensor& of_block : rows) {
      const int64_t size = of_block.size(1);
      factors_.push_back(at::linalg_cholesky(of_block.slice(0, begin, begin + size)));
      begin += size;
    }
  }

  void to(const at::TensorOptions& options) {
    for (at::Tensor& factor : factors_) factor = factor.to(options);
  }

  /// R z for rows z of x [...,n^2].
  at::Tensor times(const at::Tensor& x) const {
    std::vector<at::Tensor> blocks;
    int64_t begin = 0;
    for (const at::Tensor& factor : factors_) {
      const int64_t size = factor.size(0);
      blocks.push_back(times_transposed(x.narrow(-1, begin, size), factor));
      begin += size;
    }
    return joined(blocks);
  }
  /// R^T v for rows v of x [...,n^2].
  at::Tensor transposed_times(const at::Tensor& x) const {
    std::vector<at::Tensor> blocks = split(x);
    for (size_t i = 0; i < blocks.size(); ++i) blocks[i] = crais::times(blocks[i], factors_[i]);
    return at::cat(blocks, -1);
  }

 private:
  /// The four parts of rows x [...,n^2]: by the parity along the first axis, then the second.
  std::vector<at::Tensor> split(const at::Tensor& x) const {
    std::vector<at::Tensor> blocks;
    const auto [even, odd] = mirror_.parts(x.unflatten(-1, {n_, n_}), -2);
    for (const at::Tensor& half : {even, odd}) {
      const auto [left, right] = mirror_.parts(half, -1);
      blocks.push_back(left.flatten(-2));
      blocks.push_back(right.flatten(-2));
    }
    return blocks;
  }
  at::Tensor joined(const std::vector<at::Tensor>& blocks) const {
    const auto half = [&](const at::Tensor& left, const at::Tensor& right, int64_t rows) {
      return mirror_.joined(left.unflatten(-1, {rows, mirror_.num_even()}),
                            right.unflatten(-1, {rows, mirror_.num_odd()}), -1);
    };
    return mirror_
        .joined(half(blocks[0], blocks[1], mirror_.num_even()),
                half(blocks[2], blocks[3], mirror_.num_odd()), -2)
        .flatten(-2);
  }

  int64_t n_;
  Mirror mirror_;
  std::vector<at::Tensor> factors_;  // lower-triangular
};

/// z [n^2] whitened. The log rates R z + mean are a Gaussian field on n x n cells with covariance
/// 1.91 exp(-33 |distance|). Counts are Poisson, without the factorials.
class CoxProcess : public Replicated {
 public:
  CoxProcess(const TargetOptions& options, int64_t n, bool first_twice)
      : Replicated(options, n * n, std::nullopt),
        area_(1.0 / static_cast<double>(n * n)),
        root_(n, covariance(n)) {
    const auto side = static_cast<double>(n);
    at::Tensor counts = at::zeros({n * n}, at::kDouble);
    for (const Point& p : kPines) {
      const auto row = static_cast<int64_t>(p.x * side), column = static_cast<int64_t>(p.y * side);
      counts[row * n + column] += &p == &kPines.front() && first_twice ? 2 : 1;
    }
    root_.to(options.tensors);
    columns_ = root_.times(at::eye(n * n, options.tensors));
    counts_ = counts.to(options.tensors);
  }

  at::Tensor log_density(const at::Tensor& z) const override { return log_joint(z, log_rates(z)); }
  Evaluation evaluate(const at::Tensor& z) const override {
    const at::Tensor x = log_rates(z);
    return {log_joint(z, x), root_.transposed_times(counts_ - area_ * x.exp()) - z};
  }
  /// I + R^T diag(area exp(x)) R.
  at::Tensor curvature(const at::Tensor& z) const override {
    const at::Tensor rates = area_ * log_rates(z).exp();  // [P,D]
    return root_.transposed_times(columns_ * rates.unsqueeze(-2)) + at::eye(dim(), z.options());
  }
  /// Cost in multiply-adds: D^3 / 8 for the product and D^2 / 8 for the rates, divided by the
  /// D^2 / 4 of one evaluation.
  int64_t curvature_cost() const override { return (dim() + 1) / 2 + 1; }

 private:
  static at::Tensor covariance(int64_t n) {
    const at::Tensor cell = at::arange(n, at::kDouble) / static_cast<double>(n);
    const at::Tensor cells = at::stack(at::meshgrid({cell, cell}, "ij"), -1).view({n * n, 2});
    return kVariance * (-at::cdist(cells, cells) / kLength).exp();
  }
  at::Tensor log_rates(const at::Tensor& z) const {
    return root_.times(z) + std::log(static_cast<double>(kPines.size())) - 0.5 * kVariance;
  }
  at::Tensor log_joint(const at::Tensor& z, const at::Tensor& x) const {
    const at::Tensor terms =
        counts_ * x - area_ * x.exp() - 0.5 * z.square() - 0.5 * std::log(2 * M_PI);
    return terms.sum(-1, /*keepdim=*/false, at::kDouble);
  }

  double area_;  // of a cell
  MirroredRoot root_;
  at::Tensor columns_;  // [D,D]: the columns of R, each as a row
  at::Tensor counts_;   // [D]
};

const Enrol<TargetRegistry> kEnrolCoxProcess(
    "cox-process",
    {"cox-process[:N,twice=0|1]",
     "126 Finnish pines on N x N (40) cells, the first counted once (0) or twice: a log-Gaussian "
     "Cox process",
     "cox-process:3", [](Spec& spec, const TargetOptions& options) {
       const int64_t n = spec.integer("n", 2, 100, 40);
       return std::make_unique<CoxProcess>(options, n, spec.integer("twice", 0, 1, 0) == 1);
     }});

}  // namespace
}  // namespace crais
