// Which of the processes that a launcher started together this one is: Slurm's arrays and steps,
// torchrun.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace crais {

/// Process `index` of `count`; index counts from 0.
struct ProcessRank {
  int64_t index = 0;
  int64_t count = 1;
};

/// The value of an environment variable; nothing where it is not set.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;

std::optional<std::string> environment_variable(const std::string& name);

/// The process of torchrun: RANK and WORLD_SIZE. Nothing where neither is set.
/// Throws Error kArgument, whose message `what` begins, if one is missing or makes no sense.
std::optional<ProcessRank> torchrun_rank(const std::string& what,
                                         const Environment& variables = environment_variable);

/// The task of an array (SLURM_ARRAY_TASK_ID, with _COUNT, _MIN and _STEP) times the process within
/// it: of torchrun (RANK, WORLD_SIZE), which may run below srun, else of srun (SLURM_PROCID,
/// SLURM_STEP_NUM_TASKS or SLURM_NTASKS). Task t of an array has the processes t n, ..., t n + n-1.
///
/// Throws Error kArgument, whose message `what` begins, if no variable says it, one of a pair is
/// missing, one is no number, out of range or of an array with gaps, or many tasks were asked for
/// and this process is none of them (a batch script without srun).
ProcessRank process_rank(const std::string& what,
                         const Environment& variables = environment_variable);

}  // namespace crais
