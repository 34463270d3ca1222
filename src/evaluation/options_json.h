// Options in files.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "evaluation/options.h"

namespace crais {

/// Every option under its field's name; null where it is absent.
nlohmann::json to_json(const EstimateOptions& options);

}  // namespace crais
