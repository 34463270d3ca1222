#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "programs/eval_loglik/commands.h"
#include "programs/eval_loglik/report.h"
#include "programs/eval_loglik/stored_evaluation.h"
#include "report/table.h"
#include "util/error.h"
#include "util/version.h"

namespace crais {

using nlohmann::json;

int merge_evaluations(const CommandLine& cli) {
  refuse_flags_of_runs(cli, "merge", {"out", "overwrite", "accept-other-version"});
  const std::string out = cli.text("out", "");
  const std::vector<std::string> folders(cli.operands().begin() + 1, cli.operands().end());
  if (folders.empty() || out.empty())
    throw argument_error("merge needs folders and --out: eval-loglik merge DIR... --out DIR");

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
  print(report, out, parse_format(cli.text("format")), stdout_width());
  return 0;
}

}  // namespace crais
