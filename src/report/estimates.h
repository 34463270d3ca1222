// The report of methods in tables and files, for every estimating program.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "evaluation/summary.h"
#include "report/table.h"

namespace crais {

/// A summary as JSON. `problem` is the program's word for a problem: "image".
nlohmann::json to_json(const MethodSummary& summary, const std::string& problem);

/// The row of a method in the table that everybody reads: the program's `own` columns, cost and
/// flags. `problem` is the people's word: "image", "replicate".
Table::NamedCells row_of(const MethodSummary& summary, const std::string& problem,
                         const Table::NamedCells& own);
/// The row of a method in the table of details.
Table::NamedCells details_of(const MethodSummary& summary, const std::string& problem,
                             const Table::NamedCells& own = {});
/// The two bounds of a method that has a certificate. `lower` is its mean, nats.
Table::NamedCells bounds_of(const MethodSummary& summary, double lower);

/// Tables with explanations of them, a paragraph each.
using NotedTables = std::vector<std::pair<Table, std::vector<std::string>>>;
/// The tables in lines of at most `width` columns (0: no limit).
std::string text_of(const NotedTables& tables, int width);

/// PROBLEM,method,repeat,VALUE,...: a line for each estimate with the columns of ChunkRun, flags as
/// words. `truth` adds a column "error".
std::string estimates_csv(const RunResults& results, const std::string& problem,
                          const std::string& value, std::optional<double> truth = {});

/// The column of a plan up to beta = 1: the rest pads short columns. "beta", "divergence" and "ess"
/// of each temperature, "step_size" and "accept_prob" of each transition; empty: unknown.
std::map<std::string, std::vector<double>> schedule_of(const Plan& plan, int64_t column);

/// PROBLEM,step,beta,step_size,divergence,accept_prob,ess: a line for each temperature. PROBLEM is
/// "all" for a shared plan. The last three columns are the pilot's: the estimated remaining
/// divergence (nats at alpha 0), the mean acceptance, the ESS as a fraction.
std::string schedule_csv(const RunResults& results, const std::string& problem);

/// The doubts about a summary, one on each line: "Flagged as a whole: replicates of this one
/// density contradict each other; raise `budget`." Empty if there are none. Options are fields in
/// backquotes.
std::string doubts_of(const MethodSummary& summary);

/// The value with two digits; "-" if it is unknown, as an error is with one chain or one draw.
std::string known_or_dash(double value);

}  // namespace crais
