#include <cmath>
#include <optional>

#include "evaluation/comparison.h"
#include "evaluation/log_normalizer.h"
#include "programs/eval_loglik/model.h"
#include "util/error.h"
#include "util/format.h"

namespace crais {
namespace {

constexpr double kNoMatter = 0.02;  // nats: smaller deviations do not matter
constexpr double kErrors = 5;       // standard errors that are more than chance
constexpr double kRough = 0.1;      // nats: with this error, chains may have missed mass
constexpr double kVague = 0.3;      // nats: an estimate with this error says nothing

/// An estimate of the log integral of p(z).
struct Mass {
  double log, std_error;
  bool is_even;  // chains agree, which suggests that none has missed a mode

  bool is_near(double other) const {
    return std::abs(log - other) < kNoMatter + kErrors * std_error;
  }
  std::string text() const {
    return std::string(std_error < kRough ? "" : "at least ") + "exp(" + fixed(log, 2) + " +- " +
           significant(std::max(std_error, 0.001), 1) + ")";
  }
};

/// The log integral. Returns nothing if the density has no plan or is not finite: the run itself
/// reports that.
std::optional<Mass> mass_of(const Target& prior, const std::string& base, int64_t steps,
                            int64_t threads) {
  EstimateOptions options{.base = base,
                          .steps = steps,
                          .force_dtype = "float32",
                          .pilot_problems = prior.num_problems()};
  try {
    const Result result = estimate_log_normalizer(prior, options, {.threads = threads});
    const at::Tensor values = result.value;
    if (!values.isfinite().all().item<bool>()) return {};
    const double std_error = std_error_of_mean(values);
    return Mass{values.mean().item<double>(), std_error,
                std_error < kNoMatter && result.ess.mean().item<double>() > 0.5 &&
                    result.flags.eq(0).all().item<bool>()};
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kInterrupted) throw;
    return {};
  }
}

}  // namespace

std::string check_prior(const EvalModel& model, bool is_accepted, int64_t threads) {
  const std::shared_ptr<const Target> prior = model.prior();
  if (!prior) return "";
  constexpr int64_t kMostFitted = 64;  // dimensions; above, a fit would dominate the cost
  const std::string base = prior->dim() > kMostFitted ? "prior" : "auto";
  const std::optional<Mass> first = mass_of(*prior, base, EstimateOptions{}.steps, threads);
  if (!first) return "";
  const std::string unknown =
      "it is unknown whether p(z) integrates to 1: chains found " + first->text();
  if (first->is_near(0)) return first->std_error > kVague ? unknown : "";
  // If chains have missed mass, longer chains from another base find more.
  if (first->log < 0) {
    const std::optional<Mass> second = mass_of(*prior, "prior", 512, threads);
    if (second && second->is_near(0)) return "";
    const bool is_certain = second && first->is_even && second->is_even;
    if (!is_certain || !second->is_near(first->log)) return unknown;
  }
  const std::string doubt =
      "p(z) integrates to " + first->text() + ", not 1, which shifts log p(x) by the same amount";
  if (!is_accepted)
    throw data_error(
        doubt,
        ": look for a missing constant, or a mean in place of a sum; `accept_prior` accepts it");
  return doubt;
}

}  // namespace crais
