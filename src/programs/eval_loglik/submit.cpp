#include <c10/core/GradMode.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "programs/eval_loglik/commands.h"
#include "programs/eval_loglik/eval_run.h"
#include "util/error.h"
#include "util/format.h"
#include "util/parallel.h"

namespace crais {
namespace {

using nlohmann::json;

constexpr int64_t kWarning = 60;  // seconds before the end at which Slurm sends SIGUSR1
constexpr const char* kUsage = "eval-loglik submit slurm MODEL --out DIR --tasks N";

/// The script; @NAME@ stands for a value. srun makes each task a step, because Slurm sends its
/// warning to steps and not to the batch script. If an option of sbatch is repeated, the last one
/// counts.
constexpr const char* kScript = R"sh(#!/usr/bin/env bash
# An array of @TASKS@ tasks and their merge, into @OUT@/merged. Made by eval-loglik submit.
# Run again, it goes on with what the tasks have finished.
set -euo pipefail
cd @FOLDER@
mkdir -p @OUT@/logs

job=$(sbatch --parsable --job-name=eval-loglik --output=@LOGS@/%A_%a.txt --open-mode=append \
  @SBATCH@ --array=1-@TASKS@ --ntasks=1 --cpus-per-task=@CPUS@ --time=@TIME@ \
  --requeue --signal=@SIGNAL@ <<'END_OF_TASK'
#!/usr/bin/env bash
out=@OUT@/shards/$SLURM_ARRAY_TASK_ID-of-@TASKS@
kept() { find "$out" -name '*.json' 2>/dev/null | wc -l; }
before=$(kept)
srun --ntasks=1 --cpus-per-task=@CPUS@ @COMMAND@ \
  --shard "$SLURM_ARRAY_TASK_ID/@TASKS@" --out "$out" --resume --max-time @WORK@s --threads @CPUS@
status=$?
[ $status = 75 ] || exit $status # 75: stopped, and --resume goes on
if [ $SECONDS -ge @WORK@ ] && [ "$(kept)" = "$before" ]; then
  echo "no chunk was finished in all the time of this task: give it a longer --time, \
or a smaller --chunk" >&2
  exit $status
fi
exec scontrol requeue "${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID"
END_OF_TASK
)
job=${job%%;*} # a cluster's name may follow
merge=$(sbatch --parsable --job-name=eval-loglik --output=@LOGS@/%j_merge.txt --open-mode=append \
  @SBATCH@ --ntasks=1 --kill-on-invalid-dep=yes --dependency="afterok:$job" <<'END_OF_MERGE'
#!/usr/bin/env bash
exec @PROGRAM@ merge @OUT@/shards/*-of-@TASKS@ --out @OUT@/merged --overwrite@CONSENT@
END_OF_MERGE
)
echo "array $job, then merge ${merge%%;*}"
)sh";

/// Flags that the script sets for each task, with the options that decide them.
const std::vector<std::pair<std::string, std::string>> kDecided = {
    {"queue", "each task has its own shard"},
    {"shard", "each task has its own (--tasks)"},
    {"resume", "each task goes on with what its folder holds"},
    {"overwrite", "each task goes on with what its folder holds; choose another --out"},
    {"max-time", "--time decides it"},
    {"threads", "--cpus decides it"},
    {"dry-run", "what is submitted is a run"}};

std::string quoted_words(const std::vector<std::string>& words) {
  std::string text;
  for (const auto& word : words) text += (text.empty() ? "" : " ") + shell_quoted(word);
  return text;
}

/// The path with % escaped: sbatch replaces %A and similar patterns in file names.
std::string without_patterns(std::string path) {
  for (size_t i = 0; (i = path.find('%', i)) != std::string::npos; i += 2) path.insert(i, 1, '%');
  return path;
}

/// The time in Slurm's format: "1-02:03:04".
std::string slurm_time(int64_t seconds) {
  char text[64];
  std::snprintf(text, sizeof text, "%lld-%02lld:%02lld:%02lld",
                static_cast<long long>(seconds / 86'400),
                static_cast<long long>(seconds / 3'600 % 24),
                static_cast<long long>(seconds / 60 % 60), static_cast<long long>(seconds % 60));
  return text;
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

void check_submission(const CommandLine& cli) {
  const std::vector<std::string>& operands = cli.operands();
  if (operands.size() > 1 && operands[1] != "slurm")
    throw argument_error("submit: unknown scheduler '" + operands[1] + "'; choose from slurm");
  if (operands.size() != 3)
    throw argument_error("submit needs one scheduler and one model: " + std::string(kUsage));
  for (const auto& [flag, why] : kDecided)
    if (cli.given(flag)) throw argument_error("submit: leave out --" + flag + ": " + why);
  for (const char* flag : {"out", "tasks"})
    if (!cli.has(flag)) throw argument_error("submit needs --" + std::string(flag) + ": " + kUsage);
}

/// Checks the settings as the tasks will, but accepts a GPU that only the tasks' machines have.
void check_tasks(const std::string& model, json settings, int64_t tasks) {
  try {
    parse_device(settings.at("device"));
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kNoDevice) throw;
    settings["device"] = "cpu";
  }
  const c10::NoGradGuard no_grad;
  use_one_thread_per_operation();
  const EvalSettings task = read_settings(command_line_of(model, settings));
  const EvalRun run(task, open_model(model, task.script, task.device, task.dtype));
  std::cerr << run.notice();
  if (tasks > run.chunks().count())
    throw argument_error("--tasks: there are only " + std::to_string(run.chunks().count()) +
                         " chunks of --chunk " + std::to_string(run.chunks().size) + " images");
}

}  // namespace

int64_t working_time(int64_t seconds) {
  return seconds - std::clamp<int64_t>(seconds / 12, 2 * kWarning, 10 * kWarning);
}

Synopsis submit_synopsis() {
  Synopsis s = eval_loglik_synopsis();
  s.summary =
      "Prints a script, and runs nothing: an array of Slurm jobs, each of which evaluates a shard "
      "under the flags of eval-loglik that are given, and a job that merges them.";
  s.operands = "submit slurm MODEL";
  Option sbatch = option::text("sbatch", "OPTIONS", {},
                               "options of sbatch for tasks and merge, such as \"--partition=long "
                               "--mem=8G\"; repeatable")
                      .repeatable();
  sbatch.dashed = true;
  s.groups.insert(
      s.groups.begin(),
      {"Submit",
       {option::integer("tasks", "N", {}, "tasks of the array; each evaluates a shard")
            .between(1, 1e6),
        option::text("time", "TIME", {"1h"},
                     "time limit of a task, 4h or HH:MM:SS; the task then queues again"),
        option::integer("cpus", "C", {"1"}, "cores of a task, with one thread each")
            .between(1, 4096),
        sbatch}});
  for (Option& option : s.groups.front().options) option.is_basic = true;
  s.examples =
      "  eval-loglik submit slurm vae.safetensors --out results/mnist --tasks 8 | bash\n"
      "  eval-loglik submit slurm vae.safetensors --method bidirectional --simulate 1000 \\\n"
      "    --out results/bounds --tasks 4 --time 4h --cpus 8 --sbatch \"--partition=long\" "
      ">run.sh\n";
  return s;
}

int submit_evaluation(const CommandLine& cli, const std::string& called) {
  check_submission(cli);
  const int64_t seconds = parse_duration(cli.text("time"), "--time");
  const int64_t work = working_time(seconds), tasks = cli.integer("tasks");
  if (work < kWarning)
    throw argument_error("--time: must be at least 3m, the last two of which are for stopping");
  const std::vector<std::string> sbatch = sbatch_words(cli);
  const std::string& model = cli.operands()[2];
  json settings = cli.settings();
  check_tasks(model, settings, tasks);
  const std::string out = settings["out"];
  settings["out"] = nullptr;

  // The name of the call, valid in any folder. A name without a folder is found by PATH.
  const std::string program =
      called.find('/') == std::string::npos ? called : std::filesystem::absolute(called).string();
  std::vector<std::string> command = {program, model};
  for (const std::string& word : flags_of(eval_loglik_synopsis(), {model}, settings))
    command.push_back(word);
  const std::map<std::string, std::string> values = {
      {"TASKS", std::to_string(tasks)},
      {"OUT", shell_quoted(out)},
      {"FOLDER", shell_quoted(std::filesystem::current_path().string())},
      {"LOGS", shell_quoted(without_patterns(out) + "/logs")},
      {"SBATCH", quoted_words(sbatch)},
      {"CPUS", std::to_string(cli.integer("cpus"))},
      {"TIME", slurm_time(seconds)},
      {"SIGNAL", "USR1@" + std::to_string(kWarning)},
      {"COMMAND", quoted_words(command)},
      {"WORK", std::to_string(work)},
      {"PROGRAM", shell_quoted(program)},
      {"CONSENT", cli.flag("accept-other-version") ? " --accept-other-version" : ""}};
  std::istringstream parts(kScript);
  bool is_name = false;
  for (std::string part; std::getline(parts, part, '@'); is_name = !is_name)
    std::cout << (is_name ? values.at(part) : part);
  return 0;
}

}  // namespace crais
