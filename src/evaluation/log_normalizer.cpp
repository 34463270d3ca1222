#include "evaluation/log_normalizer.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "evaluation/option_table.h"
#include "evaluation/result_store.h"
#include "io/json.h"
#include "util/error.h"
#include "util/format.h"

namespace crais {
namespace {

using nlohmann::json;

/// The settings that determine the results, as far as they are known: a function is represented by
/// its value at one point.
json record_of(const Target& target, const EstimateOptions& options, const std::string& name) {
  return {{"target", name},
          {"problems", target.num_problems()},
          {"dim", target.dim()},
          {"log_density", json_number(probe(target))},
          {"device", c10::DeviceTypeName(target.options().device().type(), /*lower_case=*/true)},
          {"settings", to_json(options)}};
}

/// The mean of a column over repeats.
at::Tensor mean_of(const MethodTable& table, const std::string& column) {
  return table.matrix(column).mean(0);
}

}  // namespace

std::string Result::flag_words(int64_t p) const {
  return crais::flag_words(flags[p].item<int64_t>());
}

Result estimate_log_normalizer(const Target& target, const EstimateOptions& options,
                               const LogNormalizerRun& run, std::shared_ptr<const Driver> driver) {
  EstimateOptions whole = options;
  const ProblemSource problems = ProblemSource::of(target.shared());
  if (!target.traits().can_select) whole.chunk = whole.pilot_problems = problems.count;
  const Estimator estimator(whole, std::move(driver));
  std::optional<ResultStore> store;
  if (!run.folder.empty()) store.emplace(run.folder, record_of(target, whole, run.name), run.store);
  Result result;
  const bool on_cpu = target.options().device().is_cpu();
  const RunOptions run_options{
      on_cpu ? run.threads : 1, {}, run.observer, store ? &*store : nullptr};
  result.run = run_problems(problems, estimator, run_options);
  const Progressed progress =
      progressed(result.run, {problems.count, whole.chunk}, run_options.shard);
  if (progress.done < progress.total)
    throw Error(ErrorKind::kInterrupted, "stopped: " + with_commas(progress.done) + " of " +
                                             with_commas(progress.total) + " problems are done" +
                                             (store ? "; `resume` goes on from there" : ""));
  const MethodTable table = tables(result.run).front();
  result.summary = summarise_method(table, result.run);
  result.value = mean_of(table, "log_normalizer");
  const auto repeats = static_cast<double>(result.summary.repeats);
  result.std_error = table.matrix("std_error").square().sum(0).sqrt() / repeats;
  result.bias = mean_of(table, "bias");
  result.ess = mean_of(table, "ess");
  result.flags = at::tensor(table.any_flags(), at::kLong);
  if (table.has("upper")) result.upper = mean_of(table, "upper");
  result.base = result.summary.base;
  result.cost = result.summary.cost;
  return result;
}

}  // namespace crais
