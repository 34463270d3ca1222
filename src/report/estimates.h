// What every estimating program says of its methods, in tables and files.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "evaluation/summary.h"
#include "report/table.h"

namespace crais {

/// `problem` is what the program calls one: "image".
nlohmann::json to_json(const MethodSummary& summary, const std::string& problem);

/// What is printed: for people, or for programs.
enum class Format { kTable, kJson, kCsv };
/// "table", "json", "csv". Throws Error kArgument otherwise.
Format parse_format(const std::string& name);

/// A table of methods: `own` columns of the program, then what every program says of a method, what
/// matters most first; `details` come where there is room for all, or below.
class MethodsTable {
 public:
  MethodsTable(const std::string& problem, const std::string& title,
               const std::vector<std::string>& own, const std::vector<std::string>& details = {});
  void add(const MethodSummary& summary, const std::vector<std::string>& own,
           const std::vector<std::string>& details = {});
  const Table& table() const { return table_; }

 private:
  Table table_;
};

/// "results" of a summary as CSV: a line a method, a column a field ("ess.mean"), in the order of
/// the first line; empty where a method lacks one.
std::string results_csv(const nlohmann::json& results);

/// Prints `summary`, with its "results", on stdout as programs read it; false for Format::kTable.
bool print_for_programs(const nlohmann::json& summary, Format format);

/// The bounds of the methods that have two, if any has. `lower` are the methods' means.
std::optional<Table> certificate_table(const std::vector<MethodSummary>& summaries,
                                       const std::vector<double>& lower, const std::string& title);

/// PROBLEM,method,repeat,VALUE,...: a line per estimate with the columns of ChunkRun, flags as
/// words; `truth` adds a column "error".
std::string estimates_csv(const RunResults& results, const std::string& problem,
                          const std::string& value, std::optional<double> truth = {});

/// PROBLEM,step,beta,step_size,divergence,accept_prob,ess: a line per transition; PROBLEM is "all"
/// for a shared plan. The last three are what the pilot saw: its estimate of the divergence that is
/// left (nats at alpha 0), the mean acceptance, the ESS as a fraction.
std::string schedule_csv(const RunResults& results, const std::string& problem);

/// "Flagged as a whole: replicates of this one density contradict each other; raise `budget`." and
/// so on, a line a doubt; "" for none. Options are fields in backquotes.
std::string doubts_of(const MethodSummary& summary);

/// A line on the error of a mean that --mean-error in `settings` asked for; "" where nothing did,
/// or the method does not anneal.
std::string error_of_mean(const nlohmann::json& settings, const MethodSummary& summary,
                          double monte_carlo_std_error);

/// Two digits; "-" for an error that one chain, or one draw, does not show.
std::string known_or_dash(double error);

}  // namespace crais
