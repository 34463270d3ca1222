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
  kSettled,      // particles that settle under the density go where chains have not been
  kUndefined     // NaN or +inf
};

/// What a doubt is called in files, what it says, and what would mend it.
struct DoubtEntry {
  Doubt doubt;
  std::string word, sentence, remedy;
};
const DoubtEntry& entry_of(Doubt doubt);

/// Monte Carlo error of the mean over replicates of one density, nats: by their spread, by their
/// own errors, or by the spread of chunks, whose bases were fitted apart; whichever says most.
double error_of_replicates(const MethodTable& table, const RunResults& results);

/// The doubts about replicates of one density.
std::vector<Doubt> doubts_of_replicates(const MethodTable& table, const RunResults& results);

}  // namespace crais
