#include "evaluation/run_problems.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>

#include "evaluation/control.h"
#include "evaluation/result_store.h"
#include "evidence/evidence.h"
#include "io/json.h"
#include "support/descent.h"
#include "support/expect_error.h"
#include "support/targets.h"
#include "support/temporary_folder.h"
#include "targets/function_target.h"
#include "util/files.h"

namespace crais {
namespace {

using nlohmann::json;
using testing::DiagonalGaussian;
using testing::TemporaryFolder;

constexpr int64_t kProblems = 11;

std::shared_ptr<const Target> problems() {
  const at::Tensor index = at::arange(kProblems, at::kDouble).unsqueeze(1);
  return std::make_shared<DiagonalGaussian>(
      at::cat({0.1 * index, 1 - 0.05 * index}, 1),
      at::cat({0.4 + 0.02 * index, at::full_like(index, 0.7)}, 1), 0.3 * index.squeeze(1));
}

EstimateOptions small(const std::vector<std::string>& methods = {"ais"}) {
  return {.methods = methods, .chains = 8, .seed = 4, .steps = 5, .pilot_problems = 4, .chunk = 3};
}

/// Column by column, flags and costs too; seconds aside.
void expect_same(const RunResults& a, const RunResults& b) {
  ASSERT_EQ(a.chunks.size(), b.chunks.size());
  for (const auto& [chunk, result] : a.chunks) {
    const ChunkResult& other = b.chunks.at(chunk);
    EXPECT_EQ(result.indices, other.indices);
    EXPECT_EQ(result.base, other.base);
    EXPECT_EQ(result.tuning, other.tuning);
    ASSERT_EQ(result.runs.size(), other.runs.size());
    for (size_t i = 0; i < result.runs.size(); ++i) {
      for (const auto& [name, column, is_rare] : ChunkRun::columns()) {
        const auto& x = result.runs[i].*column;
        const auto& y = other.runs[i].*column;
        EXPECT_TRUE(at::allclose(at::tensor(x, at::kDouble), at::tensor(y, at::kDouble), 0, 0,
                                 /*equal_nan=*/true))
            << name;
      }
      EXPECT_EQ(result.runs[i].flags, other.runs[i].flags);
      EXPECT_EQ(result.runs[i].cost, other.runs[i].cost);
    }
  }
}

class Recording : public RunObserver {
 public:
  void begin(int64_t done, int64_t total) override { found = done, all = total; }
  void chunk(const ChunkResult& result) override {
    seen += static_cast<int64_t>(result.indices.size());
  }
  bool stop() override { return seen >= stop_after; }

  int64_t found = -1, all = -1, seen = 0, stop_after = kProblems + 1;
};

TEST(RunProblems, EstimatesEveryProblemWhateverTheThreads) {
  const auto target = problems();
  const Estimator estimator(small({"ais", "iwae:50"}));
  Recording heard;
  const RunResults one = run_problems(ProblemSource::of(target), estimator, {1, {}, &heard});
  const RunResults three = run_problems(ProblemSource::of(target), estimator, {3});
  expect_same(one, three);
  ASSERT_EQ(one.chunks.size(), 4u);
  EXPECT_EQ(one.chunks.at(3).indices, (std::vector<int64_t>{9, 10}));
  EXPECT_EQ(heard.seen, kProblems);
  EXPECT_EQ(heard.all, kProblems);
  const MethodTable table = tables(one).front();
  const at::Tensor error = table.matrix("log_normalizer")[0] - *target->true_log_normalizer();
  EXPECT_LT(error.abs().max().item<double>(), 0.5);
}

TEST(RunProblems, AnInterruptedChunkIsLeftOutAndTheOthersAreKept) {
  const auto target = problems();
  const Estimator estimator(small());
  ProblemSource source = ProblemSource::of(target);
  const RunResults whole = run_problems(source, estimator);
  const auto make = source.make;
  Error thrown(ErrorKind::kInterrupted, "a signal");
  source.make = [&](int64_t begin, int64_t end) {
    if (begin == 6) throw thrown;
    return make(begin, end);
  };
  Recording heard;
  RunResults stopped = run_problems(source, estimator, {1, {}, &heard});
  ASSERT_EQ(stopped.chunks.size(), 2u);  // those from 0 and 3; the one from 9 was not begun
  for (int64_t c = 2; c < 4; ++c) stopped.chunks[c] = whole.chunks.at(c);
  expect_same(stopped, whole);
  // Who does not watch takes what comes for the whole.
  expect_error(ErrorKind::kInterrupted, {"a signal"}, [&] { run_problems(source, estimator); });
  thrown = Error(ErrorKind::kData, "a fault");
  expect_error(ErrorKind::kData, {"a fault"}, [&] { run_problems(source, estimator); });
}

TEST(RunProblems, ShardsAreChunksOfTheWhole) {
  const Estimator estimator(small());
  const ProblemSource source = ProblemSource::of(problems());
  const RunResults whole = run_problems(source, estimator);
  RunResults parts;
  for (const int64_t shard : {1, 2, 3}) {
    const RunResults part = run_problems(source, estimator, {1, {shard, 3}});
    const Progressed there = progressed(part, {kProblems, 3}, {shard, 3});
    EXPECT_EQ(there.done, there.total);
    parts.chunks.insert(part.chunks.begin(), part.chunks.end());
  }
  expect_same(whole, parts);
}

TEST(RunProblems, GoesOnWithWhatTheStoreHolds) {
  EstimateOptions learned = small();  // a path that a pilot learned: constants on disk
  learned.path = "f:jensen-shannon";
  learned.schedule = "constant-length:0.5";
  EstimateOptions per_problem = learned;
  per_problem.plan_per_problem = true;
  for (const EstimateOptions& options :
       {small(), small({"mcd:3,iterations=4,hidden=4"}), learned, per_problem}) {
    const TemporaryFolder folder;
    const Estimator estimator(options);
    const ProblemSource source = ProblemSource::of(problems());
    const RunResults whole = run_problems(source, estimator, {2});
    const json record = {{"run", "test"}};
    {
      const ResultStore store(folder.path() / "r", record, {});
      Recording heard;
      heard.stop_after = 6;
      const RunResults part = run_problems(source, estimator, {1, {}, &heard, &store});
      EXPECT_EQ(part.chunks.size(), 2u);
    }
    {
      const ResultStore store(folder.path() / "r", record, {.resume = true});
      Recording heard;
      expect_same(whole, run_problems(source, estimator, {1, {}, &heard, &store}));
      EXPECT_EQ(heard.found, 6);
      EXPECT_EQ(heard.seen, kProblems);
    }
    // A third time nothing is left to do, not even to learn.
    const ResultStore again(folder.path() / "r", record, {.resume = true});
    const RunResults rest = run_problems(source, estimator, {1, {}, nullptr, &again});
    expect_same(whole, rest);
    if (options.path != learned.path) continue;
    const Plan& plan = options.plan_per_problem ? *rest.chunks.at(0).plan : *rest.state.plan;
    ASSERT_NE(plan.path, nullptr);
    EXPECT_EQ(plan.path->constants.size(1), options.plan_per_problem ? 3 : 1);
    const at::Tensor error =
        tables(rest).front().matrix("log_normalizer")[0] - *problems()->true_log_normalizer();
    EXPECT_LT(error.abs().max().item<double>(), 1.5);
  }
}

TEST(RunProblems, LeavesLibTorchItsThreads) {
  const int before = at::get_num_threads();
  at::set_num_threads(2);
  run_problems(ProblemSource::of(problems()), Estimator(small()), {2});
  EXPECT_EQ(at::get_num_threads(), 2);
  at::set_num_threads(before);
}

TEST(ResultStore, RefusesAnotherRunAndAnotherBuild) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "r";
  const json record = {{"settings", {{"chains", 8}}}};
  { const ResultStore made(path, record, {}); }
  expect_error(ErrorKind::kArgument, {"already holds results", "`resume`", "`overwrite`"},
               [&] { ResultStore(path, record, {}); });
  expect_error(ErrorKind::kArgument, {"settings chains is 9 here and 8 there"}, [&] {
    ResultStore(path, {{"settings", {{"chains", 9}}}}, {.resume = true});
  });
  EXPECT_NO_THROW(ResultStore(path, record, {.resume = true}));

  for (const char* key : {"sources", "libtorch", "evaluator", "compiler"}) {
    json run = read_json((path / "run.json").string());
    const json kept = run;
    ASSERT_TRUE(run["computed_by"].contains(key));
    run["computed_by"][key] = "another";
    write_file_atomic(path / "run.json", to_text(run));
    expect_error(ErrorKind::kArgument,
                 {"another build", key, "\"another\" there", "`accept_other_version`"},
                 [&] { ResultStore(path, record, {.resume = true}); });
    const ResultStore accepted(path, record, {.resume = true, .accept_other_version = true});
    EXPECT_EQ(accepted.run(), run);  // and stays what it was
    write_file_atomic(path / "run.json", to_text(kept));
  }
}

TEST(ResultStore, WantsBoundsOfAControl) {
  const TemporaryFolder folder;
  const ResultStore store(folder.path() / "r", {{"run", 1}}, {});
  run_problems(ProblemSource::of(problems()), Estimator(small()), {1, {}, nullptr, &store});
  RunShape shape{{kProblems, 3, /*control=*/3}, {"ais"}, small().repeats};
  ChunkResult control = store.read_chunks(shape).at(1);
  control.chunk = 4;
  control.runs.resize(1);
  control.runs[0].method = kControlMethod;
  store.write_chunk(control);
  expect_error(ErrorKind::kData, {"000004.json", "bidirectional"},
               [&] { store.read_chunks(shape); });
  control.runs[0].upper = control.runs[0].upper_std_error = control.runs[0].std_error;
  store.write_chunk(control);
  EXPECT_EQ(store.read_chunks(shape).size(), 5u);
}

/// Sealed with its digest and fingerprint, and wrong all the same.
TEST(ResultStore, ChecksWhatASealedChunkSays) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "r";
  const ResultStore store(path, {{"run", 1}}, {});
  run_problems(ProblemSource::of(problems()), Estimator(small({"ais", "iwae:20"})),
               {1, {}, nullptr, &store});
  RunShape shape{{kProblems, 3}, {"ais", "iwae:20"}, small().repeats};
  ChunkResult good = store.read_chunks(shape).at(1);
  const auto refuse = [&](const std::string& word, const std::function<void(ChunkResult&)>& spoil) {
    ChunkResult bad = good;
    spoil(bad);
    store.write_chunk(bad);
    expect_error(ErrorKind::kData, {"000001.json", word}, [&] { store.read_chunks(shape); });
    store.write_chunk(good);
  };
  refuse("repeats of methods", [](auto& c) { c.runs[1].repeat = -1; });
  refuse("repeats of methods", [](auto& c) { c.runs.clear(); });
  refuse("repeats of", [](auto& c) { c.runs.pop_back(); });
  refuse("repeats of ais, iwae:20", [](auto& c) { c.runs[0].method = "elbo"; });
  refuse("repeats of ais, iwae:20", [](auto& c) {
    c.runs.insert(c.runs.end(), {c.runs[0], c.runs[1]});  // one more than the run was asked for
    for (auto run = c.runs.end() - 2; run != c.runs.end(); ++run) run->repeat = small().repeats;
  });
  refuse("below 0", [](auto& c) { c.indices[0] = -1; });
  refuse("as long as", [](auto& c) { c.runs[0].ess.pop_back(); });
  refuse("no chunk", [](auto& c) { c.indices.clear(); });
  refuse("flag", [](auto& c) { c.runs[0].flags[0] = 128; });
  refuse("below 0", [](auto& c) { c.runs[0].cost.densities = -1; });
  refuse("below 0", [](auto& c) { c.tuning.gradients = -1; });
  refuse("rise from 0 to 1", [](auto& c) {
    c.plan = Plan{at::full({3, 1}, 0.5, at::kDouble), at::ones({2, 1}, at::kDouble), 4};
  });
  refuse("step size", [](auto& c) {
    c.plan =
        Plan{at::linspace(0, 1, 3, at::kDouble).unsqueeze(1), at::zeros({2, 1}, at::kDouble), 4};
  });
  ChunkResult drawn = good;
  drawn.plan = Plan::without_moves(1, 4);
  store.write_chunk(drawn);
  EXPECT_FALSE(store.read_chunks(shape).at(drawn.chunk).plan->has_moves());
  const auto refuse_seen = [&](const std::string& word, at::Tensor Plan::*seen, int64_t rows) {
    refuse(word, [&](auto& c) {
      c.plan =
          Plan{at::linspace(0, 1, 3, at::kDouble).unsqueeze(1), at::ones({2, 1}, at::kDouble), 4};
      (*c.plan).*seen = at::ones({rows, 1}, at::kDouble);
    });
  };
  refuse_seen("'divergence'", &Plan::divergence, 2);
  refuse_seen("'ess'", &Plan::ess, 4);
  refuse_seen("'accept_prob'", &Plan::accept_prob, 3);
  const auto refuse_path = [&](const std::function<void(at::Tensor&)>& spoil,
                               const std::string& word = "not those of a descent",
                               const std::string& name = "f:jensen-shannon,knots=6") {
    refuse(word, [&](auto& c) {
      const at::Tensor ones = at::ones({3}, at::kDouble);
      const auto path = testing::equal_steps(name, ones, 4);
      spoil(path->constants);
      c.plan = Plan{at::linspace(0, 1, 3, at::kDouble).unsqueeze(1).repeat({1, 3}),
                    at::ones({2, 3}, at::kDouble), 4};
      c.plan->path = path;
    });
  };
  refuse_path([](auto& of) { of[4].zero_(); });             // the first step
  refuse_path([](auto& of) { of[7].zero_(); });             // one before others
  refuse_path([](auto& of) { of.slice(0, 0, 2).neg_(); });  // the range
  refuse_path([](auto& of) { of[9].div_(0); });             // a mean
  refuse_path([](auto& of) { of = of.slice(0, 1); });
  refuse_path([](auto&) {}, "not those of a descent", "f:jensen-shannon,knots=3");
  refuse_path([](auto& of) { of = of.slice(1, 1); }, "betas and path");
  EXPECT_EQ(store.read_chunks(shape).size(), 4u);
  shape.indices = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  EXPECT_EQ(store.read_chunks(shape).size(), 4u);
  shape.indices[4] = 8;
  expect_error(ErrorKind::kData, {"000001.json", "other problems"},
               [&] { store.read_chunks(shape); });
  shape.indices.clear();
  for (const Chunks& cut : {Chunks{kProblems, 4}, Chunks{5, 3}}) {
    shape.chunks = cut;
    expect_error(ErrorKind::kData, {"is not chunk"}, [&] { store.read_chunks(shape); });
  }
}

TEST(ResultStore, IsWrittenByOneRun) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "r";
  const json record = {{"run", 1}};
  const StoreOptions alone{.resume = true}, together{.resume = true, .shared = true};
  for (const StoreOptions& mine : {alone, together}) {
    const ResultStore store(path, record, mine);
    for (const StoreOptions& other : {alone, StoreOptions{.overwrite = true}, together}) {
      if (mine.shared && other.shared)
        EXPECT_NO_THROW(ResultStore(path, record, other));
      else
        expect_error(ErrorKind::kArgument, {path.string(), "another process"},
                     [&] { ResultStore(path, record, other); });
    }
  }
  const ResultStore store(path, record, together), other(path, record, together);
  write_file_atomic(path / "chunks/.000001.json.killed.tmp", "");
  {
    const auto claim = store.claim_reports();
    EXPECT_TRUE(claim);
    EXPECT_FALSE(other.claim_reports());
    EXPECT_TRUE(std::filesystem::is_empty(path / "chunks"));  // leftovers have gone
  }
  EXPECT_TRUE(other.claim_reports());
  write_file_atomic(path / "summary.json", "");
  EXPECT_FALSE(other.claim_reports());
}

TEST(RunProblems, KeepsTheSumsOfExpectationsToTheBit) {
  const TemporaryFolder folder;
  EstimateOptions options = small();
  options.expectations = {"moments", "radius2"};
  options.resampling = "systematic:0.9";
  const Estimator estimator(options);
  const ProblemSource source = ProblemSource::of(problems());
  const ResultStore store(folder.path() / "run", json{{"seed", 4}}, {});
  RunOptions run{.store = &store};
  const RunResults first = run_problems(source, estimator, run);
  const RunResults again = run_problems(source, estimator, run);  // as read
  for (const auto& [number, chunk] : first.chunks) {
    const auto& there = again.chunks.at(number).runs.front();
    for (const auto& [name, sums] : chunk.runs.front().expectations) {
      const ExpectationSums& read = there.expectations.at(name);
      EXPECT_TRUE(at::equal(sums.log_total, read.log_total));
      EXPECT_TRUE(at::equal(sums.num_particles, read.num_particles));
      EXPECT_TRUE(at::equal(sums.num_resamplings, read.num_resamplings));
      EXPECT_TRUE(at::equal(sums.square, read.square));
      EXPECT_TRUE(at::equal(sums.mean, read.mean));
      EXPECT_TRUE(at::equal(sums.variance, read.variance));
      for (size_t n = 0; n < 4; ++n) EXPECT_TRUE(at::equal(sums.powers[n], read.powers[n]));
    }
    EXPECT_EQ(chunk.runs.front().expectations.size(), 2U);
    EXPECT_EQ(chunk.runs.front().expectations.at("moments").mean.size(1), 2);
    EXPECT_FALSE(chunk.runs.front().particles.has_value());
  }
  // The estimates do not depend on whether anybody asks for more than them.
  expect_same(first, run_problems(source, Estimator([&] {
                                    EstimateOptions plain = options;
                                    plain.expectations.clear();
                                    return plain;
                                  }())));
}

/// Parts of a base, chains of several random streams: the weights are those of the particles.
TEST(RunProblems, KeepsParticlesOfPartsAndStreams) {
  const FunctionTarget two_modes(
      {.num_problems = 2, .dim = 2},
      FunctionTarget::IndexedLogDensity([](const at::Tensor& z, const at::Tensor& /*index*/) {
        return at::logaddexp(-0.5 * (z - 5).square().sum(-1), -0.5 * (z + 5).square().sum(-1));
      }));
  EstimateOptions options{.base = "modes", .chains = 10'000, .keep_particles = true, .steps = 2};
  const RunResults results =
      run_problems(ProblemSource::of(two_modes.shared()), Estimator(options, evidence_driver()));
  const ChunkRun& run = results.chunks.at(0).runs.front();
  ASSERT_TRUE(run.particles.has_value());
  EXPECT_EQ(run.particles->z.sizes(), (std::vector<int64_t>{2, 2 * 10'000, 2}));
  ASSERT_EQ(run.particles->log_w.sizes(), (std::vector<int64_t>{2, 2 * 10'000}));
  const at::Tensor log_z = run.particles->log_w.logsumexp(1) - std::log(20'000.0);
  for (int64_t p = 0; p < 2; ++p)
    EXPECT_NEAR(log_z[p].item<double>(), run.log_normalizer[static_cast<size_t>(p)], 1e-9);
  const ExpectationSums sums = expectation_sums(run.particles->z, *run.particles);
  EXPECT_NEAR(sums.mean[0][0].item<double>(), 0, 0.2);
}

TEST(Estimator, RestoresWhatItHasTuned) {
  const auto target = problems();
  for (const char* base : {"auto", "laplace", "pilot:32,steps=8,rounds=1"}) {
    EstimateOptions options = small();
    options.base = base;
    const Estimator estimator(options);
    const auto pilots = target->slice(0, 4);
    const TunedEstimator tuned = estimator.tune(*pilots, kProblems);
    EXPECT_GT(tuned.state().tuning.densities, 0);
    const TunedEstimator restored = estimator.restore(tuned.state(), *pilots);
    const auto chunk = target->slice(3, 6);
    RunResults a, b;
    a.chunks[1] = tuned.estimate(1, *chunk);
    a.chunks[2] = tuned.estimate(2, *chunk);
    b.chunks[2] = restored.estimate(2, *chunk);  // in another order
    b.chunks[1] = restored.estimate(1, *chunk);
    expect_same(a, b);
    EXPECT_NE(a.chunks[1].runs[0].log_normalizer, a.chunks[2].runs[0].log_normalizer);
  }
}

}  // namespace
}  // namespace crais
