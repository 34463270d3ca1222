// Every flag of estimates under every course that the others may take: one that does nothing is
// refused, and what is refused would change no number. docs/reference.md has this table.

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/spec.h"
#include "evaluation/run_problems.h"
#include "programs/estimate_logz/settings.h"
#include "programs/eval_loglik/settings.h"
#include "support/expect_error.h"
#include "targets/function_target.h"

namespace crais {
namespace {

using Names = std::set<std::string>;

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

/// What an estimate does, by flags, and which of the flags above then do nothing.
struct Course {
  std::string name, flags;
  Names idle;
};

Names operator+(Names a, const Names& b) {
  a.insert(b.begin(), b.end());
  return a;
}
Names operator-(Names a, const Names& b) {
  for (const std::string& name : b) a.erase(name);
  return a;
}

const Names kOfRates = {"tolerance", "weighted-ratio"};
const Names kOfRules = kOfRates + Names{"min-step", "max-step", "max-steps", "weighted"};
const Names kUsual = kOfRules + Names{"max-evals"};  // beside the defaults
const Names kOfAnnealing = {
    "schedule",     "steps",       "path",           "kernel",      "leapfrog",
    "step-size",    "resample",    "force-dtype",    "per-PROBLEM", "target-acceptance",
    "pilot-chains", "interpolate", "weighted-ratio", "tolerance"};
const Names kOfPilots = {"interpolate", "per-PROBLEM", "pilot-chains"};

// Chains that pilots have where nobody says how many are as many as --chains, which has that much
// of an effect beside --mean-error and --budget: here --pilot-chains says it.
std::vector<Course> courses_of_images() {
  const std::string mcd = "--method mcd:2,iterations=2,hidden=4 ", rate = "constant-rate:0.5 ";
  return {
      {"defaults", "", kUsual},
      {"ais from a base", "--base prior", kUsual},
      {"importance", "--method iwae:20", kUsual + kOfAnnealing + Names{"chains", "pilot-PROBLEMs"}},
      {"two of them", "--method iwae:20 --method elbo:9 --base prior",
       kUsual + kOfAnnealing + Names{"chains", "pilot-PROBLEMs"}},
      {"beside ais", "--method iwae:20 --method ais --base prior", kUsual},
      {"diffusion", mcd + "--base prior", kUsual + kOfAnnealing - Names{"resample"}},
      {"budget", "--budget 900 --base prior",
       kUsual + Names{"chains", "steps", "interpolate", "pilot-chains"} - Names{"per-PROBLEM"}},
      {"budget on a power path", "--budget 9000 --pilot-chains 8 --base prior --path power:0.5",
       kUsual + Names{"chains", "steps", "interpolate"}},
      {"target error", "--target-error 0.2 --base prior", kOfRules},
      {"mean error", "--mean-error 0.2 --pilot-chains 8 --base prior", kOfRules + Names{"chains"}},
      {"rule", "--schedule " + rate, Names{"max-evals", "weighted-ratio"}},
      {"rule from a base", "--base prior --schedule " + rate,
       Names{"max-evals", "weighted-ratio", "steps"}},
      {"rule on a power path", "--base prior --path power:0.5 --schedule " + rate,
       Names{"max-evals", "steps"}},
      {"weighted rule", "--base prior --path power:0.5 --weighted --schedule " + rate,
       Names{"max-evals", "steps", "weighted-ratio"}},
      {"cess", "--base prior --schedule cess:0.9", kOfRates + Names{"max-evals", "steps"}},
      {"ess", "--base prior --schedule ess:0.9",
       kOfRates + Names{"max-evals", "steps", "weighted"}},
      {"fixed step", "--base prior --step-size 0.2",
       kUsual + kOfPilots + Names{"target-acceptance"}},
      {"fixed step, plain forces", "--base prior --step-size 0.2 --force-dtype float32",
       kUsual + kOfPilots + Names{"target-acceptance", "pilot-PROBLEMs"}},
      {"fixed step of a rule", "--base prior --step-size 0.2 --schedule cess:0.9",
       kOfRates + Names{"max-evals", "steps", "target-acceptance"}},
      {"fixed step on a power path", "--base prior --step-size 0.2 --path power:0.5",
       kUsual + Names{"interpolate"}},
      {"mala", "--base prior --kernel mala", kUsual + Names{"leapfrog"}},
      {"random walk", "--base prior --kernel random-walk",
       kUsual + Names{"leapfrog", "force-dtype"}},
      {"a plan each", "--base prior --per-image --force-dtype float32",
       kUsual + Names{"pilot-PROBLEMs"}},
  };
}

std::vector<Course> courses_of_densities() {
  return {
      {"defaults", "", kOfRules + Names{"per-PROBLEM", "pilot-PROBLEMs"}},
      {"error from a base", "--base prior --error 0.3",
       kOfRates + Names{"chains", "steps", "interpolate", "per-PROBLEM", "pilot-PROBLEMs"}},
      {"error, another schedule", "--base prior --error 0.3 --schedule linear",
       kOfRules + Names{"chains", "steps", "interpolate", "per-PROBLEM", "pilot-PROBLEMs"}},
      {"mixture, fixed step", "--base mixture:32,rounds=1 --steps 40 --step-size 0.2",
       kUsual + Names{"per-PROBLEM", "pilot-PROBLEMs", "target-acceptance"}},
      {"mixture, rule", "--base mixture:32,rounds=1 --schedule constant-rate:0.5",
       Names{"max-evals", "weighted-ratio", "steps", "per-PROBLEM", "pilot-PROBLEMs"}},
      {"mixture, budget", "--base mixture:32,rounds=1 --budget 9000",
       kUsual + Names{"chains", "steps", "interpolate", "pilot-PROBLEMs"}},
      {"from a base", "--base prior --schedule linear", kUsual},
      {"importance", "--method iwae:20 --base prior",
       kUsual + kOfAnnealing + Names{"chains", "pilot-PROBLEMs"}},
      {"fixed step", "--base prior --step-size 0.2",
       kUsual + kOfPilots + Names{"target-acceptance", "pilot-PROBLEMs"}},
  };
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
    options.base = "mixture:32,rounds=1";  // as auto
  options.steps = std::min<int64_t>(options.steps, 16);
  if (options.budget) options.budget = std::min(*options.budget, 4000.0);
  const FunctionTargetOptions about{4, 2, at::kDouble, /*replicated=*/problem != "image", {}};
  const auto target = std::make_shared<FunctionTarget>(
      about, [replicated = about.replicated](const at::Tensor& z, const at::Tensor& index) {
        const at::Tensor scale = replicated ? at::full_like(index, 1.5, z.options())
                                            : 1 + 0.25 * index.to(z.scalar_type());
        const at::Tensor x = z * scale.view({-1, 1, 1});
        return -0.5 * (x - 1).square().sum(-1) - 0.1 * x.pow(4).sum(-1);
      });
  std::vector<double> all;
  const RunResults found = run_problems(ProblemSource::of(target), Estimator(options));
  for (const auto& [number, chunk] : found.chunks)
    for (const ChunkRun& run : chunk.runs)
      all.insert(all.end(), run.log_normalizer.begin(), run.log_normalizer.end());
  return all;
}

void expect_courses(const std::string& problem, const std::vector<Course>& courses) {
  for (const Course& course : courses)
    for (const Given& one : given()) {
      const std::string flag = "--" + named(one.flag, problem), more = flag + "=" + one.value;
      if (course.flags.find(flag + " ") != std::string::npos) continue;
      SCOPED_TRACE(problem + ", " + course.name + ", " + more);
      if (course.idle.count(one.flag) > 0) {
        expect_error(ErrorKind::kArgument, {flag + " does nothing "},
                     [&] { read(problem, course.flags, more); });
        continue;
      }
      try {
        read(problem, course.flags, more);
      } catch (
          const Error& error) {  // the two exclude each other, or one of the course is idle now
        EXPECT_EQ(std::string(error.what()).find(flag + " does nothing"), std::string::npos)
            << error.what();
      }
    }
}

void expect_no_effects(const std::string& problem, const std::vector<Course>& courses) {
  for (const Course& course : courses) {
    const EstimateOptions plain = read(problem, course.flags);
    const std::vector<double> expected = estimates(problem, plain);
    for (const Given& one : given()) {
      const bool exclude = plain.budget && one.flag == "per-PROBLEM";
      // A mixture takes a while to fit: what other courses have shown is left out.
      const bool is_known =
          problem != "image" && plain.base != "prior" && kUsual.count(one.flag) > 0;
      if (course.idle.count(one.flag) == 0 || exclude || is_known) continue;
      EstimateOptions more = plain;
      one.set(more);
      EXPECT_EQ(estimates(problem, more), expected)
          << problem << ", " << course.name << ", " << one.flag;
    }
  }
}

TEST(IdleFlags, AreRefusedOfImages) { expect_courses("image", courses_of_images()); }

TEST(IdleFlags, AreRefusedOfDensities) { expect_courses("problem", courses_of_densities()); }

TEST(IdleFlags, WouldChangeNoNumberOfImages) { expect_no_effects("image", courses_of_images()); }

TEST(IdleFlags, WouldChangeNoNumberOfDensities) {
  expect_no_effects("problem", courses_of_densities());
}

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
