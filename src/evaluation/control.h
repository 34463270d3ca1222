/// @file
/// The control of a run on images: the same plan on images that the model draws.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "evaluation/doubts.h"
#include "evaluation/tuned_estimator.h"

namespace crais {

struct MethodTable;
struct RunResults;

/// The method of the control's chunks: AIS forwards, and backwards from the exact draw of the
/// posterior that comes with an image of the model.      [Grosse, Ghahramani & Adams 2015]
inline constexpr const char* kControlMethod = "bidirectional";

/// The number of images of a control by default: an eighth of the run's, from 16 to 32.
int64_t default_control(int64_t num_images);

/// The estimator of the control: base and plan of `tuned`, both ways.
/// Cost: twice that of an annealed estimate for each image.
TunedEstimator control_of(const TunedEstimator& tuned);

/// How hard images are for a run: medians over images.
struct Hardness {
  double ess = 0;        // fraction
  double std_error = 0;  // nats
};

/// What the control says of a run.
struct Control {
  int64_t images = 0;
  double lower = 0, upper = 0;  // means of the bounds on log p(x), nats
  double gap = 0;            // upper - lower, nats: what the run misses on average, and its noise
  double gap_std_error = 0;  // by the spread of the images' gaps
  double stated = 0;         // the gap that errors and bias of the control's estimates explain
  int64_t missed = 0;        // images whose gap their own errors do not explain
  double evaluations = 0;    // of all its images
  Hardness simulated, real;  // of the control's images, and of the run's by the first method
  std::vector<Doubt> doubts;
};

/// Nothing if the run has no control.
std::optional<Control> control_of(const RunResults& results);

}  // namespace crais
