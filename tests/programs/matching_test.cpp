#include "programs/reproduce/matching.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

namespace crais {
namespace {

/// Counts trials, and answers with `transitions` of the setting.
struct Counter {
  std::function<double(double setting)> transitions;
  int64_t trials = 0;

  CountTransitions as_function() {
    return [this](const std::vector<std::string>& settings) {
      std::vector<double> counts;
      for (const auto& setting : settings) {
        ++trials;
        counts.push_back(transitions(std::stod(setting)));
      }
      return counts;
    };
  }
};

TEST(MatchTransitions, FindsTheRateOfEachLength) {
  for (const double divergence : {0.3, 9.0, 1600.0, 12441.0})
    for (const int64_t steps : {16, 64, 512}) {
      Counter counter{[=](double delta) { return std::round(8 + 0.8 * divergence / delta); }};
      const Match found =
          match_transitions("--schedule constant-rate:@", steps, counter.as_function());
      EXPECT_TRUE(is_fair(found.transitions, steps)) << divergence << " " << steps;
      EXPECT_EQ(found.transitions, counter.transitions(std::stod(found.setting)));
      EXPECT_LE(counter.trials, 24);
    }
}

TEST(MatchTransitions, FindsTheRatioOfEachLength) {
  for (const double length : {3.0, 40.0}) {
    Counter counter{[=](double ratio) { return std::ceil(length / std::sqrt(1 / ratio - 1)); }};
    for (const int64_t steps : {32, 128}) {
      const Match found =
          match_transitions("--schedule cess:@ --chains 4", steps, counter.as_function());
      EXPECT_TRUE(is_fair(found.transitions, steps)) << length << " " << steps;
    }
  }
}

TEST(MatchTransitions, SearchesBetweenPlansThatAreTooLongToCount) {
  Counter counter{[](double delta) {
    const double steps = std::round(500 / delta);
    return steps > 128 ? INFINITY : steps;
  }};
  const Match found = match_transitions("--schedule constant-length:@", 64, counter.as_function());
  EXPECT_TRUE(is_fair(found.transitions, 64)) << found.transitions;
}

TEST(MatchTransitions, TakesTheNearestWhereNoneWillDo) {
  Counter flat{[](double) { return 40; }};
  const Match found = match_transitions("--schedule ess:@", 64, flat.as_function());
  EXPECT_EQ(found.transitions, 40);
  Counter leap{[](double delta) { return delta > 1 ? 30 : 200; }};
  EXPECT_EQ(match_transitions("--schedule constant-rate:@", 64, leap.as_function()).transitions,
            30);
  const Match shortest = match_transitions("--max-step @", 64, [](const auto& settings) {
    return std::vector<double>(settings.size(), INFINITY);
  });
  EXPECT_EQ(shortest.setting, "1.000");
  EXPECT_TRUE(std::isinf(shortest.transitions));
  Counter none{[](double) { return NAN; }};
  const Match first = match_transitions("--schedule constant-rate:@", 64, none.as_function());
  EXPECT_EQ(first.transitions, 0);
  EXPECT_EQ(first.setting, "22026");
}

TEST(MatchTransitions, LooksForTheLargestStep) {
  Counter counter{[](double step) { return std::ceil(10 + 1 / step); }};
  const Match found = match_transitions("--max-step @", 64, counter.as_function());
  EXPECT_TRUE(is_fair(found.transitions, 64)) << found.transitions;
  EXPECT_EQ(found.transitions, counter.transitions(std::stod(found.setting)));
}

TEST(PilotFlags, KeepThePilotsAndDropTheChains) {
  EXPECT_EQ(pilot_flags("--kernel hmc --chains 4096 --per-problem", 64),
            "--kernel hmc --per-problem --pilot-chains 256 --chains 1 --max-steps 128");
  EXPECT_EQ(pilot_flags("--preset paper", 10),
            "--preset paper --pilot-chains 16 --chains 1 --max-steps 20");
  EXPECT_EQ(pilot_flags("--chains 64 --pilot-chains 32", 10),
            "--pilot-chains 32 --chains 1 --max-steps 20");
}

}  // namespace
}  // namespace crais
