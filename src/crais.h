/// @file
/// The public headers of crais: `#include <crais/crais.h>`.
///
///     crais::FunctionTarget target({.num_problems = n, .dim = d}, log_joint);  // [P,K,D] -> [P,K]
///     crais::Result r = crais::estimate_log_normalizer(target, {.chains = 16, .seed = 1});
#pragma once

#include "bases/base.h"
#include "core/log_math.h"
#include "core/plan_error.h"
#include "core/rng.h"
#include "core/schedule.h"
#include "core/target.h"
#include "core/transition.h"
#include "estimates/estimate.h"
#include "estimates/expectation.h"
#include "estimates/method.h"
#include "evaluation/estimator.h"
#include "evaluation/log_normalizer.h"
#include "evaluation/options.h"
#include "evaluation/run_problems.h"
#include "evidence/evidence.h"
#include "models/checkpoint.h"
#include "paths/descent.h"
#include "report/progress.h"
#include "samplers/plan.h"
#include "schedules/adaptive.h"
#include "schedules/fixed.h"
#include "targets/decoder_posterior.h"
#include "targets/decoder_target.h"
#include "targets/function_target.h"
#include "targets/gaussian_mixture.h"
#include "targets/product.h"
#include "targets/replicated.h"
#include "transitions/metropolis.h"
#include "util/error.h"
#include "util/interrupt.h"
#include "util/version.h"
