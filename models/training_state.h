// Everything a stopped training run needs to go on, in one file.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "models/trainer.h"

namespace crais {

/// What decides a run's weights, as JSON that a resumed run must repeat.
nlohmann::json training_settings(const TrainerOptions& options, const VaeArchitecture& architecture,
                                 const std::string& data, const std::string& data_md5);

/// Atomic: a kill at any moment leaves the old state or the new one.
void write_training_state(const std::filesystem::path& path, const TrainerState& state,
                          const nlohmann::json& settings);

/// Throws Error: kNoInput if the file is missing, kData if it is damaged, kArgument naming the
/// first setting that differs from `settings`.
TrainerState read_training_state(const std::filesystem::path& path, const nlohmann::json& settings);

}  // namespace crais
