// The commands of eval-loglik. Each returns the exit code.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "programs/eval_loglik/eval_run.h"
#include "programs/eval_loglik/settings.h"

namespace crais {

/// Opens the model, tells the user how its file and its images were understood, and evaluates
/// under a progress line. Nothing where the settings ask for a dry run, which is described on
/// stdout. Throws Error as EvalRun and complete_run do.
/// `check`, where given, may refuse the run before it begins.
std::optional<RunReport> evaluate_model(const EvalSettings& settings,
                                        const std::function<void(const EvalRun&)>& check = {});
/// The same, and prints the report.
int print_evaluation(const EvalSettings& settings,
                     const std::function<void(const EvalRun&)>& check = {});

/// `eval-loglik merge DIR... --out DIR`: shards of one evaluation, put together.
/// Throws Error kData for gaps, duplicates and folders of another run.
int merge_evaluations(const CommandLine& cli);

/// `eval-loglik compare A B [C ...]`: result folders, or models that it evaluates first, all by the
/// flags given. Throws Error: kArgument for fewer than two, flags that folders have no use for, or
/// other images; kData for damaged or unfinished folders.
int compare_evaluations(const CommandLine& cli);

/// `eval-loglik diagnose DIR`. Returns 0 where there is nothing, 1 where there are findings.
/// Throws Error as read_evaluation does.
int diagnose_evaluation(const CommandLine& cli);

/// `eval-loglik extend DIR --chains +N | --images +N`: the run of DIR becomes the one that had
/// asked for all from the start, under the same plan. Chunks and chains that are there are kept;
/// the chains of an unfinished random stream and the images of an unfinished chunk are computed
/// again. DIR stays what it was until all of the new is whole. Throws Error as an EvalRun does, and
/// kArgument for a run whose chains cannot be added to, or whose model or images are not what they
/// were.
int extend_evaluation(const CommandLine& cli);
Synopsis extend_synopsis();

/// `eval-loglik submit slurm MODEL --out DIR --tasks N`: checks model, images and flags as the
/// tasks will, and prints a bash script that submits an array and, once all tasks are done, their
/// merge. `called` is the program as it was called. Throws Error as an EvalRun does, and kArgument
/// for flags that the script decides.
int submit_evaluation(const CommandLine& cli, const std::string& called);
Synopsis submit_synopsis();

/// Seconds that a task of a job of `seconds` works: the rest is for its last chunk, for a signal
/// that comes a minute before the end, and for getting into the queue again.
int64_t working_time(int64_t seconds);

}  // namespace crais
