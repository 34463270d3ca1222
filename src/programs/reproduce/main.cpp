#include <c10/core/GradMode.h>

#include <iostream>
#include <set>
#include <string>
#include <vector>

#include "cli/command_line.h"
#include "cli/program.h"
#include "core/spec.h"
#include "programs/reproduce/experiment.h"
#include "util/error.h"
#include "util/interrupt.h"
#include "util/parallel.h"

namespace crais {
namespace {

std::string list_experiments() {
  std::string text;
  for (const auto& [name, json] : embedded_experiments())
    text += name + std::string(name.size() < 24 ? 24 - name.size() : 1, ' ') +
            Experiment(name).summary() + "\n";
  return text;
}

/// Checks that each given flag has an effect on at least one of the experiments.
void refuse_idle(const CommandLine& cli, const std::vector<Experiment>& experiments) {
  std::set<std::string> idle = {"seeds", "checkpoint", "data-dir"};
  std::vector<std::string> names;
  for (const Experiment& experiment : experiments) {
    names.push_back(experiment.name());
    for (const auto& flag : experiment.uses()) idle.erase(flag);
  }
  for (const auto& flag : idle) cli.refuse_idle(flag, "for " + join(names));
}

Synopsis reproduce_synopsis() {
  Synopsis s;
  s.program = "reproduce";
  s.summary = "Repeats published experiments, in tables and CSV files.";
  s.operands = "list | all | EXPERIMENT... | FILE.json...";
  s.min_operands = 1;
  s.max_operands = 64;
  s.groups = {
      {"Size",
       {option::flag("quick", "minutes on two cores (the default)"),
        option::flag("full", "the published sizes: hours"),
        option::integer("seeds", "N", {}, "independent repetitions (the experiment's own number)")
            .at_least(2)}},
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
  options.accept_other_version = cli.flag("accept-other-version");

  std::vector<std::string> names = cli.operands();
  if (names == std::vector<std::string>{"all"}) {
    names.clear();
    for (const auto& [name, json] : embedded_experiments()) names.push_back(name);
  }
  // All names are checked before the first experiment, which may take hours.
  const std::vector<Experiment> experiments(names.begin(), names.end());
  refuse_idle(cli, experiments);
  use_one_thread_per_operation();
  install_interrupt_handler();
  const c10::NoGradGuard no_grad;
  for (const Experiment& experiment : experiments) {
    experiment.run(options);
    std::cout << "Files: " << (options.out / experiment.folder() / "tables.md").string()
              << " has all tables\n";
  }
  return 0;
}

}  // namespace
}  // namespace crais

int main(int argc, char** argv) {
  return crais::run_main("reproduce", [&] {
    return crais::reproduce(crais::CommandLine(crais::reproduce_synopsis(), argc, argv));
  });
}
