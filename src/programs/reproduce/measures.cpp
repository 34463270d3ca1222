#include "programs/reproduce/measures.h"

#include <algorithm>
#include <cmath>

#include "estimates/estimate.h"

namespace crais {
namespace {

double mean_of(const at::Tensor& values) { return values.to(at::kDouble).mean().item<double>(); }

/// Moments of estimates and errors over repetitions, and of images.
void add_errors(const VariantResult& r, const Comparison& with, Measures& m) {
  const auto repetitions = [&](const at::Tensor& of_all) {
    if (with.has_images) return of_all.mean(1);
    if (of_all.numel() <= with.choosing) return at::full({1}, NAN, at::kDouble);  // it has failed
    return of_all.flatten().slice(0, with.choosing);
  };
  const bool known = with.truth.defined();
  const auto errors_of = [&](const VariantResult& one) {
    return known ? one.value - with.truth : one.value;
  };
  const at::Tensor error = errors_of(r), errors = repetitions(error);
  const at::Tensor values = repetitions(r.value);
  const Spread spread(values), bias(errors);
  m["mean"] = spread.mean;
  m["mean_se"] = spread.std_error;
  m["sd"] = values.numel() > 1 ? values.std(0, true).item<double>() : NAN;
  m["data_se"] = Spread(r.value.mean(0)).std_error;
  m["chains_se"] =
      r.std_error.square().sum().sqrt().item<double>() / static_cast<double>(r.std_error.numel());
  m["truth"] = known ? mean_of(with.truth) : NAN;
  m["bias"] = bias.mean;
  m["se"] = bias.std_error;
  m["abs"] = known ? mean_of(errors.abs()) : NAN;
  m["rmse"] = known ? errors.square().mean().sqrt().item<double>() : NAN;
  m["image_rmse"] = error.square().mean().sqrt().item<double>();
  m["image_most"] = error.abs().max().item<double>();
  const at::Tensor flagged = r.flags != 0;
  m["flagged"] = mean_of(flagged);
  m["silent"] = r.failed.empty() ? ((error.abs() > 1) & ~flagged).sum().item<double>() : NAN;
  // Rows that are compared share their seeds, and so their starting particles.
  m["above_first"] = m["t"] = m["from_first"] = m["farthest"] = NAN;
  if (!with.first || with.first->value.numel() != r.value.numel()) return;
  const auto loss = [&](const at::Tensor& all) { return known ? all.abs() : -all; };
  const Spread above(loss(errors) - loss(repetitions(errors_of(*with.first))));
  m["above_first"] = above.mean;
  m["t"] = above.mean / above.std_error;
  const at::Tensor apart = r.value - with.first->value;
  m["from_first"] = mean_of(apart);
  m["farthest"] = apart.abs().max().item<double>();
}

/// How the divergence falls along the plans: from `start`, with the largest distance `bend` of
/// D / D_0 from the line 1 - i / M, and the least-squares slope `fall` of D a step.
void add_fall(const VariantResult& r, Measures& m) {
  std::vector<double> start, bend, fall;
  for (const Trace& trace : r.traces) {
    if (trace.divergence.empty()) continue;
    const at::Tensor d = at::tensor(trace.divergence, at::kDouble);
    const at::Tensor step = at::arange(d.size(0), at::kDouble), x = step - step.mean();
    start.push_back(trace.divergence[0]);
    bend.push_back((d / d[0] - 1 + step / step[-1]).abs().max().item<double>());
    fall.push_back(((x * d).sum() / x.square().sum()).item<double>());
  }
  const auto add = [&](const std::string& name, const std::vector<double>& values) {
    const Spread spread(values.empty() ? at::full({1}, NAN) : at::tensor(values, at::kDouble));
    m[name] = spread.mean;
    m[name + "_se"] = spread.std_error;
  };
  add("start", start);
  add("bend", bend);
  add("fall", fall);
}

/// Calibration against known values. Weights of lower bounds have mean Z, those of upper bounds 1 /
/// Z: `z` says by how many standard errors the mean of `ratio` misses 1. Wrong is off by more than
/// half a nat; caught is the share of these with a flag, alarms that of the others.
void add_calibration(const VariantResult& r, const Comparison& with, Measures& m) {
  for (const char* name : {"ratio", "ratio_se", "z", "within_1", "within_1.96", "spread",
                           "reported_bias", "wrong", "caught", "alarms"})
    m[name] = NAN;
  if (!with.truth.defined() || r.value.numel() < 2) return;
  const at::Tensor error = (r.value - with.truth).flatten(), std_error = r.std_error.flatten();
  const at::Tensor flagged = r.flags.flatten() != 0;
  const Spread ratio((with.upper ? -error : error).exp());
  m["ratio"] = ratio.mean;
  m["ratio_se"] = ratio.std_error;
  m["z"] = (ratio.mean - 1) / ratio.std_error;
  m["within_1"] = mean_of(error.abs() <= std_error);
  m["within_1.96"] = mean_of(error.abs() <= 1.96 * std_error);
  m["spread"] = error.std().item<double>() / std::sqrt(mean_of(std_error.square()));
  m["reported_bias"] =
      with.upper ? 0.5 * mean_of(std_error.square()) : r.bias.mean().item<double>();
  const at::Tensor wrong = error.abs() > 0.5;  // nats
  m["wrong"] = mean_of(wrong);
  m["caught"] = mean_of(flagged.masked_select(wrong));
  m["alarms"] = mean_of(flagged.masked_select(~wrong));
}

/// The masses of modes in each run: modes with a tenth of their mass or more are reached; astray is
/// the total variation between the masses and the true ones.
void add_modes(const VariantResult& r, const Comparison& with, Measures& m) {
  m["modes"] = with.masses.defined() ? static_cast<double>(with.masses.numel()) : NAN;
  m["reached"] = m["astray"] = m["astray_se"] = NAN;
  if (!r.masses.defined() || !with.masses.defined()) return;
  const Spread astray(0.5 * (r.masses - with.masses).abs().sum(1));
  m["astray"] = astray.mean;
  m["astray_se"] = astray.std_error;
  m["reached"] = mean_of((r.masses >= 0.1 * with.masses).sum(1));
}

}  // namespace

Spread::Spread(const at::Tensor& values)
    : mean(values.mean().item<double>()), std_error(std_error_of_mean(values)) {}

Measures measures_of(const VariantResult& result, const Comparison& with) {
  if (with.first == &result) {
    Comparison alone = with;
    alone.first = nullptr;
    return measures_of(result, alone);
  }
  VariantResult r = result;
  if (with.upper && r.upper.defined()) {
    r.value = r.upper;
    r.std_error = r.upper_std_error;
  }
  Measures m = {{"base", r.base},
                {"tuning", r.tuning},
                {"estimating", r.estimating},
                {"evaluations", r.evaluations()},
                {"transitions", r.transitions},
                {"accepted", r.accept_prob},
                {"training_seconds", r.training_seconds},
                {"first_start", r.start_divergence()},
                {"ess", r.ess.mean().item<double>()},
                {"done", r.failed.empty() ? 1.0 : NAN}};
  add_errors(r, with, m);
  add_fall(r, m);
  add_calibration(r, with, m);
  add_modes(r, with, m);
  return m;
}

Choice choose(const std::vector<at::Tensor>& values, int64_t choosing, double truth) {
  Choice choice;
  double highest = -INFINITY, least = INFINITY;
  for (size_t i = 0; i < values.size(); ++i) {
    const double mean = values[i].slice(0, 0, choosing).mean().item<double>();
    if (mean > highest) {
      highest = mean;
      choice.chosen = i;
    }
    const double error = std::abs(values[i].slice(0, choosing).mean().item<double>() - truth);
    if (error < least) {
      least = error;
      choice.oracle = i;
    }
  }
  return choice;
}

std::vector<double> along_plan(const std::vector<double>& values) {
  constexpr int kParts = 50;
  std::vector<double> chosen;
  for (int part = 0; part <= kParts; ++part) {
    const double place =
        static_cast<double>(part) / kParts * static_cast<double>(values.size() - 1);
    const auto before = static_cast<size_t>(place);
    const size_t after = std::min(before + 1, values.size() - 1);
    chosen.push_back(std::lerp(values[before], values[after], place - std::floor(place)));
  }
  return chosen;
}

}  // namespace crais
