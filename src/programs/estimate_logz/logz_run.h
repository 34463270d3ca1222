// An estimate of a target's log normaliser, for the program and for Python.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <functional>
#include <memory>

#include "core/target.h"
#include "evaluation/run_problems.h"
#include "programs/estimate_logz/settings.h"
#include "report/run_report.h"

namespace crais {

/// The registered target of the settings.
std::shared_ptr<const Target> named_target(const LogzSettings& settings);

/// Estimates, and writes the files of the settings. If the observer stops the run, the report has
/// the finished chunks. Throws Error kArgument if settings and target exclude each other.
RunReport run_logz(LogzSettings settings, const std::shared_ptr<const Target>& target,
                   RunObserver& observer);

/// Makes a target for the settings, which it may add to.
using TargetOf = std::function<std::shared_ptr<const Target>(LogzSettings& settings)>;

/// The program: estimates, and prints and writes what the command line asks for.
void estimate_logz(const CommandLine& cli, const TargetOf& target_of);

/// `count` rows of z [K,2], resampled systematically by their weights [K]. The chosen rows have
/// equal weight. float64.
at::Tensor thinned(const at::Tensor& z, const at::Tensor& log_w, int64_t count, uint64_t seed);

}  // namespace crais
