#include "evaluation/option_table.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "bases/base.h"
#include "core/divergence.h"
#include "core/path.h"
#include "core/rng.h"
#include "core/spec.h"
#include "core/transition.h"
#include "estimates/expectation.h"
#include "estimates/method.h"
#include "samplers/resampling.h"
#include "util/error.h"

namespace crais {
namespace {

using nlohmann::json;
using E = EstimateOptions;
using Record = OptionRow::Record;

constexpr bool kBasic = true;
constexpr Range kAny = {};
constexpr Range kCounted = Range::at_least(1), kPositive = Range::above(0);
constexpr Range kEvaluations = {0, kMostEvaluations, true};
constexpr Range kSeeds =
    Range::between(0, static_cast<double>(std::numeric_limits<int64_t>::max()));

template <typename R>
std::string names_of() {
  std::string text;
  for (const auto& [name, entry] : R::instance().entries())
    text += "\n" + entry.usage + "  " + entry.summary;
  return text;
}

std::string names_of_bases() {
  return names_of<BaseRegistry>() +
         "\nauto  laplace, 1.1 times as wide from 64 temperatures on, unless the encoder or the "
         "prior is clearly better on pilots; the encoder if nothing is annealed";
}

std::string names_of_paths() {
  return names_of<PathRegistry>() + "\nDIVERGENCE:" + names_of<DivergenceRegistry>();
}

}  // namespace

const std::vector<OptionRow>& option_table() {
  static const std::vector<OptionRow> kTable = {
      {"Method", &E::methods, "methods", "method", "NAME", "the estimator (repeatable)", kAny,
       names_of<MethodRegistry>, Record::kAlways, kBasic},
      {"Method", &E::base, "base", "", "NAME", "the density from which chains start", kAny,
       names_of_bases, Record::kAlways, kBasic},
      {"Method", &E::chains, "chains", "", "K", "annealed chains for each PROBLEM", kCounted,
       nullptr, Record::kAlways, kBasic},
      {"Method", &E::budget, "budget", "", "EVALS",
       "a PROBLEM costs this many evaluations in all; a pilot chooses `chains` and `steps`",
       kEvaluations, nullptr, Record::kAlways, kBasic},
      {"Method", &E::max_evaluations, "max_evaluations", "max-evals", "EVALS",
       "limit of evaluations; an estimate whose error is still too large is flagged", kEvaluations},
      {"Method", &E::repeats, "repeats", "", "R", "independent repeats under the same plan",
       kCounted},
      {"Method", &E::seed, "seed", "", "N", "seed of all random numbers", kSeeds, nullptr,
       Record::kAlways, kBasic},
      {"Annealing", &E::schedule, "schedule", "", "NAME", "temperatures", kAny,
       names_of<ScheduleRegistry>},
      {"Annealing", &E::steps, "steps", "", "T",
       "number of transitions, where the schedule is known beforehand", kCounted, nullptr,
       Record::kAlways, kBasic},
      {"Annealing", &E::path, "path", "", "NAME", "the path from the base to the target", kAny,
       names_of_paths},
      {"Annealing", &E::kernel, "kernel", "", "NAME", "the move at each temperature", kAny,
       names_of<TransitionRegistry>},
      {"Annealing", &E::num_leapfrog, "num_leapfrog", "leapfrog", "L",
       "leapfrog steps in each transition", kCounted},
      {"Annealing", &E::step_size, "step_size", "", "E|adapt",
       "the leapfrog's step size; with adapt, a pilot freezes one for each temperature", kPositive},
      {"Annealing", &E::resampling, "resampling", "resample", "NAME",
       "resample particles: SMC instead of AIS", kAny, names_of<ResamplingRegistry>},
      {"Annealing", &E::target_acceptance, "target_acceptance", "", "A",
       "acceptance rate that tuning aims at (default: depends on the kernel)",
       Range::between(0.05, 0.99)},
      {"Annealing", &E::force_dtype, "force_dtype", "", "auto|float32|bfloat16",
       "the type of gradients that move chains; values stay exact"},
      {"Pilot", &E::plan_per_problem, "plan_per_problem", "per-PROBLEM", "",
       "a plan for each PROBLEM instead of one for all. A pilot with its own seeds tunes the "
       "plans, which are then frozen"},
      {"Pilot", &E::pilot_chains, "pilot_chains", "", "K",
       "pilot chains for each PROBLEM (default: `chains`, at most 256, at least 16 if particles "
       "decide the schedule)",
       Range::at_least(2)},
      {"Pilot", &E::pilot_problems, "pilot_problems", "pilot-PROBLEMs", "N",
       "PROBLEMs on which a shared plan is tuned", kCounted},
      {"Pilot", &E::min_step, "min_step", "", "B", "least step of beta, adaptive schedules",
       Range::between(0, 1)},
      {"Pilot", &E::max_step, "max_step", "", "B", "greatest step of beta, adaptive schedules",
       Range::between(1e-9, 1)},
      {"Pilot", &E::max_steps, "max_steps", "", "T", "more transitions than this are an error",
       kCounted},
      {"Pilot", &E::tolerance, "tolerance", "", "V",
       "constant-rate: the schedule ends when the variance is below this", kPositive},
      {"Pilot", &E::weighted, "weighted", "", "",
       "adaptive schedules: use importance weights in statistics"},
      {"Pilot", &E::weighted_ratio, "weighted_ratio", "", "",
       "constant-rate: use importance weights only in the mass ratio"},
      {"Pilot", &E::interpolate, "interpolate", "", "T",
       "interpolate the tuned plan to T transitions", kCounted},
      {"Running", &E::chunk, "chunk", "", "N", "PROBLEMs in a unit of work; results depend on it",
       kCounted},
      {"Particles", &E::expectations, "expectations", "expect", "NAME",
       "means and variances under the target with standard errors, from the weighted particles of "
       "ais (repeatable)",
       kAny, names_of<ExpectationRegistry>, Record::kIfSet, kBasic},
      {"Target", &E::error, "error", "", "NATS",
       "chains double in length until log Z, or the gap of the control, has an error as small",
       kPositive, nullptr, Record::kIfSet, kBasic},
      {"", &E::keep_particles, "keep_particles", "", "", "", kAny, nullptr, Record::kNever},
      {"", &E::witness, "witness", "", "", "", kAny, nullptr, Record::kIfSet}};
  return kTable;
}

const OptionRow& option_row(const std::string& name) {
  for (const OptionRow& row : option_table())
    if (row.name == name) return row;
  throw std::out_of_range("no option is called " + name);
}

std::string of_problem(std::string text, const std::string& problem) {
  const auto replace = [&text](const std::string& old, const std::string& by) {
    for (size_t at = 0; (at = text.find(old, at)) != std::string::npos; at += by.size())
      text.replace(at, old.size(), by);
  };
  if (problem == "image") replace("a PROBLEM", "an image");
  replace("PROBLEM", problem);
  return text;
}

std::string flag_of(const std::string& name, const std::string& problem) {
  for (const OptionRow& row : option_table())
    if (row.name == name && !row.flag.empty()) return of_problem(row.flag, problem);
  std::string flag = name;
  std::replace(flag.begin(), flag.end(), '_', '-');
  return flag;
}

namespace {

template <typename T>
void read_value(const OptionRow& row, json value, T& field) {
  if (std::is_arithmetic_v<T> && value.is_string())
    value = parse_number(value.get<std::string>(), "`" + row.name + "`");
  field = value.get<T>();
}

template <typename T>
void read_value(const OptionRow& row, const json& value, std::optional<T>& field) {
  if (value != json(word_of(row.value_name))) read_value(row, value, field.emplace());
}

template <typename T>
json json_of(const T& value) {
  return value;
}

template <typename T>
json json_of(const std::optional<T>& value) {
  return value ? json(*value) : json(nullptr);
}

}  // namespace

void check_row(const OptionRow& row, const EstimateOptions& options) {
  const json value = value_of(row, options);
  const std::string what = "`" + row.name + "`";
  if (value.is_number_float())
    check_range(row.range, value.get<double>(), what);
  else if (value.is_number_integer() && !value.is_number_unsigned())  // seeds are never negative
    check_range(row.range, value.get<int64_t>(), what);
  else if (value.is_string())
    check_choice(row.value_name, value.get<std::string>(), what);
  else if (value.is_array())
    for (const json& one : value)
      if (std::count(value.begin(), value.end(), one) > 1)
        throw argument_error(what + ": '" + one.get<std::string>() + "' is given twice");
}

json value_of(const OptionRow& row, const EstimateOptions& options) {
  return std::visit([&](const auto field) { return json_of(options.*field); }, row.field);
}

void set_value(const OptionRow& row, const json& value, EstimateOptions& options) {
  if (value.is_null()) return;
  std::visit([&](const auto field) { read_value(row, value, options.*field); }, row.field);
}

json to_json(const EstimateOptions& options) {
  const EstimateOptions defaults;
  json object;
  for (const OptionRow& row : option_table()) {
    json value = value_of(row, options);
    if (row.record == Record::kAlways ||
        (row.record == Record::kIfSet && value != value_of(row, defaults)))
      object[row.name] = std::move(value);
  }
  object["stream"] = kStreamVersion;
  return object;
}

}  // namespace crais
