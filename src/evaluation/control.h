/// @file
/// The control of a run on images: the same plan on images that the model draws.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "evaluation/chunks.h"
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
TunedEstimator control_estimator(const TunedEstimator& tuned);

/// Images of the control from `begin` to `end` - 1.
using ControlImages = std::function<std::shared_ptr<const Target>(int64_t begin, int64_t end)>;

/// A plan that is long enough, and the chunks of its control.
struct Lengthened {
  TunedEstimator tuned;
  std::map<int64_t, ChunkResult> control;
};

/// `tuned` with transitions doubled while that brings the bounds nearer, until is_reached(control,
/// `error`) or until an estimate would take more than `max_evaluations`. Nothing if `stop` says so.
/// Cost: that of the control for each round but the one returned, added to `state().tuning`.
std::optional<Lengthened> lengthened(const TunedEstimator& tuned, const Chunks& chunks,
                                     const ControlImages& images, int64_t threads,
                                     const std::function<bool()>& stop);

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
  double excess = 0;         // mean gap that bias does not explain, without the largest
  double chance = 0;         // standard error of the gap by the images' own errors
  int64_t missed = 0;  // images whose gap is above kLargeGap and their own errors do not explain
  double evaluations = 0;    // of all its images
  Hardness simulated, real;  // of the control's images, and of the run's, annealed
  std::vector<Doubt> doubts;
};

/// Nothing if the run has no control. A gap that is not within `error` is doubtful; where nobody
/// asked for that error, if it is clearly above.
std::optional<Control> control_of(const RunResults& results, std::optional<double> error = {},
                                  bool is_asked = false);

/// True if the gap is below `error` nats, but for chance, which counts up to twice `error`.
bool is_reached(const Control& control, double error);

}  // namespace crais
