// What the pages of all estimating programs show.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "evaluation/summary.h"
#include "report/html.h"
#include "report/plot.h"
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

/// Where chains went: the temperatures of the shared plan, or of the first problem's own, and what
/// the pilot saw there. Nothing for methods that do not anneal.
void add_annealing(HtmlPage& page, const RunResults& results);

/// ESS of each problem's weights, method by method.
void add_effective_sizes(HtmlPage& page, const std::vector<MethodTable>& methods,
                         const std::string& problem);

/// Whether more chains make the mean more certain, or more problems.
void add_what_helps(HtmlPage& page, double chains_error, double data_error,
                    const std::string& problem);

/// The command, and the settings and digests of `summary` in a closed fold.
void add_record(HtmlPage& page, const nlohmann::json& summary, const std::string& command);

}  // namespace crais
