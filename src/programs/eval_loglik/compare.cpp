#include <algorithm>
#include <filesystem>
#include <iostream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "io/json.h"
#include "programs/eval_loglik/commands.h"
#include "programs/eval_loglik/compare_report.h"
#include "programs/eval_loglik/stored_evaluation.h"
#include "report/table.h"
#include "util/error.h"
#include "util/files.h"

namespace crais {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr size_t kMostModels = 26;  // the letters that name them

bool is_folder(const std::string& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

ComparedModel stored(const std::string& folder, const std::string& name) {
  WholeEvaluation evaluation = read_whole_evaluation(folder);
  return {"", name, std::move(evaluation.run), std::move(evaluation.results)};
}

/// The model evaluated with the given flags, in a folder of its own below --out.
ComparedModel evaluated(const CommandLine& cli, const std::string& model,
                        const std::string& label) {
  EvalSettings settings = read_settings(cli, model);
  if (settings.dry_run) throw argument_error("--dry-run: compare has no dry run");
  if (settings.shard.count > 1)
    throw argument_error("--shard: compare needs every image; evaluate shards first, and merge");
  if (!settings.out.empty()) settings.out = (fs::path(settings.out) / label).string();
  if (!settings.quiet) std::cerr << label << ": " << model << "\n";
  std::optional<RunReport> report = evaluate_model(settings);
  if (!settings.out.empty()) return stored(settings.out, model);  // includes the pictures
  EvalResults results;
  static_cast<RunResults&>(results) = std::move(report->results);
  return {"", model, std::move(report->run), std::move(results)};
}

/// Prepares the folder, which may be new, hold a comparison to be replaced, or hold the remains of
/// an interrupted comparison.
void prepare_folder(const CommandLine& cli, const std::string& out) {
  make_output_folder(out);
  const fs::path path = fs::path(out) / "comparison.json";
  std::error_code ignored;
  if (fs::exists(path, ignored) && !cli.flag("overwrite") && !cli.flag("resume"))
    throw argument_error(out +
                         " holds a comparison already; replace it with --overwrite, or "
                         "choose another --out");
}

}  // namespace

int compare_evaluations(const CommandLine& cli) {
  const std::vector<std::string> names(cli.operands().begin() + 1, cli.operands().end());
  if (names.size() < 2 || names.size() > kMostModels)
    throw argument_error("compare takes 2 to " + std::to_string(kMostModels) +
                         " result folders or models: eval-loglik compare A B");
  if (std::all_of(names.begin(), names.end(), is_folder))
    refuse_flags_of_runs(cli, "compare", {"out", "overwrite"});
  const std::string out = cli.text("out", "");
  if (out.empty()) cli.refuse_idle("overwrite", "without --out DIR");
  if (!out.empty()) prepare_folder(cli, out);

  std::vector<ComparedModel> models;
  for (const std::string& name : names) {
    const std::string label(1, static_cast<char>('A' + models.size()));
    models.push_back(is_folder(name) ? stored(name, name) : evaluated(cli, name, label));
    models.back().label = label;
    check_comparable(models.front(), models.back());
  }
  report_comparison(std::move(models), out, parse_format(cli.text("format")));
  return 0;
}

}  // namespace crais
