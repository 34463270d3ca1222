/// @file
/// Errors of planning: why no plan gets from the base to the target, with the numbers that show it.
#pragma once

#include <cstdint>
#include <string>

#include "core/cost.h"
#include "util/error.h"

namespace crais {

/// No plan that gets from the base to the target can be made or learned.
class PlanError : public Error {
 public:
  explicit PlanError(const std::string& message) : Error(ErrorKind::kArgument, message) {}
};

/// A schedule cannot get from this base to the target.
class ScheduleError : public PlanError {
 public:
  enum class Reason {
    kStalled,     // the schedule asks for a step of length 0
    kNoOverlap,   // the schedule would end before the particles have reached the target
    kUnfinished,  // the schedule has not arrived after the allowed number of steps
  };
  ScheduleError(Reason reason, double beta, int64_t step, const std::string& message)
      : PlanError(message), reason_(reason), beta_(beta), step_(step) {}
  Reason reason() const { return reason_; }
  double beta() const { return beta_; }   ///< the last beta of the schedule
  int64_t step() const { return step_; }  ///< the number of transitions up to that beta

  Cost spent;  ///< the cost of the run that asked for the schedule

 private:
  Reason reason_;
  double beta_;
  int64_t step_;
};

/// The budget is too small, or the pilots have used all of it.
class BudgetError : public PlanError {
 public:
  BudgetError(double least, const std::string& message) : PlanError(message), least_(least) {}
  double least() const { return least_; }  ///< enough evaluations a problem; NaN: unknown

 private:
  double least_;
};

/// The chains, or the numbers learned from them, are no longer finite.
class DivergedError : public PlanError {
 public:
  using PlanError::PlanError;
};

}  // namespace crais
