#include "programs/reproduce/tasks.h"

#include <map>

#include "evaluation/result_store.h"
#include "io/json.h"
#include "report/progress.h"
#include "util/digest.h"
#include "util/error.h"
#include "util/files.h"
#include "util/interrupt.h"
#include "util/parallel.h"

namespace crais {

using nlohmann::json;

namespace {

std::string digest_of(const json& result) { return sha256(result.dump()); }

json stored_result(const std::filesystem::path& path, bool accept_other_version) {
  const json cell = read_json(path);
  json result = json_field<json>(cell, "result", path);
  const std::string difference = difference_of_builds(cell.value("computed_by", json()));
  if (!difference.empty() && !accept_other_version)
    throw argument_error(path.string() + ": another build has computed this (" + difference +
                         "); `accept_other_version` takes it as it is, another --out or an empty "
                         "folder computes it anew");
  if (json_field<std::string>(cell, "digest", path) != digest_of(result))
    throw data_error(path.string() + ": is damaged; delete it to have it computed again");
  return result;
}

}  // namespace

std::filesystem::path cell_path(const ExperimentOptions& options, const json& key) {
  const json identity = {{"key", key}, {"device", options.device.is_cpu() ? "cpu" : "cuda"}};
  return options.cells / (sha256(identity.dump()).substr(0, 24) + ".json");
}

std::vector<json> run_tasks(const ExperimentOptions& options, const std::string& label,
                            const std::vector<Task>& tasks) {
  make_output_folder(options.cells);
  std::vector<json> results(tasks.size());
  std::vector<std::filesystem::path> paths;
  std::vector<size_t> missing;
  std::map<std::filesystem::path, size_t> first;  // of the tasks with that path
  for (size_t i = 0; i < tasks.size(); ++i) {
    paths.push_back(cell_path(options, tasks[i].key));
    if (!first.emplace(paths[i], i).second) continue;
    if (std::filesystem::exists(paths[i]))
      results[i] = stored_result(paths[i], options.accept_other_version);
    else
      missing.push_back(i);
  }
  ProgressLine progress(
      {.label = label, .unit = "cells", .enabled = !options.quiet && !missing.empty()});
  progress.begin(static_cast<int64_t>(first.size() - missing.size()),
                 static_cast<int64_t>(first.size()));
  parallel_for(
      static_cast<int64_t>(missing.size()), options.device.is_cpu() ? options.threads : 1,
      [&](int64_t m) {
        const size_t i = missing[static_cast<size_t>(m)];
        results[i] = tasks[i].compute();
        write_file_atomic(paths[i], json{{"key", tasks[i].key},
                                         {"computed_by", computed_by()},
                                         {"digest", digest_of(results[i])},
                                         {"result", results[i]}}
                                        .dump());
        progress.advance();
      },
      interrupted);
  progress.finish();
  throw_if_interrupted("the same command goes on with what is done");
  for (size_t i = 0; i < tasks.size(); ++i) results[i] = results[first.at(paths[i])];
  return results;
}

}  // namespace crais
