#include "evaluation/result_store.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <utility>

#include "evaluation/identity.h"
#include "io/json.h"
#include "util/error.h"
#include "util/files.h"

namespace crais {
namespace fs = std::filesystem;
using nlohmann::json;

namespace {

std::vector<json> jsons(const std::vector<double>& values) {
  std::vector<json> list;
  for (const double value : values) list.push_back(json_number(value));
  return list;
}

std::vector<double> doubles(const json& object, const std::string& key, const std::string& source) {
  std::vector<double> values;
  for (const auto& entry : json_field<std::vector<json>>(object, key, source))
    values.push_back(json_number_field(json{{key, entry}}, key, source));
  return values;
}

json to_json(const Cost& cost) {
  return {{"densities", cost.densities}, {"gradients", cost.gradients}};
}

Cost cost_from(const json& object, const std::string& key, const std::string& source) {
  const json cost = json_field<json>(object, key, source);
  return {json_field<int64_t>(cost, "densities", source),
          json_field<int64_t>(cost, "gradients", source)};
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

json to_json(const Plan& plan) {
  json object = {{"betas", to_json(plan.betas)},
                 {"step_sizes", to_json(plan.step_sizes)},
                 {"num_particles", plan.num_particles}};
  if (plan.divergence.defined()) object["divergence"] = to_json(plan.divergence);
  return object;
}

Plan plan_from(const json& object, const std::string& source) {
  Plan plan{matrix_from(object, "betas", source), matrix_from(object, "step_sizes", source),
            json_field<int64_t>(object, "num_particles", source)};
  if (plan.betas.size(0) != plan.step_sizes.size(0) + 1 ||
      plan.betas.size(1) != plan.step_sizes.size(1))
    throw data_error(source + ": betas and step sizes do not belong together");
  if (object.contains("divergence")) {
    plan.divergence = matrix_from(object, "divergence", source);
    if (plan.divergence.sizes() != plan.betas.sizes())
      throw data_error(source + ": betas and divergences do not belong together");
  }
  return plan;
}

json to_json(const ChunkResult& result) {
  json object = {{"chunk", result.chunk},
                 {"indices", result.indices},
                 {"base", to_json(result.base)},
                 {"tuning", to_json(result.tuning)},
                 {"runs", json::array()}};
  if (result.plan) object["plan"] = to_json(*result.plan);
  for (const auto& run : result.runs) {
    json entry = {{"method", run.method},
                  {"repeat", run.repeat},
                  {"num_nonfinite", run.num_nonfinite},
                  {"cost", to_json(run.cost)},
                  {"seconds", run.seconds}};
    for (const auto& [name, column] : ChunkRun::columns()) entry[name] = jsons(run.*column);
    entry["flags"] = run.flags;
    object["runs"].push_back(std::move(entry));
  }
  return object;
}

ChunkResult chunk_from(const json& object, const std::string& source) {
  ChunkResult result;
  result.chunk = json_field<int64_t>(object, "chunk", source);
  result.indices = json_field<std::vector<int64_t>>(object, "indices", source);
  result.base = cost_from(object, "base", source);
  result.tuning = cost_from(object, "tuning", source);
  if (object.contains("plan")) result.plan = plan_from(object["plan"], source);
  for (const auto& entry : json_field<std::vector<json>>(object, "runs", source)) {
    ChunkRun run;
    run.method = json_field<std::string>(entry, "method", source);
    run.repeat = json_field<int64_t>(entry, "repeat", source);
    run.num_nonfinite = json_field<int64_t>(entry, "num_nonfinite", source);
    run.cost = cost_from(entry, "cost", source);
    run.seconds = json_field<double>(entry, "seconds", source);
    const auto check_length = [&](size_t length) {
      if (length != result.indices.size())
        throw data_error(source + ": a list is not as long as its problems are many");
    };
    for (const auto& [name, column] : ChunkRun::columns()) {
      run.*column = doubles(entry, name, source);
      const bool optional = (run.*column).empty() && column != &ChunkRun::log_normalizer;
      if (!optional) check_length((run.*column).size());
    }
    run.flags = json_field<std::vector<int64_t>>(entry, "flags", source);
    check_length(run.flags.size());
    result.runs.push_back(std::move(run));
  }
  return result;
}

/// {"digest": sha256 of the rest, "fingerprint": the run's, "content": ...}: damage does not go
/// unseen.
void write_sealed(const fs::path& path, const std::string& fingerprint, const json& content) {
  const std::string text = content.dump();
  write_file_atomic(path, "{\"digest\":\"" + sha256(text) + "\",\"fingerprint\":\"" + fingerprint +
                              "\",\"content\":" + text + "}\n");
}

json read_sealed(const fs::path& path, const std::string& fingerprint) {
  const std::string source = path.string();
  const std::string advice = "; delete it to have it computed again";
  json sealed;
  try {
    sealed = parse_json(read_file(path), source);
    const json content = json_field<json>(sealed, "content", source);
    if (json_field<std::string>(sealed, "digest", source) != sha256(content.dump()))
      throw data_error(source + ": its digest does not match its content: the file is damaged");
  } catch (const Error& error) {
    throw data_error(error.what() + advice);
  }
  if (json_field<std::string>(sealed, "fingerprint", source) != fingerprint)
    throw data_error(source + ": belongs to a run with other settings" + advice);
  return sealed["content"];
}

/// Names the first setting in which two runs differ.
std::string first_difference(const json& here, const json& there, const std::string& prefix = "") {
  for (const auto& [key, value] : here.items()) {
    const std::string name = prefix.empty() ? key : prefix + " " + key;
    if (!there.contains(key)) return name + " is new";
    if (there[key] == value) continue;
    if (value.is_object() && there[key].is_object())
      return first_difference(value, there[key], name);
    return name + " is " + value.dump() + " here and " + there[key].dump() + " there";
  }
  return "it lacks a setting";
}

}  // namespace

ResultStore::ResultStore(fs::path folder, const json& run, const StoreOptions& options)
    : folder_(std::move(folder)), run_(run) {
  if (!run_.contains("computed_by")) run_["computed_by"] = computed_by();
  make_output_folder(folder_ / "chunks");
  const fs::path record = folder_ / "run.json";
  if (options.overwrite) clear();
  if (fs::exists(record))
    continue_with(read_json(record.string()), run, options);
  else
    write_file_atomic(record, to_text(run_));
  fingerprint_ = sha256(run_.dump());
}

void ResultStore::continue_with(const json& there, const json& run, const StoreOptions& options) {
  const std::string name = folder_.string();
  if (!options.resume)
    throw argument_error(name +
                         " already holds results; go on with `resume`, replace them with "
                         "`overwrite`, or choose another folder");
  json asked = there;
  asked.erase("computed_by");
  if (asked != run)
    throw argument_error(name +
                         " holds results of other settings: " + first_difference(run, asked) +
                         "; use those, `overwrite`, or another folder");
  const std::string difference = difference_of_builds(there.value("computed_by", json()));
  if (!difference.empty() && !options.accept_other_version)
    throw argument_error(name + " holds results that another build has computed (" + difference +
                         "); `accept_other_version` goes on with them, `overwrite` starts afresh");
  run_ = there;
}

ResultStore::ResultStore(fs::path folder) : folder_(std::move(folder)) {
  if (!fs::exists(folder_ / "run.json"))
    throw no_input_error(folder_.string() + ": holds no evaluation (no run.json)");
  run_ = read_json((folder_ / "run.json").string());
  fingerprint_ = sha256(run_.dump());
}

fs::path ResultStore::chunk_path(int64_t chunk) const {
  char name[32];
  std::snprintf(name, sizeof name, "%06lld.json", static_cast<long long>(chunk));
  return folder_ / "chunks" / name;
}

void ResultStore::write_chunk(const ChunkResult& result) const {
  write_sealed(chunk_path(result.chunk), fingerprint_, to_json(result));
}

std::map<int64_t, ChunkResult> ResultStore::read_chunks() const {
  std::map<int64_t, ChunkResult> chunks;
  if (!fs::exists(folder_ / "chunks")) return chunks;
  for (const auto& entry : fs::directory_iterator(folder_ / "chunks")) {
    if (entry.path().extension() != ".json") continue;
    ChunkResult result = chunk_from(read_sealed(entry.path(), fingerprint_), entry.path().string());
    if (entry.path() != chunk_path(result.chunk))
      throw data_error(entry.path().string() + ": holds chunk " + std::to_string(result.chunk));
    chunks.emplace(result.chunk, std::move(result));
  }
  return chunks;
}

void ResultStore::write_state(const TunedState& state) const {
  json content = {{"base", state.base}, {"tuning", to_json(state.tuning)}};
  if (state.plan) content["plan"] = to_json(*state.plan);
  for (const auto& [method, learning] : state.learned)
    content["learned"][method] = {{"cost", to_json(learning.cost)}, {"seconds", learning.seconds}};
  write_sealed(folder_ / "plan.json", fingerprint_, content);
}

std::optional<TunedState> ResultStore::read_state() const {
  const fs::path path = folder_ / "plan.json";
  if (!fs::exists(path)) return {};
  const std::string source = path.string();
  const json content = read_sealed(path, fingerprint_);
  TunedState state;
  state.base = json_field<std::string>(content, "base", source);
  state.tuning = cost_from(content, "tuning", source);
  if (content.contains("plan")) state.plan = plan_from(content["plan"], source);
  if (content.contains("learned"))
    for (const auto& [method, learning] : content["learned"].items())
      state.learned[method] = {cost_from(learning, "cost", source),
                               json_field<double>(learning, "seconds", source)};
  return state;
}

void ResultStore::clear() const {
  for (const char* name : {"run.json", "plan.json", "summary.json", "per_image.csv",
                           "per_problem.csv", "schedule.csv"})
    fs::remove(folder_ / name);
  for (const auto& entry : fs::directory_iterator(folder_ / "chunks")) {
    const std::string stem = entry.path().stem().string();
    if (entry.path().extension() == ".json" &&
        std::all_of(stem.begin(), stem.end(), [](unsigned char c) { return std::isdigit(c); }))
      fs::remove(entry.path());
  }
}

}  // namespace crais
