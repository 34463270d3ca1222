#include "report/estimates.h"

#include <gtest/gtest.h>

#include <cmath>

#include "programs/estimate_logz/report.h"

namespace crais {
namespace {

ChunkRun run_of(const std::string& method, int64_t repeat, const std::vector<double>& values) {
  return {
      .method = method,
      .repeat = repeat,
      .log_normalizer = values,
      .std_error = std::vector<double>(values.size(), 0.25),
      .bias = std::vector<double>(values.size(), -0.125),
      .ess = std::vector<double>(values.size(), 0.5),
      .flags = std::vector<int64_t>(values.size(), 0),
      .num_nonfinite = 7,
      .cost = {static_cast<int64_t>(40 * values.size()), static_cast<int64_t>(30 * values.size())},
      .seconds = 1.5};
}

ChunkRun annealed(int64_t repeat, const std::vector<double>& values, double accept_prob) {
  ChunkRun run = run_of("ais", repeat, values);
  run.accept_prob = std::vector<double>(values.size(), accept_prob);
  return run;
}

Plan plan_of(const std::vector<double>& middle) {
  const auto c = static_cast<int64_t>(middle.size());
  return {at::stack({at::zeros({c}, at::kDouble), at::tensor(middle, at::kDouble),
                     at::ones({c}, at::kDouble)}),
          at::full({2, c}, 0.5, at::kDouble), 16};
}

/// Three problems in two chunks, two repeats: values 1, 2.5, 4 and then 1.5, 2, 3.
LogzResults logz_results() {
  LogzResults all{.target = "three", .dim = 3, .truth = 2.0};
  all.chunks[0].indices = {0, 1};
  all.chunks[0].runs = {annealed(0, {1.0, 2.5}, 0.6), annealed(1, {1.5, 2.0}, 0.8)};
  all.chunks[0].runs[0].ess[0] = 0.1;
  all.chunks[0].runs[1].flags[1] = kTail | kFewEffective;
  all.chunks[0].base = {90, 90};
  all.chunks[1].indices = {2};
  all.chunks[1].runs = {annealed(0, {4.0}, 0.9), annealed(1, {3.0}, 0.7)};
  all.state.plan = Plan{at::tensor({0.0, 0.25, 1.0, 1.0}, at::kDouble).unsqueeze(1),
                        at::tensor({0.5, 0.125, 0.5}, at::kDouble).unsqueeze(1), 16};
  all.state.tuning = {120, 120};
  return all;
}

TEST(EstimateReport, SummarisesAMethodOverChunksAndRepeats) {
  const LogzSummary s = summarise(logz_results()).front();
  EXPECT_EQ(s.method, "ais");
  EXPECT_EQ(s.problems, 3);
  EXPECT_EQ(s.repeats, 2);
  EXPECT_NEAR(s.ess_mean, (5 * 0.5 + 0.1) / 6, 1e-14);
  EXPECT_NEAR(s.ess_min, 0.1, 1e-14);
  EXPECT_NEAR(s.bias, -0.125, 1e-14);
  EXPECT_NEAR(*s.accept_prob, (2 * 0.6 + 2 * 0.8 + 0.9 + 0.7) / 6, 1e-14);
  EXPECT_EQ(*s.transitions, 2);  // the rest at beta = 1 is no transition of the schedule
  EXPECT_EQ(s.evaluations, 40);
  EXPECT_EQ(s.gradients, 30);
  EXPECT_EQ(s.base_evaluations, 30);
  EXPECT_EQ(s.tuning_evaluations, 40);
  EXPECT_EQ(s.num_nonfinite, 28);
  EXPECT_EQ(s.bound, "lower bound");
  EXPECT_EQ(s.flags, (std::map<std::string, int64_t>{{"any", 1}, {"ess", 1}, {"tail", 1}}));
  EXPECT_FALSE(s.certificate);
  EXPECT_EQ(to_json(s)["evaluations_per_problem"]["base"], 30);
}

TEST(EstimateReport, MeasuresErrorsOfReplicatesByTheirSpread) {
  const LogzSummary s = summarise(logz_results()).front();
  EXPECT_NEAR(s.mean, 14.0 / 6, 1e-14);
  const double sum_of_squares = 1 + 6.25 + 16 + 2.25 + 4 + 9;
  const double variance = (sum_of_squares - 6 * s.mean * s.mean) / 5;
  EXPECT_NEAR(s.std_error, std::sqrt(variance / 6), 1e-14);
  EXPECT_NEAR(*s.error, 1.0 / 3, 1e-14);
  EXPECT_NEAR(*s.z_score, 1.0 / 3 / std::sqrt(variance / 6), 1e-13);
  EXPECT_NEAR(*s.root_mean_square_error, std::sqrt((1 + 0.25 + 4 + 0.25 + 0 + 1) / 6), 1e-14);
}

TEST(EstimateReport, AsksTheChainsForTheErrorOfOneEstimate) {
  LogzResults one;
  one.chunks[0].indices = {0};
  one.chunks[0].runs = {run_of("iwae:9", 0, {1.5})};
  one.chunks[0].tuning = {500, 500};  // of another method that anneals
  const LogzSummary s = summarise(one).front();
  EXPECT_EQ(s.std_error, 0.25);
  EXPECT_FALSE(s.error || s.z_score || s.root_mean_square_error || s.accept_prob || s.transitions);
  EXPECT_EQ(s.tuning_evaluations, 0);
  EXPECT_TRUE(to_json(s)["z_score"].is_null());
}

TEST(EstimateReport, CertifiesByTheGapOfEachProblem) {
  LogzResults both = logz_results();
  const auto add_upper = [&](int64_t chunk, size_t run, std::vector<double> upper) {
    ChunkRun& to = both.chunks[chunk].runs[run];
    to.upper_std_error = std::vector<double>(upper.size(), 0.5);
    to.upper = std::move(upper);
  };
  add_upper(0, 0, {2.0, 3.0});
  add_upper(0, 1, {2.0, 2.5});
  add_upper(1, 0, {4.5});
  add_upper(1, 1, {5.0});
  const std::vector<LogzSummary> summaries = summarise(both);
  const Certificate& c = *summaries.front().certificate;
  EXPECT_NEAR(c.upper.mean, 19.0 / 6, 1e-14);
  EXPECT_NEAR(c.gap, (0.75 + 0.5 + 1.25) / 3, 1e-14);  // means over repeats
  EXPECT_NEAR(c.largest_gap, 1.25, 1e-14);
  // Deviations from 5/6: -1/12, -1/3, 5/12.
  EXPECT_NEAR(c.gap_std_error, std::sqrt((1 + 16 + 25) / 144.0 / 2 / 3), 1e-14);
  EXPECT_EQ(bounds_of(summaries.front(), 1.0)[3],
            (std::pair<std::string, std::string>{"gap", "0.8333"}));
}

TEST(EstimateReport, WritesALineForEachEstimate) {
  LogzResults all = logz_results();
  all.chunks[0].runs.pop_back();
  all.chunks.erase(1);
  EXPECT_EQ(estimates_csv(all, "problem", "log_normalizer", all.truth),
            "problem,method,repeat,log_normalizer,std_error,bias,ess,pareto_k,accept_prob,upper,"
            "upper_std_error,evaluations,flags,error\n"
            "0,ais,0,1,0.25,-0.125,0.1,,0.6,,,,,-1\n"
            "1,ais,0,2.5,0.25,-0.125,0.5,,0.6,,,,,0.5\n");
  EXPECT_EQ(schedule_csv(all, "problem"),
            "problem,step,beta,step_size,divergence,accept_prob,ess\n"
            "all,0,0,,,,\n"
            "all,1,0.25,0.5,,,\n"
            "all,2,1,0.125,,,\n");
  all.state.plan->divergence = at::tensor({3.0, 1.5, 0.25}, at::kDouble).unsqueeze(1);
  all.state.plan->accept_prob = at::tensor({0.75, 0.5}, at::kDouble).unsqueeze(1);
  all.state.plan->ess = at::tensor({1.0, 0.875, 0.625}, at::kDouble).unsqueeze(1);
  EXPECT_EQ(schedule_csv(all, "problem"),
            "problem,step,beta,step_size,divergence,accept_prob,ess\n"
            "all,0,0,,3,,1\n"
            "all,1,0.25,0.5,1.5,0.75,0.875\n"
            "all,2,1,0.125,0.25,0.5,0.625\n");
}

TEST(EstimateReport, NumbersTheProblemsOfEveryChunk) {
  LogzResults all = logz_results();
  all.state.plan.reset();
  all.chunks[0].plan = plan_of({0.25, 0.5});
  all.chunks[1].plan = plan_of({1.0});
  EXPECT_NEAR(*summarise(all).front().transitions, 5.0 / 3.0, 1e-14);
  const std::string csv = schedule_csv(all, "image");
  EXPECT_EQ(csv.find("image,step"), 0u) << csv;
  EXPECT_NE(csv.find("\n1,1,0.5,0.5,,,\n"), std::string::npos) << csv;
  EXPECT_NE(csv.find("\n2,1,1,0.5,,,\n"), std::string::npos) << csv;
  EXPECT_EQ(csv.find("\n2,2,"), std::string::npos) << csv;
}

}  // namespace
}  // namespace crais
