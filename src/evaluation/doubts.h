/// @file
/// Why a result is not to be trusted as a whole.
#pragma once

#include <ATen/ATen.h>

#include <string>
#include <vector>

namespace crais {

struct MethodTable;
struct RunResults;

enum class Doubt {
  kMostFlagged,  // half of the estimates or more have a flag
  kReplicates,   // replicates of one density contradict each other
  kBases,        // so do chunks, whose bases were fitted apart
  kRefuted,      // a second opinion, a lower bound too, is higher
  kUndefined     // NaN or +inf
};

/// What a doubt is called in files, what it says, and what would mend it.
struct DoubtEntry {
  Doubt doubt;
  std::string word, sentence, remedy;
};
const std::vector<DoubtEntry>& all_doubts();
const DoubtEntry& entry_of(Doubt doubt);

/// A second estimate of the same density by the base mixture, which neither the asked base nor its
/// chains know of: a lower bound on average. nats.
struct Witness {
  double value = 0, error = 0;
};

/// The doubts about replicates of one density.
std::vector<Doubt> doubts_of_replicates(const MethodTable& table, const RunResults& results);

}  // namespace crais
