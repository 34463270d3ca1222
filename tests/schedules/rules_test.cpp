// ESS, CESS, the heuristics' values, schedules from files, and what all adaptive rules share.
#include <gtest/gtest.h>

#include <cmath>

#include "core/log_math.h"
#include "core/rng.h"
#include "core/schedule.h"
#include "schedules/adaptive.h"
#include "schedules/fixed.h"
#include "support/expect_error.h"
#include "support/statistics.h"
#include "support/temporary_folder.h"

namespace crais {
namespace {

using testing::max_abs_diff;
using testing::TemporaryFolder;

std::unique_ptr<ScheduleRule> make(const std::string& spec, const ScheduleOptions& options = {}) {
  return ScheduleRegistry::instance().make("schedule", spec, options);
}

std::unique_ptr<Path> make_path(const std::string& spec) {
  return PathRegistry::instance().make("path", spec);
}

at::Tensor column(const std::vector<double>& values) { return at::tensor(values, at::kDouble); }

struct Cloud {
  Particles particles;
  at::Tensor beta, log_w;

  Cloud(int64_t num_problems, double scale, uint64_t seed) {
    at::Generator rng = make_generator(seed);
    const auto randn = [&] { return at::randn({num_problems, 64}, rng, at::kDouble); };
    particles.log_q0 = -50 + randn();
    particles.log_gamma = -50 + scale * randn();
    log_w = randn();
    beta = at::full({num_problems}, 0.2, at::kDouble);
  }

  at::Tensor next(const ScheduleRule& rule, const Path& path, bool shared) const {
    return rule.next({3, beta, particles, log_w, shared}, path);
  }
  at::Tensor log_density(const Path& path, const at::Tensor& at_beta) const {
    return path.at(at_beta.unsqueeze(1), particles.log_q0, particles.log_gamma).log_density;
  }
};

ScheduleOptions wide(bool weighted = false) { return {.max_step = 1, .weighted = weighted}; }

class SearchedRules : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Path, SearchedRules,
                         ::testing::Values("geometric", "power:0.5", "power:1", "power:-0.5"),
                         [](const auto& instance) {
                           return "path" + std::to_string(instance.index);
                         });

TEST_P(SearchedRules, CessIsExactlyWhatWasAsked) {
  const auto path = make_path(GetParam());
  const Cloud cloud(5, 20, 1);
  for (const bool weighted : {false, true}) {
    const at::Tensor next = cloud.next(*make("cess:0.8", wide(weighted)), *path, false);
    ASSERT_TRUE((next < 1).all().item<bool>());
    const at::Tensor increment =
        cloud.log_density(*path, next) - cloud.log_density(*path, cloud.beta);
    const at::Tensor w = log_normalise(weighted ? cloud.log_w : at::zeros_like(cloud.log_w));
    EXPECT_LT(max_abs_diff(cess_normalised(w, increment), at::full({5}, 0.8, at::kDouble)), 1e-9);
    const at::Tensor shared = cloud.next(*make("cess:0.8", wide(weighted)), *path, true);
    EXPECT_TRUE(at::equal(shared, shared[0].expand_as(shared)));
    EXPECT_NEAR(
        cess_normalised(w, cloud.log_density(*path, shared) - cloud.log_density(*path, cloud.beta))
            .mean()
            .item<double>(),
        0.8, 1e-9);
  }
}

TEST_P(SearchedRules, EssFallsByExactlyWhatWasAsked) {
  const auto path = make_path(GetParam());
  const Cloud cloud(5, 20, 2);
  const auto ess_at = [&](const at::Tensor& beta) {
    return ess(cloud.log_w + cloud.log_density(*path, beta) - cloud.log_density(*path, cloud.beta));
  };
  const at::Tensor next = cloud.next(*make("ess:0.8", wide()), *path, false);
  ASSERT_TRUE((next < 1).all().item<bool>());
  EXPECT_LT(max_abs_diff(ess_at(next), 0.8 * ess(cloud.log_w)), 1e-9);
  const at::Tensor shared = cloud.next(*make("ess:0.8", wide()), *path, true);
  EXPECT_NEAR(ess_at(shared).mean().item<double>(), 0.8 * ess(cloud.log_w).mean().item<double>(),
              1e-9);
}

TEST(SearchedRule, GoesToTheEndWhereThatIsAllowed) {
  const auto path = make_path("geometric");
  const Cloud easy(2, 1e-3, 3);
  EXPECT_TRUE((easy.next(*make("cess:0.2", wide()), *path, false) == 1).all().item<bool>());
  EXPECT_TRUE((easy.next(*make("ess:0.2", wide()), *path, true) == 1).all().item<bool>());
  const at::Tensor next = easy.next(*make("cess:0.2"), *path, false);
  EXPECT_LT(max_abs_diff(next, easy.beta + 0.125), 1e-15);
}

TEST(SearchedRule, LeavesFinishedProblemsAlone) {
  const auto path = make_path("power:0.5");
  Cloud cloud(3, 20, 4);
  cloud.beta = column({0.2, 1.0, 0.4});
  for (const char* spec : {"cess:0.7", "ess:0.7", "constant-rate:0.25"}) {
    const at::Tensor next = cloud.next(*make(spec), *path, false);
    EXPECT_EQ(next[1].item<double>(), 1.0) << spec;
    EXPECT_TRUE((next.slice(0, 0, 1) > 0.2).item<bool>()) << spec;
  }
}

TEST(SearchedRule, StallsWithAWord) {
  const auto path = make_path("geometric");
  Cloud steep(2, 2e15, 5);  // the shortest step in a double is too long
  steep.log_w = at::zeros_like(steep.log_w);
  for (const bool shared : {false, true})
    expect_error(ErrorKind::kArgument,
                 {"schedule cess stalled", "beta = 0.2", "problem 0", "step 3", "`min_step`"},
                 [&] { steep.next(*make("cess:0.9999", wide()), *path, shared); });
  expect_error(ErrorKind::kArgument, {"schedule ess stalled"},
               [&] { steep.next(*make("ess:0.9999", wide()), *path, false); });
  ScheduleOptions options = wide();
  options.min_step = 0.01;
  EXPECT_LT(
      max_abs_diff(steep.next(*make("cess:0.9999", options), *path, false), steep.beta + 0.01),
      1e-15);
}

TEST(LargestStep, FindsTheCrossing) {
  const at::Tensor beta = column({0.0, 0.25, 0.5, 0.9, 1.0});
  const auto falling = [](const at::Tensor& b) { return 1 - b; };
  const auto step = [&](double bound, double max_step) {
    return largest_step(beta, max_step, at::full({5}, bound, at::kDouble), falling);
  };
  EXPECT_LT(max_abs_diff(step(0.4, 1), column({0.6, 0.6, 0.6, 0.9, 1.0})), 1e-14);
  EXPECT_LT(max_abs_diff(step(-1, 0.2), column({0.2, 0.45, 0.7, 1.0, 1.0})), 1e-15);
  EXPECT_EQ(step(-1, 0.2)[3].item<double>(), 1.0);
  EXPECT_LT(max_abs_diff(step(2, 0.2), beta), 1e-14);
  // Of unequal problems, some have arrived long before others.
  const at::Tensor each = largest_step(beta, 1, column({0.9, 0.3, 0.1, 0.05, 0}), falling);
  EXPECT_LT(max_abs_diff(each, column({0.1, 0.7, 0.9, 0.95, 1})), 1e-11);
}

TEST(LargestStep, IsFoundInAFewEvaluations) {
  // What fractions look like: 1 - cess of steps short and long, of unequal problems.
  for (const double scale : {0.3, 3.0, 30.0, 300.0, 1e4}) {
    const at::Tensor steepness = scale * column({1, 1.5, 2});
    int evaluations = 0;
    const at::Tensor found =
        largest_step(at::zeros({3}, at::kDouble), 0.125, at::full({3}, 0.9, at::kDouble),
                     [&](const at::Tensor& b) {
                       ++evaluations;
                       return (-(b * steepness).square()).exp();
                     });
    const at::Tensor expected = std::sqrt(-std::log(0.9)) / steepness;
    EXPECT_LT(max_abs_diff(found / expected.clamp_max(0.125), at::ones({3}, at::kDouble)), 1e-11);
    EXPECT_TRUE((found <= expected * (1 + 1e-15 * steepness)).all().item<bool>());
    EXPECT_LE(evaluations, 16) << scale;
  }
}

TEST(Heuristics, HaveTheirFormulas) {
  ScheduleOptions options{.steps = 16};
  const auto betas = [&](const std::string& spec) {
    const at::Tensor all = make(spec, options)->betas();
    EXPECT_EQ(all.sizes(), (std::vector<int64_t>{17, 1})) << spec;
    return all.flatten();
  };
  const at::Tensor i = at::arange(17, at::kDouble);
  EXPECT_LT(max_abs_diff(betas("linear"), i / 16), 1e-15);
  for (double eps : {1e-3, 0.1}) {
    const at::Tensor expected = (1 - at::pow(at::full({}, eps, at::kDouble), i / 16)) / (1 - eps);
    EXPECT_LT(max_abs_diff(betas("exponential:" + std::to_string(eps)), expected), 1e-14);
  }
  EXPECT_TRUE(at::equal(betas("exponential"), betas("exponential:eps=0.001")));
  for (double scale : {0.3, 1.0}) {
    const at::Tensor s = at::sigmoid(at::linspace(-1 / scale, 1 / scale, 17, at::kDouble));
    EXPECT_LT(
        max_abs_diff(betas("sigmoidal:" + std::to_string(scale)), (s - s[0]) / (s[16] - s[0])),
        1e-14);
  }
  EXPECT_TRUE(at::equal(betas("sigmoidal"), betas("sigmoidal:0.3")));
  const at::Tensor spaced = betas("geometric:0.01").slice(0, 1);
  EXPECT_LT(max_abs_diff(spaced, at::logspace(-2, 0, 16, 10.0, at::kDouble)), 1e-14);
  EXPECT_TRUE(at::equal(betas("geometric"), betas("geometric:0.001")));
}

TEST(Heuristics, OneStepGoesAllTheWay) {
  ScheduleOptions options{.steps = 1};
  for (const char* spec : {"linear", "exponential", "sigmoidal", "geometric"})
    EXPECT_TRUE(at::equal(make(spec, options)->betas().flatten(), column({0, 1}))) << spec;
  options.steps = 2;
  EXPECT_TRUE(at::equal(make("geometric", options)->betas().flatten(), column({0, 1e-3, 1})));
}

TEST(FixedSchedule, RejectsWhatIsNoSchedule) {
  const auto make_fixed = [](const std::vector<double>& betas) {
    FixedSchedule(column(betas).unsqueeze(1));
  };
  for (const auto& [words, betas] :
       std::vector<std::pair<std::string, std::vector<double>>>{{"start at beta = 0", {0.1, 1}},
                                                                {"end at 1", {0, 0.9}},
                                                                {"rise", {0, 0.5, 0.5, 1}},
                                                                {"rise", {0, 0.6, 0.5, 1}},
                                                                {"rise", {0, NAN, 1}},
                                                                {"rise", {0, 1.5, 1}}})
    expect_error(ErrorKind::kData, {words}, [&, b = betas] { make_fixed(b); });
  make_fixed({0, 0.5, 1, 1});  // a short column, padded
  EXPECT_THROW(FixedSchedule(column({0, 1})), c10::Error);
}

TEST(FileSchedule, ReadsColumns) {
  const TemporaryFolder folder;
  const auto read = [&](const std::string& content) {
    return make("file:" + folder.file("a,b=c.csv", content))->betas().flatten();
  };
  const at::Tensor expected = column({0, 0.25, 1});
  EXPECT_TRUE(at::equal(read("0\n0.25\n1"), expected));
  EXPECT_TRUE(at::equal(read("# a comment\r\n0\r\n\r\n2.5e-1\r\n1.0\r\n"), expected));
  EXPECT_TRUE(at::equal(read("step,beta,size\n0,0,\n1,0.25,0.1\n2,1,0.2\n"), expected));
  EXPECT_TRUE(at::equal(read("beta\n0\n0.25\n1\n"), expected));
}

TEST(FileSchedule, NamesWhatIsWrong) {
  const TemporaryFolder folder;
  for (const auto& [words, content] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"line 2", "'half' is not a number"}, "0\nhalf\n1\n"},
           {{"line 3", "1 values"}, "a,beta\n1,0\n2\n"},
           {{"holds no values"}, ""},
           {{"fewer than two"}, "1\n"},
           {{"start at beta = 0"}, "0.1\n1\n"},
           {{"rise"}, "0\nnan\n1\n"}}) {
    const std::string file = folder.file("f.csv", content);
    std::vector<std::string> said = words;
    said.emplace_back("f.csv");
    expect_error(ErrorKind::kData, said, [&] { make("file:" + file); });
  }
  expect_error(ErrorKind::kNoInput, {"missing.csv", "no such file"},
               [&] { make("file:" + (folder.path() / "missing.csv").string()); });
  expect_error(ErrorKind::kArgument, {"needs path"}, [] { make("file"); });
}

}  // namespace
}  // namespace crais
