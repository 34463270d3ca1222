#include "report/run_report.h"

#include <iostream>

#include "evaluation/comparison.h"
#include "util/files.h"

namespace crais {

using nlohmann::json;

extern const char* const kPageTemplate;  // page.html with Chart.js (cmake/report_page.cmake)

std::vector<std::string> warnings_of(const json& run) {
  std::vector<std::string> warnings;
  for (const json& warning : run.value("warnings", json()))
    if (warning.is_string()) warnings.push_back(warning);
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
    for (const ReportFile& file : report.files)
      std::cout << (&file == &report.files.front() ? "" : ", ") << file.name;
    std::cout << "\n";
  }
  std::cout << std::flush;
}

std::string html_of(const RunPage& page, const RunResults& results, const json& summary) {
  json run = {
      {"title", page.title},         {"problem", page.problem},   {"quantity", page.quantity},
      {"command", page.command},     {"findings", page.findings}, {"pictures", page.pictures},
      {"particles", page.particles}, {"summary", summary},        {"indices", indices_of(results)}};
  for (const auto& [table, notes] : page.tables)
    run["tables"].push_back({{"title", table.title()},
                             {"headers", table.headers()},
                             {"rows", table.rows()},
                             {"notes", notes}});
  for (const MethodTable& table : tables(results)) {
    const ImageEstimates means(table);
    json flags;
    for (const int64_t any : table.any_flags()) flags.push_back(flag_words(any));
    run["estimates"].push_back(
        {{"method", table.method},
         {"value", means.value},
         {"std_error", means.std_error},
         {"ess", to_column(table.has("ess") ? table.matrix("ess").mean(0) : at::Tensor())},
         {"flags", flags}});
  }
  const bool is_shared = results.state.plan || results.chunks.empty();
  if (const auto& plan = is_shared ? results.state.plan : results.chunks.begin()->second.plan) {
    run["schedule"] = schedule_of(*plan, 0);
    run["schedule"]["shared"] = is_shared;
  }
  std::string text = run.dump(-1, ' ', /*ensure_ascii=*/false, json::error_handler_t::replace);
  // A "</script>" in a name would end the script that holds it.
  for (size_t i = text.find('<'); i != std::string::npos; i = text.find('<', i))
    text.replace(i, 1, "\\u003c");
  static const std::string kPlace = "@RUN@";
  std::string html = kPageTemplate;
  return html.replace(html.find(kPlace), kPlace.size(), text);
}

}  // namespace crais
