// The common parts of the paper's tables of 128 and 512 dimensions.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "programs/reproduce/density_experiment.h"
#include "util/error.h"

namespace crais {

constexpr int64_t kHighSteps = 64;  // transitions of all schedules

/// A published error of log Z, its spread, and its number of transitions.
struct PublishedError {
  double error, spread, transitions;
};

/// An experiment "NAME[:DIM]" in 128 or 512 dimensions. Without DIM: in 128, and with --full in
/// both.
class HighDimensions : public Experiment {
 public:
  /// Throws Error kArgument for any other dimension.
  explicit HighDimensions(Spec& spec) : dim_(spec.integer("dim", 0, 512, 0)) {
    if (dim_ != 0 && dim_ != 128 && dim_ != 512)
      throw argument_error("'" + spec.text() + "': the published dimensions are 128 and 512");
  }

  void run(const ExperimentOptions& options, Page& page) const override {
    if (dim_ != 512) run_in(128, options, page);
    if (dim_ == 512 || (dim_ == 0 && options.full)) run_in(512, options, page);
  }

 private:
  virtual void run_in(int64_t dim, const ExperimentOptions& options, Page& page) const = 0;

  int64_t dim_;
};

template <typename E>
struct EnrolHighDimensions : Enrol<ExperimentRegistry> {
  EnrolHighDimensions(const std::string& name, const std::string& summary)
      : Enrol(name, {name + "[:DIM]", summary, name,
                     [](Spec& spec) { return std::make_unique<E>(spec); }}) {}
};

}  // namespace crais
