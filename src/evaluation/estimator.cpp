#include "evaluation/estimator.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "core/rng.h"
#include "samplers/blocks.h"
#include "util/error.h"

namespace crais {
namespace {

using Clock = std::chrono::steady_clock;
using Column = ChunkRun::Column;

constexpr const char* kAuto = "auto";
constexpr uint64_t kSharedPilot = std::numeric_limits<uint64_t>::max();  // no chunk has this number

Column to_column(const at::Tensor& values) {
  if (!values.defined()) return {};
  const at::Tensor plain = values.to(at::kCPU, at::kDouble).contiguous();
  return {plain.data_ptr<double>(), plain.data_ptr<double>() + plain.numel()};
}

ChunkRun to_run(const MethodResult& found, const Problem& problem) {
  const auto problems = static_cast<size_t>(problem.num_problems());
  const Estimate& lower = found.estimate;
  ChunkRun run;
  run.log_normalizer = to_column(lower.value);
  run.std_error = to_column(lower.std_error);
  run.bias = to_column(lower.bias);
  run.ess = to_column(lower.ess);
  run.pareto_k = to_column(lower.pareto_k);
  run.accept_prob = to_column(found.accept_prob);
  if (found.upper) {
    run.upper = to_column(found.upper->value);
    run.upper_std_error = to_column(found.upper->std_error);
  }
  run.evaluations = Column(
      problems, static_cast<double>(problem.cost().densities) / static_cast<double>(problems));
  run.flags = to_column(suspect_error(lower) * static_cast<int>(kFewEffective) +
                        suspect_tail(lower) * static_cast<int>(kTail));
  run.num_nonfinite = found.num_nonfinite;
  run.cost = problem.cost();
  return run;
}

/// By more than two standard errors of the mean difference.
bool clearly_above(const at::Tensor& value, const at::Tensor& other) {
  const at::Tensor apart = value - other;
  if (apart.numel() < 2) return false;
  const double error = apart.std(0, /*unbiased=*/true).item<double>() /
                       std::sqrt(static_cast<double>(apart.numel()));
  return apart.mean().item<double>() > 2 * error;
}

/// Puts the entries of `part` at places `index` of `whole`.
void scatter(const ChunkRun& part, const std::vector<int64_t>& index, ChunkRun& whole) {
  size_t total = 0;
  for (const int64_t i : index) total = std::max(total, static_cast<size_t>(i) + 1);
  for (const auto& [name, column] : ChunkRun::columns()) {
    if ((part.*column).empty()) continue;
    Column& to = whole.*column;
    to.resize(std::max(to.size(), total));
    for (size_t i = 0; i < index.size(); ++i) to[static_cast<size_t>(index[i])] = (part.*column)[i];
  }
  whole.num_nonfinite += part.num_nonfinite;
  whole.cost += part.cost;
}

}  // namespace

std::string flag_words(int flags) {
  std::string words;
  for (const auto& [bit, word] :
       {std::pair{kFewEffective, "ess"}, std::pair{kTail, "tail"}, std::pair{kBaseFailed, "base"},
        std::pair{kMissedTarget, "target"}, std::pair{kModes, "modes"}})
    if (flags & bit) words += (words.empty() ? "" : "+") + std::string(word);
  return words;
}

const std::vector<std::pair<std::string, Column ChunkRun::*>>& ChunkRun::columns() {
  static const std::vector<std::pair<std::string, Column ChunkRun::*>> all = {
      {"log_normalizer", &ChunkRun::log_normalizer},
      {"std_error", &ChunkRun::std_error},
      {"bias", &ChunkRun::bias},
      {"ess", &ChunkRun::ess},
      {"pareto_k", &ChunkRun::pareto_k},
      {"accept_prob", &ChunkRun::accept_prob},
      {"upper", &ChunkRun::upper},
      {"upper_std_error", &ChunkRun::upper_std_error},
      {"evaluations", &ChunkRun::evaluations},
      {"flags", &ChunkRun::flags}};
  return all;
}

Estimator::Estimator(const EstimatorSettings& settings)
    : settings_(settings),
      path_(PathRegistry::instance().make("path", settings.path)),
      rule_(make_rule(settings.schedule_options.steps)),
      transition_(TransitionRegistry::instance().make("kernel", settings.kernel,
                                                      settings.transition_options)) {
  if (settings.base != kAuto) use_base(settings.base);
  if (!settings.resample.empty())
    resampling_ = ResamplingRegistry::instance().make("resampling", settings.resample);
  settings_.pilot.resampling = resampling_.get();
  for (const auto& method : settings_.methods) {
    if (std::count(settings_.methods.begin(), settings_.methods.end(), method) > 1)
      throw usage_error("--method " + method + " is given twice; use --repeats");
    methods_.push_back(MethodRegistry::instance().make(
        "method", method, AnnealingParts{*path_, *transition_, resampling_.get()}));
  }
  const auto annealed = std::count_if(methods_.begin(), methods_.end(),
                                      [](const auto& method) { return method->num_anneals() > 0; });
  if ((settings_.budget || settings_.target_error) && annealed != 1)
    throw usage_error("--budget and --target-error plan for one annealed --method, not " +
                      std::to_string(annealed));
  if (settings_.budget && !settings_.pilot.shared)
    throw usage_error("--budget chooses one plan for all: leave out the flag for a plan each");
}

bool Estimator::anneals() const {
  return std::any_of(methods_.begin(), methods_.end(),
                     [](const auto& method) { return method->num_anneals() > 0; });
}

bool Estimator::needs_exact_draws() const {
  return std::any_of(methods_.begin(), methods_.end(),
                     [](const auto& method) { return method->needs_exact_draws(); });
}

bool Estimator::needs_pilot() const {
  return settings_.budget || crais::needs_pilot(*rule_, settings_.pilot);
}

std::unique_ptr<ScheduleRule> Estimator::make_rule(int64_t steps) const {
  ScheduleOptions options = settings_.schedule_options;
  options.steps = steps;
  return ScheduleRegistry::instance().make("schedule", settings_.schedule, options);
}

int64_t Estimator::evaluations_per_chain(const Plan& plan) const {
  return 1 + transition_->evaluations_per_step() * plan.num_steps();
}

void Estimator::use_base(const std::string& name) {
  base_ = BaseRegistry::instance().make("base", name);
  shared_.base = name;
}

void Estimator::set_shared(Shared shared) {
  use_base(shared.base);
  shared_ = std::move(shared);
}

void Estimator::choose_base(const Target& target, int64_t num_problems) {
  if (!anneals()) {  // IWAE and the ELBO are known by the encoder they start from
    const bool learns = std::any_of(methods_.begin(), methods_.end(),
                                    [](const auto& method) { return method->needs_preparation(); });
    use_base(target.amortised_base() && !learns ? "encoder" : "laplace");
    return;
  }
  // In the order of trust: a later one has to be clearly better.
  std::vector<std::string> candidates = {"laplace", "prior"};
  if (target.amortised_base()) candidates.insert(candidates.begin() + 1, "encoder");
  // A budget leaves a tenth for choosing; where that is too little the first is taken on trust.
  int64_t num_pilots = std::min(settings_.pilot_problems, target.num_problems());
  if (settings_.budget) {
    const int64_t steps = settings_.schedule_options.steps;
    const auto trial =
        static_cast<double>(2 * settings_.chains * static_cast<int64_t>(candidates.size()) *
                            (1 + steps * transition_->evaluations_per_step()));
    num_pilots = std::min(
        num_pilots,
        static_cast<int64_t>(0.1 * *settings_.budget * static_cast<double>(num_problems) / trial));
  }
  use_base(candidates.front());
  if (num_pilots == 0) return;
  const auto pilots = target.slice(0, num_pilots);
  Shared best;
  at::Tensor highest;  // [num_pilots] estimates of the best so far
  Cost cost;
  for (const std::string& name : candidates) {
    use_base(name);
    const Base base = base_of(*pilots, kSharedPilot);
    cost += base.cost;
    const Problem problem = centred(*pilots, base.map, kSharedPilot, cost);
    Plan plan;
    try {
      plan = tune_on(problem, kSharedPilot);
    } catch (const Error& error) {  // a schedule that cannot bridge the way from this base
      cost += problem.cost();
      if (name == candidates.back() && best.base.empty()) throw;
      continue;
    }
    at::Generator rng = make_generator(
        derive_seed(settings_.seed, Purpose::kPilot, kSharedPilot - 1), target.options().device());
    const AnnealResult run = anneal_in_blocks(problem, *path_, plan, *transition_, settings_.chains,
                                              rng, resampling_.get());
    cost += problem.cost();
    const at::Tensor value = log_normalizer(run.log_w, run.genealogy).value + problem.log_center();
    if (highest.defined() && !clearly_above(value, highest)) continue;
    highest = value;
    best = {name, plan, {}, {}};
  }
  set_shared(best);
  shared_.tuning = cost;
}

Base Estimator::base_of(const Target& target, uint64_t stream) const {
  at::Generator rng = make_generator(derive_seed(settings_.seed, Purpose::kBase, stream),
                                     target.options().device());
  return base_->build(target, rng);
}

Plan Estimator::tune_on(const Problem& problem, uint64_t stream) const {
  Plan plan;
  if (crais::needs_pilot(*rule_, settings_.pilot)) {
    at::Generator rng = make_generator(derive_seed(settings_.seed, Purpose::kPilot, stream),
                                       problem.base().options().device());
    plan = tune(problem, *path_, *rule_, *transition_, settings_.pilot, rng);
  } else {
    plan = freeze(*rule_, *settings_.pilot.step_size);
  }
  plan.num_particles = settings_.chains;
  return plan;
}

Problem Estimator::centred(const Target& target, const AffineMap& base, uint64_t stream,
                           Cost& tuning) const {
  if (!anneals() || path_->order() == 0) return {target, base};
  constexpr int64_t kSteps = 64;
  at::Generator rng = make_generator(derive_seed(settings_.seed, Purpose::kCentre, stream),
                                     base.options().device());
  const Problem plain(target, base);
  const at::Tensor log_center =
      pilot_log_normalizer(plain, *transition_, kSteps, settings_.pilot, rng);
  tuning += plain.cost();
  return {target, base, log_center};
}

Plan Estimator::budgeted(const Target& target, int64_t num_problems, Cost& tuning) const {
  const int64_t num_anneals =
      (*std::max_element(methods_.begin(), methods_.end(), [](const auto& a, const auto& b) {
        return a->num_anneals() < b->num_anneals();
      }))->num_anneals();
  // What one base costs is known from the first problem's.
  const Base first = base_of(*target.slice(0, 1), kSharedPilot);
  const int64_t base_cost = first.cost.densities;
  const Budget budget{*settings_.budget, num_problems, num_anneals};
  const int64_t move_cost = transition_->evaluations_per_step();
  const PilotSize size = pilot_size(budget, base_cost, move_cost, target.num_problems());
  const auto pilots = target.slice(0, size.num_problems);
  const Base base = base_of(*pilots, kSharedPilot);
  tuning += first.cost;
  tuning += base.cost;
  const Problem problem = centred(*pilots, base.map, kSharedPilot, tuning);
  at::Generator rng = make_generator(derive_seed(settings_.seed, Purpose::kPilot, kSharedPilot),
                                     target.options().device());
  const Plan plan = plan_within(
      budget, size, tuning, base_cost, problem, *path_,
      [this](int64_t steps) { return make_rule(steps); }, *transition_, settings_.pilot, rng);
  tuning += problem.cost();
  return plan;
}

const Shared& Estimator::tune_shared(const Target& target, int64_t num_problems) {
  if (settings_.base == kAuto) choose_base(target, num_problems);
  Cost& tuning = shared_.tuning;
  if (!shares_plan()) {
    shared_.plan.reset();
  } else if (settings_.budget) {
    shared_.plan = budgeted(target, num_problems, tuning);
  } else if (!needs_pilot()) {
    shared_.plan = freeze(*rule_, *settings_.pilot.step_size);
    shared_.plan->num_particles = settings_.chains;
  } else if (!shared_.plan) {
    const Base base = base_of(target, kSharedPilot);
    tuning += base.cost;
    const Problem problem = centred(target, base.map, kSharedPilot, tuning);
    shared_.plan = tune_on(problem, kSharedPilot);
    tuning += problem.cost();
  }
  return shared_;
}

int64_t Estimator::most_particles(int64_t num_problems, int64_t dim) const {
  const int64_t block = num_problems * chains_per_block(num_problems, dim);
  int64_t most = num_problems;
  if (anneals()) {
    const int64_t wanted = num_problems * settings_.chains;
    const bool is_known = !settings_.budget && !settings_.target_error;
    // Chains of SMC stay together; of AIS, a block has one of each problem at least.
    const int64_t fewest = resampling_ ? settings_.chains : num_problems;
    most = std::max({most, fewest, is_known ? std::min(wanted, block) : block});
    if (settings_.base == kAuto || needs_pilot())
      most = std::max(most, (settings_.pilot.shared ? settings_.pilot_problems : num_problems) *
                                settings_.pilot.num_particles);
  }
  return most;
}

void Estimator::prepare(const Target& target, const PrepareReport& report) {
  for (size_t m = 0; m < methods_.size(); ++m) {
    if (!methods_[m]->needs_preparation()) continue;
    const Base base = base_of(target, kSharedPilot);
    Cost cost = base.cost;
    const Problem problem = centred(target, base.map, kSharedPilot, cost);
    methods_[m]->prepare(problem, derive_seed(settings_.seed, Purpose::kTrain, m), report);
    cost += problem.cost();
    shared_.prepared[settings_.methods[m]] = cost;
  }
}

ChunkRun Estimator::run_method(size_t method, const Problem& problem, const Plan& plan,
                               at::Generator& rng) const {
  return to_run(methods_[method]->estimate(problem, plan, rng), problem);
}

ChunkRun Estimator::run_to_target(size_t method, const Problem& problem, const Plan& plan,
                                  at::Generator& rng, Cost& tuning) const {
  // Pilot chains decide how many, fresh ones estimate: the weights that are reported have not
  // decided anything.
  const Problem pilot(problem.target(), problem.base(), problem.log_center());
  const AnnealResult seen =
      anneal_in_blocks(pilot, *path_, plan, *transition_, std::max<int64_t>(plan.num_particles, 8),
                       rng, resampling_.get());
  tuning += pilot.cost();
  const double error = *settings_.target_error;
  const double chain =
      static_cast<double>(evaluations_per_chain(plan) * methods_[method]->num_anneals());
  const auto most = static_cast<int64_t>(settings_.max_evaluations / chain);
  const Column std_error = to_column(log_normalizer(seen.log_w, seen.genealogy).std_error);
  const Column variance = to_column(seen.log_w.var(1, /*unbiased=*/true));

  std::map<int64_t, std::vector<int64_t>> groups;  // by the number of chains
  for (size_t i = 0; i < std_error.size(); ++i) {
    // A handful of weights understates a heavy tail; the lognormal law guesses it.
    const double relative =
        std::max(std_error[i] * std_error[i] * static_cast<double>(seen.log_w.size(1)),
                 std::expm1(std::min(variance[i], 50.0)));
    // Standard error sqrt(v / K) and bias v / 2K, with half the target to spare.
    const double wanted = 2 * std::max(relative / (error * error), relative / (2 * error));
    int64_t chains = std::max<int64_t>(plan.num_particles, 2);
    while (static_cast<double>(chains) < wanted && chains < most) chains *= 2;
    groups[std::max<int64_t>(2, std::min(chains, most))].push_back(static_cast<int64_t>(i));
  }

  ChunkRun run;
  for (const auto& [chains, members] : groups) {
    const at::Tensor index = at::tensor(members, at::kLong).to(problem.base().options().device());
    const ProblemPart part(problem, index);
    Plan longer = select(plan, index);
    longer.num_particles = chains;
    scatter(run_method(method, part.problem, longer, rng), members, run);
  }
  for (size_t i = 0; i < run.flags.size(); ++i)
    if (!(run.std_error[i] <= error)) run.flags[i] += static_cast<int>(kMissedTarget);
  return run;
}

ChunkResult Estimator::estimate(int64_t chunk, const Target& target) const {
  const auto chunk_stream = static_cast<uint64_t>(chunk);
  ChunkResult result;
  result.chunk = chunk;
  const Base base = base_of(target, chunk_stream);
  result.base = base.cost;
  const Problem pilot = centred(target, base.map, chunk_stream, result.tuning);
  if (anneals() && !shared_.plan) {
    result.plan = tune_on(pilot, chunk_stream);
    result.tuning += pilot.cost();
  }
  const Plan plan = result.plan    ? *result.plan
                    : shared_.plan ? *shared_.plan
                                   : Plan{{}, {}, settings_.chains};
  const Column base_flags = to_column(base.fell_back * static_cast<int>(kBaseFailed) +
                                      base.ambiguous * static_cast<int>(kModes));
  for (int64_t repeat = 0; repeat < settings_.repeats; ++repeat) {
    for (size_t m = 0; m < methods_.size(); ++m) {
      const Problem problem(target, pilot.base(), pilot.log_center());
      const uint64_t stream = derive_seed(settings_.seed, Purpose::kEstimate, chunk_stream);
      at::Generator rng = make_generator(mix64(mix64(stream ^ static_cast<uint64_t>(repeat)) ^ m),
                                         target.options().device());
      const auto start = Clock::now();
      const bool to_target = settings_.target_error && methods_[m]->num_anneals() > 0;
      ChunkRun run = to_target ? run_to_target(m, problem, plan, rng, result.tuning)
                               : run_method(m, problem, plan, rng);
      run.method = settings_.methods[m];
      run.repeat = repeat;
      run.seconds = std::chrono::duration<double>(Clock::now() - start).count();
      for (size_t i = 0; i < base_flags.size(); ++i) run.flags[i] += base_flags[i];
      result.runs.push_back(std::move(run));
    }
  }
  return result;
}

}  // namespace crais
