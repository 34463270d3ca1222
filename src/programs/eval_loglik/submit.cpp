#include "programs/eval_loglik/submit.h"

#include <c10/core/GradMode.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/command_line.h"
#include "programs/eval_loglik/eval_run.h"
#include "util/error.h"
#include "util/format.h"
#include "util/parallel.h"

namespace crais {
namespace {

using nlohmann::json;

constexpr int64_t kWarning = 60;  // seconds before the end at which Slurm sends SIGUSR1
constexpr const char* kUsage = "eval-loglik submit slurm MODEL --out DIR --tasks N";

/// Flags that the script gives to each task, with what decides them.
const std::vector<std::pair<std::string, std::string>>& decided_flags() {
  static const std::vector<std::pair<std::string, std::string>> kFlags = {
      {"queue", "each task has its own shard"},
      {"shard", "each task has its own (--tasks)"},
      {"resume", "each task goes on with what its folder holds"},
      {"overwrite", "each task goes on with what its folder holds; choose another --out"},
      {"max-time", "--time decides it"},
      {"threads", "--cpus decides it"},
      {"dry-run", "what is submitted is a run"}};
  return kFlags;
}

OptionGroup submit_options() {
  return {
      "Submit",
      {option::integer("tasks", "N", {}, "of the array; each evaluates a shard").between(1, 1e6),
       option::text("time", "TIME", "1h", "of a task, as 4h or HH:MM:SS; it then queues again"),
       option::integer("cpus", "C", 1, "of a task, each with a thread").between(1, 4096),
       option::texts("sbatch", "OPTIONS", {},
                     "for sbatch, as \"--partition=long --mem=8G\", of tasks and merge; "
                     "repeatable")
           .uncut()
           .of_flags()}};
}

Synopsis submit_synopsis() {
  Synopsis s = eval_loglik_synopsis();
  s.summary =
      "Prints a script, and runs nothing: an array of Slurm jobs, each of which evaluates a shard "
      "under the flags of eval-loglik that are given, and a job that merges them.";
  s.operands = "submit slurm MODEL";
  s.groups.insert(s.groups.begin(), submit_options());
  s.examples =
      "  eval-loglik submit slurm vae.safetensors --out results/mnist --tasks 8 | bash\n"
      "  eval-loglik submit slurm vae.safetensors --method bidirectional --simulate 1000 \\\n"
      "    --out results/bounds --tasks 4 --time 4h --cpus 8 --sbatch \"--partition=long\" "
      ">run.sh\n";
  return s;
}

std::string quoted_words(const std::vector<std::string>& words) {
  std::string text;
  for (const auto& word : words) text += (text.empty() ? "" : " ") + shell_quoted(word);
  return text;
}

/// sbatch replaces %A and the like in names of files.
std::string without_patterns(std::string path) {
  for (size_t i = 0; (i = path.find('%', i)) != std::string::npos; i += 2) path.insert(i, 1, '%');
  return path;
}

/// "1-02:03:04"
std::string slurm_time(int64_t seconds) {
  char text[64];
  std::snprintf(text, sizeof text, "%lld-%02lld:%02lld:%02lld",
                static_cast<long long>(seconds / 86'400),
                static_cast<long long>(seconds / 3'600 % 24),
                static_cast<long long>(seconds / 60 % 60), static_cast<long long>(seconds % 60));
  return text;
}

std::string sbatch(const Submission& s, const std::string& log,
                   const std::vector<std::string>& options) {
  std::vector<std::string> words = {"sbatch", "--parsable", "--job-name=eval-loglik",
                                    "--output=" + without_patterns(s.out) + "/logs/" + log,
                                    "--open-mode=append"};
  words.insert(words.end(), s.sbatch.begin(), s.sbatch.end());
  return quoted_words(words) + " \\\n  " +
         quoted_words(options);  // of two alike the last one holds
}

/// What a task of the array runs. srun makes it a step: Slurm's warning goes to steps, not to the
/// batch script.
std::string task_script(const Submission& s) {
  const std::string cpus = std::to_string(s.cpus);
  const std::string work = std::to_string(working_time(s.seconds));
  std::vector<std::string> words = {"srun", "--ntasks=1", "--cpus-per-task=" + cpus, s.program,
                                    s.model};
  words.insert(words.end(), s.flags.begin(), s.flags.end());
  std::ostringstream text;
  text << "#!/usr/bin/env bash\n"
       << "out=" << shell_quoted(s.out) << "/shards/$SLURM_ARRAY_TASK_ID-of-" << s.tasks << "\n"
       << "kept() { find \"$out\" -name '*.json' 2>/dev/null | wc -l; }\n"
       << "before=$(kept)\n"
       << quoted_words(words) << " \\\n"
       << "  --shard auto --out \"$out\" --resume --max-time " << work << "s --threads " << cpus
       << "\n"
       << "status=$?\n"
       << "[ $status = 75 ] || exit $status # 75: stopped, and --resume goes on\n"
       << "if [ $SECONDS -ge " << work << " ] && [ \"$(kept)\" = \"$before\" ]; then\n"
       << "  echo \"no chunk was finished in all the time of this task: give it a longer --time, "
          "or a smaller --chunk\" >&2\n"
       << "  exit $status\n"
       << "fi\n"
       << "exec scontrol requeue \"${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID\"\n";
  return text.str();
}

std::string merge_script(const Submission& s) {
  const std::string out = shell_quoted(s.out);
  return "#!/usr/bin/env bash\nexec " + shell_quoted(s.program) + " merge " + out +
         "/shards/*-of-" + std::to_string(s.tasks) + " --out " + out + "/merged --overwrite" +
         (s.accept_other_version ? " --accept-other-version" : "") + "\n";
}

// --- The command line.

/// The flags of eval-loglik that were given, without --out.
std::vector<std::string> given_flags(const CommandLine& cli) {
  const json settings = cli.settings();
  const auto text_of = [](const json& value) {
    return value.is_string() ? value.get<std::string>() : value.dump();
  };
  std::vector<std::string> flags;
  for (const auto& group : cli.synopsis().groups) {
    if (group.title == submit_options().title) continue;
    for (const auto& option : group.options) {
      if (!cli.given(option.name) || option.name == "out") continue;
      const json& value = settings[option.name];
      const std::string flag = "--" + option.name;
      if (option.kind == Option::Kind::kFlag) {
        if (value.get<bool>()) flags.push_back(flag);
        continue;
      }
      for (const json& one : option.many ? value : json::array({value}))
        flags.insert(flags.end(), {flag, text_of(one)});
    }
  }
  return flags;
}

std::vector<std::string> sbatch_words(const CommandLine& cli) {
  std::vector<std::string> words;
  for (const auto& text : cli.texts("sbatch")) {
    if (text.empty() || text.front() != '-')
      throw argument_error(
          "--sbatch: options of sbatch begin with a dash, as --partition=long; not '" + text + "'");
    std::istringstream parts(text);
    for (std::string word; parts >> word;) words.push_back(word);
  }
  return words;
}

void check_decided(const CommandLine& cli) {
  for (const auto& [flag, why] : decided_flags())
    if (cli.given(flag)) throw argument_error("submit: leave out --" + flag + ": " + why);
  for (const char* flag : {"out", "tasks"})
    if (!cli.has(flag)) throw argument_error("submit needs --" + std::string(flag) + ": " + kUsage);
}

/// The name as it was called, good in any folder; without a folder PATH knows it.
std::string program_name(const std::string& called) {
  return called.find('/') == std::string::npos ? called
                                               : std::filesystem::absolute(called).string();
}

/// As the tasks will check them; but a GPU may be where they run, and not here.
void check_tasks(const Submission& s, const std::string& device) {
  std::vector<std::string> arguments = {s.model, "--out", s.out};
  arguments.insert(arguments.end(), s.flags.begin(), s.flags.end());
  try {
    parse_device(device);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kNoDevice) throw;
    *(std::find(arguments.begin(), arguments.end(), "--device") + 1) = "cpu";
  }
  const c10::NoGradGuard no_grad;
  use_one_thread_per_operation();
  const EvalSettings settings = read_settings(CommandLine(eval_loglik_synopsis(), arguments));
  std::string understood;
  const EvalRun run(settings, open_model(settings.checkpoint, settings.foreign, settings.device,
                                         settings.dtype, understood));
  const Chunks chunks = run.chunks();
  std::cerr << understood << run.notice();
  if (s.tasks > chunks.count())
    throw argument_error("--tasks: there are only " + std::to_string(chunks.count()) +
                         " chunks of --chunk " + std::to_string(chunks.size) + " images");
}

Submission read_submission(const CommandLine& cli, const std::string& called) {
  const std::vector<std::string>& operands = cli.operands();
  if (operands.size() > 1 && operands[1] != "slurm")
    throw argument_error("submit: unknown scheduler '" + operands[1] + "'; choose from slurm");
  if (operands.size() != 3)
    throw argument_error("submit wants one scheduler and one model: " + std::string(kUsage));
  check_decided(cli);
  Submission s;
  s.program = program_name(called);
  s.folder = std::filesystem::current_path().string();
  s.model = operands[2];
  s.flags = given_flags(cli);
  s.out = cli.text("out");
  s.tasks = cli.integer("tasks");
  s.seconds = parse_duration(cli.text("time"), "--time");
  s.cpus = cli.integer("cpus");
  s.sbatch = sbatch_words(cli);
  s.accept_other_version = cli.flag("accept-other-version");
  if (working_time(s.seconds) < kWarning)
    throw argument_error("--time: must be at least 3m, the last two of which are for stopping");
  return s;
}

}  // namespace

int64_t working_time(int64_t seconds) {
  return seconds - std::clamp<int64_t>(seconds / 12, 2 * kWarning, 10 * kWarning);
}

std::string slurm_script(const Submission& s) {
  const std::string tasks = std::to_string(s.tasks);
  std::ostringstream text;
  text << "#!/usr/bin/env bash\n"
       << "# An array of " << tasks << " tasks and their merge, into " << quoted_words({s.out})
       << "/merged. Made by eval-loglik submit.\n"
       << "# Run again, it goes on with what the tasks have finished.\n"
       << "set -euo pipefail\n"
       << "cd " << shell_quoted(s.folder) << "\n"
       << "mkdir -p " << shell_quoted(s.out) << "/logs\n\n"
       << "job=$("
       << sbatch(s, "%A_%a.txt",
                 {"--array=1-" + tasks, "--ntasks=1", "--cpus-per-task=" + std::to_string(s.cpus),
                  "--time=" + slurm_time(s.seconds), "--requeue",
                  "--signal=USR1@" + std::to_string(kWarning)})
       << " <<'END_OF_TASK'\n"
       << task_script(s) << "END_OF_TASK\n)\n"
       << "job=${job%%;*} # a cluster's name may follow\n"
       << "merge=$(" << sbatch(s, "%j_merge.txt", {"--ntasks=1", "--kill-on-invalid-dep=yes"})
       << " --dependency=\"afterok:$job\" <<'END_OF_MERGE'\n"
       << merge_script(s) << "END_OF_MERGE\n)\n"
       << "echo \"array $job, then merge ${merge%%;*}\"\n";
  return text.str();
}

bool is_submission(int argc, const char* const* argv) {
  return argc > 1 && std::string(argv[1]) == "submit";
}

int submit_evaluation(int argc, const char* const* argv) {
  const CommandLine cli(submit_synopsis(), argc, argv);
  const Submission submission = read_submission(cli, argv[0]);
  check_tasks(submission, cli.text("device"));
  std::cout << slurm_script(submission);
  return 0;
}

}  // namespace crais
