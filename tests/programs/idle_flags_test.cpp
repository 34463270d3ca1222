// Every flag of estimates in every course that the others may take: what is refused would change no
// number. The rules are those of src/programs/idle_flags.cpp.

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/spec.h"
#include "evidence/evidence.h"
#include "programs/estimate_logz/logz_run.h"
#include "programs/eval_loglik/settings.h"
#include "support/expect_error.h"
#include "targets/function_target.h"

namespace crais {
namespace {

/// A flag with a value, and the same as an option. PROBLEM stands for image or problem.
struct Given {
  std::string flag, value;
  std::function<void(EstimateOptions&)> set;
};

const std::vector<Given>& given() {
  using O = EstimateOptions;
  static const std::vector<Given> kGiven = {
      {"chains", "12", [](O& o) { o.chains = 12; }},
      {"max-evals", "900", [](O& o) { o.max_evaluations = 900; }},
      {"schedule", "sigmoidal", [](O& o) { o.schedule = "sigmoidal"; }},
      {"steps", "9", [](O& o) { o.steps = 9; }},
      {"path", "geometric", [](O& o) { o.path = "geometric"; }},
      {"kernel", "hmc", [](O& o) { o.kernel = "hmc"; }},
      {"leapfrog", "3", [](O& o) { o.num_leapfrog = 3; }},
      {"step-size", "0.3", [](O& o) { o.step_size = 0.3; }},
      {"resample", "multinomial:0.9", [](O& o) { o.resampling = "multinomial:0.9"; }},
      {"target-acceptance", "0.9", [](O& o) { o.target_acceptance = 0.9; }},
      {"force-dtype", "float32", [](O& o) { o.force_dtype = "float32"; }},
      {"per-PROBLEM", "true", [](O& o) { o.plan_per_problem = true; }},
      {"pilot-chains", "24", [](O& o) { o.pilot_chains = 24; }},
      {"pilot-PROBLEMs", "2", [](O& o) { o.pilot_problems = 2; }},
      {"min-step", "0.05", [](O& o) { o.min_step = 0.05; }},
      {"max-step", "0.2", [](O& o) { o.max_step = 0.2; }},
      {"max-steps", "5000", [](O& o) { o.max_steps = 5000; }},
      {"tolerance", "0.1", [](O& o) { o.tolerance = 0.1; }},
      {"weighted", "true", [](O& o) { o.weighted = true; }},
      {"weighted-ratio", "true", [](O& o) { o.weighted_ratio = true; }},
      {"interpolate", "7", [](O& o) { o.interpolate = 7; }},
  };
  return kGiven;
}

/// Flags of rules for temperatures and of errors to reach.
const std::set<std::string> kOfRules = {"tolerance", "weighted",  "weighted-ratio", "min-step",
                                        "max-step",  "max-steps", "max-evals"};

/// What an estimate does, by flags.
std::vector<std::string> courses_of(const std::string& problem) {
  if (problem != "image")
    return {"",
            "--base prior --error 0.3",
            "--base prior --error 0.3 --schedule linear",
            "--base mixture:16,rounds=0 --steps 40 --step-size 0.2",
            "--base mixture:16,rounds=0 --schedule constant-rate:0.5",
            "--base mixture:16,rounds=0 --budget 9000",
            "--base prior --schedule linear",
            "--method iwae:20 --base prior",
            "--base prior --step-size 0.2"};
  return {"--control 0",  // the control would choose the steps
          "--control 0 --base prior",
          "--method iwae:20",
          "--method iwae:20 --method elbo:9 --base prior",
          "--method iwae:20 --method ais --base prior",
          "--method mcd:2,iterations=2,hidden=4 --base prior",
          "--budget 900 --base prior",
          "--budget 9000 --pilot-chains 8 --base prior --path power:0.5",
          "--schedule constant-rate:0.5",
          "--base prior --schedule constant-rate:0.5",
          "--base prior --path power:0.5 --schedule constant-rate:0.5",
          "--base prior --path power:0.5 --weighted --schedule constant-rate:0.5",
          "--base prior --schedule cess:0.9",
          "--base prior --schedule ess:0.9",
          "--base prior --step-size 0.2",
          "--base prior --step-size 0.2 --force-dtype float32",
          "--base prior --step-size 0.2 --schedule cess:0.9",
          "--base prior --step-size 0.2 --path power:0.5",
          "--control 0 --base prior --kernel mala",
          "--control 0 --base prior --kernel random-walk",
          "--base prior --per-image --force-dtype float32"};
}

std::string named(std::string flag, const std::string& problem) {
  if (const size_t at = flag.find("PROBLEM"); at != std::string::npos) flag.replace(at, 7, problem);
  return flag;
}

/// What the flags of a course and one more come to.
EstimateOptions read(const std::string& problem, const std::string& flags,
                     const std::string& more = "") {
  std::vector<std::string> words = {problem == "image" ? "-" : "u1"};
  for (const std::string& all : {flags, more})
    for (const std::string& word : split(all, ' '))
      if (!word.empty()) words.push_back(word);
  if (problem == "image") return read_settings({eval_loglik_synopsis(), words}).estimator;
  return read_logz_settings({estimate_logz_synopsis(), words}).estimator;
}

/// All estimates of four densities: of each problem its own, or replicates of one.
std::vector<double> estimates(const std::string& problem, EstimateOptions options) {
  options.chunk = 2;
  options.witness = false;
  if (options.base == "auto" && problem != "image")
    options.base = "mixture:16,rounds=0";  // as auto
  options.steps = std::min<int64_t>(options.steps, 10);
  if (options.budget) options.budget = std::min(*options.budget, 2500.0);
  const auto driver = problem == "image" ? nullptr : evidence_driver();
  const auto target = std::make_shared<FunctionTarget>(
      FunctionTargetOptions{4, 2}, [driver](const at::Tensor& z, const at::Tensor& index) {
        const at::Tensor scale =
            driver ? at::full_like(index, 1.5, z.options()) : 1 + 0.25 * index.to(z.scalar_type());
        const at::Tensor x = z * scale.view({-1, 1, 1});
        return -0.5 * (x - 1).square().sum(-1) - 0.1 * x.pow(4).sum(-1);
      });
  std::vector<double> all;
  const RunResults found = run_problems(ProblemSource::of(target), Estimator(options, driver));
  for (const auto& [number, chunk] : found.chunks)
    for (const ChunkRun& run : chunk.runs)
      all.insert(all.end(), run.log_normalizer.begin(), run.log_normalizer.end());
  return all;
}

/// Why the flag is refused beside those of a course; empty if it is not.
std::string refusal(const std::string& problem, const std::string& flags, const std::string& more) {
  try {
    read(problem, flags, more);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kArgument);
    return error.what();
  }
  return "";
}

/// Every flag in every course: what is refused would change no number, and in some course each flag
/// is refused.
void expect_rules(const std::string& problem) {
  std::set<std::string> idle;
  for (const std::string& course : courses_of(problem)) {
    const EstimateOptions plain = read(problem, course);
    const std::vector<double> expected = estimates(problem, plain);
    for (const Given& one : given()) {
      const std::string flag = "--" + named(one.flag, problem);
      if ((course + " ").find(flag + " ") != std::string::npos) continue;
      SCOPED_TRACE(problem + ": " + course + " " + flag);
      const std::string why = refusal(problem, course, flag + "=" + one.value);
      // Others are read, or exclude each other, or make another flag idle.
      if (why.find(flag + " does nothing ") == std::string::npos) continue;
      // A search for a base takes a while: what other courses have shown is left out.
      if (plain.base != "prior" && kOfRules.count(one.flag) > 0) continue;
      idle.insert(one.flag);
      EstimateOptions more = plain;
      one.set(more);
      EXPECT_EQ(estimates(problem, more), expected) << why;
    }
  }
  for (const Given& one : given()) EXPECT_EQ(idle.count(one.flag), 1U) << one.flag;
}

TEST(IdleFlags, OfImagesChangeNoNumber) { expect_rules("image"); }

TEST(IdleFlags, OfDensitiesChangeNoNumber) { expect_rules("problem"); }

TEST(IdleFlags, AreThoseOfFilesToo) {  // which is not read for that
  const std::string file = "--base prior --schedule file:nowhere.csv";
  expect_error(ErrorKind::kArgument, {"--steps does nothing"},
               [&] { read("image", file, "--steps 5"); });
  expect_error(ErrorKind::kArgument, {"--max-step does nothing"},
               [&] { read("image", file, "--max-step 0.5"); });
  EXPECT_EQ(read("image", file).schedule, "file:nowhere.csv");
}

TEST(IdleFlags, OfOneProgramAreRefusedToo) {
  const auto refused = [](const std::string& more) {
    expect_error(ErrorKind::kArgument, {" does nothing "}, [&] { read("problem", "", more); });
  };
  refused("--method iwae:9 --witness none");
  refused("--data-dir .");
  refused("--accept-other-version");
}

}  // namespace
}  // namespace crais
