// Power paths of several orders on images.
#pragma once

#include <ATen/ATen.h>

#include "programs/reproduce/vae_experiment.h"
#include "report/page.h"

namespace crais {

/// 64 transitions along power paths of order alpha, by a linear schedule and by constant rate
/// stretched to 64. Alpha (and delta) are chosen honestly, by the highest mean log p(x) on seeds of
/// their own, and by an oracle, by the least error against `truth` [N] on the seeds that are
/// reported.
void orders_tables(const VaeExperiment& experiment, const at::Tensor& truth,
                   const ExperimentOptions& options, Page& page);

}  // namespace crais
