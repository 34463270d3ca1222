/// @file
/// Two models on the same problems: how much better is one, and how sure is that.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "estimates/estimate.h"
#include "evaluation/summary.h"

namespace crais {

/// One method's estimates of log p(x) under a model, repeats averaged; nats, one entry an image.
struct ImageEstimates {
  std::vector<double> value, std_error, bias;  // Monte Carlo; bias is NaN where it is unknown
  std::vector<bool> flagged;                   // in any repeat

  ImageEstimates() = default;
  explicit ImageEstimates(const MethodTable& table);
};

/// a - b, paired by image. Every mean is over images; nats.
struct Comparison {
  MeanEstimate difference;
  double low = 0.0, high = 0.0;     // the 95% interval of the mean over all such images
  double unpaired_std_error = 0.0;  // were a's and b's images two separate sets
  double bias = 0.0;                // of the difference, as the chains suggest; NaN: unknown
  double share_better = 0.0;        // of images with a > b
  double share_std_error = 0.0;
  int64_t clearly_better = 0, clearly_worse = 0;  // by more than two Monte Carlo errors
  int64_t flagged = 0;                            // images flagged in a or b
  std::optional<MeanEstimate> unflagged;  // the difference over the others, if some are flagged
  std::vector<double> per_image, std_error;
};

/// Chains of the two runs are taken as independent: with a seed in common their errors may cancel,
/// and the Monte Carlo errors here are then too large, never too small.
/// `a` and `b` hold the same images in the same order. Throws c10::Error otherwise.
Comparison compare(const ImageEstimates& a, const ImageEstimates& b);

}  // namespace crais
