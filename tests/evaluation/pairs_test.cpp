// Every pair of parts of an estimate: it runs, or it is refused with a reason.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "bases/base.h"
#include "evaluation/estimator.h"
#include "evidence/evidence.h"
#include "support/registered.h"
#include "support/temporary_folder.h"
#include "targets/function_target.h"
#include "util/error.h"

namespace crais {
namespace {

/// A part of an estimate with all values that it may have.
struct Part {
  std::vector<std::string> values;
  std::function<void(EstimateOptions&, const std::string&)> set;
};

template <typename Registry>
std::vector<std::string> all_of(std::vector<std::string> more = {}) {
  for (const std::string& example : testing::examples<Registry>()) more.push_back(example);
  return more;
}

/// Two normals in the plane, of two replicates or two problems.
FunctionTarget two_normals() {
  return FunctionTarget(
      {2, 2},
      FunctionTarget::IndexedLogDensity([](const at::Tensor& z, const at::Tensor& /*index*/) {
        return at::logaddexp(-0.5 * z.square().sum(-1), -2 * (z - 1.5).square().sum(-1));
      }));
}

/// Why the options are refused; empty if they run.
std::string refusal(const EstimateOptions& options, std::shared_ptr<const Driver> driver) {
  const FunctionTarget target = two_normals();
  try {
    const TunedEstimator tuned = Estimator(options, std::move(driver)).tune(target);
    for (const ChunkRun& run : tuned.estimate(0, target).runs)
      EXPECT_EQ(run.log_normalizer.size(), 2U);
  } catch (const Error& error) {
    EXPECT_NE(error.kind(), ErrorKind::kInternal) << error.what();
    EXPECT_STRNE(error.what(), "");
    return error.what();
  } catch (const std::exception& error) {
    ADD_FAILURE() << error.what();
  }
  return "";
}

constexpr const char* kMixture = "mixture:16,rounds=0";

class Pairs : public ::testing::Test {
 protected:
  Pairs() {
    // Temperatures that are known in advance are one value, and so are rules for effective sizes.
    for (const char* alike : {"sigmoidal", "exponential", "geometric", "ess:0.9"})
      std::erase(schedule_.values, alike);
    // Among replicates one rule stands for all: `OfProblems` takes each.
    kind_ = schedule_;
    for (const char* rule : {"cess:0.7", "constant-length:0.25"}) std::erase(kind_.values, rule);
  }

  /// All pairs of values of two parts, as many in one run as there are parts. Where a run is
  /// refused, its first pair runs again with all other parts as in `plain`.
  static void expect_pairs(const EstimateOptions& plain, std::shared_ptr<const Driver> driver,
                           const std::vector<Part>& parts) {
    using Choice = std::map<size_t, size_t>;  // of a part: one of its values
    using Pair = std::pair<Choice::value_type, Choice::value_type>;
    std::set<Pair> left;
    for (size_t i = 0; i < parts.size(); ++i)
      for (size_t j = i + 1; j < parts.size(); ++j)
        for (size_t a = 0; a < parts[i].values.size(); ++a)
          for (size_t b = 0; b < parts[j].values.size(); ++b) left.insert({{i, a}, {j, b}});
    const auto pairs_of = [](const Choice& choice) {
      std::vector<Pair> pairs;
      for (auto one = choice.begin(); one != choice.end(); ++one)
        for (auto other = std::next(one); other != choice.end(); ++other)
          pairs.emplace_back(*one, *other);
      return pairs;
    };
    const auto runs = [&](const Choice& choice) {
      EstimateOptions options = plain;
      std::string all;
      for (const auto& [part, value] : choice) {
        parts[part].set(options, parts[part].values[value]);
        all += parts[part].values[value] + " ";
      }
      SCOPED_TRACE(all);
      return refusal(options, driver).empty();
    };
    const size_t count = left.size();
    size_t refused = 0;
    while (!left.empty()) {
      const Choice pair = {left.begin()->first, left.begin()->second};
      Choice most = pair;
      for (size_t part = 0; part < parts.size(); ++part) {
        if (most.count(part) > 0) continue;
        std::pair<int64_t, Choice> best = {-1, {}};
        for (size_t value = 0; value < parts[part].values.size(); ++value) {
          Choice more = most;
          more[part] = value;
          const std::vector<Pair> pairs = pairs_of(more);
          const int64_t gain = std::count_if(pairs.begin(), pairs.end(),
                                             [&](const Pair& p) { return left.count(p) > 0; });
          if (gain > best.first) best = {gain, more};
        }
        most = best.second;
      }
      const bool all_run = runs(most);
      if (!all_run && !runs(pair)) ++refused;
      for (const Pair& seen : pairs_of(all_run ? most : pair)) left.erase(seen);
    }
    EXPECT_LT(4 * refused, count);
  }

  static EstimateOptions small() {
    return {.base = "prior", .chains = 4, .steps = 4, .max_steps = 64};
  }

  testing::TemporaryFolder folder_;
  Part path_{all_of<PathRegistry>(),
             [](EstimateOptions& o, const std::string& value) { o.path = value; }};
  Part schedule_{all_of<ScheduleRegistry>({"file:" + folder_.file("betas", "0\n0.3\n1\n")}),
                 [](EstimateOptions& o, const std::string& value) { o.schedule = value; }};
  Part kind_;  // of schedules
  Part base_{all_of<BaseRegistry>({"auto"}), [](EstimateOptions& o, const std::string& value) {
               // The example of the mixture fits for a second.
               o.base = value.starts_with("mixture") ? kMixture : value;
             }};
  Part kernel_{all_of<TransitionRegistry>(),
               [](EstimateOptions& o, const std::string& value) { o.kernel = value; }};
  Part resampling_{all_of<ResamplingRegistry>({""}),
                   [](EstimateOptions& o, const std::string& value) { o.resampling = value; }};
};

TEST_F(Pairs, OfProblemsRunOrSayWhyNot) {
  expect_pairs(small(), nullptr, {path_, schedule_, base_, kernel_, resampling_});
}

/// With a base of several parts, and a witness of what chains miss.
TEST_F(Pairs, OfReplicatesRunOrSayWhyNot) {
  EstimateOptions options = small();
  options.base = kMixture;
  options.witness = true;
  expect_pairs(options, evidence_driver(), {path_, kind_, kernel_, resampling_});
}

/// Rounds, which choose their own plans.
TEST_F(Pairs, OfRoundsRunOrSayWhyNot) {
  EstimateOptions options = small();
  options.base = kMixture;
  options.error = 0.5;
  options.max_evaluations = 5'000;
  expect_pairs(options, evidence_driver(), {path_, kind_});
}

}  // namespace
}  // namespace crais
