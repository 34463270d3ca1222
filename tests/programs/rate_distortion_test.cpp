// The curve of an evaluation: its units, its models, its files.
#include "programs/eval_loglik/rate_distortion.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/rng.h"
#include "estimates/rate_distortion.h"
#include "evaluation/result_json.h"
#include "evaluation/result_store.h"
#include "evaluation/run_problems.h"
#include "io/csv.h"
#include "io/json.h"
#include "models/checkpoint.h"
#include "models/script_model.h"
#include "programs/eval_loglik/model.h"
#include "programs/eval_loglik/settings.h"
#include "support/expect_error.h"
#include "support/linear_curve.h"
#include "support/statistics.h"
#include "support/temporary_folder.h"
#include "targets/decoder_posterior.h"

namespace crais {
namespace {

using nlohmann::json;
using testing::LinearCurve;
using testing::max_abs_diff;
using testing::TemporaryFolder;

const std::string kDecoderOnly = std::string(CRAIS_SOURCE) + "/tests/models/data/decoder_only.pt";

EstimateOptions options() {
  EstimateOptions o;
  o.methods = {"rate-distortion"};
  o.base = "prior";
  o.schedule = "constant-length:0.1";
  o.chains = 32;
  o.chunk = 64;
  o.seed = 5;
  return o;
}

/// Every point of a curve of squared errors, means over images, within five of its own errors. The
/// curve of a linear decoder under noise of standard deviation `end` decides the truth.
void expect_curve(const CurveReport& report, const LinearCurve& truth, const at::Tensor& images,
                  bool is_mse) {
  const auto pixels = static_cast<double>(images.size(1));
  const double constant = 0.5 * pixels * std::log(2 * M_PI * truth.noise * truth.noise);
  const double unit = 2 * truth.noise * truth.noise;  // nats to squared errors
  for (const CurvePoint& p : report.points()) {
    SCOPED_TRACE("beta " + std::to_string(p.beta));
    const LinearCurve::Point exact = truth.at(is_mse ? p.beta * unit : p.beta, images);
    const double distortion = exact.distortion.mean().item<double>();
    const double wanted = is_mse ? unit * (distortion - constant) : distortion;
    EXPECT_NEAR(p.distortion.mean, wanted, 5 * p.distortion.monte_carlo_std_error);
    EXPECT_NEAR(p.rate.mean - p.rate_bias, exact.rate.mean().item<double>(),
                5 * p.rate.monte_carlo_std_error + 1e-9);
    EXPECT_NEAR(p.rate.mean + p.beta * p.distortion.mean, -p.log_normalizer.mean, 1e-6);
  }
  EXPECT_LT(report.points().back().rate.monte_carlo_std_error, 0.04);
}

class CurveOfLinearDecoder : public ::testing::Test {
 protected:
  CurveOfLinearDecoder() {
    at::Generator rng = make_generator(1);
    truth_ = LinearCurve::drawn(5, 3, 0.4, rng);
    vae_ = truth_.vae();
    images_ = simulate(vae_, 200, rng).images;
  }

  RunResults run(const EstimateOptions& o, const RunOptions& how = {}) const {
    return run_problems(ProblemSource::of(std::make_shared<DecoderPosterior>(vae_, images_)),
                        Estimator(o, make_rate_distortion), how);
  }

  Vae vae_;
  LinearCurve truth_;
  at::Tensor images_;
};

TEST_F(CurveOfLinearDecoder, IsTheClosedFormInBothUnits) {
  const RunResults results = run(options());
  expect_curve(CurveReport(results, {true, 0.4, 5, false}), truth_, images_, true);
  expect_curve(CurveReport(results, {false, 1.0, 5, false}), truth_, images_, false);
}

TEST_F(CurveOfLinearDecoder, ComesBackFromFilesAndInAnyOrderOfThreads) {
  const TemporaryFolder folder;
  const json settings = {{"settings", {{"seed", 5}}}};
  const ResultStore store(folder.path() / "run", settings, {});
  RunOptions how;
  how.store = &store;
  how.threads = 2;
  const RunResults computed = run(options(), how);
  const RunResults read{store.read_chunks({{200, 64}, {"rate-distortion"}, 1, {}}),
                        *store.read_state()};
  const CurveUnits units{true, 0.4, 5, true};
  EXPECT_EQ(CurveReport(computed, units).csv(), CurveReport(read, units).csv());
  EXPECT_EQ(CurveReport(run(options()), units).csv(), CurveReport(read, units).csv());
  EXPECT_EQ(CurveReport(run(options()), units).summary(), CurveReport(read, units).summary());
}

TEST_F(CurveOfLinearDecoder, RefusesCurvesThatCannotBe) {
  EstimateOptions o = options();
  o.chunk = 200;
  const RunResults good = run(o);
  using Columns = std::map<std::string, at::Tensor>;
  const auto spoiled = [&](const std::string& words, const std::function<void(Columns&)>& spoil) {
    RunResults bad = good;
    Columns& own = bad.chunks.at(0).runs[0].own;
    for (auto& [name, column] : own) column = column.clone();
    spoil(own);
    expect_error(ErrorKind::kData, {"chunk 0", words}, [&] {
      CurveReport(bad, {true, 0.4, 5, false});
    });
  };
  spoiled("rise from 0 to 1", [](Columns& own) { own["beta"][1] = 2.0; });
  spoiled("rise from 0 to 1", [](Columns& own) { own["beta"] = at::zeros({1}, at::kDouble); });
  spoiled("differ in length", [](Columns& own) { own["rate"] = own["rate"].slice(0, 1); });
  spoiled("below 0", [](Columns& own) { own["ess_squares"][0] = -1; });
  spoiled("no distortion", [](Columns& own) { own.erase("distortion"); });
  spoiled("gap_squares", [](Columns& own) { own["gap"] = own["rate"]; });
  spoiled("no beta", [](Columns& own) { own.clear(); });
}

TEST_F(CurveOfLinearDecoder, RepeatsGiveTheErrorOfTheirMeans) {
  EstimateOptions o = options();
  o.repeats = 3;
  const RunResults results = run(o);
  const CurveReport all(results, {false, 1.0, 5, false});
  std::vector<double> means(3, 0.0);
  for (const auto& [number, chunk] : results.chunks)
    for (const ChunkRun& run : chunk.runs)
      means[static_cast<size_t>(run.repeat)] +=
          run.own.at("rate")[-1].item<double>() * static_cast<double>(chunk.indices.size()) / 200;
  EXPECT_NEAR(all.points().back().rate.mean, (means[0] + means[1] + means[2]) / 3, 1e-9);
  EXPECT_NEAR(all.points().back().rate.monte_carlo_std_error,
              testing::std_error(at::tensor(means, at::kDouble)), 1e-9);
}

TEST(Curve, OfADecoderWithoutLikelihood) {
  std::string notice;
  const auto plain = open_model(kDecoderOnly, {}, at::kCPU, at::kFloat, notice);
  EXPECT_EQ(plain.description().likelihood, "squared-error");
  const auto model = plain.with_noise(0.3);
  EXPECT_EQ(model.description().likelihood, "gaussian:0.3");
  constexpr int64_t kImages = 128;
  std::vector<at::Tensor> images, latents;
  for (int64_t i = 0; i < kImages; ++i) {
    const LatentModel::Draws drawn = model.draw(7, i);
    images.push_back(drawn.data);
    latents.push_back(drawn.latents);
  }
  const at::Tensor x = at::cat(images);

  // What the file computes is linear: its columns are differences from its value at 0.
  const auto decoder = read_script_model(kDecoderOnly, at::kCPU, at::kFloat);
  const at::Tensor bias = decoder->output(at::zeros({1, 3}), {})->value.to(at::kDouble)[0];
  const LinearCurve truth{
      (decoder->output(at::eye(3), {})->value.to(at::kDouble) - bias).t().contiguous(), bias, 0.3};
  const at::Tensor left =
      x.to(at::kDouble) - at::mm(at::cat(latents).to(at::kDouble), truth.weight.t()) - truth.bias;
  EXPECT_NEAR(left.std(/*unbiased=*/true).item<double>(), 0.3, 0.03);  // 5 errors of 768 values

  EstimateOptions o = options();
  o.methods = {"rate-distortion:reverse=1"};
  const auto target = model.posterior(x, at::cat(latents), {});
  const RunResults results =
      run_problems(ProblemSource::of(target), Estimator(o, make_rate_distortion));
  const CurveReport report(results, {true, 0.3, 6, false});
  expect_curve(report, truth, x.to(at::kDouble), true);
  // The last line has log p(x) under that noise between its bounds.
  const std::vector<MethodTable> found = tables(results);
  const at::Tensor exact = truth.log_likelihood(x.to(at::kDouble));
  const at::Tensor lower = found[0].matrix("log_normalizer")[0],
                   upper = found[0].matrix("upper")[0];
  EXPECT_GT((exact - lower).mean().item<double>(), -5 * testing::std_error(exact - lower));
  EXPECT_GT((upper - exact).mean().item<double>(), -5 * testing::std_error(upper - exact));
  EXPECT_NEAR(report.points().back().gap->mean, (upper - lower).mean().item<double>(), 1e-9);
}

TEST(Curve, OfBinaryPixelsIsAboutTheirMeans) {
  Checkpoint checkpoint;
  checkpoint.vae.architecture.image_rows = 2;
  checkpoint.vae.architecture.image_cols = 3;
  checkpoint.vae.architecture.latent = 4;
  checkpoint.vae.architecture.hidden = {5};
  checkpoint.vae = make_vae(checkpoint.vae.architecture, 1);
  const auto model = checkpoint_model(checkpoint, at::kCPU, at::kFloat).with_noise(0.2);
  EXPECT_EQ(model.description().likelihood, "gaussian:0.2");
  EXPECT_FALSE(model.description().low);  // noise leaves [0, 1]
  const LatentModel::Draws drawn = model.draw(3, 0), again = model.draw(3, 0);
  EXPECT_TRUE(at::equal(drawn.data, again.data));
  const auto target = model.posterior(drawn.data, drawn.latents, {});
  at::Generator rng = make_generator(1);
  const at::Tensor z = at::randn({1, 9, 4}, rng, at::kFloat);
  const at::Tensor mean = at::sigmoid(checkpoint.vae.decoder.forward(z));
  const at::Tensor wanted = -0.5 * z.square().sum(-1) - 2 * std::log(2 * M_PI) -
                            0.5 * ((drawn.data.unsqueeze(1) - mean) / 0.2).square().sum(-1) -
                            3 * std::log(2 * M_PI * 0.04);
  EXPECT_LT(max_abs_diff(target->log_density(z), wanted), 1e-3);
  EXPECT_TRUE(at::equal((*target->exact_sample(2, rng))[0][1], drawn.latents[0]));
}

TEST(Curve, ReadsItsFlag) {
  EXPECT_FALSE(parse_distortion("nll").end);
  EXPECT_EQ(*parse_distortion("nll:2").end, 2);
  EXPECT_TRUE(parse_distortion("mse").is_mse);
  EXPECT_EQ(*parse_distortion("mse:0.1").end, 0.1);
  EXPECT_EQ(*parse_distortion("mse:sd=0.1").end, 0.1);
  for (const char* bad : {"psnr", "mse:0", "mse:-1", "nll:x", "nll:sd=1", "mse:0.1,more=2"})
    expect_error(ErrorKind::kArgument, {}, [&] { parse_distortion(bad); });
  const CurveUnits units{true, 0.25, 784, true};
  const CurveUnits back = units_from(to_json(units), 784, "here");
  EXPECT_TRUE(back.is_mse && back.end == 0.25 && back.is_unit_range);
  for (json bad : {json{{"distortion", "psnr"}}, json{{"distortion", "mse"}, {"noise_sd", -1}},
                   json{{"distortion", "nll"}, {"noise_sd", 1}}}) {
    bad["values_in_unit_range"] = true;
    expect_error(ErrorKind::kData, {"here"}, [&] { units_from(bad, 784, "here"); });
  }
}

TEST(CurveSettings, HaveAScheduleAndChainsOfTheirOwnUnlessAskedOtherwise) {
  const auto settings = [](std::vector<std::string> flags) {
    flags.insert(flags.begin(), {"curve", "model"});
    EvalSettings found = read_curve(CommandLine(curve_synopsis(), flags));
    EXPECT_EQ(found.resolved.at("chains"), found.estimator.chains);
    EXPECT_EQ(found.checkpoint, "model");
    EXPECT_EQ(found.estimator.base, "prior");
    return found;
  };
  const auto estimator = [&](const std::vector<std::string>& flags) {
    return settings(flags).estimator;
  };
  EXPECT_EQ(estimator({}).chains, 16);
  EXPECT_EQ(estimator({}).schedule, "constant-length:0.02");
  EXPECT_NE(estimator({}).chains, EstimateOptions().chains);
  EXPECT_EQ(estimator({"--chains", "3"}).chains, 3);
  EXPECT_EQ(estimator({"--schedule", "linear"}).schedule, "linear");
  EXPECT_EQ(estimator({"--preset", "paper"}).schedule, "constant-rate:30");
  EXPECT_EQ(estimator({"--preset", "paper", "--chains", "3"}).chains, 3);
  EXPECT_EQ(estimator({}).methods.front(), "rate-distortion");
  EXPECT_EQ(estimator({"--simulate", "5"}).methods.front(), "rate-distortion:reverse=1");
  EXPECT_FALSE(settings({}).distortion->is_mse);
  const EvalSettings mse = settings({"--distortion", "mse:0.1"});
  EXPECT_TRUE(mse.distortion->is_mse && mse.images.is_for_means);
  for (const char* decided : {"--base", "--method", "--budget", "--target-error"})
    expect_error(ErrorKind::kArgument, {decided}, [&] { settings({decided, "1"}); });
}

}  // namespace
}  // namespace crais
