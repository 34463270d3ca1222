#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/parse.h"
#include "core/spec.h"
#include "evaluation/parts.h"
#include "evaluation/result_store.h"
#include "io/json.h"
#include "programs/eval_loglik/commands.h"
#include "programs/eval_loglik/stored_evaluation.h"
#include "report/table.h"
#include "util/error.h"

namespace crais {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

/// Flags of eval-loglik that change how the run proceeds but not its results.
const std::vector<std::string> kRunning = {
    "threads", "data-dir", "accept-other-version", "max-time", "format", "quiet", "dry-run"};

/// The parts of a run's summary that identify it.
struct StoredRun {
  std::string model;  // the evaluated file
  std::string shard;  // the part of the run's chunks that the folder holds
};

StoredRun stored_run(const fs::path& folder) {
  const fs::path summary = folder / "summary.json";
  std::error_code ignored;
  if (!fs::exists(summary, ignored))
    throw argument_error(folder.string() +
                         ": holds no summary.json: finish the run first, by its own command with "
                         "--resume");
  const json object = read_json(summary.string());
  StoredRun run{object.is_object() ? model_path(object) : "", "1/1"};
  if (run.model.empty()) throw data_error(summary.string() + ": does not name the model's file");
  if (object.contains("shard"))
    run.shard = json_field<std::string>(object, "shard", summary.string());
  try {
    parse_shard(run.shard, "shard");
  } catch (const Error& error) {
    throw data_error(summary.string() + ": " + error.what());
  }
  return run;
}

/// The N of "+N"; 0 if the flag is not given.
int64_t more_of(const CommandLine& cli, const std::string& flag) {
  if (!cli.has(flag)) return 0;
  const std::string text = cli.text(flag);
  if (text.empty() || text.front() != '+')
    throw argument_error("--" + flag + " takes the number of " + flag +
                         " to add, such as +16; not '" + text + "'");
  const int64_t more = parse_integer(text.substr(1), "--" + flag);
  if (more < 1 || more > kMostCount)
    throw argument_error("--" + flag + ": must be from +1 to +" + std::to_string(kMostCount));
  return more;
}

/// The settings of an evaluation, from run.json.
EvalSettings settings_from(const std::string& model, const json& settings,
                           const std::string& source) {
  const auto words = [&] {
    const std::string none = source + ": its settings are none of eval-loglik: ";
    try {
      return command_line_of(model, settings);
    } catch (const Error& error) {
      throw data_error(none + error.what());
    } catch (const json::exception& error) {
      throw data_error(none + error.what());
    }
  };
  return read_settings(words());
}

void add_chains(json& settings, const EstimateOptions& before, int64_t more,
                const std::string& folder) {
  const auto refuse = [&](const std::string& why) {
    throw argument_error(folder + ": chains cannot be added: " + why);
  };
  for (const auto& [flag, is_given, other] :
       {std::tuple{"--budget", before.budget.has_value(), "greater"},
        {"--target-error", before.target_error.has_value(), "smaller"},
        {"--mean-error", before.mean_error.has_value(), "smaller"}})
    if (is_given)
      refuse(std::string(flag) + " has chosen how many; evaluate anew with a " + other + " one");
  if (!before.resampling.empty())
    refuse("resampling has made the chains depend on each other; evaluate anew with more");
  if (!Estimator(before).has_independent_chains())
    refuse("no method of the run has independent chains, as ais has");
  settings["chains"] = before.chains + more;
  // The pilots made the existing plan; their number would otherwise follow the number of chains.
  const EstimatorParts parts(before);
  if (parts.needs_pilot() || parts.path->divergence().order() != 0)
    settings["pilot-chains"] = parts.pilot.num_particles;
}

void add_images(json& settings, const json& images, const EvalSettings& before, int64_t more,
                const std::string& folder) {
  if (Estimator(before.estimator).learns())
    throw argument_error(folder +
                         ": images cannot be added: a method has learned on the present images; "
                         "evaluate again with more");
  if (before.estimator.mean_error)
    throw argument_error(folder +
                         ": images cannot be added: --mean-error has chosen chains for as many as "
                         "there are; evaluate anew with more");
  const ImageSettings& chosen = before.images;
  const bool simulated = images.value("source", json()) == json("simulated");
  if (!chosen.indices.empty()) {
    const IndexRange range = parse_range(chosen.indices, "--indices");
    if (range.end != IndexRange::kOpenEnd)
      settings["indices"] = std::to_string(range.begin) + ":" + std::to_string(range.end + more);
  }
  if (chosen.limit) settings["limit"] = *chosen.limit + more;
  if (simulated && chosen.indices.empty() && !chosen.limit)
    settings["simulate"] = images.at("count").get<int64_t>() + more;
}

/// Checks that the new images begin with the existing images.
void check_images(const EvalRun& run, const json& before, int64_t more, const std::string& folder) {
  const auto count = before.at("count").get<int64_t>();
  const std::string has = std::to_string(run.images().size());
  if (run.images().size() != count + more)
    throw argument_error("--images: " + folder + " has " + std::to_string(count) + " images, and " +
                         std::to_string(more) + " more are " + std::to_string(count + more) +
                         "; there are " + has);
  if (json(digest_of(run.images(), count)) != before.value("sha256", json()))
    throw data_error(folder + ": the images that it was made of are not the first " +
                     std::to_string(count) + " of " + run.images().source +
                     ": the data have changed, or drawing more draws others");
}

/// `run` is that of `before` in all that decides results, but for `settings` and `more` images.
void check_same(const EvalRun& run, json before, const json& settings, int64_t more,
                const std::string& folder) {
  const json images = before.at("images");
  if (images.value("source", json()) == json("file") && run.images().source == "simulated")
    throw argument_error(
        folder +
        ": its images are MNIST's, which were not found; give the --data-dir DIR of the first run");
  const json record = run.record();
  before["settings"] = settings;
  before.erase("computed_by");
  if (more > 0)  // check_images compares the images one by one
    for (const char* key : {"count", "sha256", "file_md5"})
      before["images"][key] = record["images"][key];
  if (const std::string difference = difference_of_runs(record, before); !difference.empty())
    throw argument_error(folder + ": its model or data have changed: " + difference +
                         "; extend it with its own model and data, or evaluate again");
  if (more > 0) check_images(run, images, more, folder);
}

}  // namespace

Synopsis extend_synopsis() {
  const Synopsis whole = eval_loglik_synopsis();
  Synopsis s;
  s.program = whole.program;
  s.summary =
      "Adds chains or images to existing results, under the same plan. The result equals that of a "
      "run that asked for all of them at the start.";
  s.operands = "extend DIR";
  s.min_operands = 2;
  s.max_operands = 2;
  s.groups = {{"Extend",
               {option::text("chains", "+N", {}, "N more annealed chains of each image").basic(),
                option::text("images", "+N", {}, "the next N images").basic()}},
              {"Running", {}}};
  for (const auto& group : whole.groups)
    for (const auto& option : group.options)
      if (std::find(kRunning.begin(), kRunning.end(), option.name) != kRunning.end())
        s.groups.back().options.push_back(option);
  s.examples =
      "  eval-loglik extend results/mnist --chains +16\n"
      "  eval-loglik extend results/mnist --images +9000\n";
  return s;
}

int extend_evaluation(const CommandLine& cli) {
  const std::string folder = cli.operands()[1];
  const int64_t chains = more_of(cli, "chains"), images = more_of(cli, "images");
  const ResultStore store{fs::path(folder)};
  if (chains == 0 && images == 0)
    throw argument_error(
        "extend: how many more chains or images? eval-loglik extend DIR --chains +N | --images +N");

  const std::string source = (fs::path(folder) / "run.json").string();
  check_is_evaluation(store.run(), folder);
  const StoredRun stored = stored_run(folder);
  const json& before = store.run();
  shape_of(before, source);  // is one
  json settings = before["settings"];
  const EvalSettings before_settings = settings_from(stored.model, settings, source);
  if (chains > 0) add_chains(settings, before_settings.estimator, chains, folder);
  if (images > 0) add_images(settings, before.at("images"), before_settings, images, folder);

  std::vector<std::string> more = {"--out", folder,    "--resume",  "--queue",
                                   "none",  "--shard", stored.shard};
  json running = cli.settings();
  for (const char* flag : {"chains", "images"}) running.erase(flag);
  for (const auto& word : flags_of(eval_loglik_synopsis(), {stored.model}, running))
    more.push_back(word);
  EvalSettings wanted = read_settings(command_line_of(stored.model, settings, more));
  wanted.store.extend = true;
  return print_evaluation(
      wanted, [&](const EvalRun& run) { check_same(run, before, settings, images, folder); });
}

}  // namespace crais
