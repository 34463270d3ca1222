#include "programs/reproduce/matching.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <utility>

#include "core/spec.h"
#include "evaluation/options.h"
#include "util/format.h"

namespace crais {
namespace {

/// A place on the scale of settings and the number of transitions of its plans. On the scale any
/// real number is a setting, and the length of plans grows about exponentially: it is -log of a
/// step, or -log(1 - ratio).
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
  constexpr double kFairShare = 0.03;
  return std::abs(transitions - static_cast<double>(steps)) <=
         kFairShare * static_cast<double>(steps);
}

Match match_transitions(const std::string& flags, int64_t steps, const CountTransitions& count) {
  const bool is_ratio = flags.find("ess:@") != std::string::npos;
  const bool is_step = flags.find("--max-step @") != std::string::npos;  // at most 1
  const auto setting = [&](double place) {
    return is_ratio ? significant(-std::expm1(-place), 6)
                    : significant(std::min(std::exp(-place), is_step ? 1.0 : INFINITY), 4);
  };
  std::vector<double> places = is_ratio  ? std::vector<double>{0.002, 0.05, 0.7, 2, 4, 9}
                               : is_step ? std::vector<double>{0, 2, 4, 6}
                                         : std::vector<double>{-10, -6, -2, 2, 6, 10};
  const auto wanted = static_cast<double>(steps);
  Match best{setting(places[0])};
  std::map<double, double> trials;
  constexpr int kMostRounds = 10;
  for (int round = 0; round < kMostRounds && !is_fair(best.transitions, steps); ++round) {
    std::vector<std::string> settings;
    for (const double place : places) settings.push_back(setting(place));
    const std::vector<double> transitions = count(settings);
    best.trials += static_cast<int64_t>(places.size());
    for (size_t i = 0; i < places.size(); ++i) {
      if (std::isnan(transitions[i])) continue;
      trials[places[i]] = transitions[i];
      if (best.transitions == 0 ||
          std::abs(transitions[i] - wanted) < std::abs(best.transitions - wanted))
        best = {settings[i], transitions[i], best.trials};
    }
    const auto low = std::adjacent_find(
        trials.begin(), trials.end(),
        [&](const Trial& a, const Trial& b) { return a.second < wanted && b.second >= wanted; });
    if (low == trials.end()) break;
    places = between(*low, *std::next(low), wanted);
  }
  return best;
}

std::string pilot_flags(const std::string& flags, int64_t steps) {
  std::string kept;
  int64_t chains = EstimateOptions().chains;
  const std::vector<std::string> words = split(flags, ' ');
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--chains")
      chains = parse_integer(words.at(++i), "--chains");
    else if (!words[i].empty())
      kept += words[i] + " ";
  }
  if (kept.find("--pilot-chains") == std::string::npos)
    kept += "--pilot-chains " + std::to_string(default_pilot_chains(chains, true)) + " ";
  return kept + "--chains 1 --max-steps " + std::to_string(2 * steps);
}

}  // namespace crais
