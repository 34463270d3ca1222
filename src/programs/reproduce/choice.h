// What an experiment reports of several settings: chosen honestly, or by an oracle.
#pragma once

#include <ATen/ATen.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace crais {

struct Choice {
  static constexpr size_t kNone = static_cast<size_t>(-1);
  size_t chosen = kNone, oracle = kNone;
};

/// The first `choosing` seeds choose what the others report.
/// @param values  of each setting: [S] estimates of log Z, or [S,N]; undefined for one that failed.
/// @param loss    of the seeds that report, [S'] or [S',N], against the truth, if it is known.
/// @return  `chosen` has the highest mean (honest, for every estimate is a lower bound on average),
///          `oracle` the least loss; kNone if all have failed.
Choice choose(const std::vector<at::Tensor>& values, int64_t choosing,
              const std::function<double(const at::Tensor&)>& loss = {});

}  // namespace crais
