#include "cli/process_rank.h"

#include <cstdlib>

#include "core/spec.h"
#include "util/error.h"

namespace crais {
namespace {

/// The variables, read as whole numbers.
class Numbers {
 public:
  Numbers(std::string what, const Environment& variables)
      : what_(std::move(what)), variables_(variables) {}

  bool has(const std::string& name) const { return variables_(name).has_value(); }

  /// In [least, kMostCount]. `because` is the variable that asks for this one.
  int64_t at_least(int64_t least, const std::string& name, const std::string& because) const {
    const auto text = variables_(name);
    if (!text) throw error(because + " is set, but " + name + " is not");
    const int64_t value = parse_integer(*text, what_ + ": " + name);
    if (value < least || value > kMostCount)
      throw error(name + " must lie in [" + std::to_string(least) + ", " +
                  std::to_string(kMostCount) + "], not " + *text);
    return value;
  }

  ProcessRank pair(const std::string& index, const std::string& count) const {
    const ProcessRank rank{at_least(0, index, count), at_least(1, count, index)};
    if (rank.index >= rank.count)
      throw error(index + " is " + std::to_string(rank.index) + ", but " + count + " is " +
                  std::to_string(rank.count) + ": the first is 0");
    return rank;
  }

  Error error(const std::string& message) const { return argument_error(what_ + ": " + message); }

 private:
  std::string what_;
  const Environment& variables_;
};

std::optional<ProcessRank> array_task(const Numbers& numbers) {
  const std::string id = "SLURM_ARRAY_TASK_ID";
  if (!numbers.has(id)) return {};
  const int64_t task = numbers.at_least(0, id, id);
  const int64_t count = numbers.at_least(1, "SLURM_ARRAY_TASK_COUNT", id);
  const int64_t first = numbers.at_least(0, "SLURM_ARRAY_TASK_MIN", id);
  const int64_t step = numbers.at_least(1, "SLURM_ARRAY_TASK_STEP", id);
  const int64_t index = (task - first) / step;
  if (task < first || (task - first) % step != 0 || index >= count)
    throw numbers.error(id + "=" + std::to_string(task) + " is none of " + std::to_string(count) +
                        " tasks from " + std::to_string(first) + " in steps of " +
                        std::to_string(step) + "; an array without gaps is needed, as --array=1-" +
                        std::to_string(count));
  return ProcessRank{index, count};
}

/// A batch script has SLURM_PROCID=0 too, and is one process however many tasks it asks for.
std::optional<ProcessRank> step_task(const Numbers& numbers) {
  const std::string index = "SLURM_PROCID", of_job = "SLURM_NTASKS",
                    of_step = "SLURM_STEP_NUM_TASKS";
  if (numbers.has(of_step)) return numbers.pair(index, of_step);
  if (!numbers.has(of_job)) {
    if (!numbers.has(index)) return {};
    if (numbers.at_least(0, index, index) == 0) return ProcessRank{};
  }
  const ProcessRank rank = numbers.pair(index, of_job);
  if (rank.count > 1 && numbers.has("SLURM_JOB_ID") && !numbers.has("SLURM_STEP_ID"))
    throw numbers.error("the job asks for " + std::to_string(rank.count) + " tasks (" + of_job +
                        "), but this process is none of them; start it with srun");
  return rank;
}

}  // namespace

std::optional<std::string> environment_variable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value ? std::optional<std::string>(value) : std::nullopt;
}

std::optional<ProcessRank> torchrun_rank(const std::string& what, const Environment& variables) {
  const Numbers numbers(what, variables);
  if (!numbers.has("RANK") && !numbers.has("WORLD_SIZE")) return {};
  return numbers.pair("RANK", "WORLD_SIZE");
}

ProcessRank process_rank(const std::string& what, const Environment& variables) {
  const Numbers numbers(what, variables);
  const auto task = array_task(numbers);
  auto process = torchrun_rank(what, variables);
  if (!process) process = step_task(numbers);
  if (!task && !process)
    throw numbers.error(
        "no launcher has said which process this is: SLURM_ARRAY_TASK_ID, SLURM_PROCID and RANK "
        "are not set; write i/N, as in 1/4");
  const ProcessRank outer = task.value_or(ProcessRank{}), inner = process.value_or(ProcessRank{});
  return {outer.index * inner.count + inner.index, outer.count * inner.count};
}

}  // namespace crais
