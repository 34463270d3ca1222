#include "programs/reproduce/matching.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "programs/reproduce/variant.h"

namespace crais {
namespace {

double setting_of(const std::string& flags) { return std::stod(flags.substr(flags.find(':') + 1)); }

/// Counts trials, and answers with `transitions` of the setting.
struct Counter {
  std::function<double(double setting)> transitions;
  int64_t trials = 0;

  CountTransitions as_function() {
    return [this](const std::vector<std::string>& all_flags) {
      std::vector<double> counts;
      for (const auto& flags : all_flags) {
        ++trials;
        counts.push_back(transitions(setting_of(flags)));
      }
      return counts;
    };
  }
};

TEST(MatchTransitions, FindsTheRateOfEachLength) {
  for (const double divergence : {0.3, 9.0, 1600.0, 12441.0})
    for (const int64_t steps : {16, 64, 512}) {
      Counter counter{[=](double delta) { return std::round(8 + 0.8 * divergence / delta); }};
      const MatchedPlans found =
          match_transitions("--schedule constant-rate:@", steps, counter.as_function());
      EXPECT_TRUE(found.fair) << divergence << " " << steps << ": " << found.transitions;
      EXPECT_NEAR(found.transitions, static_cast<double>(steps), 0.03 * static_cast<double>(steps));
      EXPECT_EQ(found.transitions, counter.transitions(std::stod(found.setting)));
      EXPECT_LE(counter.trials, 24);
    }
}

TEST(MatchTransitions, FindsTheRatioOfEachLength) {
  for (const double length : {3.0, 40.0}) {
    Counter counter{[=](double ratio) { return std::ceil(length / std::sqrt(1 / ratio - 1)); }};
    for (const int64_t steps : {32, 128}) {
      const MatchedPlans found =
          match_transitions("--schedule cess:@ --chains 4", steps, counter.as_function());
      EXPECT_TRUE(found.fair) << length << " " << steps << ": " << found.flags;
    }
  }
}

TEST(MatchTransitions, SearchesBetweenPlansThatAreTooLongToCount) {
  Counter counter{[](double delta) {
    const double steps = std::round(500 / delta);
    return steps > 128 ? INFINITY : steps;
  }};
  EXPECT_TRUE(match_transitions("--schedule constant-length:@", 64, counter.as_function()).fair);
}

TEST(MatchTransitions, TakesTheNearestWhereNoneWillDo) {
  Counter flat{[](double) { return 40; }};
  const MatchedPlans found = match_transitions("--schedule ess:@", 64, flat.as_function());
  EXPECT_FALSE(found.fair);
  EXPECT_EQ(found.transitions, 40);
  Counter leap{[](double delta) { return delta > 1 ? 30 : 200; }};
  EXPECT_EQ(match_transitions("--schedule constant-rate:@", 64, leap.as_function()).transitions,
            30);
  const MatchedPlans shortest = match_transitions("--max-step @", 64, [](const auto& all_flags) {
    return std::vector<double>(all_flags.size(), INFINITY);
  });
  EXPECT_EQ(shortest.flags, "--max-step 1.000");
  EXPECT_TRUE(std::isinf(shortest.transitions));
  Counter none{[](double) { return NAN; }};
  EXPECT_EQ(match_transitions("--schedule constant-rate:@", 64, none.as_function()).transitions, 0);
}

TEST(MatchTransitions, LooksForTheLargestStep) {
  const MatchedPlans found =
      match_transitions("--max-step @", 64, [](const std::vector<std::string>& all_flags) {
        std::vector<double> counts;
        for (const auto& flags : all_flags)
          counts.push_back(std::ceil(10 + 1 / std::stod(flags.substr(flags.find(' ')))));
        return counts;
      });
  EXPECT_TRUE(found.fair) << found.transitions;
  EXPECT_EQ(found.flags, "--max-step " + found.setting);
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
