// The results of a run in every form in which they are stored or shown.
#pragma once

#include <algorithm>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "evaluation/result_store.h"
#include "evaluation/run_problems.h"
#include "evaluation/summary.h"
#include "report/estimates.h"

namespace crais {

/// A file of a report. Its content is made when the file is written.
struct ReportFile {
  std::string name;
  std::function<std::string()> content;
};

/// The report of a run of any estimating program. If the run was stopped, or another process
/// reports it, only `results`, `run` and `progress` are set.
// NOLINTNEXTLINE(bugprone-exception-escape): the JSON library asserts as it moves
struct RunReport {
  RunResults results;
  Progressed progress;
  nlohmann::json run;             // all that determines the results: run.json
  nlohmann::json summary;         // summary.json
  std::vector<ReportFile> files;  // the first is summary.json
  /// Tables for people, in lines of at most `width` columns (0: no limit), and what few ask for.
  std::function<std::string(int width)> text, details;

  std::string elsewhere = {};  // a line for a process whose part is done, if another one reports

  bool is_complete() const {
    return progress.done == progress.total &&
           std::none_of(results.chunks.begin(), results.chunks.end(),
                        [](const auto& entry) { return entry.second.is_cut; });
  }
};

/// The reasons why the numbers of a run may mislead: `warnings` of its record or summary.
std::vector<std::string> warnings_of(const nlohmann::json& run);
/// The warnings, each on lines of its own, broken at `width` columns (0: never).
std::string warning_lines(const std::vector<std::string>& warnings, int width);

/// Writes the reports to the folder. The first of `files` comes last: the presence of summary.json
/// then means that all files are complete.
void write_files(const RunReport& report, const std::filesystem::path& folder);

/// Writes all files of a run with `--out`: run.json, plan, chunks and reports. Throws Error as
/// ResultStore does.
void save(const RunReport& report, const std::filesystem::path& folder,
          const StoreOptions& options);

/// Prints on stdout: the summary as "json" or its results as "csv", else the tables, and the folder
/// of the files (if not empty).
void print(const RunReport& report, const std::string& folder, const std::string& format,
           int width);

/// What report.html shows beside a summary.
struct RunPage {
  std::string title;
  std::string problem;       // the program's word for a problem: "image"
  std::string quantity;      // what it estimates: "log p(x)"
  std::string command = {};  // repeats the run
  NotedTables tables = {};
  std::vector<std::string> findings = {};              // what is doubtful, and what would mend it
  nlohmann::json pictures = nlohmann::json::object();  // data URLs by index of the problem
  nlohmann::json particles = nullptr;                  // points of the plane, [x, y]
};

/// The page, one file that loads no other: the template page.html, which shows JSON. It holds
/// `summary`, the content of summary.json, the estimates of each method and the schedule: the
/// shared one, or that of the first problem.
std::string html_of(const RunPage& page, const RunResults& results, const nlohmann::json& summary);

}  // namespace crais
