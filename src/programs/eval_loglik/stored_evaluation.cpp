#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "core/spec.h"
#include "evaluation/run_problems.h"
#include "io/json.h"
#include "programs/eval_loglik/commands.h"
#include "programs/run_program.h"
#include "util/error.h"
#include "util/version.h"

namespace crais {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

/// The chunks of a run, from run.json.
RunShape shape_of(const json& run, const std::string& source) {
  const json settings = json_field<json>(run, "settings", source);
  RunShape shape{{json_field<int64_t>(json_field<json>(run, "images", source), "count", source),
                  json_field<int64_t>(settings, "chunk", source),
                  json_field<int64_t>(json_field<json>(run, "control", source), "images", source)},
                 json_field<std::vector<std::string>>(settings, "method", source),
                 json_field<int64_t>(settings, "repeats", source)};
  for (const int64_t count : {shape.chunks.problems, shape.chunks.size, shape.repeats})
    if (count < 1 || count > kMostCount || shape.methods.empty())
      throw data_error(source, ": ", shape.chunks.problems, " images in chunks of ",
                       shape.chunks.size, ", ", shape.repeats, " repeats of ", shape.methods.size(),
                       " methods are no run");
  if (shape.chunks.control < 0 || shape.chunks.control > kMostCount)
    throw data_error(source, ": a control of ", shape.chunks.control, " images");
  return shape;
}

void check_is_evaluation(const json& run, const fs::path& folder) {
  const auto program = run.find("program");
  if (program != run.end() && *program == "estimate-logz")
    throw data_error(folder.string(),
                     ": holds a run of estimate-logz, and eval-loglik reads its own alone; "
                     "crais.compare and crais.bayes_factor in Python compare densities");
}

}  // namespace

std::vector<std::string> folders_of(const CommandLine& cli, const std::string& command,
                                    size_t least, size_t most, std::set<std::string> own) {
  own.insert({"format", "quiet"});
  cli.allow_only(own, command + " only reads results; the flag applies to evaluations");
  const std::vector<std::string> folders(cli.operands().begin() + 1, cli.operands().end());
  if (folders.size() < least || folders.size() > most)
    throw argument_error(command, " takes ", least,
                         most == 1 ? " result folder" : c10::str(" to ", most, " result folders"),
                         ": eval-loglik ", command, " DIR", most == 1 ? "" : "...");
  return folders;
}

StoredEvaluation read_evaluation(const fs::path& folder) {
  const ResultStore store(folder);
  StoredEvaluation stored{.run = store.run()};
  check_is_evaluation(stored.run, folder);
  const std::string source = (folder / "run.json").string();
  stored.shape = shape_of(stored.run, source);
  const json images = json_field<json>(stored.run, "images", source);
  stored.results.num_pixels = json_field<int64_t>(images, "values", source);
  const json control = json_field<json>(stored.run, "control", source);
  if (control.value("error", json()).is_number())
    stored.results.error = json_field<double>(control, "error", source);
  stored.results.is_error_asked =
      json_field<json>(stored.run, "settings", source).value("error", json()).is_number();
  stored.results.bits_offset = json_field<double>(images, "bits_offset", source);
  if (stored.results.num_pixels < 1)
    throw data_error(source, ": images of ", stored.results.num_pixels, " values");
  stored.results.chunks = store.read_chunks(stored.shape);
  std::error_code ignored;
  if (stored.results.chunks.empty() && fs::exists(folder / "summary.json", ignored))
    throw data_error((folder / "chunks").string(),
                     ": holds no chunk, though the run was finished: was it moved or deleted?");
  if (auto state = store.read_state()) {
    stored.results.state = *std::move(state);
    stored.is_tuned = true;
  }
  return stored;
}

void check_whole(StoredEvaluation& evaluation, const std::string& folder,
                 const std::string& advice) {
  if (!evaluation.is_tuned)
    throw data_error(folder, ": holds no plan.json, which a run writes before its first chunk");
  const int64_t count = evaluation.shape.chunks.count();
  for (int64_t c = 0; c < count; ++c)
    if (evaluation.results.chunks.count(c) == 0)
      throw data_error("chunk ", c, " of ", count, " ", advice);
  separate_control(evaluation.shape.chunks, evaluation.results);
}

StoredEvaluation read_whole_evaluation(const std::string& folder) {
  StoredEvaluation evaluation = read_evaluation(folder);
  check_whole(evaluation, folder,
              "is not in " + folder + ": finish the run with --resume, or merge its shards, first");
  return evaluation;
}

int merge_evaluations(const CommandLine& cli) {
  const std::vector<std::string> folders =
      folders_of(cli, "merge", 1, 4096, {"out", "overwrite", "accept-other-version"});
  const std::string out = cli.text("out", "");
  if (out.empty()) throw argument_error("merge needs --out: eval-loglik merge DIR... --out DIR");

  // Shards of one run must be equal in everything, also in their build unless that is waived.
  const auto compared = [&](json run) {
    if (cli.flag("accept-other-version")) run.erase("computed_by");
    return run;
  };
  std::optional<StoredEvaluation> whole;
  for (const auto& folder : folders) {
    StoredEvaluation part = read_evaluation(folder);
    if (!whole) {
      whole = std::move(part);
      continue;
    }
    if (compared(part.run) != compared(whole->run))
      throw data_error(folder, ": holds results of another run than ", folders.front(),
                       " (compare their run.json); only shards of one run can be merged, and those "
                       "of one build unless --accept-other-version is given");
    for (auto& [chunk, result] : part.results.chunks)
      if (!whole->results.chunks.emplace(chunk, std::move(result)).second)
        throw data_error(folder, ": chunk ", chunk,
                         " is in an earlier folder too; give each shard once");
    if (part.is_tuned) {
      whole->results.state = part.results.state;
      whole->is_tuned = true;
    }
  }
  check_whole(*whole, folders.front(), "is in none of the folders; finish its shard first");
  json summary = whole->run;
  summary["crais"] = crais_version();
  summary["libtorch"] = libtorch_version();
  summary["merged_from"] = folders;
  RunReport report = report_of(std::move(whole->results), std::move(summary));
  report.run = std::move(whole->run);
  save(report, out, {.overwrite = cli.flag("overwrite")});
  print(std::move(report), out, cli.text("format"));
  return 0;
}

}  // namespace crais
