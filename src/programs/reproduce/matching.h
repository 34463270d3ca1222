// Search for settings whose plans have a given number of transitions, for fair comparisons.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace crais {

/// The plans of a rule at the setting that the search found.
struct MatchedPlans {
  std::string setting;     // "28.3"
  std::string flags;       // the given flags with the setting in its place
  double transitions = 0;  // on average; inf: too many to count; 0: no setting made a plan
  bool fair = false;       // within 3% of the wanted number
  int64_t trials = 0;      // tried settings
};

/// The average number of transitions of the plans under each of these flags; inf if there are too
/// many to count, NaN if no plan can be made.
using CountTransitions = std::function<std::vector<double>(const std::vector<std::string>& flags)>;

/// True if `transitions` and `steps` are comparable: within 3%.
bool is_fair(double transitions, int64_t steps);

/// Searches for the setting that leads to `steps` transitions: the `@` in flags such as "--schedule
/// constant-rate:@" or "--schedule cess:0.9 --max-step @". A ratio stands after "cess:" or "ess:";
/// a larger value of any other number makes plans shorter. The search tries a few settings, then
/// settings between the two nearest on both sides, until one is fair. If none is fair, it takes the
/// nearest. If all plans are too long or none can be made, it takes the first setting, whose plans
/// are the shortest. Cost: at most 24 calls of `count` with one setting each.
MatchedPlans match_transitions(const std::string& flags, int64_t steps,
                               const CountTransitions& count);

}  // namespace crais
