#include "cli/process_rank.h"

#include <gtest/gtest.h>

#include <map>

#include "support/expect_error.h"

namespace crais {
namespace {

using Variables = std::map<std::string, std::string>;

ProcessRank rank_of(const Variables& variables) {
  return process_rank("--shard auto", [&](const std::string& name) {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  });
}

Variables array_of(const std::string& task, const std::string& count, const std::string& first,
                   const std::string& step) {
  return {{"SLURM_ARRAY_TASK_ID", task},
          {"SLURM_ARRAY_TASK_COUNT", count},
          {"SLURM_ARRAY_TASK_MIN", first},
          {"SLURM_ARRAY_TASK_STEP", step}};
}

Variables with(Variables variables, const Variables& more) {
  variables.insert(more.begin(), more.end());
  return variables;
}

void expect_rank(const Variables& variables, int64_t index, int64_t count) {
  const ProcessRank rank = rank_of(variables);
  EXPECT_EQ(rank.index, index);
  EXPECT_EQ(rank.count, count);
}

void expect_refused(const Variables& variables, std::vector<std::string> words) {
  words.emplace_back("--shard auto: ");
  expect_error(ErrorKind::kArgument, words, [&] { rank_of(variables); });
}

TEST(ProcessRank, ArraysBeginAnywhereAndHaveSteps) {
  expect_rank(array_of("0", "4", "0", "1"), 0, 4);  // --array=0-3
  expect_rank(array_of("3", "4", "0", "1"), 3, 4);
  expect_rank(array_of("1", "4", "1", "1"), 0, 4);  // --array=1-4
  expect_rank(array_of("4", "4", "1", "1"), 3, 4);
  expect_rank(array_of("12", "3", "2", "5"), 2, 3);  // --array=2-12:5
}

TEST(ProcessRank, AnArrayWithGapsIsRefused) {
  expect_refused(array_of("7", "3", "1", "1"), {"SLURM_ARRAY_TASK_ID=7", "3 tasks", "--array=1-3"});
  expect_refused(array_of("4", "3", "1", "2"), {"SLURM_ARRAY_TASK_ID=4"});
  expect_refused(array_of("0", "3", "1", "1"), {"SLURM_ARRAY_TASK_ID=0"});
}

TEST(ProcessRank, ProcessesOfAStep) {
  expect_rank({{"SLURM_PROCID", "2"}, {"SLURM_NTASKS", "4"}}, 2, 4);
  expect_rank({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "1"}}, 0, 1);
  // The step's own count goes before the job's.
  expect_rank({{"SLURM_PROCID", "1"}, {"SLURM_NTASKS", "8"}, {"SLURM_STEP_NUM_TASKS", "2"}}, 1, 2);
  expect_rank({{"SLURM_PROCID", "0"}}, 0, 1);  // a batch script
}

TEST(ProcessRank, AStepOfAnArrayDividesItsTask) {
  const Variables task = array_of("3", "4", "1", "1");
  for (int64_t process = 0; process < 2; ++process)
    expect_rank(
        with(task, {{"SLURM_PROCID", std::to_string(process)}, {"SLURM_STEP_NUM_TASKS", "2"}}),
        2 * 2 + process, 8);
  expect_rank(with(task, {{"SLURM_PROCID", "0"}}), 2, 4);
}

TEST(ProcessRank, ABatchScriptIsNoneOfItsTasks) {
  const Variables batch = {{"SLURM_JOB_ID", "9"}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}};
  expect_refused(batch, {"4 tasks", "SLURM_NTASKS", "srun"});
  expect_refused(with(batch, array_of("1", "2", "1", "1")), {"srun"});
  expect_rank(with(batch, {{"SLURM_STEP_ID", "0"}}), 0, 4);
}

TEST(ProcessRank, Torchrun) {
  expect_rank({{"RANK", "3"}, {"WORLD_SIZE", "4"}}, 3, 4);
  // Below srun it is torchrun that starts this process.
  expect_rank({{"RANK", "3"}, {"WORLD_SIZE", "4"}, {"SLURM_PROCID", "1"}, {"SLURM_NTASKS", "2"}}, 3,
              4);
  expect_rank(with(array_of("2", "2", "1", "1"), {{"RANK", "1"}, {"WORLD_SIZE", "4"}}), 5, 8);
}

TEST(ProcessRank, NothingSetNamesWhatWasLookedFor) {
  expect_refused({}, {"SLURM_ARRAY_TASK_ID", "SLURM_PROCID", "RANK", "i/N"});
}

TEST(ProcessRank, HalfAPairIsRefused) {
  expect_refused({{"RANK", "1"}}, {"RANK is set", "WORLD_SIZE is not"});
  expect_refused({{"WORLD_SIZE", "2"}}, {"WORLD_SIZE is set", "RANK is not"});
  expect_refused({{"SLURM_NTASKS", "2"}}, {"SLURM_NTASKS is set", "SLURM_PROCID is not"});
  expect_refused({{"SLURM_PROCID", "2"}}, {"SLURM_PROCID is set", "SLURM_NTASKS is not"});
  for (const char* lost :
       {"SLURM_ARRAY_TASK_COUNT", "SLURM_ARRAY_TASK_MIN", "SLURM_ARRAY_TASK_STEP"}) {
    Variables variables = array_of("1", "4", "1", "1");
    variables.erase(lost);
    expect_refused(variables, {"SLURM_ARRAY_TASK_ID is set", std::string(lost) + " is not"});
  }
}

TEST(ProcessRank, WhatIsNoNumberOrOutOfRangeIsRefused) {
  for (const char* bad : {"", "two", "1.5", "-1", "1000000001", "99999999999999999999"}) {
    expect_refused({{"RANK", bad}, {"WORLD_SIZE", "2"}}, {"RANK"});
    expect_refused({{"RANK", "0"}, {"WORLD_SIZE", bad}}, {"WORLD_SIZE"});
    expect_refused(array_of(bad, "2", "1", "1"), {"SLURM_ARRAY_TASK_ID"});
    expect_refused(array_of("1", "2", "1", bad), {"SLURM_ARRAY_TASK_STEP"});
  }
  expect_refused({{"RANK", "2"}, {"WORLD_SIZE", "2"}}, {"RANK is 2", "WORLD_SIZE is 2"});
  expect_refused({{"RANK", "0"}, {"WORLD_SIZE", "0"}}, {"WORLD_SIZE"});
  expect_refused(array_of("1", "2", "1", "0"), {"SLURM_ARRAY_TASK_STEP"});
}

}  // namespace
}  // namespace crais
