// The commands of eval-loglik. Each returns the exit code.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "programs/eval_loglik/eval_run.h"
#include "programs/eval_loglik/settings.h"

namespace crais {

/// Opens the model, reports how its file and its images were read, and evaluates with a progress
/// line. If the settings ask for a dry run, describes it on stdout and returns nothing. Throws
/// Error as EvalRun and complete_run do. `check`, if given, may reject the run before it begins.
std::optional<RunReport> evaluate_model(const EvalSettings& settings,
                                        const std::function<void(const EvalRun&)>& check = {});
/// Evaluates the model and prints the report. Returns the exit code.
int print_evaluation(const EvalSettings& settings,
                     const std::function<void(const EvalRun&)>& check = {});

/// `eval-loglik merge DIR... --out DIR`: joins the shards of one evaluation. Throws Error kData for
/// gaps, duplicates and folders of another run.
int merge_evaluations(const CommandLine& cli);

/// `eval-loglik compare A B [C ...]`: compares result folders, or models that it evaluates first
/// with the given flags. Throws Error: kArgument for fewer than two operands, flags without effect
/// on folders, or different images; kData for damaged or unfinished folders.
int compare_evaluations(const CommandLine& cli);

/// `eval-loglik diagnose DIR`. Returns 0 if there are no findings, else 1. Throws Error as
/// read_evaluation does.
int diagnose_evaluation(const CommandLine& cli);

/// `eval-loglik extend DIR --chains +N | --images +N`: the run in DIR becomes the run that would
/// have asked for all chains and images at the start, under the same plan. Finished chunks and
/// chains are kept. The chains of an unfinished random stream and the images of an unfinished chunk
/// are computed again. DIR changes only when the new results are complete. Throws Error as EvalRun
/// does, and kArgument for a run that cannot have more chains, or whose model or images have
/// changed.
int extend_evaluation(const CommandLine& cli);
Synopsis extend_synopsis();

/// `eval-loglik submit slurm MODEL --out DIR --tasks N`: checks model, images and flags as the
/// tasks will, and prints a bash script. The script submits an array of tasks and, once they are
/// done, their merge. `called` is the program's name on the command line. Throws Error as EvalRun
/// does, and kArgument for flags that the script sets.
int submit_evaluation(const CommandLine& cli, const std::string& called);
Synopsis submit_synopsis();

/// The working time of a task in a job of `seconds`. The rest is for its last chunk, for a signal
/// that comes a minute before the end, and for joining the queue again.
int64_t working_time(int64_t seconds);

}  // namespace crais
