/// @file
/// "name:value,key=value": how flags name a schedule, a path, a target and their parameters.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace crais {

/// A parsed specification. Values are read with range checks; `finish` rejects what nobody read.
///
/// "power:0.5", "constant-rate:delta=32" and "constant-rate:32,max-step=0.1" are specifications; a
/// value without a key belongs to the first parameter that the reader asks for. After "file:" the
/// whole rest is one value. A value that is a specification itself stands in parentheses where it
/// has commas: "variational:from=(best:1,starts=4)".
///
///     crais::Spec spec("cess:0.7");
///     double ratio = spec.number("ratio", 0.0, 1.0);
///     spec.finish();
class Spec {
 public:
  /// Throws Error kArgument if the text is not of that form.
  explicit Spec(const std::string& text);

  const std::string& text() const { return text_; }
  const std::string& name() const { return name_; }

  /// The number under `key`, in [low, high]. Throws Error kArgument if it is absent and there is no
  /// default, is not a number, or lies outside.
  double number(const std::string& key, double low, double high,
                std::optional<double> fallback = {});
  int64_t integer(const std::string& key, int64_t low, int64_t high,
                  std::optional<int64_t> fallback = {});
  std::string word(const std::string& key, std::optional<std::string> fallback = {});

  /// Throws Error kArgument naming every parameter that was given and not read.
  void finish() const;

 private:
  std::optional<std::string> take(const std::string& key);

  std::string text_;
  std::string name_;
  std::optional<std::string> unnamed_;
  std::map<std::string, std::string> values_;
  std::vector<std::string> known_;
};

/// The most that anything counted may be: chains, steps, images. More is a slip of the keyboard.
constexpr int64_t kMostCount = 1'000'000'000;

/// The whole text as a number. Throws Error kArgument, naming `what`, if it is not one.
double parse_number(const std::string& text, const std::string& what);
int64_t parse_integer(const std::string& text, const std::string& what);

/// "a, b, c".
std::string join(const std::vector<std::string>& words, const std::string& separator = ", ");
std::vector<std::string> split(const std::string& text, char separator);

}  // namespace crais
