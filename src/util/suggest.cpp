#include "util/suggest.h"

#include <algorithm>

namespace crais {
namespace {

/// The number of insertions, deletions, replacements and swaps of neighbouring letters that turn
/// `a` into `b` (optimal string alignment).
size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<std::vector<size_t>> cost(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) {
    for (size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        cost[i][j] = i + j;
        continue;
      }
      const size_t replaced = cost[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      cost[i][j] = std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
    }
  }
  return cost[a.size()][b.size()];
}

}  // namespace

std::optional<std::string> nearest(const std::string& word,
                                   const std::vector<std::string>& candidates) {
  if (word.empty()) return {};
  const size_t farthest = std::max<size_t>(1, word.size() / 3);
  std::optional<std::string> best;
  size_t least = farthest + 1;
  for (const auto& candidate : candidates) {
    if (candidate == word) continue;
    const bool begun = word.size() > 1 && candidate.compare(0, word.size(), word) == 0;
    const auto [shorter, longer] = std::minmax({word.size(), candidate.size()});
    // Checked before the distance is computed: a file may hold megabytes where a name should be.
    if (!begun && longer - shorter >= least) continue;
    const size_t distance = begun ? 0 : edit_distance(word, candidate);
    if (distance >= least) continue;
    least = distance;
    best = candidate;
  }
  return best;
}

std::string did_you_mean(const std::string& word, const std::vector<std::string>& candidates,
                         const std::string& prefix) {
  const auto suggestion = nearest(word, candidates);
  return suggestion ? "; did you mean " + prefix + *suggestion + "?" : "";
}

}  // namespace crais
