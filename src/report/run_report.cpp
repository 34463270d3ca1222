#include "report/run_report.h"

#include <algorithm>
#include <iostream>
#include <map>

#include "evaluation/comparison.h"
#include "io/csv.h"
#include "io/json.h"
#include "util/files.h"
#include "util/format.h"

namespace crais {

using nlohmann::json;

namespace {

/// "results" of a summary as CSV: a line for each method, a column for each field ("ess.mean"), in
/// the order of the first line. A cell is empty if the method lacks the field.
std::string results_csv(const json& results) {
  std::vector<std::string> names;
  std::vector<std::map<std::string, std::string>> rows;
  for (const json& result : results) {
    rows.emplace_back();
    const auto put = [&](const std::string& name, const json& value) {
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
      if (value.is_string())
        rows.back()[name] = value.get<std::string>();
      else if (value.is_number())
        rows.back()[name] = value.is_number_float() ? shortest(value.get<double>()) : value.dump();
    };
    for (const auto& [key, value] : result.items())
      if (value.is_object())
        for (const auto& [inner, entry] : value.items()) put(key + "." + inner, entry);
      else
        put(key, value);
  }
  CsvWriter csv(names);
  for (auto& row : rows) {
    std::vector<CsvCell> cells;
    cells.reserve(names.size());
    for (const auto& name : names) cells.emplace_back(row[name]);
    csv.add_row(cells);
  }
  return csv.text();
}

}  // namespace

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

void print(const RunReport& report, const std::string& folder, const std::string& format,
           int width) {
  if (format == "json") std::cout << to_text(report.summary);
  if (format == "csv") std::cout << results_csv(report.summary.at("results"));
  if (format == "table") std::cout << report.text(width);
  if (format == "table" && !folder.empty()) {
    std::cout << "Files: " << folder << "/";
    for (const ReportFile& file : report.files)
      std::cout << (&file == &report.files.front() ? "" : ", ") << file.name;
    std::cout << "\n";
  }
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
