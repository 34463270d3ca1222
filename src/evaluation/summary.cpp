#include "evaluation/summary.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "util/format.h"

namespace crais {
namespace {

void add(const ChunkRun& run, MethodTable& table) {
  const auto repeat = static_cast<size_t>(run.repeat);
  const auto append = [repeat](const auto& column, auto& rows) {
    rows.resize(std::max(rows.size(), repeat + 1));
    rows[repeat].insert(rows[repeat].end(), column.begin(), column.end());
  };
  for (const auto& [name, column, is_rare] : ChunkRun::columns())
    if (!(run.*column).empty()) append(run.*column, table.columns[name]);
  append(run.flags, table.flags);
  table.cost += run.cost;
  table.num_nonfinite += run.num_nonfinite;
  table.seconds += run.seconds;
}

double mean_transitions(const RunResults& results) {
  std::vector<double> counts;
  if (results.state.plan) add_transitions(*results.state.plan, counts);
  for (const auto& [chunk, result] : results.chunks)
    if (result.plan && !results.state.plan) add_transitions(*result.plan, counts);
  return std::accumulate(counts.begin(), counts.end(), 0.0) / static_cast<double>(counts.size());
}

std::optional<Exactness> exactness_of(const MethodTable& table) {
  if (!table.has("distance")) return {};
  return Exactness{mean_over_images(table.matrix("distance"), table.matrix("distance_std_error")),
                   table.matrix("met").mean().item<double>()};
}

Certificate certificate_of(const MethodTable& table) {
  const at::Tensor upper = table.matrix("upper");
  const at::Tensor gap = (upper - table.matrix("log_normalizer")).mean(0);
  return {mean_over_images(upper, table.matrix("upper_std_error")), gap.mean().item<double>(),
          std_error_of_mean(gap), gap.max().item<double>(), exactness_of(table)};
}

std::map<std::string, int64_t> count_flags(const std::vector<std::vector<int64_t>>& repeats) {
  std::map<std::string, int64_t> counts;
  for (const auto& repeat : repeats)
    for (const int64_t flags : repeat) {
      if (flags != 0) ++counts["any"];
      for (const auto& [flag, word] : all_flags())
        if (flags & flag) ++counts[word];
    }
  return counts;
}

}  // namespace

void add_transitions(const Plan& plan, std::vector<double>& counts) {
  const at::Tensor more =
      ((plan.betas.slice(0, 0, -1) < 1) & (plan.step_sizes > 0)).sum(0).to(at::kDouble);
  counts.insert(counts.end(), more.data_ptr<double>(), more.data_ptr<double>() + more.numel());
}

at::Tensor MethodTable::matrix(const std::string& name) const {
  std::vector<at::Tensor> rows;
  for (const auto& row : columns.at(name)) rows.push_back(at::tensor(row, at::kDouble));
  return at::stack(rows);
}

std::vector<int64_t> MethodTable::any_flags() const {
  std::vector<int64_t> any(flags.at(0).size(), 0);
  for (const auto& repeat : flags)
    for (size_t i = 0; i < repeat.size(); ++i) any[i] |= repeat[i];
  return any;
}

std::vector<int64_t> indices_of(const RunResults& results) {
  std::vector<int64_t> indices;
  for (const auto& [number, chunk] : results.chunks)
    indices.insert(indices.end(), chunk.indices.begin(), chunk.indices.end());
  return indices;
}

std::vector<MethodTable> tables(const RunResults& results) {
  std::vector<MethodTable> list;
  for (const auto& [chunk, result] : results.chunks) {
    for (const auto& run : result.runs) {
      auto table_of_method = std::find_if(
          list.begin(), list.end(), [&](const auto& table) { return table.method == run.method; });
      if (table_of_method == list.end()) {
        table_of_method = list.emplace(list.end());
        table_of_method->method = run.method;
      }
      add(run, *table_of_method);
    }
  }
  return list;
}

MethodSummary summarise_method(const MethodTable& table, const RunResults& results) {
  Cost base = results.state.fitting, tuning = results.state.tuning;
  for (const auto& [chunk, result] : results.chunks) {
    base += result.base;
    tuning += result.tuning;
  }
  MethodSummary s;
  s.method = table.method;
  s.base = results.state.base;
  s.bound = to_string(Bound::kLower);  // by Jensen's inequality, for all methods
  const at::Tensor ess = table.matrix("ess");
  s.repeats = ess.size(0);
  s.problems = ess.size(1);
  s.ess_mean = ess.mean().item<double>();
  s.ess_min = ess.min().item<double>();
  s.bias = table.matrix("bias").mean().item<double>();
  if (table.has("upper")) s.certificate = certificate_of(table);
  s.flags = count_flags(table.flags);
  const auto problems = static_cast<double>(s.problems);
  const double runs = problems * static_cast<double>(s.repeats);
  s.evaluations = static_cast<double>(table.cost.densities) / runs;
  s.gradients = static_cast<double>(table.cost.gradients) / runs;
  s.base_evaluations = static_cast<double>(base.densities) / problems;
  s.num_nonfinite = table.num_nonfinite;
  s.seconds = table.seconds;
  Cost prepared;  // cost before the estimates of this method
  if (table.has("accept_prob")) {
    s.accept_prob = table.matrix("accept_prob").mean().item<double>();
    s.transitions = mean_transitions(results);
    prepared += tuning;
  }
  if (const auto learned = results.state.learned.find(table.method);
      learned != results.state.learned.end())
    prepared += learned->second.cost;
  s.tuning_evaluations = static_cast<double>(prepared.densities) / problems;
  s.cost = base + prepared + table.cost;
  return s;
}

std::string RunningMean::add(const ChunkResult& result) {
  for (const ChunkRun& run : result.runs) {
    if (result.is_control || run.method != result.runs.front().method) continue;
    values_.insert(values_.end(), run.log_normalizer.begin(), run.log_normalizer.end());
    ess_.insert(ess_.end(), run.ess.begin(), run.ess.end());
  }
  if (values_.empty()) return "";
  const at::Tensor value = at::tensor(values_, at::kDouble), ess = at::tensor(ess_, at::kDouble);
  return label_ + " " + with_error(value.mean().item<double>(), std_error_of_mean(value)) +
         "  ESS " + fixed(ess.mean().item<double>(), 2);
}

std::optional<WeightedParticles> kept_particles(const RunResults& results) {
  std::vector<at::Tensor> z, log_w, num_resamplings;
  int64_t most = 0;
  for (const auto& [number, chunk] : results.chunks) {
    const auto& kept = chunk.runs.front().particles;
    if (!kept) return {};
    most = std::max(most, kept->log_w.size(1));
  }
  for (const auto& [number, chunk] : results.chunks) {
    const WeightedParticles& kept = *chunk.runs.front().particles;
    const int64_t count = kept.log_w.size(1), more = most - count;
    const double growth = std::log(static_cast<double>(most) / static_cast<double>(count));
    const at::Tensor points = kept.z.to(at::kCPU, at::kDouble);
    z.push_back(at::cat({points, points.slice(1, 0, 1).expand({-1, more, -1})}, 1));
    log_w.push_back(at::constant_pad_nd(kept.log_w.cpu() + growth, {0, more}, -INFINITY));
    num_resamplings.push_back(kept.num_resamplings.cpu());
  }
  if (z.empty()) return {};
  return WeightedParticles{at::cat(z), at::cat(log_w), at::cat(num_resamplings)};
}

}  // namespace crais
