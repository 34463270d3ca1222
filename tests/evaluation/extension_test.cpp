// More chains and more problems for results that are there.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "evaluation/result_json.h"
#include "evaluation/result_store.h"
#include "evaluation/run_problems.h"
#include "samplers/blocks.h"
#include "support/expect_error.h"
#include "support/targets.h"
#include "support/temporary_folder.h"
#include "util/files.h"

namespace crais {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::DiagonalGaussian;
using testing::TemporaryFolder;

constexpr int64_t kDim = 64, kChunk = 3;

const DiagonalGaussian& gaussians() {  // nine problems
  static const at::Tensor kIndex = at::arange(9, at::kDouble).unsqueeze(1);
  static const DiagonalGaussian kTarget((0.01 * kIndex).expand({9, kDim}),
                                        (0.9 + 0.01 * kIndex).expand({9, kDim}),
                                        0.3 * kIndex.squeeze(1));
  return kTarget;
}

ProblemSource first(int64_t count) { return ProblemSource::of(gaussians().slice(0, count)); }

/// Counts its gradients.
class Counted : public Target {
 public:
  Counted(std::shared_ptr<const Target> inner, int64_t& gradients)
      : inner_(std::move(inner)), gradients_(gradients) {}
  int64_t num_problems() const override { return inner_->num_problems(); }
  int64_t dim() const override { return inner_->dim(); }
  at::Tensor log_density(const at::Tensor& z) const override { return inner_->log_density(z); }
  Evaluation evaluate(const at::Tensor& z) const override {
    gradients_ += z.size(0) * z.size(1);
    return inner_->evaluate(z);
  }

 private:
  std::shared_ptr<const Target> inner_;
  int64_t& gradients_;
};

ProblemSource counted(int64_t count, int64_t& gradients) {
  return {count, [&gradients](int64_t begin, int64_t end) {
            return std::make_shared<Counted>(gaussians().slice(begin, end), gradients);
          }};
}

EstimateOptions with_chains(int64_t chains, const std::string& method = "ais") {
  EstimateOptions options;
  options.methods = {method, "iwae:50"};
  options.base = "prior";
  options.steps = 5;
  options.chains = chains;
  options.pilot_chains = 20;
  options.chunk = kChunk;
  options.pilot_problems = 4;
  return options;
}

json record(const EstimateOptions& options, int64_t problems) {
  return {{"chains", options.chains}, {"problems", problems}};
}

/// What chunk files say, but for how long they took.
json chunks_of(const RunResults& results) {
  json chunks = json::array();
  for (const auto& [number, chunk] : results.chunks) {
    chunks.push_back(to_json(chunk));
    for (json& run : chunks.back()["runs"]) run.erase("seconds");
  }
  return chunks;
}

RunResults in_folder(const std::string& folder, const EstimateOptions& options,
                     const ProblemSource& problems, const StoreOptions& how,
                     RunObserver* observer = nullptr) {
  ResultStore store(folder, record(options, problems.count), how);
  RunResults found = run_problems(problems, Estimator(options), {1, {}, observer, &store});
  if (progressed(found, {problems.count, kChunk}, {}).done == problems.count)
    store.replace_earlier();
  return found;
}

json plan_of(const RunResults& results) { return to_json(*results.state.plan); }

TEST(Extension, MoreChainsAreThoseOfOneRun) {
  const int64_t stream = chains_per_stream(kChunk, kDim);
  ASSERT_EQ(stream, 176);
  for (const char* method : {"ais", "bidirectional"}) {
    SCOPED_TRACE(method);
    const TemporaryFolder folder;
    const EstimateOptions few = with_chains(200, method), many = with_chains(400, method);
    in_folder(folder.path(), few, first(6), {});
    const RunResults extended =
        in_folder(folder.path(), many, first(6), {.resume = true, .extend = true});
    const RunResults whole = run_problems(first(6), Estimator(many));
    EXPECT_EQ(chunks_of(extended), chunks_of(whole));
    EXPECT_EQ(plan_of(extended), plan_of(whole));
    // As any run that is there: it stands in the place of the earlier one.
    EXPECT_EQ(chunks_of(in_folder(folder.path(), many, first(6), {.resume = true})),
              chunks_of(whole));
    EXPECT_FALSE(ResultStore(folder.path()).extension());
  }
}

TEST(Extension, ChainsOfWholeStreamsAreKept) {
  const TemporaryFolder folder;
  in_folder(folder.path(), with_chains(200), first(6), {});
  int64_t gradients = 0;
  in_folder(folder.path(), with_chains(400), counted(6, gradients),
            {.resume = true, .extend = true});
  // 176 of each are there; the plan too.
  EXPECT_EQ(gradients, 6 * (400 - 176) * (1 + 5));
}

TEST(Extension, MoreProblemsLeaveFullChunksAlone) {
  const TemporaryFolder folder;
  in_folder(folder.path(), with_chains(200), first(5), {});  // the second chunk has two of three
  int64_t gradients = 0;
  const RunResults extended = in_folder(folder.path(), with_chains(200), counted(8, gradients),
                                        {.resume = true, .extend = true});
  EXPECT_EQ(chunks_of(extended), chunks_of(run_problems(first(8), Estimator(with_chains(200)))));
  EXPECT_EQ(gradients, (8 - 3) * 200 * (1 + 5));
}

TEST(Extension, GoesOnWhereItWasStopped) {
  class Stopping : public RunObserver {
   public:
    void chunk(const ChunkResult& /*result*/) override { ++chunks; }
    bool stop() override { return chunks >= 1; }
    int chunks = 0;
  };
  const TemporaryFolder folder;
  const EstimateOptions few = with_chains(200), many = with_chains(400);
  in_folder(folder.path(), few, first(9), {});
  Stopping stopping;
  const RunResults part =
      in_folder(folder.path(), many, first(9), {.resume = true, .extend = true}, &stopping);
  EXPECT_EQ(part.chunks.size(), 1U);
  EXPECT_TRUE(ResultStore(folder.path()).extension());
  // Until it is whole, the results are what they were, and can be read.
  EXPECT_EQ(chunks_of(in_folder(folder.path(), few, first(9), {.resume = true})),
            chunks_of(run_problems(first(9), Estimator(few))));
  // Its own settings are known now: plain resumption does.
  int64_t gradients = 0;
  const RunResults extended =
      in_folder(folder.path(), many, counted(9, gradients), {.resume = true});
  EXPECT_EQ(gradients, (9 - 3) * (400 - 176) * (1 + 5));
  EXPECT_EQ(chunks_of(extended), chunks_of(run_problems(first(9), Estimator(many))));
}

TEST(Extension, TakesThePlaceOfTheResultsThatItExtendsInSteps) {
  const TemporaryFolder folder;
  const fs::path path = folder.path();
  const EstimateOptions few = with_chains(200), many = with_chains(400);
  in_folder(folder.path(), few, first(9), {});
  const ResultStore store(path, record(many, 9), {.resume = true, .extend = true});
  run_problems(first(9), Estimator(many), {1, {}, nullptr, &store});
  EXPECT_EQ(ResultStore(path).run()["chains"], 200);
  // Killed after the first chunk has moved.
  fs::rename(path / "extension", path / "replacing");
  fs::rename(path / "replacing/chunks/000000.json", path / "chunks/000000.json");
  EXPECT_TRUE(ResultStore(path).is_being_replaced());
  const json whole = chunks_of(run_problems(first(9), Estimator(many)));
  // The same command, which finds that there is nothing left to do.
  EXPECT_EQ(chunks_of(in_folder(folder.path(), many, first(9), {.resume = true, .extend = true})),
            whole);
  EXPECT_EQ(ResultStore(path).run()["chains"], 400);
  EXPECT_FALSE(fs::exists(path / "replacing"));
}

TEST(Extension, AnotherOneWaitsAndOverwritingForgetsIt) {
  const TemporaryFolder folder;
  in_folder(folder.path(), with_chains(200), first(6), {});
  const StoreOptions extend{.resume = true, .extend = true};
  const ResultStore begun(folder.path(), record(with_chains(400), 6), extend);
  expect_error(ErrorKind::kArgument, {"another extension is under way"},
               [&] { ResultStore(folder.path(), record(with_chains(500), 6), extend); });
  const ResultStore afresh(folder.path(), record(with_chains(200), 6), {.overwrite = true});
  EXPECT_FALSE(afresh.extension());
}

TEST(Extension, StreamsRepeatNoNumbers) {
  const RunResults found = run_problems(first(3), Estimator(with_chains(352)));
  const std::vector<ChainBlock>& blocks = found.chunks.at(0).runs.front().blocks;
  ASSERT_EQ(blocks.size(), 2U);
  EXPECT_FALSE(at::equal(blocks[0].log_w, blocks[1].log_w));
  EXPECT_GT(
      at::corrcoef(at::stack({blocks[0].log_w[0], blocks[1].log_w[0]}))[0][1].abs().item<double>(),
      0.0);
  // As many chains as a stream has are its chains.
  const RunResults fewer = run_problems(first(3), Estimator(with_chains(176)));
  EXPECT_TRUE(at::equal(fewer.chunks.at(0).runs.front().blocks.front().log_w, blocks[0].log_w));
}

TEST(Extension, SettingsThatDifferAreRefusedWithoutIt) {
  const TemporaryFolder folder;
  in_folder(folder.path(), with_chains(200), first(6), {});
  expect_error(ErrorKind::kArgument, {"chains is 400 here and 200 there"},
               [&] { in_folder(folder.path(), with_chains(400), first(6), {.resume = true}); });
}

TEST(Extension, SharesOfSettledParticlesAreKeptAndChecked) {
  ChunkResult found = run_problems(first(3), Estimator(with_chains(20))).chunks.at(0);
  found.settled = {0.25, 0.003, 120.5};
  const json whole = to_json(found);
  const ChunkResult read = chunk_from(whole, "FILE");
  ASSERT_TRUE(read.settled);
  EXPECT_EQ(read.settled->above, 0.25);
  EXPECT_EQ(read.settled->expected, 0.003);
  EXPECT_EQ(read.settled->num_effective, 120.5);
  for (const auto& [key, value] : {std::pair("above", 1.5), std::pair("num_effective", 0.0)}) {
    json damaged = whole;
    damaged["settled"][key] = value;
    expect_error(ErrorKind::kData, {"FILE", "out of range"}, [&] { chunk_from(damaged, "FILE"); });
  }
}

TEST(Extension, RoundsAreKept) {
  ChunkResult found = run_problems(first(3), Estimator(with_chains(20))).chunks.at(0);
  found.rounds = {{6000, -3.25, 0.5}, {12000, -3.125, 0.25}};
  found.barrier = 2.5;
  const ChunkResult read = chunk_from(to_json(found), "FILE");
  ASSERT_EQ(read.rounds.size(), 2u);
  EXPECT_EQ(read.rounds[1].evaluations, 12000);
  EXPECT_EQ(read.rounds[1].log_normalizer, -3.125);
  EXPECT_EQ(read.rounds[1].error, 0.25);
  EXPECT_EQ(read.barrier, 2.5);
}

TEST(Extension, BlocksOfADamagedFileAreRefused) {
  const RunResults found = run_problems(first(3), Estimator(with_chains(20)));
  const json whole = to_json(found.chunks.at(0));
  EXPECT_EQ(to_json(chunk_from(whole, "FILE")), whole);
  const auto refused = [&](const std::vector<std::string>& words, const json& key,
                           const json& value) {
    json damaged = whole;
    damaged["runs"][0]["blocks"][0][key.get<std::string>()] = value;
    expect_error(ErrorKind::kData, words, [&] { chunk_from(damaged, "FILE"); });
  };
  const json rows = whole["runs"][0]["blocks"][0]["log_w"];
  refused({"FILE", "as its problems are many"}, "log_w", json::array({rows[0]}));
  refused({"FILE", "differ in length"}, "log_w",
          json::array({rows[0], rows[1], rows[2].get<std::string>().substr(32)}));
  refused({"FILE", "no list of numbers"}, "log_w", json::array({rows[0], rows[1], "no base64"}));
  refused({"FILE", "no list of numbers"}, "log_w", json::array({rows[0], rows[1], "AAAA"}));
  refused({"FILE", "no number"}, "log_w",  // NaN
          json::array({"AAAAAAAA8D8=", "AAAAAAAA8D8=", "AAAAAAAA+H8="}));
  refused({"FILE", "not of its problems"}, "num_nonfinite", -1);
  refused({"FILE", "not of its problems"}, "accept_prob", json::array({0.5}));
  refused({"FILE", "both directions"}, "reverse_log_w",
          json::array({"AAAAAAAA8D8=", "AAAAAAAA8D8=", "AAAAAAAA8D8="}));
}

}  // namespace
}  // namespace crais
