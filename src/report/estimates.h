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

/// A table of methods whose columns after the method and `headers` are the same in every program.
class MethodsTable {
 public:
  MethodsTable(const std::vector<std::string>& headers, const std::string& problem,
               const std::string& title);
  void add(const MethodSummary& summary, const std::vector<std::string>& cells);
  std::string text() const { return table_.text(); }

 private:
  Table table_;
};

/// The bounds of the methods that have two; "" if none has. `lower` are the methods' means.
std::string certificate_table(const std::vector<MethodSummary>& summaries,
                              const std::vector<double>& lower, const std::string& title);

/// PROBLEM,method,repeat,VALUE,...: a line per estimate with the columns of ChunkRun, flags as
/// words; `truth` adds a column "error".
std::string estimates_csv(const RunResults& results, const std::string& problem,
                          const std::string& value, std::optional<double> truth = {});

/// PROBLEM,step,beta,step_size,divergence: a line per transition; PROBLEM is "all" for a shared
/// plan, the divergence (nats at alpha 0) is the pilot's estimate of what is left.
std::string schedule_csv(const RunResults& results, const std::string& problem);

}  // namespace crais
