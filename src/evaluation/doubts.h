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
  kBases,        // chunks, whose bases were fitted separately, contradict each other
  kRefuted,      // a second opinion, which is a lower bound too, is higher
  kSettled,      // settled particles reach places where chains have not been
  kUndefined     // NaN or +inf
};

/// A doubt's name in files, its text and its remedy.
struct DoubtEntry {
  Doubt doubt;
  std::string word, sentence, remedy;
};
const DoubtEntry& entry_of(Doubt doubt);

/// Monte Carlo error of the mean over replicates of one density, nats. It is the largest of three
/// estimates: from the spread of replicates, from their own errors, and from the spread of chunks,
/// whose bases were fitted separately. The share of the mass that settled particles find where
/// chains hardly go is added in squares, as far as it exceeds chance: no spread shows it.
double error_of_replicates(const MethodTable& table, const RunResults& results);

/// The doubts about replicates of one density.
std::vector<Doubt> doubts_of_replicates(const MethodTable& table, const RunResults& results);

}  // namespace crais
