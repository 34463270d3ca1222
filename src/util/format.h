// Numbers and words as people and shells read them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace crais {

/// The fewest digits that read back as the same number; "nan", "inf", "-inf".
std::string shortest(double value);
std::string shortest(float value);

/// A fixed number of decimals: "-87.31"; from 1e15 on four digits: "1.388e+200".
std::string fixed(double value, int decimals);
/// About `digits` significant digits without an exponent where one can do without: "3.2", "0.0041".
std::string significant(double value, int digits = 3);

/// A value with its standard error, both to the error's second digit: "-87.31 +- 0.21".
/// Without a usable error (nan, inf) the value alone, to two decimals.
std::string with_error(double value, double error);

/// "0.42 s", "12.3 s", "1 min 23 s", "2 h 05 min", "3 d 04 h".
std::string duration(double seconds);

/// "1,024".
std::string with_commas(int64_t number);

/// On one line, and harmless to a terminal: control characters as "\\n" and "\\x1b".
std::string printable(const std::string& text);

/// One word to bash, whatever it holds.
std::string shell_quoted(const std::string& word);

/// "2 x 3"; "one number" of no dimension.
std::string shape_text(const std::vector<int64_t>& shape);

}  // namespace crais
