// What a run has come to, in every form in which it is kept or shown.
#pragma once

#include <algorithm>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "evaluation/result_store.h"
#include "evaluation/run_problems.h"
#include "evaluation/summary.h"
#include "report/estimates.h"

namespace crais {

/// A file of a report, made when it is written.
struct ReportFile {
  std::string name;
  std::function<std::string()> content;

  ReportFile(std::string file, std::function<std::string()> make)
      : name(std::move(file)), content(std::move(make)) {}
  ReportFile(std::string file, const std::string& text)
      : name(std::move(file)), content([text] { return text; }) {}
};

/// A run of any estimating program. Where it was stopped or is elsewhere, only `results`, `run` and
/// `progress` are there.
// NOLINTNEXTLINE(bugprone-exception-escape): the JSON library asserts as it moves
struct RunReport {
  RunResults results;
  Progressed progress;
  nlohmann::json run;             // what decided the results: run.json
  nlohmann::json summary;         // summary.json
  std::vector<ReportFile> files;  // the first is summary.json
  /// Tables for people, in lines of at most `width` columns (0: no limit).
  std::function<std::string(int width)> text;

  bool is_elsewhere = false;  // complete, and another worker reports

  bool is_complete() const {
    return progress.done == progress.total &&
           std::none_of(results.chunks.begin(), results.chunks.end(),
                        [](const auto& entry) { return entry.second.is_cut; });
  }
};

/// Why the numbers of a run may not mean what one thinks: `warnings` of its record or summary.
std::vector<std::string> warnings_of(const nlohmann::json& run);
/// Each of them in a line of its own, broken at `width` columns (0: never).
std::string warning_lines(const std::vector<std::string>& warnings, int width);

/// Writes the reports to the folder, the first of `files` last: summary.json then says that all are
/// there.
void write_files(const RunReport& report, const std::filesystem::path& folder);

/// Writes all that a run with `--out` leaves: run.json, plan, chunks and reports. Throws Error as
/// ResultStore does.
void save(const RunReport& report, const std::filesystem::path& folder,
          const StoreOptions& options);

/// On stdout: the summary as JSON or CSV, or the tables, and where the files are ("": there are
/// none).
void print(const RunReport& report, const std::string& folder, Format format, int width);

}  // namespace crais
