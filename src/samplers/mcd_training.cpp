#include "samplers/mcd_training.h"

#include <c10/core/GradMode.h>
#include <torch/optim/adam.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/rng.h"
#include "util/error.h"

namespace crais {
namespace {

int64_t chains_each(int64_t chains, const Problem& problem) {
  return std::max<int64_t>(1, chains / problem.num_problems());
}

/// Problems for training and for validation. They are the same problems, or disjoint if each
/// iteration draws `batch` of many.
class Lessons {
 public:
  Lessons(const Problem& problem, const McdTrainingOptions& options, uint64_t seed)
      : batch_(options.batch),
        draws_(problem.num_problems() > batch_ && problem.target().can_select()),
        held_out_(
            draws_ ? std::clamp<int64_t>(problem.num_problems() / 4, 1, options.validation_chains)
                   : 0),
        training_(problem),
        validation_(draws_ ? problem.select(range(problem, 0, held_out_)) : problem),
        rng_(make_generator(derive_seed(seed, Purpose::kShuffle))) {}

  const Problem& validation() const { return validation_; }

  /// The problems of the next iteration.
  Problem next() {
    if (!draws_) return training_;
    const int64_t others = training_.num_problems() - held_out_;
    const at::Tensor drawn = at::randperm(others, rng_, at::kLong).slice(0, 0, batch_) + held_out_;
    return training_.select(drawn.to(training_.base().options().device()));
  }

 private:
  static at::Tensor range(const Problem& problem, int64_t begin, int64_t end) {
    return at::arange(begin, end, problem.base().options().dtype(at::kLong));
  }

  int64_t batch_;
  bool draws_;
  int64_t held_out_;  // number of problems held out, from the front
  Problem training_, validation_;
  at::Generator rng_;
};

/// Shortens `grad` to at most kLongest times the running mean of its length, then updates that
/// mean.
class Clip {
 public:
  void operator()(const at::Tensor& grad) {
    constexpr double kLongest = 3, kMemory = 0.95;
    const double norm = grad.norm().item<double>();
    const double longest = usual_ > 0 ? kLongest * usual_ : norm;
    if (norm > longest) grad.mul_(longest / norm);
    usual_ = usual_ > 0 ? kMemory * usual_ + (1 - kMemory) * std::min(norm, longest) : norm;
  }

 private:
  double usual_ = 0;
};

}  // namespace

TrainedMcd train_mcd(const Problem& problem, const ScoreNetworkShape& shape,
                     const McdTrainingOptions& options, uint64_t seed) {
  const at::Device device = problem.base().options().device();
  const auto stream = [&](Purpose purpose) {
    return make_generator(derive_seed(seed, purpose), device);
  };
  at::Generator initial = stream(Purpose::kInitialise), noise = stream(Purpose::kTrain);
  const at::Tensor flat =
      McdParameters::initial(shape, options.step_size, problem.base().options(), initial);
  Lessons lessons(problem, options, seed);
  Cost cost;
  const auto validate = [&] {
    const c10::NoGradGuard no_grad;
    at::Generator same = stream(Purpose::kValidate);
    const Problem& held_out = lessons.validation();
    const LogWeights weights = mcd_log_weights(
        held_out, {shape, flat}, chains_each(options.validation_chains, held_out), same);
    cost += weights.cost;
    return weights.log_w.mean().item<double>();
  };
  TrainedMcd best{flat.clone(), validate(), 0, 0, {}};
  best.elbo = best.initial_elbo;
  if (!std::isfinite(best.elbo))
    throw DivergedError("mcd: chains diverge before any training; try a smaller step=");

  const c10::AutoGradMode with_grad(true);
  flat.requires_grad_(true);
  torch::optim::Adam optimizer(std::vector<at::Tensor>{flat},
                               torch::optim::AdamOptions(options.learning_rate));
  Clip clip;
  int64_t since_best = 0;
  for (int64_t i = 1; i <= options.iterations; ++i) {
    // Constant for the first half, then linear to 0: noise in the parameters costs nats.
    const double left =
        static_cast<double>(options.iterations - i + 1) / static_cast<double>(options.iterations);
    static_cast<torch::optim::AdamOptions&>(optimizer.param_groups()[0].options())
        .lr(options.learning_rate * std::min(1.0, 2 * left));
    const Problem drawn = lessons.next();
    const LogWeights weights =
        mcd_log_weights(drawn, {shape, flat}, chains_each(options.batch, drawn), noise);
    cost += weights.cost;
    const at::Tensor objective = weights.log_w.mean();
    flat.mutable_grad() = at::Tensor();
    objective.neg().backward();
    if (!std::isfinite(objective.item<double>()) || !flat.grad().isfinite().all().item<bool>())
      throw DivergedError(
          "mcd: training diverged in iteration " + std::to_string(i) +
          ": the bound or its gradient is not finite; try a smaller rate= or step=");
    clip(flat.grad());
    optimizer.step();
    best.iterations = i;
    if (i % options.validate_every == 0 || i == options.iterations) {
      const double elbo = validate();
      if (elbo > best.elbo) {
        best.elbo = elbo;
        best.flat = flat.detach().clone();
        since_best = 0;
      } else if (++since_best == options.patience) {
        break;
      }
    }
  }
  best.cost = cost;
  return best;
}

}  // namespace crais
