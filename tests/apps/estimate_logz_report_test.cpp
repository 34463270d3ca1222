#include "apps/estimate_logz_report.h"

#include <gtest/gtest.h>

#include <cmath>

namespace crais {
namespace {

/// Two problems, two repeats of a method that anneals, and one estimate of one that does not.
LogzResults results(std::vector<double> values, std::vector<double> accept_prob) {
  LogzResults all;
  all.dim = 3;
  all.truth = 2.0;
  const size_t n = values.size();
  all.methods.push_back({"ais",
                         Bound::kLower,
                         std::move(values),
                         std::vector<double>(n, 0.25),
                         std::vector<double>(n, 0.5),
                         std::move(accept_prob),
                         7,
                         {static_cast<int64_t>(40 * n), static_cast<int64_t>(30 * n)},
                         1.5});
  all.methods[0].ess[0] = 0.1;
  all.shared_plan = Plan{at::tensor({0.0, 0.25, 1.0, 1.0}, at::kDouble).unsqueeze(1),
                         at::tensor({0.5, 0.125, 0.5}, at::kDouble).unsqueeze(1)};
  all.tuning = {120, 120};
  return all;
}

TEST(LogzReport, MeasuresErrorsByTheSpread) {
  const LogzSummary s = summarise(results({1.0, 2.5, 1.5, 2.0}, {0.6, 0.7, 0.8, 0.7})).front();
  EXPECT_EQ(s.estimates, 4);
  EXPECT_DOUBLE_EQ(s.mean, 1.75);
  // Deviations -0.75, 0.75, -0.25, 0.25.
  EXPECT_NEAR(s.std_error, std::sqrt(1.25 / 3 / 4), 1e-14);
  EXPECT_NEAR(*s.error, -0.25, 1e-14);
  EXPECT_NEAR(*s.z_score, -0.25 / std::sqrt(1.25 / 12), 1e-13);
  EXPECT_NEAR(*s.root_mean_square_error, std::sqrt((1 + 0.25 + 0.25 + 0) / 4), 1e-14);
  EXPECT_NEAR(s.ess_mean, 0.4, 1e-14);
  EXPECT_NEAR(s.ess_min, 0.1, 1e-14);
  EXPECT_NEAR(*s.accept_prob, 0.7, 1e-14);
  EXPECT_EQ(*s.transitions, 2);  // the rest at beta = 1 is no transition of the schedule
  EXPECT_EQ(s.evaluations, 40);
  EXPECT_EQ(s.gradients, 30);
  EXPECT_EQ(s.tuning_evaluations, 30);
  EXPECT_EQ(s.bound, "lower bound");
}

TEST(LogzReport, AsksTheChainsForTheErrorOfOneEstimate) {
  LogzResults one = results({1.5}, {});
  one.truth.reset();
  const LogzSummary s = summarise(one).front();
  EXPECT_EQ(s.std_error, 0.25);
  EXPECT_FALSE(s.error || s.z_score || s.root_mean_square_error || s.accept_prob || s.transitions);
  EXPECT_EQ(s.tuning_evaluations, 0);  // of a method that does not anneal
  EXPECT_TRUE(to_json(s)["z_score"].is_null());
}

TEST(LogzReport, WritesALineForEachEstimate) {
  const LogzResults all = results({1.0, 2.5, 1.5, 2.0}, {0.6, 0.7, 0.8, 0.7});
  EXPECT_EQ(per_problem_csv(all, 2),
            "problem,method,repeat,log_normalizer,std_error,ess,accept_prob,error\n"
            "0,ais,0,1,0.25,0.1,0.6,-1\n"
            "1,ais,0,2.5,0.25,0.5,0.7,0.5\n"
            "0,ais,1,1.5,0.25,0.5,0.8,-0.5\n"
            "1,ais,1,2,0.25,0.5,0.7,0\n");
  EXPECT_EQ(schedule_csv(all),
            "problem,step,beta,step_size\n"
            "all,0,0,\n"
            "all,1,0.25,0.5\n"
            "all,2,1,0.125\n");
}

TEST(LogzReport, NumbersTheProblemsOfEveryChunk) {
  LogzResults all = results({1.0, 2.5, 1.5}, {0.6, 0.7, 0.8});
  all.shared_plan.reset();
  const auto plan = [](const std::vector<double>& middle) {
    const auto c = static_cast<int64_t>(middle.size());
    return Plan{at::stack({at::zeros({c}, at::kDouble), at::tensor(middle, at::kDouble),
                           at::ones({c}, at::kDouble)}),
                at::full({2, c}, 0.5, at::kDouble)};
  };
  all.plans = {plan({0.25, 0.5}), plan({1.0})};
  EXPECT_NEAR(*summarise(all).front().transitions, 5.0 / 3.0, 1e-14);
  const std::string csv = schedule_csv(all);
  EXPECT_NE(csv.find("\n1,1,0.5,0.5\n"), std::string::npos) << csv;
  EXPECT_NE(csv.find("\n2,1,1,0.5\n"), std::string::npos) << csv;
  EXPECT_EQ(csv.find("\n2,2,"), std::string::npos) << csv;
}

}  // namespace
}  // namespace crais
