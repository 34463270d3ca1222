// Monte Carlo Diffusion: learned on pilot problems, frozen, then used to estimate with new noise.
#include "samplers/mcd.h"

#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "estimates/method.h"
#include "util/error.h"

namespace crais {
namespace {

/// One set of parameters for every problem, in the coordinates of its base: shared by replicates of
/// one target (as in the paper), amortised over images.
class Mcd : public Method {
 public:
  Mcd(Spec& spec, const AnnealingParts& parts) {
    if (parts.path->divergence().order() != 0.0)
      throw argument_error("the method mcd anneals along the geometric path; leave out `path`");
    if (parts.resampling)
      throw argument_error("the method mcd does not resample; leave out `resampling`");
    shape_.num_steps = spec.integer("steps", 1, 100'000, 64);
    shape_.hidden = spec.integer("hidden", 1, 65'536, shape_.hidden);
    shape_.embedding = spec.integer("embedding", 1, 65'536, shape_.embedding);
    shape_.linear = spec.integer("linear", 0, 1, 0) == 1;
    training_.iterations = spec.integer("iterations", 0, 100'000'000, training_.iterations);
    training_.batch = spec.integer("batch", 1, 1'000'000, training_.batch);
    training_.learning_rate = spec.number("rate", 1e-8, 1, training_.learning_rate);
    training_.step_size = spec.number("step", 1e-8, 1e3, training_.step_size);
    training_.patience = spec.integer("patience", 0, 1'000'000, 20);
    if (parts.pilots) learn(*parts.pilots);
  }

  bool learns() const override { return true; }

  MethodResult estimate(const Problem& problem, const Plan& plan,
                        at::Generator& rng) const override {
    if (!flat_.defined()) throw internal_error("the method mcd estimates before it has learned");
    const c10::NoGradGuard no_grad;
    const McdParameters parameters(shape_, flat_);
    const int64_t block = std::max<int64_t>(1, kRowsPerBlock / problem.num_problems());
    std::vector<at::Tensor> blocks;
    Cost cost;
    for (int64_t begin = 0; begin < plan.num_particles; begin += block) {
      const LogWeights weights =
          mcd_log_weights(problem, parameters, std::min(block, plan.num_particles - begin), rng);
      blocks.push_back(weights.log_w);
      cost += weights.cost;
    }
    const at::Tensor log_w = at::cat(blocks, 1);
    // A diverged chain gets weight zero and is counted.
    const at::Tensor finite = log_w.isfinite();
    return {log_normalizer(at::where(finite, log_w, at::full_like(log_w, -INFINITY))),
            {},
            {},
            log_w.numel() - finite.sum().item<int64_t>(),
            cost};
  }

 private:
  static constexpr int64_t kRowsPerBlock = 256;  // the network takes M times as many at once

  void learn(Pilots& pilots) {
    shape_.dim = pilots.problems.dim();
    const TrainedMcd trained = train_mcd(pilots.problems, shape_, training_, pilots.seed);
    flat_ = trained.flat;
    pilots.cost += trained.cost;
  }

  ScoreNetworkShape shape_;
  McdTrainingOptions training_;
  at::Tensor flat_;
};

const Enrol<MethodRegistry> kEnrolMcd(
    "mcd[:M,iterations=I,hidden=H,embedding=E,linear=0|1,batch=B,rate=R,step=S,patience=N]",
    "Monte Carlo Diffusion: M (64) Langevin moves, reversals learned in I (2000) iterations",
    "mcd:4,iterations=3,hidden=8",
    [](Spec& spec, const AnnealingParts& parts) { return std::make_unique<Mcd>(spec, parts); });

}  // namespace
}  // namespace crais
