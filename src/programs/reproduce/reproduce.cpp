#include "programs/reproduce/reproduce.h"

#include <c10/core/GradMode.h>

#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "core/spec.h"
#include "programs/reproduce/experiment.h"
#include "programs/reproduce/findings.h"
#include "util/error.h"
#include "util/interrupt.h"
#include "util/parallel.h"

namespace crais {
namespace {

std::string list_experiments() {
  std::string text;
  for (const auto& [name, entry] : ExperimentRegistry::instance().entries())
    text += name + std::string(name.size() < 24 ? 24 - name.size() : 1, ' ') + entry.summary + "\n";
  return text;
}

/// Checks that every name is a fault of one of the experiments.
void check_faults(const std::vector<std::string>& names, const std::vector<std::string>& chosen) {
  std::vector<std::string> faults;
  for (const auto& name : names)
    for (const Fault& fault : ExperimentRegistry::instance().make("experiment", name)->faults())
      if (!fault.name.empty()) faults.push_back(fault.name);
  for (const auto& fault : chosen)
    if (fault != "all" && std::find(faults.begin(), faults.end(), fault) == faults.end())
      throw argument_error("--fault " + fault + ": " +
                           (faults.empty() ? "there is none in " + join(names)
                                           : "choose from all, " + join(faults)));
}

/// Checks that each given flag has an effect on at least one of the experiments.
void refuse_idle(const CommandLine& cli, const std::vector<std::string>& names) {
  std::set<std::string> idle = {"seeds", "checkpoint", "data-dir"};
  for (const auto& name : names)
    for (const auto& flag : ExperimentRegistry::instance().make("experiment", name)->flags())
      idle.erase(flag);
  for (const auto& flag : idle) cli.refuse_idle(flag, "for " + join(names));
}

void report_faults(const std::vector<Fault>& faults, const ExperimentOptions& options, Page& page) {
  if (faults.empty()) return;
  std::vector<Row> rows;
  for (const Fault& fault : faults)
    rows.push_back({{"it did", fault.did},
                    {"right is", fault.right},
                    {"what changes", fault.changes},
                    {"repeated here", fault.name.empty()        ? "no"
                                      : options.has(fault.name) ? "yes, above"
                                                                : "--fault " + fault.name}});
  add_table(page, "faults", "Where the released code did otherwise", rows);
}

void run_one(const std::string& name, ExperimentOptions options) {
  const auto experiment = ExperimentRegistry::instance().make("experiment", name);
  std::string folder = name;
  std::replace(folder.begin(), folder.end(), ':', '-');
  options.out /= folder;
  Page page(options.out, ExperimentRegistry::instance().entries().at(Spec(name).name()).summary);
  try {
    experiment->run(options, page);
  } catch (const nlohmann::json::exception&) {  // a cell that was stored without a digest
    throw data_error(options.cells.string() +
                     ": a cell lacks a result or has another in its place; delete the folder to "
                     "have its cells computed again");
  }
  report_faults(experiment->faults(), options, page);
  page.finish();
  std::cout << "Files: " << (options.out / "tables.md").string() << " has all tables\n";
}

}  // namespace

Synopsis reproduce_synopsis() {
  Synopsis s;
  s.program = "reproduce";
  s.summary = "Repeats published experiments, in tables and CSV files.";
  s.operands = "list | all | EXPERIMENT...";
  s.min_operands = 1;
  s.max_operands = 64;
  s.groups = {
      {"Size",
       {option::flag("quick", "minutes on two cores (the default)"),
        option::flag("full", "the published sizes: hours"),
        option::integer("seeds", "N", {}, "independent repetitions (the experiment's own number)")
            .at_least(2),
        option::text("fault", "NAME", {},
                     "repeat numbers with this fault of the published code, beside the right ones; "
                     "all, or names that the experiment's page lists (repeatable)")
            .listed()}},
      {"Data",
       {option::text("checkpoint", "FILE", {"weights/vae50-mnist.safetensors"}, "the VAE"),
        option::text("data-dir", "DIR", {},
                     "folder of MNIST's files (default: $CRAIS_DATA, ./data)")}},
      {"Running", {option::device(), option::threads(), option::quiet()}},
      {"Output",
       {option::text(
            "out", "DIR", {"results"},
            "a folder DIR/EXPERIMENT for each; results in DIR/cells are not computed again"),
        option::flag("accept-other-version", "accept results of another build of crais")}}};
  s.examples =
      "  reproduce list\n"
      "  reproduce accuracy --quick\n"
      "  reproduce all --full --out results/full\n";
  return s;
}

int reproduce(const CommandLine& cli) {
  if (cli.operands() == std::vector<std::string>{"list"}) {
    cli.allow_only({}, "list only prints the experiments; the flag applies to runs");
    std::cout << list_experiments();
    return 0;
  }
  cli.exclude("quick", "full");
  ExperimentOptions options;
  options.full = cli.flag("full");
  options.seeds = cli.integer("seeds", 0);
  options.checkpoint = cli.text("checkpoint");
  options.data_dir = cli.text("data-dir", "");
  options.out = cli.text("out");
  options.cells = options.out / "cells";
  options.device = parse_device(cli.text("device"));
  options.threads = cli.integer("threads");
  options.quiet = cli.flag("quiet");
  options.faults = cli.texts("fault");
  options.accept_other_version = cli.flag("accept-other-version");

  std::vector<std::string> names = cli.operands();
  if (names == std::vector<std::string>{"all"}) {
    names.clear();
    for (const auto& [name, entry] : ExperimentRegistry::instance().entries())
      names.push_back(name);
  }
  // All names are checked before the first experiment, which may take hours.
  for (const auto& name : names) ExperimentRegistry::instance().make("experiment", name);
  refuse_idle(cli, names);
  check_faults(names, options.faults);
  use_one_thread_per_operation();
  install_interrupt_handler();
  const c10::NoGradGuard no_grad;
  for (const auto& name : names) run_one(name, options);
  return 0;
}

}  // namespace crais
