#include "models/file_fields.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace crais {
namespace {

using nlohmann::json;

std::string shape_text(at::IntArrayRef shape) {
  std::string text;
  for (const int64_t size : shape)
    text += (text.empty() ? "" : ", ") + (size < 0 ? "any" : std::to_string(size));
  return "[" + text + "]";
}

bool fits(at::IntArrayRef found, at::IntArrayRef wanted) {
  return std::equal(found.begin(), found.end(), wanted.begin(), wanted.end(),
                    [](int64_t a, int64_t b) { return b < 0 ? a > 0 : a == b; });
}

}  // namespace

FileFields::FileFields(const json& object, std::string where)
    : object_(object), where_(std::move(where)) {
  if (!object_.is_object()) throw data_error(where_, " is not an object");
}

bool FileFields::has(const std::string& key) const {
  const auto value = object_.find(key);
  return value != object_.end() && !value->is_null();
}

const json& FileFields::at(const std::string& key) const {
  const auto value = object_.find(key);
  if (value == object_.end()) throw data_error(where_, ": \"", key, "\" is missing");
  return *value;
}

std::string FileFields::text(const std::string& key) const {
  constexpr size_t kMost = 4096;
  if (!at(key).is_string() || at(key).get_ref<const std::string&>().size() > kMost)
    throw wrong(key, "a text of at most ", kMost, " bytes");
  auto text = at(key).get<std::string>();
  if (std::any_of(text.begin(), text.end(),
                  [](char c) { return static_cast<unsigned char>(c) < 32 || c == 127; }))
    throw wrong(key, "a text without control characters");
  return text;
}

bool FileFields::flag(const std::string& key) const {
  if (!at(key).is_boolean()) throw wrong(key, "true or false");
  return at(key).get<bool>();
}

double FileFields::number(const std::string& key) const {
  if (!at(key).is_number() || !std::isfinite(at(key).get<double>()))
    throw wrong(key, "a finite number");
  return at(key).get<double>();
}

std::optional<double> FileFields::number_or_null(const std::string& key) const {
  return at(key).is_null() ? std::nullopt : std::optional<double>(number(key));
}

uint64_t FileFields::natural(const std::string& key) const {
  if (!at(key).is_number_unsigned()) throw wrong(key, "a whole number of at least 0");
  return at(key).get<uint64_t>();
}

int64_t FileFields::integer(const std::string& key, int64_t low, int64_t high) const {
  return checked(at(key), key, low, high);
}

int64_t FileFields::checked(const json& value, const std::string& key, int64_t low,
                            int64_t high) const {
  if (!value.is_number_unsigned() || value.get<uint64_t>() > static_cast<uint64_t>(high) ||
      value.get<int64_t>() < low)
    throw wrong(key, "a whole number in ", low, "..", high);
  return value.get<int64_t>();
}

std::vector<int64_t> FileFields::integers(const std::string& key, size_t least, size_t most,
                                          int64_t low, int64_t high) const {
  const json& list = at(key);
  if (!list.is_array() || list.size() < least || list.size() > most)
    throw wrong(key, "a list of ", (least == most ? "" : std::to_string(least) + " to "), most,
                " whole numbers");
  std::vector<int64_t> numbers;
  for (const json& value : list) numbers.push_back(checked(value, key, low, high));
  return numbers;
}

std::vector<std::string> FileFields::words(const std::string& key) const {
  const json& list = at(key);
  const auto is_word = [](const json& word) {
    return word.is_string() && word.get_ref<const std::string&>().size() <= 1000;
  };
  if (!list.is_array() || list.size() > 1000 || !std::all_of(list.begin(), list.end(), is_word))
    throw wrong(key, "a list of words");
  return list.get<std::vector<std::string>>();
}

FileFields FileFields::object(const std::string& key) const {
  if (!at(key).is_object()) throw wrong(key, "described");
  return {at(key), where_ + ": \"" + key + "\""};
}

at::Tensor tensor_of(const SafeTensors& file, const std::string& name, at::IntArrayRef shape,
                     const std::string& where, at::ScalarType type) {
  const std::string place = where + ": tensor \"" + name + "\" ",
                    expected = std::string(at::toString(type)) + " " + shape_text(shape);
  const at::Tensor* found = file.find(name);
  if (!found) throw data_error(place, "is missing; it should be ", expected);
  if (found->scalar_type() != type || !fits(found->sizes(), shape))
    throw data_error(place, "is ", at::toString(found->scalar_type()), " ",
                     shape_text(found->sizes()), ", expected ", expected);
  if (!at::isfinite(*found).all().item<bool>())
    throw data_error(place, "holds NaN or infinite values");
  return *found;
}

}  // namespace crais
