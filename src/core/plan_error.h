/// @file
/// Why no plan gets from the base to the target: what went wrong, and its numbers.
#pragma once

#include <cstdint>
#include <string>

#include "core/cost.h"
#include "util/error.h"

namespace crais {

/// No plan can be made, or learned, that gets from the base to the target.
class PlanError : public Error {
 public:
  explicit PlanError(const std::string& message) : Error(ErrorKind::kArgument, message) {}
};

/// A schedule cannot bridge the way from this base.
class ScheduleError : public PlanError {
 public:
  enum class Reason {
    kStalled,     // it asks for a step that is none
    kNoOverlap,   // it would end before the particles have seen the target
    kUnfinished,  // it has not arrived after as many steps as are allowed
  };
  ScheduleError(Reason reason, double beta, int64_t step, const std::string& message)
      : PlanError(message), reason_(reason), beta_(beta), step_(step) {}
  Reason reason() const { return reason_; }
  double beta() const { return beta_; }   ///< how far it has come
  int64_t step() const { return step_; }  ///< in how many transitions

  Cost spent;  ///< by the run that had asked for the schedule

 private:
  Reason reason_;
  double beta_;
  int64_t step_;
};

/// The budget is too small, or its pilots have used it up.
class BudgetError : public PlanError {
 public:
  BudgetError(double least, const std::string& message) : PlanError(message), least_(least) {}
  double least() const { return least_; }  ///< evaluations of a problem that would do; NaN: unknown

 private:
  double least_;
};

/// The chains, or what is learned from them, are no longer finite.
class DivergedError : public PlanError {
 public:
  using PlanError::PlanError;
};

}  // namespace crais
