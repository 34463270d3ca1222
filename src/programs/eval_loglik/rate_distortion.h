// The curve of rate and distortion of an evaluation: what is asked for, and what is said of it.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "estimates/estimate.h"
#include "evaluation/summary.h"
#include "report/table.h"

namespace crais {

/// What `--distortion` says. A curve ends at q(z) proportional to p(z) exp(-beta d(z)).
struct DistortionChoice {
  bool is_mse = false;  // else d is the negative log-likelihood, nats
  std::optional<double>
      end;  // nll: the last beta; mse: the SD of noise whose squares weigh as much
};
/// "nll", "nll:BETA", "mse", "mse:SD". Throws Error kArgument otherwise.
DistortionChoice parse_distortion(const std::string& text);

/// The units of a curve. Chains anneal to a posterior p(z) p(x | z), or one that is tempered, from
/// 0 to 1; beta = scale * that, and its D = scale * d + offset.
///
/// mse: p(x | z) is normal noise of standard deviation sd about f(z), d = |x - f(z)|^2 is summed
/// over values, beta = 1 / (2 sd^2) at the end.
struct CurveUnits {
  bool is_mse = false;
  double end = 1.0;  // as DistortionChoice has it
  int64_t num_values = 0;
  bool is_unit_range = false;  // values lie in [0, 1]: there is a peak of 1 for the PSNR

  double scale() const;
  double offset() const;
  /// True if the end of the curve is p(x) of a likelihood, so that its log normaliser is log p(x).
  bool ends_in_likelihood() const { return is_mse || end == 1.0; }
};
/// For run.json, and back. Throws Error kData.
nlohmann::json to_json(const CurveUnits& units);
CurveUnits units_from(const nlohmann::json& object, int64_t num_values, const std::string& source);

/// A point of the curve: means over images in the curve's units.
struct CurvePoint {
  double beta = 0.0;
  MeanEstimate rate;        // nats
  MeanEstimate distortion;  // d
  MeanEstimate log_normalizer;
  double rate_bias = 0.0;           // to be expected, nats
  double ess = 0.0, least_ess = 0;  // fractions: mean over images, least of any
  std::optional<MeanEstimate> gap;  // with reverse chains, nats: rate less that is the other bound
};

/// A curve and how it is shown.
class CurveReport {
 public:
  /// Of finished results. Throws Error kData where their chunks hold no curve of one plan.
  CurveReport(const RunResults& results, const CurveUnits& units);

  const std::vector<CurvePoint>& points() const { return points_; }
  /// Some points, about as far apart in rate.
  Table table() const;
  /// How to read it.
  std::string reading() const;
  /// rate_distortion.csv: a line a temperature.
  std::string csv() const;
  nlohmann::json summary() const;
  /// Requires is_drawable(): some point is finite.
  std::string drawing() const;  // SVG
  bool is_drawable() const;
  std::string title() const;

 private:
  std::vector<size_t> shown() const;
  double shown_distortion(double d) const;  // mse: of a value
  double psnr(double d) const;              // dB

  CurveUnits units_;
  int64_t num_images_ = 0;
  std::vector<CurvePoint> points_;
};

}  // namespace crais
