/// @file
/// Specifications "name:value,key=value": flags name a schedule, a path or a target and its
/// parameters this way.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace crais {

/// A parsed specification. Readers check the range of each value. `finish` rejects parameters that
/// nobody has read.
///
/// "power:0.5", "constant-rate:delta=32" and "constant-rate:32,max-step=0.1" are specifications. A
/// value without a key belongs to the first parameter that the reader asks for. After "file:" the
/// whole rest is one value. If a value is itself a specification with commas, it stands in
/// parentheses: "variational:from=(modes:1,starts=4)".
///
///     crais::Spec spec("cess:0.7");
///     double ratio = spec.number("ratio", 0.0, 1.0);
///     spec.finish();
class Spec {
 public:
  /// Throws Error kArgument if the text does not have this form.
  explicit Spec(const std::string& text);

  const std::string& text() const { return text_; }
  const std::string& name() const { return name_; }

  /// The number under `key`, in [low, high]. Throws Error kArgument if the value is absent without
  /// a default, is not a number, or lies outside the range.
  double number(const std::string& key, double low, double high,
                std::optional<double> fallback = {});
  int64_t integer(const std::string& key, int64_t low, int64_t high,
                  std::optional<int64_t> fallback = {});
  std::string word(const std::string& key, std::optional<std::string> fallback = {});

  /// Throws Error kArgument that names every parameter that was given and not read.
  void finish() const;

 private:
  std::optional<std::string> take(const std::string& key);

  std::string text_;
  std::string name_;
  std::optional<std::string> unnamed_;
  std::map<std::string, std::string> values_;
  std::vector<std::string> known_;
};

/// The largest allowed count of chains, steps or images. A larger number is a typing error.
constexpr int64_t kMostCount = 1'000'000'000;

/// The whole text as a number. Throws Error kArgument that names `what` if the text is not a
/// number.
double parse_number(const std::string& text, const std::string& what);
int64_t parse_integer(const std::string& text, const std::string& what);

/// The words in one text: "a, b, c".
std::string join(const std::vector<std::string>& words, const std::string& separator = ", ");
std::vector<std::string> split(const std::string& text, char separator);

}  // namespace crais
