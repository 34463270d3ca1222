#include "programs/reproduce/measures.h"

#include <algorithm>
#include <cmath>

#include "estimates/estimate.h"

namespace crais {
namespace {

double mean_of(const at::Tensor& values) { return values.to(at::kDouble).mean().item<double>(); }

at::Tensor nothing() { return at::full({1}, NAN, at::kDouble); }

/// The mean over the first dimension, and its standard error as "name_se".
void put(Measures& m, const std::string& name, const at::Tensor& values) {
  m[name] = values.mean().item<double>();
  m[name + "_se"] = std_error_of_mean(values);
}

/// Estimates of a variant [S,N], nats.
struct Estimates {
  at::Tensor value, std_error, flagged;
};

/// Moments of estimates and errors over repetitions, and of images.
void add_errors(const Estimates& of, const VariantResult* first, const Comparison& with,
                Measures& m) {
  const auto repetitions = [&](const at::Tensor& of_all) {
    if (with.has_images) return of_all.mean(1);
    if (of_all.numel() <= with.choosing) return nothing();  // it has failed
    return of_all.flatten().slice(0, with.choosing);
  };
  const bool known = with.truth.defined();
  const auto errors_of = [&](const at::Tensor& value) {
    return known ? value - with.truth : value;
  };
  const at::Tensor error = errors_of(of.value), errors = repetitions(error);
  const at::Tensor values = repetitions(of.value);
  put(m, "mean", values);
  put(m, "bias", errors);
  m["sd"] = values.numel() > 1 ? values.std(0, true).item<double>() : NAN;
  m["data_se"] = std_error_of_mean(of.value.mean(0));
  m["chains_se"] =
      of.std_error.square().sum().sqrt().item<double>() / static_cast<double>(of.std_error.numel());
  m["truth"] = known ? mean_of(with.truth) : NAN;
  m["abs"] = known ? mean_of(errors.abs()) : NAN;
  m["rmse"] = known ? errors.square().mean().sqrt().item<double>() : NAN;
  m["image_rmse"] = error.square().mean().sqrt().item<double>();
  m["image_most"] = error.abs().max().item<double>();
  m["flagged"] = mean_of(of.flagged);
  m["silent"] = ((error.abs() > 1) & ~of.flagged).sum().item<double>() * m.at("done");
  // Rows that are compared share their seeds, and so their starting particles.
  const at::Tensor other = first ? first->column("log_normalizer") : at::Tensor();
  const bool has_pair = first && other.numel() == of.value.numel();
  const auto loss = [&](const at::Tensor& all) { return known ? all.abs() : -all; };
  put(m, "above_first", has_pair ? loss(errors) - loss(repetitions(errors_of(other))) : nothing());
  m["t"] = m["above_first"] / m["above_first_se"];
  const at::Tensor apart = has_pair ? of.value - other : nothing();
  m["from_first"] = mean_of(apart);
  m["farthest"] = apart.abs().max().item<double>();
}

/// How the divergence falls along the plans: from `start`, with the largest distance `bend` of
/// D / D_0 from the line 1 - i / M, and the least-squares slope `fall` of D a step.
void add_fall(const VariantResult& r, Measures& m) {
  std::map<std::string, std::vector<double>> of;
  const auto plans = r.values.find("divergence");
  for (const at::Tensor& d : plans == r.values.end() ? std::vector<at::Tensor>() : plans->second) {
    if (d.numel() == 0) continue;
    const at::Tensor step = at::arange(d.size(0), at::kDouble), x = step - step.mean();
    of["start"].push_back(d[0].item<double>());
    of["bend"].push_back((d / d[0] - 1 + step / step[-1]).abs().max().item<double>());
    of["fall"].push_back(((x * d).sum() / x.square().sum()).item<double>());
  }
  for (const char* name : {"start", "bend", "fall"})
    put(m, name, of[name].empty() ? nothing() : at::tensor(of[name], at::kDouble));
  const at::Tensor first = r.first("divergence");
  m["first_start"] = first.numel() > 0 ? first[0].item<double>() : NAN;
}

/// Calibration against known values. Weights of lower bounds have mean Z, those of upper bounds 1 /
/// Z: `z` says by how many standard errors the mean of `ratio` misses 1. Wrong is off by more than
/// half a nat; caught is the share of these with a flag, alarms that of the others.
void add_calibration(const VariantResult& r, const Estimates& of, const Comparison& with,
                     Measures& m) {
  const bool known = with.truth.defined() && of.value.numel() > 1;
  const at::Tensor error = known ? (of.value - with.truth).flatten() : nothing();
  const at::Tensor std_error = of.std_error.flatten(), flagged = of.flagged.flatten();
  put(m, "ratio", (with.upper ? -error : error).exp());
  m["z"] = (m["ratio"] - 1) / m["ratio_se"];
  const auto share = [&](const at::Tensor& which) { return known ? mean_of(which) : NAN; };
  m["within_1"] = share(error.abs() <= std_error);
  m["within_1.96"] = share(error.abs() <= 1.96 * std_error);
  m["spread"] = known ? error.std().item<double>() / std::sqrt(mean_of(std_error.square())) : NAN;
  m["reported_bias"] = with.upper ? 0.5 * mean_of(std_error.square()) : mean_of(r.column("bias"));
  const at::Tensor wrong = error.abs() > 0.5;  // nats
  m["wrong"] = share(wrong);
  m["caught"] = known ? mean_of(flagged.masked_select(wrong)) : NAN;
  m["alarms"] = known ? mean_of(flagged.masked_select(~wrong)) : NAN;
}

/// The masses of modes in each run: modes with a tenth of their mass or more are reached; astray is
/// the total variation between the masses and the true ones.
void add_modes(const VariantResult& r, const at::Tensor& masses, Measures& m) {
  const bool known = r.first("masses").numel() > 0 && masses.defined();
  const at::Tensor found = known ? r.first("masses").view({-1, masses.numel()}) : nothing();
  m["modes"] = masses.defined() ? static_cast<double>(masses.numel()) : NAN;
  put(m, "astray", known ? 0.5 * (found - masses).abs().sum(1) : nothing());
  m["reached"] = known ? mean_of((found >= 0.1 * masses).sum(1)) : NAN;
}

}  // namespace

Measures measures_of(const VariantResult& result, const Comparison& with) {
  const bool upper = with.upper && result.values.count("upper") > 0;
  const Estimates of{result.column(upper ? "upper" : "log_normalizer"),
                     result.column(upper ? "upper_std_error" : "std_error"),
                     result.column("flags") != 0};
  Measures m;
  for (const char* name : {"base", "tuning", "estimating", "transitions", "training_seconds"})
    m[name] = result.mean(name);
  m["evaluations"] = result.evaluations();
  m["done"] = result.failed.empty() ? 1.0 : NAN;
  for (const char* name : {"ess", "accept_prob"}) m[name] = mean_of(result.column(name));
  add_errors(of, with.first == &result ? nullptr : with.first, with, m);
  add_fall(result, m);
  add_calibration(result, of, with, m);
  add_modes(result, with.masses, m);
  return m;
}

Choice choose(const std::vector<at::Tensor>& values, int64_t choosing, double truth) {
  Choice choice;
  double highest = -HUGE_VAL, least = HUGE_VAL;
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

}  // namespace crais
