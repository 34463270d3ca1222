#include "samplers/importance.h"

#include <c10/core/GradMode.h>

#include <algorithm>
#include <vector>

namespace crais {

LogWeights importance_log_weights(const Problem& problem, int64_t num_particles, at::Generator& rng,
                                  bool keep_draws) {
  const c10::NoGradGuard no_grad;
  constexpr int64_t kRowsPerBlock = 2048;
  const int64_t block = std::max<int64_t>(1, kRowsPerBlock / problem.num_problems());
  std::vector<at::Tensor> log_w, draws;
  for (int64_t begin = 0; begin < num_particles; begin += block) {
    const at::Tensor e = problem.draw(std::min(block, num_particles - begin), rng);
    log_w.push_back(problem.log_weight(e));
    if (keep_draws) draws.push_back(e);
  }
  return {at::cat(log_w, 1),
          {problem.num_problems() * num_particles, 0},
          keep_draws ? at::cat(draws, 1) : at::Tensor()};
}

}  // namespace crais
