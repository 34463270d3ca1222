#include "programs/reproduce/choice.h"

#include <limits>

namespace crais {

Choice choose(const std::vector<at::Tensor>& values, int64_t choosing,
              const std::function<double(const at::Tensor&)>& loss) {
  Choice choice;
  double highest = -std::numeric_limits<double>::infinity();
  double least = std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < values.size(); ++i) {
    if (!values[i].defined()) continue;
    const double mean = values[i].slice(0, 0, choosing).mean().item<double>();
    if (mean > highest) {
      highest = mean;
      choice.chosen = i;
    }
    if (!loss) continue;
    const double lost = loss(values[i].slice(0, choosing));
    if (lost < least) {
      least = lost;
      choice.oracle = i;
    }
  }
  return choice;
}

}  // namespace crais
