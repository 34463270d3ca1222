// The complete state of a stopped training run, in one file.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "models/trainer.h"

namespace crais {

/// The settings that determine a run's weights, as JSON. A resumed run must repeat them.
nlohmann::json training_settings(const TrainerOptions& options, const VaeArchitecture& architecture,
                                 const std::string& data, const std::string& data_md5);

/// Writes atomically: a kill at any moment leaves the old state or the new one.
void write_training_state(const std::filesystem::path& path, const TrainerState& state,
                          const nlohmann::json& settings);

/// Throws Error: kNoInput if the file is missing, kData if it is damaged, kArgument that names the
/// first setting that differs from `settings`.
TrainerState read_training_state(const std::filesystem::path& path, const nlohmann::json& settings);

}  // namespace crais
