/// @file
/// Doubts about a result as a whole.
#pragma once

#include <ATen/ATen.h>

#include <string>
#include <vector>

namespace crais {

struct MethodTable;
struct RunResults;

enum class Doubt {
  kMostFlagged,  // at least half of the estimates have a flag
  kReplicates,   // replicates of one density contradict each other
  kOne,          // one of them moves the answer by more than its error
  kRefuted,      // a second opinion, which is a lower bound too, is higher
  kSettled,      // settled particles reach places where chains have not been
  kUndefined,    // NaN or +inf
  kTail,         // the weights of a replicate may have no variance
  kDensity,      // what a caller says of the density
  kControl,      // of a run on images: the bounds of its control are apart
  kUnreached,    // its control's gap is above the error of the settings
  kHarder        // its images are clearly harder than those of its control
};

/// A doubt's name in files, its text and its remedy.
struct DoubtEntry {
  Doubt doubt;
  std::string word, sentence, remedy;
};
const DoubtEntry& entry_of(Doubt doubt);

/// Monte Carlo error of the mean over replicates of one density, nats: from their spread or, where
/// that is larger, from their own errors. Added in squares is the mass that settled particles find
/// where chains hardly go, if chance does not explain it.
double error_of_replicates(const MethodTable& table, const RunResults& results);

/// The doubts about replicates of one density.
std::vector<Doubt> doubts_of_replicates(const MethodTable& table, const RunResults& results);

}  // namespace crais
