#include "evaluation/result_store.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <utility>

#include "evaluation/identity.h"
#include "evaluation/result_json.h"
#include "io/json.h"
#include "util/error.h"
#include "util/files.h"

namespace crais {
namespace fs = std::filesystem;
using nlohmann::json;

namespace {

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

void check_chunk(const ChunkResult& result, const RunShape& expected, const std::string& source) {
  const Chunks& chunks = expected.chunks;
  const int64_t c = result.chunk;
  const bool is_one = c < chunks.count();
  const int64_t begin = is_one ? chunks.begin(c) : 0, end = is_one ? chunks.end(c) : 0;
  if (static_cast<int64_t>(result.indices.size()) != end - begin)
    throw data_error(source + ": is not chunk " + std::to_string(c) + " of " +
                     std::to_string(chunks.problems) + " problems in chunks of " +
                     std::to_string(chunks.size));
  if (!expected.indices.empty() &&
      !std::equal(result.indices.begin(), result.indices.end(), expected.indices.begin() + begin))
    throw data_error(source + ": holds other problems than chunk " + std::to_string(c) +
                     " of this run");
  const auto count = static_cast<int64_t>(expected.methods.size());
  bool same = static_cast<int64_t>(result.runs.size()) == count * expected.repeats;
  for (size_t i = 0; same && i < result.runs.size(); ++i)
    same = result.runs[i].method == expected.methods[i % expected.methods.size()];
  if (!same)
    throw data_error(source + ": does not hold " + std::to_string(expected.repeats) +
                     " repeats of " + join(expected.methods) + ", as the run has");
}

constexpr const char* kReports[] = {"summary.json",   "report.html",     "per_image.csv",
                                    "thumbnails.npy", "schedule.csv",    "per_problem.csv",
                                    "plan.json",      "expectations.csv"};

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
  const fs::path chunks = folder_ / "chunks", record = folder_ / "run.json";
  std::error_code ignored;
  if (fs::is_symlink(chunks, ignored))
    throw argument_error(chunks.string() +
                         ": is a link, and results are not written through one; choose another "
                         "folder");
  make_output_folder(chunks);
  if (options.overwrite) clear();
  if (fs::exists(record, ignored)) {
    continue_with(read_json(record.string()), run, options);
  } else {
    for (const char* name : kReports)
      if (fs::exists(folder_ / name, ignored))
        throw argument_error(folder_.string() + " holds a " + name +
                             " of something else (no run.json); replace it with `overwrite`, or "
                             "choose another folder");
    write_file_atomic(record, to_text(run_));
  }
  fingerprint_ = sha256(run_.dump());
}

void ResultStore::continue_with(const json& there, const json& run, const StoreOptions& options) {
  const std::string name = folder_.string();
  if (!options.resume)
    throw argument_error(name +
                         " already holds results; go on with `resume`, replace them with "
                         "`overwrite`, or choose another folder");
  if (!there.is_object()) throw data_error((folder_ / "run.json").string() + ": is no object");
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
  std::error_code ignored;
  if (!fs::exists(folder_ / "run.json", ignored))
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

std::map<int64_t, ChunkResult> ResultStore::read_chunks(const RunShape& expected) const {
  std::map<int64_t, ChunkResult> chunks;
  std::error_code error;
  if (!fs::exists(folder_ / "chunks", error)) return chunks;
  const fs::directory_iterator entries(folder_ / "chunks", error);
  if (error) throw no_input_error((folder_ / "chunks").string() + ": " + error.message());
  for (const auto& entry : entries) {
    if (entry.path().extension() != ".json") continue;
    ChunkResult result = chunk_from(read_sealed(entry.path(), fingerprint_), entry.path().string());
    if (entry.path() != chunk_path(result.chunk))
      throw data_error(entry.path().string() + ": holds chunk " + std::to_string(result.chunk));
    check_chunk(result, expected, entry.path().string());
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
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return {};
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
  fs::remove(folder_ / "run.json");
  for (const char* name : kReports) fs::remove(folder_ / name);
  for (const auto& entry : fs::directory_iterator(folder_ / "chunks")) {
    const std::string stem = entry.path().stem().string();
    if (entry.path().extension() == ".json" &&
        std::all_of(stem.begin(), stem.end(), [](unsigned char c) { return std::isdigit(c); }))
      fs::remove(entry.path());
  }
}

}  // namespace crais
