#include "programs/reproduce/matching.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <utility>

#include "util/error.h"
#include "util/format.h"

namespace crais {
namespace {

constexpr double kFairShare = 0.03;
constexpr char kPlaceholder = '@';

/// A scale on which any real number is a setting, and on which the length of plans grows about
/// exponentially: -log of a step, or -log(1 - ratio).
class SettingScale {
 public:
  explicit SettingScale(const std::string& flags)
      : is_ratio_(flags.find("ess:@") != std::string::npos),
        most_(flags.find("--max-step @") != std::string::npos ? 1.0 : INFINITY) {}

  std::string setting(double place) const {
    return is_ratio_ ? significant(-std::expm1(-place), 6)
                     : significant(std::min(std::exp(-place), most_), 4);
  }
  std::vector<double> first() const {
    return is_ratio_          ? std::vector<double>{0.002, 0.05, 0.7, 2, 4, 9}
           : most_ < INFINITY ? std::vector<double>{0, 2, 4, 6}
                              : std::vector<double>{-10, -6, -2, 2, 6, 10};
  }

 private:
  bool is_ratio_;
  double most_;
};

/// A setting on that scale and the number of transitions of its plans.
using Trial = std::pair<const double, double>;

/// Two settings within a bracket: the one at which a line through log M meets log steps, and one
/// beyond it.
std::vector<double> between(const Trial& low, const Trial& high, double steps) {
  const auto& [place, transitions] = low;
  const double width = high.first - place;
  const double most = std::isinf(high.second) ? 2 * steps : high.second;
  const double fraction = std::log(steps / transitions) / std::log(most / transitions);
  const double near = std::clamp(fraction, 0.1, 0.9);
  const double beyond = near + (near < 0.5 ? 1 : -1) * std::clamp(0.25 * near, 0.05, 0.2);
  return {place + near * width, place + beyond * width};
}

}  // namespace

bool is_fair(double transitions, int64_t steps) {
  return std::abs(transitions - static_cast<double>(steps)) <=
         kFairShare * static_cast<double>(steps);
}

MatchedPlans match_transitions(const std::string& flags, int64_t steps,
                               const CountTransitions& count) {
  const size_t hole = flags.find(kPlaceholder);
  if (hole == std::string::npos) throw internal_error("no setting is left open in '" + flags + "'");
  const SettingScale scale(flags);
  const auto wanted_steps = static_cast<double>(steps);
  const auto distance = [&](double transitions) { return std::abs(transitions - wanted_steps); };
  MatchedPlans best;
  std::map<double, double> trials;
  std::vector<double> places = scale.first();
  int64_t num_trials = 0;
  constexpr int kMostRounds = 10;
  for (int round = 0; round < kMostRounds && !best.fair; ++round) {
    std::vector<std::string> all_flags;
    for (const double place : places)
      all_flags.push_back(std::string(flags).replace(hole, 1, scale.setting(place)));
    if (round == 0) best = {scale.setting(places[0]), all_flags[0]};
    const std::vector<double> transitions = count(all_flags);
    num_trials += static_cast<int64_t>(places.size());
    for (size_t i = 0; i < places.size(); ++i) {
      if (std::isnan(transitions[i])) continue;
      trials[places[i]] = transitions[i];
      if (best.transitions == 0 || distance(transitions[i]) < distance(best.transitions))
        best = {scale.setting(places[i]), all_flags[i], transitions[i],
                is_fair(transitions[i], steps)};
    }
    const auto low =
        std::adjacent_find(trials.begin(), trials.end(), [&](const Trial& a, const Trial& b) {
          return a.second < wanted_steps && b.second >= wanted_steps;
        });
    if (low == trials.end()) break;
    places = between(*low, *std::next(low), wanted_steps);
  }
  best.trials = num_trials;
  return best;
}

}  // namespace crais
