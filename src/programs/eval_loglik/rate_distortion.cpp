#include "programs/eval_loglik/rate_distortion.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/spec.h"
#include "estimates/rate_distortion.h"
#include "io/csv.h"
#include "io/json.h"
#include "report/plot.h"
#include "util/error.h"
#include "util/format.h"

namespace crais {
namespace {

using nlohmann::json;

constexpr size_t kRows = 10;  // of the table; also the error bars of the plot
constexpr double kLeast = 1e-6, kMost = 1e6;

double number_at(const at::Tensor& values, size_t i) {
  return values[static_cast<int64_t>(i)].item<double>();
}

/// The mean over `count` problems of each repeat, and over repeats, as in mean_over_images. The
/// data error comes from the values of one repeat.
MeanEstimate mean_of(const std::vector<RateDistortionSums>& repeats,
                     CurveSums RateDistortionSums::*column, size_t i) {
  const auto count = static_cast<double>(repeats.front().num_problems);
  const auto num_repeats = static_cast<double>(repeats.size());
  std::vector<double> means;
  double squares = 0, errors = 0;
  for (const RateDistortionSums& repeat : repeats) {
    means.push_back(number_at((repeat.*column).mean, i));
    squares += number_at((repeat.*column).squares, i) / num_repeats;
    errors += number_at((repeat.*column).errors, i);
  }
  const at::Tensor of_repeats = at::tensor(means, at::kDouble);
  return {of_repeats.mean().item<double>(),
          count > 1 ? std::sqrt(squares / (count - 1) / count) : NAN,
          means.size() > 1 ? std_error_of_mean(of_repeats) : std::sqrt(errors) / count};
}

MeanEstimate scaled(MeanEstimate e, double factor, double shift) {
  e.mean = factor * e.mean + shift;
  e.data_std_error *= std::abs(factor);
  e.monte_carlo_std_error *= std::abs(factor);
  return e;
}

/// The curves of all chunks, for each repeat.
std::vector<RateDistortionSums> curves_of(const RunResults& results) {
  std::vector<std::vector<RateDistortionSums>> parts;
  for (const auto& [number, chunk] : results.chunks)
    for (const ChunkRun& run : chunk.runs) {
      parts.resize(std::max(parts.size(), static_cast<size_t>(run.repeat) + 1));
      parts[static_cast<size_t>(run.repeat)].push_back(sums_from(
          run.own, static_cast<int64_t>(chunk.indices.size()), "chunk " + std::to_string(number)));
    }
  std::vector<RateDistortionSums> repeats;
  repeats.reserve(parts.size());
  for (const auto& part : parts) repeats.push_back(merged(part));
  for (const RateDistortionSums& repeat : repeats)
    if (!at::equal(repeat.beta, repeats.front().beta) ||
        repeat.has_gap() != repeats.front().has_gap())
      throw data_error("curves of rate and distortion are of different temperatures");
  return repeats;
}

std::string error_text(double error) { return std::isfinite(error) ? significant(error, 2) : "-"; }

double whole_error(const MeanEstimate& e) {
  return std::hypot(std::isfinite(e.data_std_error) ? e.data_std_error : 0.0,
                    std::isfinite(e.monte_carlo_std_error) ? e.monte_carlo_std_error : 0.0);
}

}  // namespace

DistortionChoice parse_distortion(const std::string& text) {
  Spec spec(text);
  DistortionChoice choice;
  choice.is_mse = spec.name() == "mse";
  if (!choice.is_mse && spec.name() != "nll")
    throw argument_error("--distortion is nll, nll:BETA, mse or mse:SD, as mse:0.1; not '" + text +
                         "'");
  const std::string key = choice.is_mse ? "sd" : "beta";
  if (text.find(':') != std::string::npos) choice.end = spec.number(key, kLeast, kMost);
  spec.finish();
  return choice;
}

double CurveUnits::scale() const { return is_mse ? 1 / (2 * end * end) : end; }

double CurveUnits::offset() const {
  return is_mse ? 0.5 * static_cast<double>(num_values) * std::log(2 * M_PI * end * end) : 0.0;
}

json to_json(const CurveUnits& units) {
  return {{"distortion", units.is_mse ? "mse" : "nll"},
          {units.is_mse ? "noise_sd" : "last_beta", units.end},
          {"values_in_unit_range", units.is_unit_range}};
}

CurveUnits units_from(const json& object, int64_t num_values, const std::string& source) {
  const auto distortion = json_field<std::string>(object, "distortion", source);
  if (distortion != "mse" && distortion != "nll")
    throw data_error(source + ": the distortion of a curve is mse or nll, not " +
                     quoted(distortion));
  CurveUnits units;
  units.is_mse = distortion == "mse";
  units.end = json_field<double>(object, units.is_mse ? "noise_sd" : "last_beta", source);
  units.num_values = num_values;
  units.is_unit_range = json_field<bool>(object, "values_in_unit_range", source);
  if (!(units.end >= kLeast && units.end <= kMost))
    throw data_error(source + ": the end of a curve is out of range");
  return units;
}

CurveReport::CurveReport(const RunResults& results, const CurveUnits& units) : units_(units) {
  const std::vector<RateDistortionSums> repeats = curves_of(results);
  const RateDistortionSums& first = repeats.front();
  num_images_ = first.num_problems;
  const double scale = units.scale(), offset = units.offset();
  for (size_t i = 0; i < static_cast<size_t>(first.beta.numel()); ++i) {
    const double share = number_at(first.beta, i);
    CurvePoint point;
    point.beta = share * scale;
    point.rate = mean_of(repeats, &RateDistortionSums::rate, i);
    point.distortion =
        scaled(mean_of(repeats, &RateDistortionSums::distortion, i), 1 / scale, -offset / scale);
    point.log_normalizer =
        scaled(mean_of(repeats, &RateDistortionSums::log_normalizer, i), 1, share * offset);
    point.rate_bias = mean_of(repeats, &RateDistortionSums::rate_bias, i).mean;
    point.ess = mean_of(repeats, &RateDistortionSums::ess, i).mean;
    point.least_ess = 1.0;
    for (const RateDistortionSums& repeat : repeats)
      point.least_ess = std::min(point.least_ess, number_at(repeat.least_ess, i));
    if (first.has_gap()) point.gap = mean_of(repeats, &RateDistortionSums::gap, i);
    points_.push_back(point);
  }
}

double CurveReport::shown_distortion(double d) const {
  return units_.is_mse ? d / static_cast<double>(units_.num_values) : d;
}

double CurveReport::psnr(double d) const { return -10 * std::log10(shown_distortion(d)); }

std::vector<size_t> CurveReport::shown() const {
  const double most = points_.back().rate.mean;
  std::vector<size_t> rows = {0};
  for (size_t i = 1; i + 1 < points_.size(); ++i)
    if (points_[i].rate.mean * static_cast<double>(kRows - 1) >=
        most * static_cast<double>(rows.size()))
      rows.push_back(i);
  if (rows.size() == kRows) rows.pop_back();
  rows.push_back(points_.size() - 1);
  return rows;
}

std::string CurveReport::title() const {
  return std::string("Rate and distortion (") +
         (units_.is_mse ? "mean squared error" : "negative log-likelihood") + ")";
}

Table CurveReport::table() const {
  std::optional<Table> table;
  for (const size_t i : shown()) {
    const CurvePoint& p = points_[i];
    const double unit = shown_distortion(1.0);
    std::vector<std::string> headers = {"beta", "rate", "data SE", "MC SE"};
    std::vector<std::string> row = {significant(p.beta, 4), fixed(p.rate.mean, 3),
                                    error_text(p.rate.data_std_error),
                                    error_text(p.rate.monte_carlo_std_error)};
    const auto add = [&](const std::string& header, const std::string& text) {
      headers.push_back(header);
      row.push_back(text);
    };
    if (p.gap) add("gap", fixed(p.gap->mean, 3));
    if (p.gap) add("gap SE", error_text(p.gap->monte_carlo_std_error));
    if (units_.is_mse)
      add("MSE", significant(unit * p.distortion.mean, 5));
    else
      add("distortion", fixed(p.distortion.mean, 3));
    add("data SE", error_text(unit * p.distortion.data_std_error));
    add("MC SE", error_text(unit * p.distortion.monte_carlo_std_error));
    if (units_.is_mse && units_.is_unit_range) add("PSNR", fixed(psnr(p.distortion.mean), 2));
    add("ESS", fixed(p.ess, 3));
    add("bits/dim", fixed(-bits_per_dim(p.rate.mean, units_.num_values), 4));
    add("bias", error_text(p.rate_bias));
    if (!table)
      table.emplace(headers, title() + ", means over " + with_commas(num_images_) + " images", 1);
    table->add_row(row);
  }
  return *table;
}

std::string CurveReport::reading() const {
  std::string text =
      "Rates are in nats an image. At each beta the estimate of R + beta D is an upper bound on "
      "average, and so is the rate, up to the errors of D. MC SE is the error of these chains, "
      "data "
      "SE that of these images; bias is how much too high the rate is to be expected. ";
  if (points_.front().gap)
    text +=
        "The rate less the gap is what reverse chains from exact draws find: a lower bound on "
        "average in the last line, an estimate above it. ";
  if (units_.is_mse)
    text += "beta = 1 / (2 s^2) of noise of standard deviation s, " + significant(units_.end, 4) +
            " at the end, whose log p(x) the table of log-likelihoods has. ";
  return text + "rate_distortion.csv has every temperature.\n";
}

std::string CurveReport::csv() const {
  std::optional<CsvWriter> csv;
  for (const CurvePoint& p : points_) {
    std::vector<std::string> names;
    std::vector<CsvCell> cells;
    const auto add = [&](const std::string& name, const CsvCell& cell) {
      names.push_back(name);
      cells.push_back(cell);
    };
    const auto add_mean = [&](const std::string& name, const MeanEstimate& e) {
      add(name, e.mean);
      add(name + "_data_std_error", e.data_std_error);
      add(name + "_monte_carlo_std_error", e.monte_carlo_std_error);
    };
    add("beta", p.beta);
    add_mean("rate", p.rate);
    add("rate_bias", p.rate_bias);
    add("rate_bits_per_dim", -bits_per_dim(p.rate.mean, units_.num_values));
    add_mean("distortion", p.distortion);
    add_mean("log_normalizer", p.log_normalizer);
    add("ess", p.ess);
    add("least_ess", p.least_ess);
    if (p.gap) add("reverse_rate", p.rate.mean - p.gap->mean);
    if (p.gap) add_mean("gap", *p.gap);
    if (units_.is_mse) {
      add("noise_sd", p.beta > 0 ? CsvCell(std::sqrt(0.5 / p.beta)) : CsvCell(""));
      add("mse", shown_distortion(p.distortion.mean));
      if (units_.is_unit_range) add("psnr_db", psnr(p.distortion.mean));
    }
    if (!csv) csv.emplace(names);
    csv->add_row(cells);
  }
  return csv->text();
}

json CurveReport::summary() const {
  const auto estimate = [](const MeanEstimate& e) {
    return json{{"mean", json_number(e.mean)},
                {"data_std_error", json_number(e.data_std_error)},
                {"monte_carlo_std_error", json_number(e.monte_carlo_std_error)}};
  };
  json list = json::array();
  for (const size_t i : shown()) {
    const CurvePoint& p = points_[i];
    json point = {{"beta", p.beta},
                  {"rate", estimate(p.rate)},
                  {"rate_bias", json_number(p.rate_bias)},
                  {"distortion", estimate(p.distortion)},
                  {"log_normalizer", estimate(p.log_normalizer)},
                  {"ess", {{"mean", json_number(p.ess)}, {"min", json_number(p.least_ess)}}}};
    if (p.gap) point["gap"] = estimate(*p.gap);
    if (units_.is_mse) point["mse"] = json_number(shown_distortion(p.distortion.mean));
    list.push_back(std::move(point));
  }
  json object = to_json(units_);
  object["label"] = to_string(Bound::kUpper);  // for the rate
  object["temperatures"] = points_.size();
  object["points"] = std::move(list);
  return object;
}

bool CurveReport::is_drawable() const {
  return std::any_of(points_.begin(), points_.end(), [](const CurvePoint& p) {
    return std::isfinite(p.rate.mean) && std::isfinite(p.distortion.mean);
  });
}

std::string CurveReport::drawing() const {
  Plot plot{title(),
            units_.is_mse ? "mean squared error of a value" : "negative log-likelihood, nats",
            "rate, nats",
            false,
            false,
            {}};
  const bool has_gap = points_.front().gap.has_value();
  std::vector<CurvePoint> sorted = points_;
  std::stable_sort(sorted.begin(), sorted.end(), [](const CurvePoint& a, const CurvePoint& b) {
    return a.distortion.mean < b.distortion.mean;
  });
  Series upper{"every temperature", {}, {}, {}}, lower{"reverse chains", {}, {}, {}};
  for (const CurvePoint& p : sorted) {
    upper.add(shown_distortion(p.distortion.mean), p.rate.mean, 0);
    if (has_gap) lower.add(shown_distortion(p.distortion.mean), p.rate.mean - p.gap->mean, 0);
  }
  upper.error.clear();
  lower.error.clear();
  Series bars{"two standard errors", {}, {}, {}, /*joined=*/false};
  for (const size_t i : shown())
    bars.add(shown_distortion(points_[i].distortion.mean), points_[i].rate.mean,
             2 * whole_error(points_[i].rate));
  plot.series = {upper, bars};
  if (has_gap) plot.series.push_back(lower);
  return svg_of(plot);
}

}  // namespace crais
