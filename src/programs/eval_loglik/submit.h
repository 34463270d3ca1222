// An evaluation as an array of jobs on a cluster.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace crais {

/// What the script of an array needs. The paths may be relative to `folder`.
struct Submission {
  std::string program;  // eval-loglik, as it is to be called
  std::string folder;   // where the jobs work
  std::string model;
  std::vector<std::string> flags;  // of eval-loglik, for each task
  std::string out;
  int64_t tasks = 1;
  int64_t seconds = 3600;           // that Slurm gives each task
  int64_t cpus = 1;                 // of each task
  std::vector<std::string> sbatch;  // more of its options
  bool accept_other_version = false;
};

/// Seconds that a task of a job of `seconds` works: the rest is for its last chunk, for a signal
/// that comes a minute before the end, and for getting into the queue again.
int64_t working_time(int64_t seconds);

/// A bash script that submits the array and, once all tasks are done, their merge.
std::string slurm_script(const Submission& submission);

/// True for `eval-loglik submit ...`, whose flags are more than those of eval-loglik.
bool is_submission(int argc, const char* const* argv);

/// Runs `eval-loglik submit slurm MODEL --out DIR --tasks N`: checks model, images and flags as the
/// tasks will, and prints the script. Returns the exit code. Throws Error as an EvalRun does, and
/// kArgument for flags that the script decides.
int submit_evaluation(int argc, const char* const* argv);

}  // namespace crais
