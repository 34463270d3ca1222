#include "evaluation/result_store.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/spec.h"
#include "evaluation/control.h"
#include "evaluation/result_json.h"
#include "io/json.h"
#include "kernels/fused_decoder.h"
#include "util/digest.h"
#include "util/error.h"
#include "util/files.h"
#include "util/version.h"

namespace crais {
namespace fs = std::filesystem;
using nlohmann::json;

namespace {

/// {"digest": sha256 of the content, "fingerprint": the run's, "content": ...}: damage shows.
std::string sealed(const std::string& fingerprint, const json& content) {
  const std::string text = content.dump();
  return "{\"digest\":\"" + sha256(text) + "\",\"fingerprint\":\"" + fingerprint +
         "\",\"content\":" + text + "}\n";
}

/// Reads the content of a file of the run with that fingerprint.
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

void check_chunk(const ChunkResult& result, const RunShape& expected, const std::string& source) {
  const Chunks& chunks = expected.chunks;
  const int64_t c = result.chunk;
  const bool is_one = c < chunks.count(), is_control = is_one && chunks.is_control(c);
  const int64_t begin = is_one ? chunks.begin(c) : 0, end = is_one ? chunks.end(c) : 0;
  if (static_cast<int64_t>(result.indices.size()) != end - begin)
    throw data_error(source + ": is not chunk " + std::to_string(c) + " of " +
                     std::to_string(chunks.problems) + " problems in chunks of " +
                     std::to_string(chunks.size));
  if (!expected.indices.empty() && !is_control &&
      !std::equal(result.indices.begin(), result.indices.end(), expected.indices.begin() + begin))
    throw data_error(source + ": holds other problems than chunk " + std::to_string(c) +
                     " of this run");
  const std::vector<std::string> methods =
      is_control ? std::vector<std::string>{kControlMethod} : expected.methods;
  const int64_t repeats = is_control ? 1 : expected.repeats;
  const auto count = static_cast<int64_t>(methods.size());
  bool same = static_cast<int64_t>(result.runs.size()) == count * repeats;
  for (size_t i = 0; same && i < result.runs.size(); ++i)
    same = result.runs[i].method == methods[i % methods.size()];
  if (is_control && same)
    same = !result.runs[0].upper.empty() && !result.runs[0].upper_std_error.empty();
  if (!same)
    throw data_error(source + ": does not hold " + std::to_string(repeats) + " repeats of " +
                     join(methods) + ", as the run has");
}

constexpr const char* kBfloat16 = "bfloat16";  // the forces of a state

constexpr const char* kReports[] = {"summary.json",    "report.html", "per_image.csv",
                                    "schedule.csv",    "plan.json",   "per_problem.csv",
                                    "expectations.csv"};

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

std::vector<fs::path> files_of(const fs::path& folder, std::error_code& error) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder, error)) files.push_back(entry.path());
  return files;
}

/// Throws Error kNoInput if the folder cannot be listed.
std::vector<fs::path> chunk_files(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> files = files_of(folder / "chunks", error);
  if (error) throw no_input_error((folder / "chunks").string() + ": " + error.message());
  return files;
}

bool is_chunk_file(const fs::path& path) {
  const std::string stem = path.stem().string();
  return path.extension() == ".json" && !stem.empty() && stem.size() <= 18 &&
         std::all_of(stem.begin(), stem.end(), [](unsigned char c) { return std::isdigit(c); });
}

/// The name of the first entry in which two objects differ; "" if `there` contains all of `here`.
std::string first_difference(const json& here, const json& there, const std::string& prefix = "") {
  for (const auto& [key, value] : here.items()) {
    const std::string name = prefix.empty() ? key : prefix + " " + key;
    if (!there.contains(key)) return name + " is new";
    if (there[key] == value) continue;
    if (value.is_object() && there[key].is_object())
      if (const std::string inner = first_difference(value, there[key], name); !inner.empty())
        return inner;
    return name + " is " + value.dump() + " here and " + there[key].dump() + " there";
  }
  return "";
}

/// Rejects links: results are not written through them.
void refuse_link(const fs::path& path) {
  std::error_code ignored;
  if (fs::is_symlink(path, ignored))
    throw argument_error(path.string() +
                         ": is a link, and results are not written through one; choose another "
                         "folder");
}

/// The name of the first difference between two records of runs, settings before other fields.
std::string difference_of_runs(const json& here, const json& there) {
  const std::string settings = first_difference(
      here.value("settings", json::object()), there.value("settings", json::object()), "settings");
  if (!settings.empty()) return settings;
  const std::string other = first_difference(here, there);
  return other.empty() ? "it lacks a setting" : other;
}

}  // namespace

ResultStore::ResultStore(fs::path folder, const json& run, const StoreOptions& options)
    : folder_(std::move(folder)), run_(run) {
  if (!run_.contains("computed_by")) run_["computed_by"] = computed_by();
  const fs::path chunks = folder_ / "chunks", record = folder_ / "run.json";
  refuse_link(chunks);
  make_output_folder(chunks);
  lock_ = lock_file(folder_ / ".lock", options.shared);
  if (!lock_)
    throw argument_error(folder_.string() +
                         ": another process computes a run in it; wait for its end, or choose "
                         "another folder");
  if (options.overwrite) clear();
  if (!options.shared) remove_leftovers();
  // If several processes start at once, one writes the record and the others use it.
  for (const char* name : kReports)
    if (is_there(folder_ / name) && !is_there(record))
      throw argument_error(folder_.string() + " holds a " + name +
                           " of something else (no run.json); replace it with `overwrite`, or "
                           "choose another folder");
  if (is_there(record) || !write_file_new(record, to_text(run_)))
    continue_with(read_json(record.string()), run, options);
  fingerprint_ = sha256(run_.dump());
}

void ResultStore::continue_with(const json& there, const json& run, const StoreOptions& options) {
  const std::string name = folder_.string();
  if (!options.resume)
    throw argument_error(name +
                         " already holds results; go on with `resume`, replace them with "
                         "`overwrite`, or choose another folder");
  if (!there.is_object()) throw data_error((folder_ / "run.json").string() + ": is no object");
  json stored_run = there;
  stored_run.erase("computed_by");
  if (stored_run != run)
    throw argument_error(
        name + " holds results of other settings: " + difference_of_runs(run, stored_run) +
        "; use those, `overwrite`, or another folder");
  const std::string difference = difference_of_builds(there.value("computed_by", json()));
  if (!difference.empty() && !options.accept_other_version)
    throw argument_error(name + " holds results that another build has computed (" + difference +
                         "); `accept_other_version` goes on with them, `overwrite` starts afresh");
  run_ = there;
}

ResultStore::ResultStore(fs::path folder) : folder_(std::move(folder)) {
  if (!is_there(folder_ / "run.json"))
    throw no_input_error(folder_.string() + ": holds no evaluation (no run.json)");
  run_ = read_json((folder_ / "run.json").string());
  fingerprint_ = sha256(run_.dump());
}

fs::path ResultStore::chunk_path(int64_t chunk) const {
  return folder_ / "chunks" / (chunk_name(chunk) + ".json");
}

/// Removes the temporary files of processes that were killed.
void ResultStore::remove_leftovers() const {
  std::error_code ignored;
  for (const fs::path& folder : {folder_, folder_ / "chunks"})
    for (const fs::path& path : files_of(folder, ignored)) {
      // ".000012.json.WORD.tmp", the name that write_file_atomic uses
      const fs::path name = path.filename();
      if (name.extension() == ".tmp" && name.string().front() == '.' &&
          name.stem().stem().extension() == ".json")
        fs::remove(path, ignored);
    }
}

void ResultStore::write_chunk(const ChunkResult& result) const {
  write_file_atomic(chunk_path(result.chunk), sealed(fingerprint_, to_json(result)));
}

std::map<int64_t, ChunkResult> ResultStore::read_chunks(const RunShape& expected) const {
  std::map<int64_t, ChunkResult> chunks;
  if (!is_there(folder_ / "chunks")) return chunks;
  for (const fs::path& path : chunk_files(folder_)) {
    if (path.extension() != ".json") continue;
    const json content = read_sealed(path, fingerprint_);
    ChunkResult result = chunk_from(content, path.string());
    const int64_t number = result.chunk;
    if (path != chunk_path(number))
      throw data_error(path.string() + ": holds chunk " + std::to_string(number));
    check_chunk(result, expected, path.string());
    chunks.emplace(number, std::move(result));
  }
  return chunks;
}

std::set<int64_t> ResultStore::finished() const {
  std::set<int64_t> chunks;
  for (const fs::path& path : chunk_files(folder_))
    if (is_chunk_file(path)) chunks.insert(std::stoll(path.stem().string()));
  return chunks;
}

std::shared_ptr<const void> ResultStore::claim_reports() const {
  auto claim = lock_file(folder_ / "run.json", /*is_shared=*/false);
  if (!claim || is_there(folder_ / kReports[0])) return nullptr;  // summary.json is written last
  remove_leftovers();
  return claim;
}

void ResultStore::write_state(const TunedState& state) const {
  json content = {
      {"base", state.base}, {"fitting", to_json(state.fitting)}, {"tuning", to_json(state.tuning)}};
  if (state.forces) content["forces"] = kBfloat16;
  if (state.witness) content["witness"] = to_json(*state.witness);
  if (state.plan) content["plan"] = to_json(*state.plan);
  if (!state.rounds.each.empty()) content["rounds"] = to_json(state.rounds);
  for (const auto& [method, learning] : state.learned)
    content["learned"][method] = {{"cost", to_json(learning.cost)}, {"seconds", learning.seconds}};
  write_file_new(folder_ / "plan.json", sealed(fingerprint_, content));
}

std::optional<TunedState> ResultStore::read_state() const {
  const fs::path path = folder_ / "plan.json";
  if (!is_there(path)) return {};
  const std::string source = path.string();
  const json content = read_sealed(path, fingerprint_);
  TunedState state{.base = json_field<std::string>(content, "base", source),
                   .fitting = cost_from(content, "fitting", source),
                   .tuning = cost_from(content, "tuning", source)};
  if (content.contains("forces")) {
    const auto forces = json_field<std::string>(content, "forces", source);
    if (forces != kBfloat16)
      throw data_error(source + ": forces in " + quoted(forces) + ", which nothing here has");
    state.forces = at::kBFloat16;
  }
  if (content.contains("witness"))
    state.witness = witness_from(json_field<json>(content, "witness", source), source);
  if (content.contains("plan")) state.plan = plan_from(content["plan"], source);
  if (content.contains("rounds")) state.rounds = rounds_from(content["rounds"], source);
  if (content.contains("learned"))
    for (const auto& [method, learning] : content["learned"].items())
      state.learned[method] = {cost_from(learning, "cost", source),
                               json_field<double>(learning, "seconds", source)};
  return state;
}

/// Removes the reports and chunks, and no other files.
void ResultStore::clear() const {
  fs::remove(folder_ / "run.json");
  for (const char* name : kReports) fs::remove(folder_ / name);
  std::error_code ignored;
  for (const fs::path& chunk : files_of(folder_ / "chunks", ignored))
    if (is_chunk_file(chunk)) fs::remove(chunk);
}

json computed_by() {
  const std::string evaluator = chosen_evaluator();
  const bool narrow =
      evaluator != "aten" && has_bfloat16_products();  // see DecoderPosterior::curvature
  return {{"sources", source_digest()},
          {"libtorch", libtorch_version()},
          {"evaluator", evaluator},
          {"jacobians", narrow ? "bfloat16" : "as evaluated"},
          {"compiler", __VERSION__}};
}

std::string difference_of_builds(const json& stored) {
  const json here = computed_by();
  for (const auto& [key, value] : here.items()) {
    const json there = stored.is_object() ? stored.value(key, json()) : json();
    if (there != value)
      return key + " " + (there.is_string() ? quoted(there.get<std::string>()) : "unknown") +
             " there, " + value.dump() + " here";
  }
  return "";
}

}  // namespace crais
