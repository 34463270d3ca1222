// Numbers and words as text for people and for shells.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace crais {

/// The shortest decimal text that reads back as the same number; "nan", "inf", "-inf".
std::string shortest(double value);
std::string shortest(float value);

/// The number with a fixed number of decimals: "-87.31". From 1e15 on, four digits and an exponent:
/// "1.388e+200".
std::string fixed(double value, int decimals);
/// The number with about `digits` significant digits, without an exponent if possible: "3.2",
/// "0.0041".
std::string significant(double value, int digits = 3);

/// A value and its standard error, both to the error's second digit: "-87.31 +- 0.21". If the error
/// is nan or inf, the value alone with two decimals.
std::string with_error(double value, double error);

/// A time in seconds as text: "0.42 s", "12.3 s", "1 min 23 s", "2 h 05 min", "3 d 04 h".
std::string duration(double seconds);

/// A number with thousands separated: "1,024".
std::string with_commas(int64_t number);

/// The text without spaces and tabs at its ends.
std::string trimmed(const std::string& text);

/// The text on one line, with control characters escaped ("\\n", "\\x1b") so that it cannot change
/// a terminal. Words, and values in single quotes, are cut after 200 bytes.
std::string printable(const std::string& text);

/// The word quoted for bash, as one argument.
std::string shell_quoted(const std::string& word);

/// A shape as text: "2 x 3"; "one number" for the empty shape.
std::string shape_text(const std::vector<int64_t>& shape);

}  // namespace crais
