#include "evaluation/doubts.h"

#include <algorithm>
#include <cmath>

#include "evaluation/summary.h"

namespace crais {
namespace {

constexpr double kSlight = 0.05;  // nats: disagreement that does not matter

/// True if the values are much farther from their weighted mean than their own errors say, by chi^2
/// over its degrees of freedom. Values of large error do not move that mean.
bool contradict(const at::Tensor& value, const at::Tensor& std_error) {
  constexpr double kFar = 6.0;
  const auto count = static_cast<double>(value.numel());
  if (count < 3) return false;
  const double spread = value.std().item<double>();
  const at::Tensor error = std_error.clamp_min(1e-6), weight = error.square().reciprocal();
  const at::Tensor mean = (weight * value).sum() / weight.sum();
  const double chi2 = ((value - mean) / error).square().sum().item<double>() / (count - 1);
  return spread > kSlight && !(chi2 < kFar);
}

/// True if log Z without the highest replicate is lower by more than the error, nats.
bool rests_on_one(const at::Tensor& value, double error) {
  constexpr double kLeast = 0.01;  // nats
  const auto count = static_cast<double>(value.numel());
  const double rest = 1 - at::softmax(value.flatten(), 0).max().item<double>();
  return count > 2 && -std::log(rest * count / (count - 1)) > std::max(kLeast, error);
}

/// True if the witness is higher by more than both errors and the bias of the estimate allow.
bool refutes(const Witness& witness, double mean, double error, double bias) {
  constexpr double kErrors = 3.0, kLeast = 0.02;
  // A second opinion that is itself doubtful confirms nothing: the density is hard.
  const double errors = witness.is_doubtful ? 0 : kErrors;
  const double allowed =
      errors * std::hypot(witness.error, error) + (std::isnan(bias) ? 0 : std::abs(bias));
  return witness.value - mean > std::max(kLeast, allowed);
}

/// The mass that settled particles found where forward particles hardly go, as a share of all mass.
struct HardlySeen {
  double share = 0;   // mean over chunks, beyond what is expected there
  double chance = 0;  // standard error of the share
};

/// Shares below `least_expected` count as that in the error of chance.
HardlySeen hardly_seen(const RunResults& results, double least_expected) {
  double excess = 0, variance = 0, chunks = 0;
  for (const auto& [number, chunk] : results.chunks) {
    if (!chunk.settled) continue;
    const SettledShare& settled = *chunk.settled;
    ++chunks;
    excess += settled.above - settled.expected;
    variance += std::max(settled.expected, least_expected) / settled.num_effective;
  }
  if (chunks == 0) return {};
  return {excess / chunks, std::sqrt(variance) / chunks};
}

/// True if more settled particles than chance explains end where forward particles hardly go. Some
/// descend from the same forward particle; the limit allows for that.
bool settled_elsewhere(const RunResults& results) {
  constexpr double kErrors = 3.5, kLeastExpected = 0.01;
  const HardlySeen found = hardly_seen(results, kLeastExpected);
  return found.share > 0 && !(found.share < kErrors * found.chance);
}

}  // namespace

const DoubtEntry& entry_of(Doubt doubt) {
  static const std::vector<DoubtEntry> kAll = {
      {Doubt::kMostFlagged, "flags", "half of the replicates or more are flagged",
       "lower `error` and raise `max_evals`, or raise `budget` or `steps`"},
      {Doubt::kReplicates, "replicates", "replicates of this one density contradict each other",
       "lower `error`, raise `budget`, or try the `base` mixture"},
      {Doubt::kOne, "one", "one replicate moves log Z by more than its error",
       "lower `error` or raise `budget`"},
      {Doubt::kRefuted, "refuted",
       "a second opinion, also a lower bound, is higher: the chains missed a part of the density",
       "leave the `base` to auto"},
      {Doubt::kSettled, "settled",
       "particles that settle under the density go where chains from the base have hardly been: "
       "the chains missed a neck or a tail",
       "lower `error` or raise `budget`"},
      {Doubt::kUndefined, "undefined",
       "the density is NaN or +inf at points that chains visited; these points count as zero",
       "make the density return -inf where it is zero, and a finite number elsewhere"},
      {Doubt::kTail, "tail",
       "the weights of a replicate may have no variance: its error is above 0.5 nats, and Z may be "
       "infinite",
       "look for a pole of the density or a tail that its base lacks, and give another `base`"},
      {Doubt::kControl, "control",
       "on images that the model draws, an upper bound of log p(x) is higher than the estimate by "
       "more than errors and bias explain: chains miss a part of the posterior",
       "raise `budget`, or try the `base` modes or prior; the estimate stays a lower bound"},
      {Doubt::kUnreached, "error",
       "on images that the model draws, the gap between the bounds is above `error`",
       "raise `max_evals`"},
      {Doubt::kHarder, "harder",
       "these images are clearly harder than those that the model draws, so the control says "
       "little of them",
       "raise `budget` until their errors are alike"}};
  return *std::find_if(kAll.begin(), kAll.end(),
                       [&](const DoubtEntry& entry) { return entry.doubt == doubt; });
}

double error_of_replicates(const MethodTable& table, const RunResults& results) {
  const double error =
      std_error_of_replicates(table.matrix("log_normalizer"), table.matrix("std_error"));
  constexpr double kLeastExpected = 0.003;  // the forward share above a witness's quantile
  constexpr double kErrors = 2.0;           // of the share: less is chance
  const HardlySeen found = hardly_seen(results, kLeastExpected);
  const double beyond_chance = found.share * found.share - found.chance * found.chance;
  const double missed = found.share > kErrors * found.chance ? std::sqrt(beyond_chance) : 0;
  return std::hypot(error, missed);
}

std::vector<Doubt> doubts_of_replicates(const MethodTable& table, const RunResults& results) {
  constexpr double kFewUndefined = 2e-3;  // of all evaluations: steps that went astray
  const at::Tensor value = table.matrix("log_normalizer");
  const double mean = value.mean().item<double>(), error = error_of_replicates(table, results);
  std::vector<Doubt> doubts;
  int64_t flagged = 0, few_effective = 0;
  for (const auto& repeat : table.flags)
    for (const int64_t flags : repeat) {
      flagged += flags != 0 ? 1 : 0;
      few_effective += flags & kFewEffective ? 1 : 0;
    }
  if (2 * flagged >= value.numel()) doubts.push_back(Doubt::kMostFlagged);
  if (contradict(value, table.matrix("std_error"))) doubts.push_back(Doubt::kReplicates);
  if (rests_on_one(value, error)) doubts.push_back(Doubt::kOne);
  if (results.state.witness &&
      refutes(*results.state.witness, mean, error, table.matrix("bias").mean().item<double>()))
    doubts.push_back(Doubt::kRefuted);
  if (settled_elsewhere(results)) doubts.push_back(Doubt::kSettled);
  if (static_cast<double>(table.num_nonfinite) >
      kFewUndefined * static_cast<double>(table.cost.densities))
    doubts.push_back(Doubt::kUndefined);
  // The weights of one replicate may have no variance: the others have only not met them yet.
  if (few_effective > 0) doubts.push_back(Doubt::kTail);
  return doubts;
}

}  // namespace crais
