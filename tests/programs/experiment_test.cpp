#include "programs/reproduce/experiment.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <iostream>
#include <sstream>

#include "core/rng.h"
#include "io/json.h"
#include "programs/reproduce/measures.h"
#include "programs/reproduce/subject.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"
#include "util/files.h"

namespace crais {
namespace {

using nlohmann::json;

class Experiments : public ::testing::Test {
 protected:
  Experiments() {
    options_.cells = folder_.path() / "cells";
    options_.out = folder_.path();
    options_.quiet = true;
    options_.threads = 1;
  }

  VariantResult result(const std::string& target, int64_t problems, const std::string& flags,
                       uint64_t seed = 0) const {
    const Subject subject = density_subject(options_, target, problems);
    return result_of(run_tasks(options_, "", {subject.task(flags, seed, false)}));
  }

  int64_t num_cells() const {
    int64_t count = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(options_.cells))
      ++count;
    return count;
  }

  /// The text of STEM.csv of an experiment with that content.
  std::string csv(const json& content, const std::string& stem) const {
    const Experiment experiment(folder_.file("tiny.json", content.dump()));
    std::ostringstream said;
    std::streambuf* const before = std::cout.rdbuf(said.rdbuf());
    try {
      experiment.run(options_);
    } catch (...) {
      std::cout.rdbuf(before);
      throw;
    }
    std::cout.rdbuf(before);
    return read_file(folder_.path() / "tiny" / (stem + ".csv"));
  }

  testing::TemporaryFolder folder_;
  ExperimentOptions options_;
};

json tiny_experiment() {
  return json::parse(R"({
    "summary": "a tiny one", "about": "{seeds} seeds.",
    "set": {"seeds": {"full": 9, "quick": 3}, "problems": "{seeds}",
            "kl": 9.5, "nested": "{seeds}", "paper": {"linear": [1.5, 0.25]}},
    "lists": {
      "targets": [{"target": "u10"}, {"target": "u11", "if": "full"}],
      "ways": {"way": ["linear", "none", "best"],
               "flags": ["--schedule linear --steps {steps} --chains 4 --step-size 0.5",
                         "--schedule constant-rate:1e-6 --max-steps 5 --chains 4 --per-problem",
                         "--steps {setting} --chains 4 --step-size 0.5"],
               "settings": [null, null, ["2", "6"]], "choosing": [null, null, 1]}
    },
    "tables": [{"stem": "errors", "title": "Errors", "axes": ["targets", "ways"],
      "set": {"steps": 6}, "plans": "betas",
      "columns": ["target = {target}", "way = {way}", "M = transitions:0 or reason",
                  "cost = estimating / 4 - 1:0", "kl = {=kl / 4}|{nested}",
                  "paper = paper/{way}/0 +- paper/{way}/1:1", "chosen = {chosen}"]}]
  })");
}

TEST_F(Experiments, MakeTablesFromData) {
  const std::string errors = csv(tiny_experiment(), "errors");
  EXPECT_EQ(errors.substr(0, errors.rfind("u10,best")),
            "target,way,M,cost,kl,paper,chosen\n"
            "u10,linear,6,6,2.38|3,1.5 +- 0.2,-\n"
            "u10,none,the schedule has reached beta = 3.83782e-06 after 5 steps,-,2.38|3,-,-\n")
      << errors;
  EXPECT_NE(errors.find("u10,best,"), std::string::npos);
  EXPECT_EQ(num_cells(), 3);  // linear is the default
  const std::string plans = read_file(folder_.path() / "tiny" / "plans.csv");
  EXPECT_EQ(plans.rfind("target,way,kl,chosen,0.00,0.02,", 0), 0U) << plans;
  EXPECT_NE(plans.find("u10,linear,2.38|3,-,0,0.0200000,"), std::string::npos) << plans;
  const std::string page = read_file(folder_.path() / "tiny/tables.md");
  EXPECT_EQ(page.rfind("# a tiny one\n\n3 seeds.\n\n## Errors\n\n| target | way |", 0), 0U) << page;
  EXPECT_NE(page.find("| u10 | linear | 6 | 6 | 2.38\\|3 | 1.5 +- 0.2 | - |\n"), std::string::npos);
  EXPECT_TRUE(page.ends_with("2 rows in [plans.csv](plans.csv)\n")) << page;
}

TEST_F(Experiments, ComputeNothingTwice) {
  const std::string first = csv(tiny_experiment(), "errors");
  EXPECT_EQ(csv(tiny_experiment(), "errors"), first);
  EXPECT_EQ(num_cells(), 3);
  options_.seeds = 2;
  csv(tiny_experiment(), "errors");
  EXPECT_EQ(num_cells(), 6);
  options_.full = true;
  csv(tiny_experiment(), "errors");
  EXPECT_EQ(num_cells(), 9);
}

TEST_F(Experiments, RefuseWrongWordsWithTheirPlace) {
  const auto refused = [&](const std::string& pointer, const json& value,
                           const std::vector<std::string>& words) {
    json content = tiny_experiment();
    content[json::json_pointer(pointer)] = value;
    expect_error(ErrorKind::kData, words, [&] { csv(content, "errors"); });
  };
  refused("/tables/0/colums", 1, {"tiny.json: nothing uses 'colums'", "/tables/0/colums"});
  refused("/list", 1, {"nothing uses 'list'"});
  refused("/set/first_sed", 1, {"nothing uses 'first_sed'"});
  refused("/tables/0/columns/0", "a = {targt}", {"tables/0", "nothing is called 'targt'"});
  refused("/tables/0/columns/0", "a = bais:2", {"tables/0", "'bais' is neither"});
  refused("/tables/0/columns/0", "bias:2", {"tables/0", "header = value"});
  refused("/tables/0/axes/2", "goals", {"tables/0", "no list 'goals'"});
  refused("/tables/0/title", 1, {"tables/0", "type must be string"});
  refused("/set/nested", "{nested}", {"tables/0", "'{nested}' refers to itself"});
  refused("/set/kl", "kl", {"tables/0", "'kl' refers to itself"});
  json bare = tiny_experiment();
  bare["about"] = "way kl nested paper";  // used
  bare["tables"][0].erase("columns");
  expect_error(ErrorKind::kData, {"tiny.json: tables/0", "columns"}, [&] { csv(bare, "errors"); });
  EXPECT_FALSE(std::filesystem::exists(options_.cells));
}

TEST(EmbeddedExperiments, AreValid) {
  EXPECT_GE(embedded_experiments().size(), 14U);
  for (const auto& [name, text] : embedded_experiments()) {
    EXPECT_FALSE(Experiment(name).summary().empty());
    EXPECT_EQ(Experiment(name).folder(), name);
  }
  EXPECT_EQ(Experiment("table-highdim:512").folder(), "table-highdim-512");
  expect_error(ErrorKind::kArgument, {"table-highdim:64", "128, 512"},
               [] { Experiment("table-highdim:64"); });
}

TEST_F(Experiments, RefuseDamagedCells) {
  const std::string flags = "--steps 4 --chains 4 --step-size 0.5";
  result("u10", 2, flags);
  const std::filesystem::path path = std::filesystem::directory_iterator(options_.cells)->path();
  json cell = read_json(path);
  cell["result"]["ess"][0] = 0.125;
  write_file_atomic(path, cell.dump());
  expect_error(ErrorKind::kData, {path.filename().string(), "is damaged", "delete it"},
               [&] { result("u10", 2, flags); });
  cell.erase("digest");
  write_file_atomic(path, cell.dump());
  expect_error(ErrorKind::kData, {path.filename().string(), "'digest' is missing"},
               [&] { result("u10", 2, flags); });
  cell["computed_by"] = "another version";
  write_file_atomic(path, cell.dump());
  expect_error(ErrorKind::kArgument, {"another build"}, [&] { result("u10", 2, flags); });
}

TEST_F(Experiments, TellSubjectsApartByWhatTheyHold) {
  const std::string flags = "--steps 4 --chains 4 --step-size 0.1";
  const std::string path = folder_.file("cases.csv", "1,3.5,a\n2,0.5,b\n4,1.5,a\n3,-1,b\n");
  result("logistic-regression:" + path, 2, flags);
  folder_.file("cases.csv", "1,3.5,a\n2,0.5,b\n4,1.5,b\n3,-1,b\n");
  result("logistic-regression:" + path, 2, flags);
  EXPECT_EQ(num_cells(), 2);
  const std::string dtype = flags + " --dtype float";
  EXPECT_NE(result("laplace:40", 1, dtype + "32").column("log_normalizer").item<double>(),
            result("laplace:40", 1, dtype + "64").column("log_normalizer").item<double>());
  EXPECT_EQ(num_cells(), 4);
}

TEST_F(Experiments, LetMethodsLearnAndCountIt) {
  const VariantResult learned =
      result("laplace:2", 2, "--method mcd:3,iterations=2,hidden=4,batch=4 --chains 8");
  ASSERT_EQ(learned.failed, "");
  EXPECT_EQ(learned.mean("estimating"), 8 * 4);
  EXPECT_GT(learned.mean("tuning"), 2 * 4 * 4);
  EXPECT_GT(learned.mean("training_seconds"), 0);
}

TEST_F(Experiments, TellOfThePilotsDivergence) {
  const VariantResult found =
      result("normal:2,mean=1,sd=0.5", 2, "--steps 20 --chains 200 --per-problem");
  const std::vector<double> divergence = to_column(found.first("divergence"));
  ASSERT_EQ(divergence.size(), 21u);
  EXPECT_NEAR(divergence[0], 2 * (std::log(0.5) + 0.5 * 2 / 0.25 - 0.5), 1.5);
  EXPECT_NEAR(divergence[20], 0, 1e-12);
}

TEST_F(Experiments, IntegrateSmallVaes) {
  VaeArchitecture architecture;
  architecture.image_rows = architecture.image_cols = architecture.latent = 2;
  architecture.hidden = {};
  const auto linear = [&](double scale) {
    Vae vae = make_vae(architecture, 3);
    vae.decoder.layers[0].weight = scale * vae.decoder.layers[0].weight;
    vae.decoder.layers[0].bias = at::tensor({0.5f, -1.0f, 2.0f, 0.0f});
    return vae;
  };
  // Decoders that do not look at the latent: pixels are independent.
  const Subject blind = vae_subject(options_, linear(0), 8, 128);
  const at::Tensor logits = linear(0).decoder.layers[0].bias.expand({8, 4});
  at::Generator rng = make_generator(derive_seed(0, Purpose::kSimulate));
  const at::Tensor pixels = simulate(linear(0), 8, rng).images;
  const at::Tensor known = Likelihood{}.log_prob(pixels, logits).to(at::kDouble);
  EXPECT_LT((blind.truth - known).abs().max().item<double>(), 1e-6);
  // One that does: importance sampling from the prior finds the same.
  const Subject sighted = vae_subject(options_, linear(2), 8, 256);
  const VariantResult found = result_of(
      run_tasks(options_, "", {sighted.task("--method iwae:100000 --base prior", 0, false)}));
  const at::Tensor error = found.column("log_normalizer")[0] - sighted.truth;
  EXPECT_LT((error / found.column("std_error")[0]).abs().max().item<double>(), 5);
  EXPECT_LT(found.column("std_error").max().item<double>(), 0.02);
}

at::Tensor seeds(const std::vector<double>& values) { return at::tensor(values, at::kDouble); }

TEST(Choice, ChoosesOnTheFirstSeedsAndTheOracleOnTheOthers) {
  // The second is highest on the first two seeds, the third on the reporting ones and the nearest.
  const Choice choice = choose(
      {seeds({-3, -3, -1, -1}), seeds({-1, -1, -3, -3}), seeds({-2, -2, -0.5, 0.25}), seeds({NAN})},
      2, 0);
  EXPECT_EQ(choice.chosen, 1U);
  EXPECT_EQ(choice.oracle, 2U);
  EXPECT_EQ(choose({seeds({NAN}), seeds({NAN})}, 1, 0).chosen, Choice::kNone);
}

VariantResult given(const std::vector<double>& values, int64_t rows) {
  VariantResult result;
  const at::Tensor value = seeds(values).view({rows, -1});
  result.values = {{"log_normalizer", value.unbind()},
                   {"std_error", at::full_like(value, 0.5).unbind()},
                   {"flags", at::zeros_like(value).unbind()}};
  return result;
}

TEST(Measures, AreOfRepetitions) {
  const VariantResult result = given({1.0, 2.5, 4.0}, 1), first = given({2, 2, 2}, 1);
  Comparison with;
  with.truth = seeds({2}).squeeze();
  with.first = &first;
  Measures m = measures_of(result, with);
  EXPECT_NEAR(m["bias"], 0.5, 1e-15);
  EXPECT_NEAR(m["bias_se"], std::sqrt(2.25 / 3), 1e-14);
  EXPECT_NEAR(m["abs"], 3.5 / 3, 1e-15);
  EXPECT_NEAR(m["rmse"], std::sqrt(5.25 / 3), 1e-15);
  EXPECT_NEAR(m["above_first"], 3.5 / 3, 1e-15);
  EXPECT_NEAR(m["within_1"], 1.0 / 3, 1e-15);
  with.choosing = 2;
  EXPECT_EQ(measures_of(result, with)["bias"], 2);
}

TEST(Measures, OfImagesAreOfTheirMeans) {
  const VariantResult result = given({1, 3, 2, 6}, 2);  // two seeds, two images
  Comparison with;
  with.has_images = true;
  with.truth = seeds({1, 1});
  Measures m = measures_of(result, with);
  EXPECT_EQ(m["mean"], 3);
  EXPECT_EQ(m["bias"], 2);
  EXPECT_EQ(m["bias_se"], 1);
  EXPECT_EQ(m["image_most"], 5);
  EXPECT_EQ(m["silent"], 2);
}

}  // namespace
}  // namespace crais
