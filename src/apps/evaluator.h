// Estimates log p(x) of one chunk of images: what threads do side by side.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/eval_settings.h"
#include "core/problem.h"
#include "estimates/method.h"
#include "models/vae.h"
#include "targets/vae_posterior.h"

namespace crais {

/// One method, one repeat, one chunk. Vectors have one entry an image.
struct ChunkRun {
  std::string method;
  int64_t repeat = 0;
  std::vector<double> log_likelihood;  // nats
  std::vector<double> std_error;       // Monte Carlo, nats
  std::vector<double> ess;             // fraction
  std::vector<double> accept_prob;     // empty for methods without moves
  int64_t num_nonfinite = 0;
  Cost cost;             // summed over images and particles
  double seconds = 0.0;  // of one thread
};

struct ChunkResult {
  int64_t chunk = 0;
  std::vector<int64_t> indices;
  std::vector<ChunkRun> runs;
  std::optional<Plan> plan;  // with --per-image: this chunk's own
  Cost tuning;               // of that plan
};

/// Everything but the images, built once and shared by threads.
class Evaluator {
 public:
  /// `vae` is on the device and of the dtype to compute with. Throws Error kUsage for unknown
  /// names.
  Evaluator(const Vae& vae, const EstimatorSettings& settings);

  bool anneals() const;
  /// True if every chunk uses one plan, which `tune_shared` has to make first.
  bool has_shared_plan() const { return anneals() && settings_.pilot.shared; }
  bool needs_pilot() const;
  bool is_adaptive() const { return rule_->is_adaptive(); }

  /// Makes the shared plan, on these images [N,D] if it takes a pilot. Returns the pilot's cost.
  Cost tune_shared(const at::Tensor& images);
  void set_shared_plan(Plan plan) { shared_plan_ = std::move(plan); }
  const Plan& shared_plan() const { return *shared_plan_; }

  /// Seeded by (seed, chunk, purpose) alone.
  ChunkResult evaluate(int64_t chunk, const at::Tensor& images) const;

 private:
  AffineMap base_of(const at::Tensor& images) const;
  /// Centred by a pilot where the path asks for it; the pilot's cost goes to `tuning`.
  Problem centred(const Target& target, const AffineMap& base, uint64_t stream, Cost& tuning) const;
  Plan tune_on(const Problem& problem, uint64_t stream) const;

  const Vae& vae_;
  std::shared_ptr<const FusedDecoder> fused_;  // of vae_; null: ATen
  EstimatorSettings settings_;
  std::optional<double> encoder_widening_;  // absent: the prior is the base
  std::unique_ptr<Path> path_;
  std::unique_ptr<ScheduleRule> rule_;
  std::unique_ptr<Transition> transition_;
  std::vector<std::unique_ptr<Method>> methods_;
  std::optional<Plan> shared_plan_;
};

}  // namespace crais
