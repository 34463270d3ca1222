// What the pages of all estimating programs show.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "evaluation/summary.h"
#include "report/histogram.h"
#include "report/html.h"
#include "report/table.h"

namespace crais {

/// "within 0.013 nats": two Monte Carlo standard errors and the bias that they suggest, rounded up
/// to two digits; "of unknown error" without either.
std::string trust_words(double std_error, double bias);

/// "Not to be trusted: 3 flagged estimates of 1,000."
std::string flagged_words(const MethodSummary& summary);

/// A table with its title as the caption; rules between rows are left out.
void add_table(HtmlPage& page, const Table& table);

/// A histogram, unless no value is finite.
void add_histogram(HtmlPage& page, const Histogram& histogram, const std::string& alt);

/// Where chains went: the temperatures of the shared plan, or of the first problems' own, and what
/// the pilot saw there. Nothing for methods that do not anneal.
void add_annealing(HtmlPage& page, const RunResults& results);

/// ESS of each problem's weights, method by method.
void add_effective_sizes(HtmlPage& page, const std::vector<MethodTable>& methods,
                         const std::string& problem);

/// The error of a mean against its cost: what other numbers of chains would cost and bring, by
/// 1 / sqrt(chains) from the error that was found. `floor` > 0 is what more chains do not mend, the
/// error of the data; `evaluations` are those of a problem.
void add_cost(HtmlPage& page, double std_error, double evaluations, double floor,
              const std::string& problem);

/// The command, the settings and digests of `summary`, how to cite; closed folds.
void add_record(HtmlPage& page, const nlohmann::json& summary, const std::string& command);

}  // namespace crais
