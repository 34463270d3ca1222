#include "programs/eval_loglik/merge.h"

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "core/spec.h"
#include "evaluation/result_store.h"
#include "io/json.h"
#include "programs/eval_loglik/report.h"
#include "report/terminal.h"
#include "util/error.h"
#include "util/version.h"

namespace crais {

using nlohmann::json;

namespace {

RunShape shape_of(const json& run, const std::string& folder) {
  const std::string source = folder + "/run.json";
  const json settings = json_field<json>(run, "settings", source);
  RunShape shape{{json_field<int64_t>(json_field<json>(run, "images", source), "count", source),
                  json_field<int64_t>(settings, "chunk", source)},
                 json_field<std::vector<std::string>>(settings, "method", source),
                 json_field<int64_t>(settings, "repeats", source)};
  for (const int64_t count : {shape.chunks.problems, shape.chunks.size, shape.repeats})
    if (count < 1 || count > kMostCount || shape.methods.empty())
      throw data_error(source + ": " + std::to_string(shape.chunks.problems) +
                       " images in chunks of " + std::to_string(shape.chunks.size) + ", " +
                       std::to_string(shape.repeats) + " repeats of " +
                       std::to_string(shape.methods.size()) + " methods are no run");
  return shape;
}

}  // namespace

int merge_evaluations(const CommandLine& cli) {
  const std::string out = cli.text("out", "");
  const std::vector<std::string> folders(cli.operands().begin() + 1, cli.operands().end());
  if (folders.empty() || out.empty())
    throw argument_error("merge needs folders and --out: eval-loglik merge DIR... --out DIR");

  // Shards of one run agree in everything, and are of one build unless that is waived.
  const auto compared = [&](json run) {
    if (cli.flag("accept-other-version")) run.erase("computed_by");
    return run;
  };
  EvalResults results;
  json run;
  RunShape shape;
  bool is_tuned = false;
  for (const auto& folder : folders) {
    const ResultStore part{std::filesystem::path(folder)};
    if (run.is_null()) {
      run = part.run();
      shape = shape_of(run, folder);
    } else if (compared(part.run()) != compared(run)) {
      throw data_error(folder + ": holds results of another run than " + folders.front() +
                       " (compare their run.json); only shards of one run can be merged, and those "
                       "of one build unless --accept-other-version is given");
    }
    for (auto& [chunk, result] : part.read_chunks(shape))
      if (!results.chunks.emplace(chunk, std::move(result)).second)
        throw data_error(folder + ": chunk " + std::to_string(chunk) +
                         " is in an earlier folder too; give each shard once");
    if (const auto state = part.read_state()) {
      results.state = *state;
      is_tuned = true;
    }
  }
  if (!is_tuned)
    throw data_error(folders.front() +
                     ": holds no plan.json, which a run writes before its first chunk");
  const Chunks& chunks = shape.chunks;
  for (int64_t c = 0; c < chunks.count(); ++c)
    if (results.chunks.count(c) == 0)
      throw data_error("chunk " + std::to_string(c) + " of " + std::to_string(chunks.count()) +
                       " is in none of the folders; finish its shard first");
  const std::string source = folders.front() + "/run.json";
  const json images = json_field<json>(run, "images", source);
  results.num_pixels = json_field<int64_t>(images, "values", source);
  results.bits_offset = json_field<double>(images, "bits_offset", source);
  if (results.num_pixels < 1)
    throw data_error(source + ": images of " + std::to_string(results.num_pixels) + " values");

  json summary = run;
  summary["crais"] = crais_version();
  summary["libtorch"] = libtorch_version();
  summary["merged_from"] = folders;
  RunReport report = report_of(std::move(results), std::move(summary));
  report.run = std::move(run);
  save(report, out, {.overwrite = cli.flag("overwrite")});
  print(report, out, parse_format(cli.text("format")), stdout_width());
  return 0;
}

}  // namespace crais
