#include "evaluation/work_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "evaluation/result_store.h"
#include "evaluation/run_problems.h"
#include "support/expect_error.h"
#include "support/targets.h"
#include "support/temporary_folder.h"
#include "util/files.h"

namespace crais {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using testing::DiagonalGaussian;
using testing::TemporaryFolder;

const WorkQueue::Stop kNever = [] { return false; };
const auto kNothing = [] { return std::set<int64_t>(); };

/// Claims in memory. A worker in `living` shows life whenever somebody looks.
class TableOfClaims : public Claims {
 public:
  std::string take(const std::string& name, const std::string& worker) override {
    const std::lock_guard lock(mutex);
    if (is_gone) throw Error(ErrorKind::kInterrupted, "nobody hears of " + name);
    return owners.try_emplace(name, worker).first->second;
  }
  std::optional<int64_t> draw(int64_t count) override {
    const std::lock_guard lock(mutex);
    return num_drawn < count ? std::optional(num_drawn++) : std::nullopt;
  }
  void beat(const std::string& worker) override {
    const std::lock_guard lock(mutex);
    if (deaf.count(worker) == 0) ++beats[worker];
  }
  void leave(const std::string& worker) override {
    const std::lock_guard lock(mutex);
    left.insert(worker);
  }
  std::string last_beat(const std::string& worker) override {
    const std::lock_guard lock(mutex);
    ++looks;
    if (left.count(worker) > 0) return kGone;
    if (living.count(worker) > 0) ++beats[worker];
    return std::to_string(beats[worker]);
  }

  std::mutex mutex;
  std::map<std::string, std::string> owners;
  std::map<std::string, int64_t> beats;
  std::set<std::string> living, left, deaf;
  int64_t num_drawn = 0, looks = 0;
  bool is_gone = false;
};

TEST(WorkQueue, GivesEachChunkToOneWorker) {
  const auto claims = std::make_shared<TableOfClaims>();
  std::mutex mutex;
  std::map<int64_t, int> given;
  std::set<int64_t> finished = {3, 17};
  const auto work = [&] {
    WorkQueue queue(claims, 1h);
    const auto done = [&] {
      const std::lock_guard lock(mutex);
      return finished;
    };
    while (const auto chunk = queue.next(40, done, kNever)) {
      const std::lock_guard lock(mutex);
      ++given[*chunk];
      finished.insert(*chunk);
    }
  };
  std::vector<std::thread> workers;
  workers.reserve(5);
  for (int i = 0; i < 5; ++i) workers.emplace_back(work);
  for (auto& worker : workers) worker.join();
  EXPECT_EQ(given.size(), 38u);
  for (const auto& [chunk, times] : given) EXPECT_EQ(times, 1) << chunk;
  EXPECT_EQ(given.count(3) + given.count(17), 0u);
}

TEST(WorkQueue, TakesOverWhatASilentWorkerHolds) {
  const auto claims = std::make_shared<TableOfClaims>();
  claims->owners["000000.0"] = "00000000000000aa";
  claims->owners["000001.0"] = "00000000000000bb";
  claims->owners["000001.1"] = "00000000000000cc";  // has taken it over, and died too
  claims->num_drawn = 2;
  WorkQueue queue(claims, 20ms);
  std::set<int64_t> given;
  given.insert(queue.next(2, kNothing, kNever).value());
  given.insert(queue.next(2, kNothing, kNever).value());
  EXPECT_EQ(given, (std::set<int64_t>{0, 1}));
  EXPECT_EQ(claims->owners.count("000000.1"), 1u);
  EXPECT_EQ(claims->owners.count("000001.2"), 1u);
  EXPECT_EQ(queue.next(2, kNothing, kNever), std::nullopt);  // all was given, and to this worker
}

TEST(WorkQueue, LeavesALivingWorkerWhatItHolds) {
  const auto claims = std::make_shared<TableOfClaims>();
  claims->owners["000000.0"] = "00000000000000aa";
  claims->living = {"00000000000000aa"};
  claims->num_drawn = 1;
  WorkQueue queue(claims, 1ms);  // long over whenever it looks again
  EXPECT_EQ(queue.next(1, kNothing, [&] { return claims->looks > 20; }), std::nullopt);
  EXPECT_GT(claims->looks, 20);
  EXPECT_EQ(claims->owners.size(), 1u);
  // It is done at last, and nothing is left.
  EXPECT_EQ(queue.next(
                1, [] { return std::set<int64_t>{0}; }, kNever),
            std::nullopt);
}

TEST(WorkQueue, WhatALeavingWorkerHoldsIsFreeAtOnce) {
  const auto claims = std::make_shared<TableOfClaims>();
  {
    WorkQueue leaving(claims, 1h);
    EXPECT_EQ(leaving.next(1, kNothing, kNever), 0);
    EXPECT_TRUE(leaving.lead(
        "plan", [] { return false; }, kNever));
  }
  WorkQueue queue(claims, 1h);
  EXPECT_EQ(queue.next(1, kNothing, kNever), 0);
  EXPECT_TRUE(queue.lead(
      "plan", [] { return false; }, kNever));
}

TEST(WorkQueue, OneLeadsAndTheOthersWait) {
  const auto table = std::make_shared<TableOfClaims>();
  std::atomic<int> leaders{0};
  std::atomic<bool> is_done{false};
  std::vector<std::thread> workers;
  workers.reserve(4);
  for (int i = 0; i < 4; ++i)
    workers.emplace_back([&] {
      WorkQueue queue(table, 1h);
      if (!queue.lead(
              "plan", [&] { return is_done.load(); }, kNever))
        return;
      ++leaders;
      is_done = true;
    });
  for (auto& worker : workers) worker.join();
  EXPECT_EQ(leaders, 1);

  const auto claims = std::make_shared<TableOfClaims>();
  claims->owners["plan.0"] = "00000000000000aa";
  WorkQueue heir(claims, 20ms);
  EXPECT_TRUE(heir.lead(
      "plan", [] { return false; }, kNever));  // the leader has died
  claims->owners["report.0"] = "00000000000000bb";
  claims->living = {"00000000000000bb"};
  EXPECT_FALSE(heir.lead(
      "report", [] { return false; }, [&] { return claims->looks > 20; }));
}

TEST(WorkQueue, ClaimsThatAreGoneMatterOnlyWhileThereIsWork) {
  const auto claims = std::make_shared<TableOfClaims>();
  WorkQueue queue(claims, 1h);
  claims->is_gone = true;
  EXPECT_EQ(queue.next(
                1, [] { return std::set<int64_t>{0}; }, kNever),
            std::nullopt);
  EXPECT_FALSE(queue.lead(
      "report", [] { return true; }, kNever));
  expect_error(ErrorKind::kInterrupted, {"000000.0"}, [&] { queue.next(1, kNothing, kNever); });
}

// --- Runs that share a folder.

constexpr int64_t kShared = 22;

ProblemSource shared_problems() {
  const at::Tensor index = at::arange(kShared, at::kDouble).unsqueeze(1);
  return ProblemSource::of(std::make_shared<DiagonalGaussian>(
      at::cat({0.1 * index, 1 - 0.05 * index}, 1),
      at::cat({0.4 + 0.02 * index, at::full_like(index, 0.7)}, 1), 0.3 * index.squeeze(1)));
}

EstimateOptions share() {
  EstimateOptions options;
  options.steps = 5;
  options.chains = 8;
  options.chunk = 3;
  options.pilot_problems = 4;
  return options;
}

std::vector<double> values_of(const RunResults& results) {
  std::vector<double> values;
  for (const auto& [number, chunk] : results.chunks)
    values.insert(values.end(), chunk.runs[0].log_normalizer.begin(),
                  chunk.runs[0].log_normalizer.end());
  return values;
}

TEST(SharedRun, WorkersComeToTheResultOfOneAlone) {
  const Estimator estimator(share());
  const std::vector<double> alone = values_of(run_problems(shared_problems(), estimator));
  const TemporaryFolder folder;
  const json record = {{"run", "test"}};
  const auto claims = std::make_shared<TableOfClaims>();
  std::mutex mutex;
  std::vector<std::vector<double>> reports;
  std::vector<std::thread> workers;
  for (int64_t threads : {1, 2, 1})
    workers.emplace_back([&, threads] {
      const ResultStore store(folder.path() / "run", record, {.resume = true});
      WorkQueue queue(claims, 1h);
      RunOptions options;
      options.threads = threads;
      options.store = &store;
      options.queue = &queue;
      const RunResults results = run_problems(shared_problems(), estimator, options);
      if (results.chunks.empty()) return;
      write_file_atomic(folder.path() / "run" / "summary.json", "{}");
      const std::lock_guard lock(mutex);
      reports.push_back(values_of(results));
    });
  for (auto& worker : workers) worker.join();
  ASSERT_EQ(reports.size(), 1u);  // one has them all, the others none
  EXPECT_EQ(reports[0], alone);
}

TEST(SharedRun, LeavesNothingThatAKilledWorkerWasWriting) {
  const TemporaryFolder folder;
  const std::filesystem::path run = folder.path() / "run";
  const ResultStore store(run, {{"run", "test"}}, {.resume = true});
  write_file_atomic(run / "chunks" / ".000001.json.9f3a.tmp", "{\"chu");
  write_file_atomic(run / "chunks" / ".notes.tmp", "mine");
  WorkQueue queue(std::make_shared<TableOfClaims>(), 1h);
  RunOptions options;
  options.store = &store;
  options.queue = &queue;
  EXPECT_FALSE(run_problems(shared_problems(), Estimator(share()), options).chunks.empty());
  EXPECT_FALSE(std::filesystem::exists(run / "chunks" / ".000001.json.9f3a.tmp"));
  EXPECT_TRUE(std::filesystem::exists(run / "chunks" / ".notes.tmp"));
}

/// It sleeps over its lease, loses its chunk, and writes it all the same.
TEST(SharedRun, APausedWorkerComesBack) {
  const Estimator estimator(share());
  const std::vector<double> alone = values_of(run_problems(shared_problems(), estimator));
  const TemporaryFolder folder;
  const json record = {{"run", "test"}};
  const auto claims = std::make_shared<TableOfClaims>();
  const auto work = [&](const ProblemSource& source) {
    const ResultStore store(folder.path() / "run", record, {.resume = true});
    WorkQueue queue(claims, 50ms);
    RunOptions options;
    options.store = &store;
    options.queue = &queue;
    RunResults results = run_problems(source, estimator, options);
    if (!results.chunks.empty()) write_file_atomic(folder.path() / "run" / "summary.json", "{}");
    return results;
  };
  ProblemSource paused = shared_problems();
  const auto make = paused.make;
  std::atomic<bool> is_asleep{false}, has_slept{false};
  paused.make = [&](int64_t begin, int64_t end) {
    if (begin == 0 && end == 3) {  // chunk 0, not the pilot
      {
        const std::lock_guard lock(claims->mutex);
        for (const auto& [worker, count] : claims->beats) claims->deaf.insert(worker);
      }
      is_asleep = true;
      for (bool is_lost = false; !is_lost;) {  // until another has taken it over
        std::this_thread::sleep_for(1ms);
        const std::lock_guard lock(claims->mutex);
        is_lost = claims->owners.count("000000.1") > 0;
      }
      has_slept = true;
    }
    return make(begin, end);
  };
  RunResults of_paused;
  std::thread sleeper([&] { of_paused = work(paused); });
  while (!is_asleep) std::this_thread::sleep_for(1ms);
  const RunResults of_other = work(shared_problems());
  sleeper.join();
  EXPECT_TRUE(has_slept);
  EXPECT_FALSE(of_other.chunks.empty() && of_paused.chunks.empty());
  for (const RunResults& results : {of_other, of_paused})
    if (!results.chunks.empty()) {
      EXPECT_EQ(values_of(results), alone);
    }
}

TEST(SharedRun, OneOfSeveralRecordsIsMade) {
  for (int round = 0; round < 20; ++round) {
    const TemporaryFolder folder;
    std::atomic<int> made{0}, refused{0};
    std::vector<std::thread> workers;
    workers.reserve(4);
    for (int settings = 0; settings < 4; ++settings)
      workers.emplace_back([&, settings] {
        try {
          const ResultStore store(folder.path() / "run", {{"settings", settings % 2}},
                                  {.resume = true});
          ++made;
        } catch (const Error& error) {
          EXPECT_NE(std::string(error.what()).find("other settings"), std::string::npos)
              << error.what();
          ++refused;
        }
      });
    for (auto& worker : workers) worker.join();
    EXPECT_EQ(made, 2);
    EXPECT_EQ(refused, 2);
  }
}

}  // namespace
}  // namespace crais
