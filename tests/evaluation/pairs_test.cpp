// Every pair of parts of an estimate: it runs, or it is refused with a reason.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "bases/base.h"
#include "evaluation/estimator.h"
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
FunctionTarget target_of(bool is_replicated) {
  return FunctionTarget(
      {2, 2, at::kDouble, is_replicated},
      FunctionTarget::IndexedLogDensity([](const at::Tensor& z, const at::Tensor& /*index*/) {
        return at::logaddexp(-0.5 * z.square().sum(-1), -2 * (z - 1.5).square().sum(-1));
      }));
}

/// Why the options are refused; empty if they run.
std::string refusal(const EstimateOptions& options, bool is_replicated) {
  const FunctionTarget target = target_of(is_replicated);
  try {
    const TunedEstimator tuned = Estimator(options).tune(target);
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
  /// All pairs of values of `part` and of one of `others`; all other parts are as in `plain`.
  static void expect_pairs(const EstimateOptions& plain, bool is_replicated, const Part& part,
                           const std::vector<Part>& others) {
    int64_t runs = 0, refused = 0;
    for (const Part& second : others)
      for (const std::string& one : part.values)
        for (const std::string& other : second.values) {
          SCOPED_TRACE(one + ", " + other);
          EstimateOptions options = plain;
          part.set(options, one);
          second.set(options, other);
          ++runs;
          if (!refusal(options, is_replicated).empty()) ++refused;
        }
    EXPECT_LT(4 * refused, runs);
  }

  static EstimateOptions small() {
    EstimateOptions options;
    options.base = "prior";
    options.chains = 4;
    options.steps = 4;
    options.max_steps = 64;
    return options;
  }

  testing::TemporaryFolder folder_;
  Part path_{all_of<PathRegistry>({"f:alpha:0.5"}),
             [](EstimateOptions& o, const std::string& value) { o.path = value; }};
  Part schedule_{all_of<ScheduleRegistry>({"file:" + folder_.file("betas", "0\n0.3\n1\n")}),
                 [](EstimateOptions& o, const std::string& value) { o.schedule = value; }};
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
  expect_pairs(small(), false, path_, {schedule_, base_, kernel_, resampling_});
  expect_pairs(small(), false, schedule_, {base_, kernel_, resampling_});
  expect_pairs(small(), false, base_, {kernel_, resampling_});
}

/// With a base of several parts, and a witness of what chains miss.
TEST_F(Pairs, OfReplicatesRunOrSayWhyNot) {
  EstimateOptions options = small();
  options.base = kMixture;
  options.witness = true;
  std::erase(path_.values, "f:alpha:0.5");
  expect_pairs(options, true, path_, {schedule_, kernel_, resampling_});
}

/// Rounds, which choose their own plans.
TEST_F(Pairs, OfRoundsRunOrSayWhyNot) {
  EstimateOptions options = small();
  options.base = kMixture;
  options.error = 0.5;
  options.max_evaluations = 5'000;
  std::erase(path_.values, "f:alpha:0.5");
  expect_pairs(options, true, path_, {schedule_});
}

}  // namespace
}  // namespace crais
