/// @file
/// Comparison of two models on the same problems: their difference and its error.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "estimates/estimate.h"
#include "evaluation/summary.h"

namespace crais {

/// One method's estimates of log p(x) under a model, averaged over repeats; nats, one entry an
/// image.
struct ImageEstimates {
  std::vector<double> value, std_error, bias;  // Monte Carlo error; NaN bias: unknown
  std::vector<bool> flagged;                   // in any repeat

  ImageEstimates() = default;
  explicit ImageEstimates(const MethodTable& table);
};

/// a - b, paired by image. Every mean is over images; nats.
struct Comparison {
  MeanEstimate difference;
  double low = 0.0, high = 0.0;     // the 95% interval of the mean over all such images
  double unpaired_std_error = 0.0;  // if the images of a and b were two separate sets
  double bias = 0.0;                // of the difference, suggested by the chains; NaN: unknown
  double share_better = 0.0;        // of images with a > b
  double share_std_error = 0.0;
  int64_t clearly_better = 0, clearly_worse = 0;  // by more than two Monte Carlo errors
  int64_t flagged = 0;                            // images flagged in a or b
  std::optional<MeanEstimate> unflagged;  // difference over unflagged images, if some are flagged
  std::vector<double> per_image, std_error;
};

/// Chains of the two runs count as independent. With a common seed their errors may cancel, and the
/// Monte Carlo errors here are then too large, never too small. `a` and `b` hold the same images in
/// the same order; throws c10::Error otherwise.
Comparison compare(const ImageEstimates& a, const ImageEstimates& b);

}  // namespace crais
