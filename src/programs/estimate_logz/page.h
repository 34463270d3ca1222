// report.html of an estimate.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "programs/estimate_logz/expectations.h"
#include "programs/estimate_logz/report.h"

namespace crais {

/// The page of finished results; `summary` is what summary.json says.
std::string page_of(const LogzResults& results, const std::vector<LogzSummary>& methods,
                    const std::vector<TargetExpectation>& expectations,
                    const nlohmann::json& summary);

}  // namespace crais
