// The common parts of the pages of all estimating programs.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "evaluation/summary.h"
#include "report/html.h"
#include "report/plot.h"
#include "report/table.h"

namespace crais {

/// "within 0.013 nats": two Monte Carlo standard errors plus the bias that they suggest, rounded up
/// to two digits; "of unknown error" if both are unknown.
std::string trust_words(double std_error, double bias);

/// The number of flagged estimates: "Not to be trusted: 3 flagged estimates of 1,000."
std::string flagged_words(const MethodSummary& summary);

/// Adds a table with its title as the caption, without the rules between rows.
void add_table(HtmlPage& page, const Table& table);

/// Adds a histogram, unless no value is finite.
void add_histogram(HtmlPage& page, const Histogram& histogram, const std::string& alt);

/// Adds the annealing: the temperatures of the shared plan, or of the first problem's own plan, and
/// the pilot's observations at them. Adds nothing for methods that do not anneal.
void add_annealing(HtmlPage& page, const RunResults& results);

/// Adds the ESS of the weights of each problem, for each method.
void add_effective_sizes(HtmlPage& page, const std::vector<MethodTable>& methods,
                         const std::string& problem);

/// Adds a sentence on whether more chains or more problems would reduce the error of the mean.
void add_what_helps(HtmlPage& page, double chains_error, double data_error,
                    const std::string& problem);

/// Adds the command, and in a fold the settings and digests of `summary`.
void add_record(HtmlPage& page, const nlohmann::json& summary, const std::string& command);

}  // namespace crais
