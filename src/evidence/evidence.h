/// @file
/// log Z of one density, whose replicates share one fit.
#pragma once

#include <memory>
#include <string>

#include "evaluation/log_normalizer.h"

namespace crais {

/// The driver of replicates of one density. Those of a chunk share a fit, by the base mixture if
/// the options say auto, and then a plan, in rounds with `error`. With `witness` settled particles,
/// or estimates by the mixture if the base is another, look for what chains have missed.
std::shared_ptr<const Driver> evidence_driver();

/// estimate_log_normalizer of replicates of one density.
///
///     auto target = crais::TargetRegistry::instance().make("target", "u11", {4});
///     crais::Result r = crais::estimate_evidence(*target, {.error = 0.05});
Result estimate_evidence(const Target& replicates, const EstimateOptions& options = {},
                         const LogNormalizerRun& run = {});

/// True for the base that covers a density of any shape.
bool is_mixture(const std::string& base);

}  // namespace crais
