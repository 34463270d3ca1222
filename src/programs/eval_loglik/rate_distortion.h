// The rate-distortion curve of an evaluation: its request and its report.
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

/// The value of `--distortion`. A curve ends at q(z) proportional to p(z) exp(-beta d(z)).
struct DistortionChoice {
  bool is_mse = false;  // else d is the negative log-likelihood, nats
  std::optional<double>
      end;  // nll: the last beta; mse: the SD of normal noise with the same weight
};
/// Parses "nll", "nll:BETA", "mse" or "mse:SD". Throws Error kArgument for any other text.
DistortionChoice parse_distortion(const std::string& text);

/// The units of a curve. Chains anneal from 0 to 1, to a posterior p(z) p(x | z) or a tempered one.
/// In the curve, beta is `scale` times the chains' beta, and D = scale * d + offset.
///
/// mse: p(x | z) is normal noise of standard deviation sd around f(z), d = |x - f(z)|^2 summed over
/// values, and beta = 1 / (2 sd^2) at the end.
struct CurveUnits {
  bool is_mse = false;
  double end = 1.0;  // as in DistortionChoice
  int64_t num_values = 0;
  bool is_unit_range = false;  // values lie in [0, 1], so the PSNR has a peak of 1

  double scale() const;
  double offset() const;
  /// True if the end of the curve is the p(x) of a likelihood: its log normaliser is then log p(x).
  bool ends_in_likelihood() const { return is_mse || end == 1.0; }
};
/// The units as JSON, and back. Throws Error kData.
nlohmann::json to_json(const CurveUnits& units);
CurveUnits units_from(const nlohmann::json& object, int64_t num_values, const std::string& source);

/// A point of the curve: means over images in the curve's units.
struct CurvePoint {
  double beta = 0.0;
  MeanEstimate rate;        // nats
  MeanEstimate distortion;  // d
  MeanEstimate log_normalizer;
  double rate_bias = 0.0;           // expected bias, nats
  double ess = 0.0, least_ess = 0;  // fractions: mean over images, least of all images
  std::optional<MeanEstimate> gap;  // with reverse chains, nats: rate minus the other bound
};

/// A curve in its forms of output.
class CurveReport {
 public:
  /// The curve of finished results. Throws Error kData if their chunks hold no curve of one plan.
  CurveReport(const RunResults& results, const CurveUnits& units);

  const std::vector<CurvePoint>& points() const { return points_; }
  /// A table of some points, about evenly spaced in rate.
  Table table() const;
  /// An explanation of the table.
  std::string reading() const;
  /// The content of rate_distortion.csv: a line for each temperature.
  std::string csv() const;
  nlohmann::json summary() const;
  /// The curve as SVG. Requires is_drawable(): at least one point is finite.
  std::string drawing() const;  // SVG
  bool is_drawable() const;
  std::string title() const;

 private:
  std::vector<size_t> shown() const;
  double shown_distortion(double d) const;  // mse: for one value
  double psnr(double d) const;              // dB

  CurveUnits units_;
  int64_t num_images_ = 0;
  std::vector<CurvePoint> points_;
};

}  // namespace crais
