// Rules whose plans have as many transitions as those that they are compared with.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace crais {

/// Plans of a rule whose setting was looked for.
struct MatchedPlans {
  std::string setting;     // "28.3"
  std::string flags;       // those that were asked for, with the setting in its place
  double transitions = 0;  // on average; inf if too many to count, 0 if no setting made a plan
  bool fair = false;       // within 3% of those asked for
  int64_t trials = 0;      // settings that were tried
};

/// How many transitions the plans under each of these flags have, on average; inf where they are
/// more than are worth counting, NaN where no plan can be made.
using CountTransitions = std::function<std::vector<double>(const std::vector<std::string>& flags)>;

/// True if `transitions` can be compared with `steps`: within 3%.
bool is_fair(double transitions, int64_t steps);

/// Looks for the setting that leads to `steps` transitions: the `@` in flags such as "--schedule
/// constant-rate:@" or "--schedule cess:0.9 --max-step @". A ratio stands after "cess:" or "ess:";
/// any other number is one that plans get shorter with. A few settings are tried, then some between
/// the two on either side of what is wanted, until one is fair. The nearest is taken where none is,
/// and the first tried, whose plans are the shortest, where all are too long or none makes a plan.
/// Cost: that of `count`, for at most 24 settings.
MatchedPlans match_transitions(const std::string& flags, int64_t steps,
                               const CountTransitions& count);

}  // namespace crais
