#include "report/run_report.h"

#include <iostream>
#include <utility>

#include "report/table.h"
#include "util/files.h"

namespace crais {

std::vector<std::string> warnings_of(const nlohmann::json& run) {
  const auto list = run.find("warnings");
  if (list == run.end() || !list->is_array()) return {};
  std::vector<std::string> warnings;
  for (const nlohmann::json& warning : *list)
    if (warning.is_string()) warnings.push_back(warning.get<std::string>());
  return warnings;
}

std::string warning_lines(const std::vector<std::string>& warnings, int width) {
  std::string lines;
  for (const std::string& warning : warnings) lines += wrapped("WARNING: " + warning + ".", width);
  return lines;
}

void write_files(const RunReport& report, const std::filesystem::path& folder) {
  for (auto file = report.files.rbegin(); file != report.files.rend(); ++file)
    write_file_atomic(folder / file->name, file->content());
}

void save(const RunReport& report, const std::filesystem::path& folder,
          const StoreOptions& options) {
  const ResultStore store(folder, report.run, options);
  store.write_state(report.results.state);
  for (const auto* chunks : {&report.results.chunks, &report.results.control})
    for (const auto& [number, chunk] : *chunks) store.write_chunk(chunk);
  write_files(report, folder);
}

void print(const RunReport& report, const std::string& folder, Format format, int width) {
  if (print_for_programs(report.summary, format)) return;
  std::cout << report.text(width);
  if (!folder.empty()) {
    std::cout << "Files: " << folder << "/";
    for (size_t i = 0; i < report.files.size(); ++i)
      std::cout << (i == 0 ? "" : ", ") << report.files[i].name;
    std::cout << "\n";
  }
  std::cout << std::flush;
}

}  // namespace crais
