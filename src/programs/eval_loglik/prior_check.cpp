#include <cmath>
#include <optional>

#include "evaluation/comparison.h"
#include "evaluation/log_normalizer.h"
#include "programs/eval_loglik/model.h"
#include "util/error.h"
#include "util/format.h"

namespace crais {
namespace {

constexpr double kNoMatter = 0.02;  // nats
constexpr double kErrors = 5;       // that count as more than chance
constexpr double kRough = 0.1;      // nats: by so much, chains may have missed more
constexpr double kVague = 0.3;      // nats: an error of so much says nothing

/// The logarithm of the integral of p(z).
struct Mass {
  double log, std_error;
  bool is_even;  // chains agree, as they do where none has missed a mode

  bool is_near(double other) const {
    return std::abs(log - other) < kNoMatter + kErrors * std_error;
  }
  std::string text() const {
    return std::string(std_error < kRough ? "" : "at least ") + "exp(" + fixed(log, 2) + " +- " +
           significant(std::max(std_error, 0.001), 1) + ")";
  }
};

/// Nothing where the density has no plan, or is no number: the run itself will say so.
std::optional<Mass> mass_of(const Target& prior, const std::string& base, int64_t steps,
                            int64_t threads) {
  EstimateOptions options;
  options.base = base;
  options.steps = steps;
  options.force_dtype = "float32";
  options.pilot_problems = prior.num_problems();
  try {
    const Result found = estimate_log_normalizer(prior, options, {.threads = threads});
    const at::Tensor values = found.value;
    if (!values.isfinite().all().item<bool>()) return {};
    const double std_error = std_error_of_mean(values);
    return Mass{values.mean().item<double>(), std_error,
                std_error < kNoMatter && found.ess.mean().item<double>() > 0.5 &&
                    found.flags.eq(0).all().item<bool>()};
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kInterrupted) throw;
    return {};
  }
}

}  // namespace

std::string check_prior(const EvalModel& model, bool is_accepted, int64_t threads) {
  const std::shared_ptr<const Target> prior = model.prior();
  if (!prior) return "";
  constexpr int64_t kMostFitted = 64;  // dimensions: beyond, a fit takes longer than all the rest
  const std::string base = prior->dim() > kMostFitted ? "prior" : "auto";
  const std::optional<Mass> first = mass_of(*prior, base, EstimateOptions{}.steps, threads);
  if (!first) return "";
  const std::string unknown =
      "whether p(z) integrates to 1 is not known: chains found " + first->text();
  if (first->is_near(0)) return first->std_error > kVague ? unknown : "";
  // An estimate errs by what its chains have missed: then longer chains from elsewhere find more.
  if (first->log < 0) {
    const std::optional<Mass> second = mass_of(*prior, "prior", 512, threads);
    if (second && second->is_near(0)) return "";
    const bool is_certain = second && first->is_even && second->is_even;
    if (!is_certain || !second->is_near(first->log)) return unknown;
  }
  const std::string found =
      "p(z) integrates to " + first->text() + ", not 1, and moves log p(x) by as much";
  if (!is_accepted)
    throw data_error(found +
                     ": is a constant left out, or a mean in place of a sum? `accept_prior` takes "
                     "it as it is");
  return found;
}

}  // namespace crais
