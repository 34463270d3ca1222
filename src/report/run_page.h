// report.html: one template, page.html, which shows the run's JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "evaluation/summary.h"
#include "report/table.h"

namespace crais {

/// What a page shows.
struct RunPage {
  std::string title;
  std::string problem;       // the program's word for a problem: "image"
  std::string quantity;      // what it estimates: "log p(x)"
  std::string command = {};  // repeats the run
  std::vector<std::pair<Table, std::string>> tables = {};  // each with an explanation, or ""
  std::vector<std::string> findings = {};              // what is doubtful, and what would mend it
  nlohmann::json pictures = nlohmann::json::object();  // data URLs by index of the problem
  nlohmann::json particles = nullptr;                  // points of the plane, [x, y]
};

/// The page, one file that loads no other. It holds `summary`, the content of summary.json, the
/// estimates of each method and the schedule: the shared one, or that of the first problem.
std::string html_of(const RunPage& page, const RunResults& results, const nlohmann::json& summary);

}  // namespace crais
