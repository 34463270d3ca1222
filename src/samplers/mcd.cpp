#include "samplers/mcd.h"

#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/optim/adam.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "core/rng.h"
#include "util/error.h"
#include "util/interrupt.h"

namespace crais {
namespace {

constexpr size_t kBlocks = 2;  // residual blocks of a score network
constexpr auto kActivation = Activation::kElu;

std::vector<std::vector<int64_t>> part_sizes(const ScoreNetworkShape& shape) {
  std::vector<std::vector<int64_t>> sizes = {
      {shape.dim}, {shape.dim}, {shape.num_steps}, {shape.num_steps}};
  const std::vector<int64_t> by_moves = {shape.num_steps}, by_coordinates = {shape.dim};
  if (shape.linear) sizes.insert(sizes.end(), {by_moves, by_coordinates, by_moves, by_coordinates});
  const auto network = shape.tensor_sizes();
  sizes.insert(sizes.end(), network.begin(), network.end());
  return sizes;
}

int64_t product(const std::vector<int64_t>& sizes) {
  int64_t all = 1;
  for (const int64_t size : sizes) all *= size;
  return all;
}

/// The parts of `flat`: loc, log_sd, increments of beta, log step sizes, of_score and of_place by
/// moves and by coordinates, then the network's tensors.
std::vector<at::Tensor> split(const ScoreNetworkShape& shape, const at::Tensor& flat) {
  const auto sizes = part_sizes(shape);
  std::vector<int64_t> lengths;
  lengths.reserve(sizes.size());
  for (const auto& size : sizes) lengths.push_back(product(size));
  std::vector<at::Tensor> parts = flat.split_with_sizes(lengths);
  for (size_t i = 0; i < parts.size(); ++i) parts[i] = parts[i].view(sizes[i]);
  return parts;
}

std::ptrdiff_t first_of_network(const ScoreNetworkShape& shape) { return shape.linear ? 8 : 4; }

struct Place {
  at::Tensor e;                    // [P,K,D]
  at::Tensor log_gamma, gradient;  // [P,K] float64, centred, and [P,K,D]
};

/// As Problem::evaluate, but differentiable in e, which must require a gradient.
Place with_graph_at(const Problem& problem, const at::Tensor& e) {
  const AffineMap& base = problem.base();
  const at::Tensor log_gamma = problem.target().log_density(base.to_z(e)).to(at::kDouble) +
                               (base.log_abs_det() - problem.log_center()).unsqueeze(1);
  if (!log_gamma.requires_grad())
    throw argument_error(
        "the `method` mcd needs second derivatives of the log density, which this target or model "
        "lacks");
  return {e, log_gamma,
          torch::autograd::grad({log_gamma.sum()}, {e}, /*grad_outputs=*/{},
                                /*retain_graph=*/true, /*create_graph=*/true)[0]};
}

/// Betas from increments. The last beta is the constant 1, without rounding.
at::Tensor to_betas(const at::Tensor& increments) {
  const at::Tensor sums = increments.softmax(0).cumsum(0);
  return at::cat({at::zeros({1}, sums.options()), sums / sums[-1]});
}

}  // namespace

std::vector<std::vector<int64_t>> ScoreNetworkShape::tensor_sizes() const {
  std::vector<std::vector<int64_t>> sizes = {
      {num_steps, embedding}, {hidden, embedding}, {hidden, dim}, {hidden}};
  for (size_t block = 0; block < kBlocks; ++block)
    sizes.insert(sizes.end(), {{hidden, hidden}, {hidden}});
  sizes.insert(sizes.end(), {{dim, hidden}, {dim}});
  return sizes;
}

ScoreNetwork::ScoreNetwork(const std::vector<at::Tensor>& tensors)
    : steps_(tensors[0]), steps_weight_(tensors[1]) {
  for (size_t i = 2; i + 1 < tensors.size(); i += 2)
    layers_.push_back({tensors[i], tensors[i + 1]});
}

void ScoreNetwork::initialise(const std::vector<at::Tensor>& tensors, at::Generator& rng) {
  const c10::NoGradGuard no_grad;
  for (const at::Tensor& tensor : tensors) {
    if (tensor.dim() == 1) {
      tensor.zero_();
    } else {
      const double limit = std::sqrt(6.0 / static_cast<double>(tensor.size(0) + tensor.size(1)));
      tensor.uniform_(-limit, limit, rng);
    }
  }
  tensors.front().normal_(0, 1, rng);
  tensors[tensors.size() - 2].zero_();
}

at::Tensor ScoreNetwork::forward(const at::Tensor& x) const {
  const int64_t num_steps = x.size(0);
  const at::Tensor shift = at::matmul(steps_, steps_weight_.t()).unsqueeze(1);
  at::Tensor hidden =
      at::linear(x.reshape({num_steps, -1, x.size(-1)}), layers_[0].weight, layers_[0].bias);
  hidden = activate(kActivation, hidden + shift);
  for (size_t i = 1; i + 1 < layers_.size(); ++i)
    hidden = hidden + activate(kActivation, at::linear(hidden, layers_[i].weight, layers_[i].bias));
  return at::linear(hidden, layers_.back().weight, layers_.back().bias).view(x.sizes());
}

McdParameters::McdParameters(const ScoreNetworkShape& shape, const at::Tensor& flat)
    : McdParameters(shape, split(shape, flat)) {}

McdParameters::McdParameters(const ScoreNetworkShape& shape, const std::vector<at::Tensor>& parts)
    : loc(parts[0]),
      log_sd(parts[1]),
      betas(to_betas(parts[2])),
      step_sizes(parts[3].exp()),
      of_score(shape.linear ? parts[4].unsqueeze(1) + parts[5] : at::Tensor()),
      of_place(shape.linear ? parts[6].unsqueeze(1) + parts[7] : at::Tensor()),
      network({parts.begin() + first_of_network(shape), parts.end()}) {}

int64_t McdParameters::count(const ScoreNetworkShape& shape) {
  int64_t all = 0;
  for (const auto& size : part_sizes(shape)) all += product(size);
  return all;
}

at::Tensor McdParameters::initial(const ScoreNetworkShape& shape, double step_size,
                                  const at::TensorOptions& options, at::Generator& rng) {
  at::Tensor flat = at::zeros({count(shape)}, options);
  const std::vector<at::Tensor> parts = split(shape, flat);
  at::Tensor(parts[3]).fill_(std::log(step_size));
  ScoreNetwork::initialise({parts.begin() + first_of_network(shape), parts.end()}, rng);
  return flat;
}

LogWeights mcd_log_weights(const Problem& problem, const McdParameters& parameters,
                           int64_t num_particles, at::Generator& rng) {
  const bool with_graph = c10::GradMode::is_enabled() && parameters.loc.requires_grad();
  const auto evaluate = [&](const at::Tensor& e) -> Place {
    if (with_graph) return with_graph_at(problem, e);
    const Particles particles = problem.evaluate(e);
    return {e, particles.log_gamma, particles.grad_log_gamma};
  };
  const at::Tensor& loc = parameters.loc;
  const at::Tensor precision = (-2 * parameters.log_sd).exp();
  const at::Tensor drift_scales = (0.5 * parameters.step_sizes).sqrt();
  const auto score = [&](const at::Tensor& beta, const Place& at) {
    return (1 - beta) * (loc - at.e) * precision + beta * at.gradient;
  };

  const at::Tensor start = problem.draw(num_particles, rng);
  Place now = evaluate(loc + parameters.log_sd.exp() * start);
  const at::Tensor log_q0 = -0.5 * start.square().sum(-1).to(at::kDouble) -
                            parameters.log_sd.sum().to(at::kDouble) -
                            0.5 * static_cast<double>(problem.dim()) * std::log(2 * M_PI);

  // The moves do not use the network: one call covers all of them.
  std::vector<at::Tensor> ends, noises, scores, residuals;  // [P,K,D] each
  for (int64_t k = 1; k < parameters.betas.size(0); ++k) {
    stop_if_interrupted();
    const at::Tensor beta = parameters.betas[k], step = parameters.step_sizes[k - 1];
    const at::Tensor noise = problem.draw(num_particles, rng);
    const at::Tensor before = score(beta, now);
    now = evaluate(now.e + step * before + (2 * step).sqrt() * noise);
    ends.push_back(now.e);
    noises.push_back(noise);
    const at::Tensor after = score(beta, now);
    if (parameters.of_score.defined()) scores.push_back(after);
    residuals.push_back(drift_scales[k - 1] * (before + after));
  }
  const at::Tensor places = at::stack(ends);
  at::Tensor learned = parameters.network.forward(places);
  if (parameters.of_score.defined()) {
    const auto each = [](const at::Tensor& of_moves) { return of_moves.unsqueeze(1).unsqueeze(1); };
    learned = learned + each(parameters.of_score) * at::stack(scores) +
              each(parameters.of_place) * places;
  }
  const at::Tensor r = at::stack(residuals) + 2 * drift_scales.view({-1, 1, 1, 1}) * learned;
  const at::Tensor ratios = -(r * (at::stack(noises) + 0.5 * r)).sum(-1).to(at::kDouble);
  const int64_t evaluations = (with_graph ? 2 : 1) * parameters.betas.size(0);
  return {now.log_gamma - log_q0 + ratios.sum(0) + problem.log_center().unsqueeze(1),
          evaluations * problem.cost_of(num_particles)};
}

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
        draws_(problem.num_problems() > batch_ && problem.target().traits().can_select),
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
