// Search for settings whose plans have a given number of transitions, for fair comparisons.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace crais {

/// What the search found.
struct Match {
  std::string setting;     // "28.3"
  double transitions = 0;  // of its plans on average; inf: too many to count; 0: there are none
  int64_t trials = 0;      // tried settings
};

/// The average number of transitions of the plans of each of these settings; inf if there are too
/// many to count, NaN if no plan can be made.
using CountTransitions = std::function<std::vector<double>(const std::vector<std::string>&)>;

/// True if `transitions` and `steps` are comparable: within 3%.
bool is_fair(double transitions, int64_t steps);

/// Searches for the setting that leads to `steps` transitions: the `@` in flags such as "--schedule
/// constant-rate:@" or "--schedule cess:0.9 --max-step @". A ratio stands after "cess:" or "ess:";
/// a larger value of any other number makes plans shorter. The search tries a few settings, then
/// settings between the two nearest on both sides, until one is fair. If none is fair, it takes the
/// nearest. If all plans are too long or none can be made, it takes the first setting, whose plans
/// are the shortest. Cost: at most 24 settings are counted.
Match match_transitions(const std::string& flags, int64_t steps, const CountTransitions& count);

/// Flags for a run with the pilots of `flags` that is otherwise as cheap as possible: one chain,
/// and plans of at most twice `steps`.
std::string pilot_flags(const std::string& flags, int64_t steps);

}  // namespace crais
