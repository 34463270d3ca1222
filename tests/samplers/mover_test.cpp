// Replayed moves are the moves: same numbers, same cost, whatever is asked of them in between.
#include "samplers/mover.h"

#include <gtest/gtest.h>

#include "core/rng.h"
#include "support/registered.h"
#include "support/targets.h"

namespace crais {
namespace {

using testing::LogGamma;

/// What a device's recorder does, on the host: recording computes nothing that stays and draws no
/// random number; a replay reads and writes the memory of the recording.
class HostRecorder : public Recorder {
 public:
  HostRecorder(at::Generator& rng, int& replays) : rng_(rng), replays_(replays) {}

  void record(const std::function<void()>& work) override {
    ASSERT_FALSE(work_) << "recorded twice";
    const at::Tensor state = rng_.get_state();
    work();
    rng_.set_state(state);
    work_ = work;
  }
  void replay() override {
    ++replays_;
    work_();
  }

 private:
  at::Generator& rng_;
  int& replays_;
  std::function<void()> work_;
};

class Movers : public ::testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(Kernels, Movers,
                         ::testing::Values("hmc", "ghmc:0.8", "mala", "random-walk"),
                         testing::named_by_spec);

TEST_P(Movers, ReplayWhatTheyWouldHaveDone) {
  const LogGamma target(3, {1.5, 3.0});
  const auto path = PathRegistry::instance().make("path", "power:0.5");
  const auto kernel = TransitionRegistry::instance().make("kernel", GetParam(), {2});
  struct Run {
    Problem problem;
    at::Generator rng = make_generator(7);
    Particles particles = problem.start(20, rng);
  };
  Run plain{Problem(borrow(target), AffineMap::identity(3, 2, at::kDouble))};
  Run replayed{Problem(borrow(target), AffineMap::identity(3, 2, at::kDouble))};
  int replays = 0;
  Mover move(plain.problem, *path, *kernel, plain.rng);
  Mover again(replayed.problem, *path, *kernel, replayed.rng,
              std::make_unique<HostRecorder>(replayed.rng, replays));
  for (int i = 0; i < 6; ++i) {
    const at::Tensor beta = at::tensor({0.1, 0.15, 0.2}, at::kDouble) * (i + 1);
    const at::Tensor step_size = at::full({1}, 0.5 - 0.05 * i, at::kDouble).expand({3});
    if (i == 4) {  // as resampling does: other particles, in other memory
      const auto turned = [&](const at::Tensor& x) { return x.flip(1); };
      for (Particles* particles : {&plain.particles, &replayed.particles})
        *particles = {turned(particles->e), turned(particles->log_q0), turned(particles->log_gamma),
                      turned(particles->grad_log_gamma),
                      particles->momentum.defined() ? turned(particles->momentum) : at::Tensor()};
    }
    const Moved one = move(plain.particles, beta, step_size);
    const Moved other = again(replayed.particles, beta, step_size);
    plain.particles = one.particles;
    replayed.particles = other.particles;
    EXPECT_TRUE(at::equal(one.particles.e, other.particles.e)) << i;
    EXPECT_TRUE(at::equal(one.particles.log_gamma, other.particles.log_gamma)) << i;
    EXPECT_TRUE(at::equal(one.particles.grad_log_gamma, other.particles.grad_log_gamma)) << i;
    EXPECT_TRUE(at::equal(one.accept_prob, other.accept_prob)) << i;
    EXPECT_TRUE(at::equal(one.num_nonfinite, other.num_nonfinite)) << i;
    ASSERT_EQ(one.particles.momentum.defined(), other.particles.momentum.defined());
    if (one.particles.momentum.defined()) {
      EXPECT_TRUE(at::equal(one.particles.momentum, other.particles.momentum)) << i;
    }
  }
  EXPECT_EQ(replays, 5);  // all but the first
}

}  // namespace
}  // namespace crais
