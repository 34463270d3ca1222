#include "evaluation/result_json.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "io/json.h"
#include "util/error.h"

namespace crais {
namespace {

using nlohmann::json;

void require(bool holds, const std::string& source, const std::string& fault) {
  if (!holds) throw data_error(source + ": " + fault);
}

bool holds(const at::Tensor& condition) { return condition.all().item<bool>(); }

/// Checks that every repeat has every method, in one order.
void check_runs(const std::vector<ChunkRun>& runs, const std::string& source) {
  std::set<std::string> methods;
  for (const ChunkRun& run : runs)
    if (run.repeat == 0) methods.insert(run.method);
  const size_t count = methods.size();
  require(count > 0 && runs.size() % count == 0, source, "its runs are not repeats of methods");
  for (size_t i = 0; i < runs.size(); ++i)
    require(runs[i].repeat == static_cast<int64_t>(i / count) &&
                runs[i].method == runs[i % count].method,
            source, "its runs are not repeats of methods");
}

std::vector<json> jsons(const std::vector<double>& values) {
  std::vector<json> list;
  list.reserve(values.size());
  for (const double value : values) list.push_back(json_number(value));
  return list;
}

std::vector<double> doubles(const json& object, const std::string& key, const std::string& source) {
  std::vector<double> values;
  for (const auto& entry : json_field<std::vector<json>>(object, key, source))
    values.push_back(json_number_field(json{{key, entry}}, key, source));
  return values;
}

json to_json(const at::Tensor& matrix) {
  json rows = json::array();
  for (int64_t i = 0; i < matrix.size(0); ++i) {
    const at::Tensor row = matrix[i].contiguous();
    rows.push_back(jsons({row.data_ptr<double>(), row.data_ptr<double>() + row.numel()}));
  }
  return rows;
}

at::Tensor matrix_from(const json& object, const std::string& key, const std::string& source) {
  std::vector<at::Tensor> rows;
  for (const auto& entry : json_field<std::vector<json>>(object, key, source)) {
    rows.push_back(at::tensor(doubles(json{{key, entry}}, key, source), at::kDouble));
    if (rows.back().numel() == 0 || rows.back().numel() != rows.front().numel())
      throw data_error(source + ": the rows of '" + key + "' differ in length");
  }
  if (rows.empty()) throw data_error(source + ": '" + key + "' is empty");
  return at::stack(rows);
}

std::shared_ptr<const DescentPath> path_from(const json& object, const std::string& source) {
  std::shared_ptr<const Path> path;
  try {
    path = PathRegistry::instance().make("path", json_field<std::string>(object, "name", source));
  } catch (const Error& error) {
    throw data_error(source + ": " + error.what());
  }
  const auto unlearned = std::dynamic_pointer_cast<const DescentPath>(path);
  const auto learned =
      unlearned ? unlearned->replay(matrix_from(object, "constants", source)) : nullptr;
  require(learned != nullptr, source, "the constants of a path are not those of a descent");
  return learned;
}

json column_json(const at::Tensor& column) { return jsons(to_column(column)); }

at::Tensor column_from(const json& object, const std::string& key, const std::string& source) {
  return at::tensor(doubles(object, key, source), at::kDouble);
}

json to_json(const ExpectationSums& sums) {
  json object = {{"log_total", column_json(sums.log_total)},
                 {"num_particles", column_json(sums.num_particles)},
                 {"num_resamplings", column_json(sums.num_resamplings)},
                 {"square", column_json(sums.square)},
                 {"mean", to_json(sums.mean.cpu())},
                 {"variance", to_json(sums.variance.cpu())},
                 {"powers", json::array()}};
  for (const at::Tensor& power : sums.powers) object["powers"].push_back(to_json(power.cpu()));
  return object;
}

/// The sums of `num_problems` problems.
ExpectationSums sums_from(const json& object, const std::string& source, int64_t num_problems) {
  ExpectationSums sums;
  // JSON has no infinities: null stands for the log total of weights that are all zero.
  sums.log_total = column_from(object, "log_total", source).nan_to_num(-INFINITY);
  sums.num_particles = column_from(object, "num_particles", source);
  sums.num_resamplings = column_from(object, "num_resamplings", source);
  sums.square = column_from(object, "square", source);
  for (const auto& column : {sums.log_total, sums.num_particles, sums.num_resamplings, sums.square})
    require(column.size(0) == num_problems, source,
            "a list is not as long as its problems are many");
  require(holds(sums.num_particles >= 1) && holds(sums.num_resamplings >= 0), source,
          "a count is below 0");
  sums.mean = matrix_from(object, "mean", source);
  sums.variance = matrix_from(object, "variance", source);
  for (const auto& entry : json_field<std::vector<json>>(object, "powers", source))
    sums.powers.push_back(matrix_from(json{{"powers", entry}}, "powers", source));
  require(sums.powers.size() == 4 && sums.mean.size(0) == num_problems, source,
          "the sums of an expectation are incomplete");
  for (const at::Tensor& power : sums.powers)
    require(power.sizes() == sums.mean.sizes(), source, "the sums of an expectation differ");
  require(sums.variance.sizes() == sums.mean.sizes(), source, "the sums of an expectation differ");
  return sums;
}

}  // namespace

json to_json(const Cost& cost) {
  return {{"densities", cost.densities}, {"gradients", cost.gradients}};
}

Cost cost_from(const json& object, const std::string& key, const std::string& source) {
  const json fields = json_field<json>(object, key, source);
  const Cost cost{json_field<int64_t>(fields, "densities", source),
                  json_field<int64_t>(fields, "gradients", source)};
  require(cost.densities >= 0 && cost.gradients >= 0, source, "a cost is below 0");
  return cost;
}

json to_json(const Plan& plan) {
  json object = {{"betas", to_json(plan.betas)},
                 {"step_sizes", to_json(plan.step_sizes)},
                 {"num_particles", plan.num_particles}};
  if (plan.divergence.defined()) object["divergence"] = to_json(plan.divergence);
  if (plan.accept_prob.defined()) object["accept_prob"] = to_json(plan.accept_prob);
  if (plan.ess.defined()) object["ess"] = to_json(plan.ess);
  if (plan.path)
    object["path"] = {{"name", plan.path->name}, {"constants", to_json(plan.path->constants)}};
  return object;
}

Plan plan_from(const json& object, const std::string& source) {
  Plan plan{matrix_from(object, "betas", source), matrix_from(object, "step_sizes", source),
            json_field<int64_t>(object, "num_particles", source)};
  require(plan.betas.size(0) == plan.step_sizes.size(0) + 1 &&
              plan.betas.size(1) == plan.step_sizes.size(1),
          source, "betas and step sizes do not belong together");
  require(holds(plan.betas[0] == 0) && holds(plan.betas[-1] == 1) &&
              holds(plan.betas.slice(0, 1) >= plan.betas.slice(0, 0, -1)),
          source, "betas do not rise from 0 to 1");
  require(holds(plan.step_sizes.isfinite() & (plan.step_sizes > 0)) ||
              (plan.num_steps() == 1 && !plan.has_moves() && holds(plan.step_sizes == 0)),
          source, "a step size is not above 0");
  require(plan.num_particles >= 1, source, "a plan has no particles");
  const auto seen = [&](const char* key, at::Tensor& values, const at::Tensor& beside) {
    if (!object.contains(key)) return;
    values = matrix_from(object, key, source);
    require(values.sizes() == beside.sizes(), source,
            std::string("betas and '") + key + "' do not belong together");
  };
  seen("divergence", plan.divergence, plan.betas);
  seen("accept_prob", plan.accept_prob, plan.step_sizes);
  seen("ess", plan.ess, plan.betas);
  if (object.contains("path")) {
    plan.path = path_from(object["path"], source);
    require(plan.path->constants.size(1) == plan.betas.size(1), source,
            "betas and path do not belong together");
  }
  return plan;
}

json to_json(const Witness& witness) {
  return {{"value", json_number(witness.value)},
          {"error", json_number(witness.error)},
          {"is_doubtful", witness.is_doubtful}};
}

Witness witness_from(const json& object, const std::string& source) {
  return {json_number_field(object, "value", source), json_number_field(object, "error", source),
          json_field<bool>(object, "is_doubtful", source)};
}

json to_json(const Rounds& rounds) {
  json object = {{"is_short", rounds.is_short}, {"each", json::array()}};
  if (rounds.barrier) object["barrier"] = json_number(*rounds.barrier);
  for (const Round& round : rounds.each)
    object["each"].push_back({{"evaluations", json_number(round.evaluations)},
                              {"log_normalizer", json_number(round.log_normalizer)},
                              {"error", json_number(round.error)}});
  return object;
}

Rounds rounds_from(const json& object, const std::string& source) {
  Rounds rounds{.is_short = json_field<bool>(object, "is_short", source)};
  if (object.contains("barrier")) rounds.barrier = json_number_field(object, "barrier", source);
  for (const auto& round : json_field<std::vector<json>>(object, "each", source))
    rounds.each.push_back({json_number_field(round, "evaluations", source),
                           json_number_field(round, "log_normalizer", source),
                           json_number_field(round, "error", source)});
  return rounds;
}

json to_json(const ChunkResult& result) {
  json object = {{"chunk", result.chunk},
                 {"indices", result.indices},
                 {"base", to_json(result.base)},
                 {"tuning", to_json(result.tuning)},
                 {"runs", json::array()}};
  if (result.plan) object["plan"] = to_json(*result.plan);
  if (result.settled)
    object["settled"] = {{"above", json_number(result.settled->above)},
                         {"expected", json_number(result.settled->expected)},
                         {"num_effective", json_number(result.settled->num_effective)}};
  for (const auto& run : result.runs) {
    json entry = {{"method", run.method},
                  {"repeat", run.repeat},
                  {"num_nonfinite", run.num_nonfinite},
                  {"cost", to_json(run.cost)},
                  {"seconds", run.seconds}};
    for (const auto& [name, column, is_rare] : ChunkRun::columns())
      if (!is_rare || !(run.*column).empty()) entry[name] = jsons(run.*column);
    entry["flags"] = run.flags;
    for (const auto& [name, sums] : run.expectations) entry["expectations"][name] = to_json(sums);
    object["runs"].push_back(std::move(entry));
  }
  return object;
}

ChunkResult chunk_from(const json& object, const std::string& source) {
  ChunkResult result{.chunk = json_field<int64_t>(object, "chunk", source),
                     .indices = json_field<std::vector<int64_t>>(object, "indices", source)};
  require(result.chunk >= 0 && !result.indices.empty(), source, "it is no chunk of problems");
  require(*std::min_element(result.indices.begin(), result.indices.end()) >= 0, source,
          "an index is below 0");
  result.base = cost_from(object, "base", source);
  result.tuning = cost_from(object, "tuning", source);
  if (object.contains("settled")) {
    const json settled = json_field<json>(object, "settled", source);
    result.settled = {json_number_field(settled, "above", source),
                      json_number_field(settled, "expected", source),
                      json_number_field(settled, "num_effective", source)};
    require(!(result.settled->above < 0) && !(result.settled->above > 1) &&
                !(result.settled->num_effective <= 0),
            source, "the share of settled particles is out of range");
  }
  if (object.contains("plan")) {
    result.plan = plan_from(object["plan"], source);
    const auto columns = static_cast<size_t>(result.plan->betas.size(1));
    require(columns == 1 || columns == result.indices.size(), source,
            "a plan is not of its problems");
  }
  for (const auto& entry : json_field<std::vector<json>>(object, "runs", source)) {
    ChunkRun run{.method = json_field<std::string>(entry, "method", source),
                 .repeat = json_field<int64_t>(entry, "repeat", source),
                 .num_nonfinite = json_field<int64_t>(entry, "num_nonfinite", source),
                 .cost = cost_from(entry, "cost", source),
                 .seconds = json_field<double>(entry, "seconds", source)};
    require(run.num_nonfinite >= 0 && run.seconds >= 0, source, "a count is below 0");
    const auto check_length = [&](size_t length) {
      require(length == result.indices.size(), source,
              "a list is not as long as its problems are many");
    };
    for (const auto& [name, column, is_rare] : ChunkRun::columns()) {
      if (is_rare && !entry.contains(name)) continue;
      run.*column = doubles(entry, name, source);
      const bool optional = (run.*column).empty() && column != &ChunkRun::log_normalizer;
      if (!optional) check_length((run.*column).size());
    }
    run.flags = json_field<std::vector<int64_t>>(entry, "flags", source);
    check_length(run.flags.size());
    for (const int64_t flags : run.flags)
      require(flags >= 0 && flags < 2 * all_flags().back().first, source, "a flag is unknown");
    if (entry.contains("expectations")) {
      const json expectations = json_field<json>(entry, "expectations", source);
      for (const auto& [name, sums] : expectations.items())
        run.expectations[name] =
            sums_from(sums, source, static_cast<int64_t>(result.indices.size()));
    }
    result.runs.push_back(std::move(run));
  }
  check_runs(result.runs, source);
  return result;
}

}  // namespace crais
