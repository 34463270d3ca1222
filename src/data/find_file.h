// Where a data file lies: the same name, plain or .gz, in a list of folders.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace crais {

/// The folders that hold data: `data_dir`, or, where that is empty, $CRAIS_DATA and ./data.
std::vector<std::filesystem::path> data_roots(const std::string& data_dir);

/// The first of folder/name and folder/name.gz that is a file.
std::optional<std::filesystem::path> find_plain_or_gz(
    const std::vector<std::filesystem::path>& folders, const std::string& name);

/// All that find_plain_or_gz looked at, for the message when it found nothing.
std::string paths_tried(const std::vector<std::filesystem::path>& folders, const std::string& name);

}  // namespace crais
