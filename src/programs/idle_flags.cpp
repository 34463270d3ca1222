#include <algorithm>
#include <memory>
#include <vector>

#include "core/spec.h"
#include "estimates/method.h"
#include "programs/estimator_flags.h"

namespace crais {
namespace {

/// The properties of an estimate that decide which flags have an effect.
struct Course {
  Course(const CommandLine& cli, const EstimateOptions& options, bool is_density);

  const CommandLine& cli;
  const EstimateOptions& options;
  bool is_density;
  std::string schedule, kernel;          // names without parameters
  bool anneals = false, learns = false;  // true if any method does
  bool is_adaptive = false;              // particles decide the temperatures
  bool takes_leapfrog = false;           // the kernel takes leapfrog steps
  bool has_order = false;                // the path's rate has a mass ratio; problems have a centre
  bool has_pilot = false;                // a pilot runs along the schedule
  bool tries_bases = false;              // pilots choose between bases
  bool plans_parts = false;              // replicates share a plan for the parts of one fit
};

Course::Course(const CommandLine& given, const EstimateOptions& o, bool density)
    : cli(given), options(o), is_density(density) {
  schedule = Spec(o.schedule).name();
  kernel = Spec(o.kernel).name();
  const std::shared_ptr<const Path> path = PathRegistry::instance().make("path", o.path);
  const auto kernel_with = [&](int64_t num_leapfrog) {
    return TransitionRegistry::instance().make("kernel", o.kernel, TransitionOptions{num_leapfrog});
  };
  const std::shared_ptr<const Transition> transition = kernel_with(1);
  takes_leapfrog = kernel_with(2)->evaluations_per_step() != transition->evaluations_per_step();
  std::shared_ptr<const Resampling> resampling;
  if (!o.resampling.empty())
    resampling = ResamplingRegistry::instance().make("resampling", o.resampling);
  for (const std::string& name : o.methods) {
    const auto method = MethodRegistry::instance().make(
        "method", name, AnnealingParts{path, transition, resampling, /*keep_particles=*/false});
    anneals |= method->num_anneals() > 0;
    learns |= method->learns();
  }
  // A file holds temperatures. Only the run itself reads it.
  is_adaptive =
      schedule != "file" &&
      ScheduleRegistry::instance().make("schedule", o.schedule, ScheduleOptions{})->is_adaptive();
  has_order = path->divergence().order() != 0;
  plans_parts = is_density && anneals &&
                (o.error || o.budget || o.base == "auto" || Spec(o.base).name() == "mixture");
  has_pilot =
      anneals && (path->needs_learning() || is_adaptive || !o.step_size || o.budget || plans_parts);
  tries_bases = anneals && !is_density && o.base == "auto";
}

/// A rule for flags that have no effect on some estimates.
struct Rule {
  std::vector<std::string> flags;
  bool (*is_idle)(const Course&);
  std::string why;  // "--steps does nothing WHY"
};

/// All rules.
std::vector<Rule> rules(const std::string& problem) {
  const std::string per = "per-" + problem, pilots = "pilot-" + problem + "s";
  return {
      // Flags of methods.
      {{"schedule", "steps", "path", "kernel", "leapfrog", "step-size", "resample",
        "target-acceptance", "force-dtype", per, "pilot-chains", "min-step", "max-step",
        "max-steps", "tolerance", "weighted", "weighted-ratio", "interpolate"},
       [](const Course& c) { return !c.anneals; },
       "where no --method anneals"},
      {{"chains"},
       [](const Course& c) { return !c.anneals && !c.learns; },
       "where no --method has chains: iwae:K and elbo:K take K samples"},
      {{"witness"},
       [](const Course& c) {
         const std::vector<std::string>& methods = c.options.methods;
         return c.is_density && std::find(methods.begin(), methods.end(), "ais") == methods.end();
       },
       "without --method ais"},
      // Flags of numbers.
      {{"chains", "steps"},
       [](const Course& c) { return c.options.budget.has_value(); },
       "beside --budget, which chooses both"},
      {{"interpolate"},
       [](const Course& c) { return c.options.budget.has_value(); },
       "beside --budget, which chooses how many transitions there are"},
      {{"pilot-chains"},
       [](const Course& c) { return c.options.budget && !c.plans_parts && !c.has_order; },
       "beside --budget, which chooses the chains of pilots too"},
      {{"chains", "steps", "interpolate"},
       [](const Course& c) { return c.is_density && c.options.error; },
       "beside --error, whose rounds choose how many chains and transitions there are"},
      {{"max-evals"}, [](const Course& c) { return !c.options.error; }, "without --error"},
      // Flags of schedules.
      {{"tolerance", "weighted-ratio"},
       [](const Course& c) { return c.schedule != "constant-rate"; },
       "without --schedule constant-rate"},
      {{"min-step", "max-step", "max-steps", "weighted"},
       [](const Course& c) { return !c.is_adaptive; },
       "without an adaptive --schedule"},
      {{"weighted"},
       [](const Course& c) { return c.schedule == "ess"; },
       "for --schedule ess, whose statistics are weighted in any case"},
      {{"weighted-ratio"},
       [](const Course& c) { return c.options.weighted; },
       "beside --weighted, which weighs the mass ratio too"},
      {{"weighted-ratio"},
       [](const Course& c) { return !c.has_order; },
       "along a --path of order 0, whose rate has no mass ratio"},
      {{"steps"},
       [](const Course& c) { return (c.is_adaptive || c.schedule == "file") && !c.tries_bases; },
       "for a --schedule that says itself how many there are (--interpolate stretches its plan)"},
      // Flags of moves.
      {{"leapfrog"},
       [](const Course& c) { return !c.takes_leapfrog; },
       "for a --kernel that takes no leapfrog steps"},
      {{"force-dtype"},
       [](const Course& c) { return c.kernel == "random-walk"; },
       "for --kernel random-walk, which takes no gradients"},
      {{"target-acceptance"},
       [](const Course& c) { return c.options.step_size && !c.has_order; },
       "beside a --step-size, which is not tuned"},
      // Flags of pilots.
      {{"interpolate"},
       [](const Course& c) { return !c.has_pilot; },
       "without a pilot: --schedule and --step-size leave nothing to tune"},
      {{per, "pilot-chains"},
       [](const Course& c) { return !c.has_pilot && !c.has_order; },
       "without a pilot: --schedule and --step-size leave nothing to tune"},
      {{per},
       [](const Course& c) { return c.plans_parts && !c.has_order; },
       "where all replicates share a plan"},
      {{pilots},
       [](const Course& c) {
         const bool share_plan = c.has_pilot && !c.plans_parts && !c.options.plan_per_problem;
         const bool choose_forces = c.anneals && !c.is_density && c.options.force_dtype == "auto";
         return !share_plan && !choose_forces && !c.tries_bases && !c.learns;
       },
       "where nothing is tuned on problems that stand for all"},
      // Flags of files.
      {{"accept-other-version"},
       [](const Course& c) { return !c.cli.has("out"); },
       "without --out DIR"},
  };
}

}  // namespace

void refuse_idle(const CommandLine& cli, const EstimateOptions& options,
                 const std::string& problem) {
  const Course course(cli, options, problem != "image");
  for (const Rule& rule : rules(problem))
    if (rule.is_idle(course))
      for (const std::string& flag : rule.flags) cli.refuse_idle(flag, rule.why);
}

}  // namespace crais
