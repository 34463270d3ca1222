/// @file
/// Factories by name. Each .cpp file enrols what it defines: there is no central list.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/spec.h"
#include "util/error.h"

namespace crais {

/// The registered factories of `Interface`. Every factory receives `Args`.
template <typename Interface, typename... Args>
class Registry {
 public:
  using Factory = std::function<std::unique_ptr<Interface>(Spec&, Args...)>;
  struct Entry {
    std::string usage;    // "cess:R"
    std::string summary;  // one line
    std::string example;  // a specification that works, for the conformance tests
    Factory factory;
  };

  static Registry& instance() {
    static Registry registry;
    return registry;
  }

  /// All entries, by name. Throws Error kInternal if a name was enrolled twice. Enrolment runs at
  /// load time, where an exception could not be caught, so this function and `make` check instead.
  const std::map<std::string, Entry>& entries() const {
    if (!taken_twice_.empty())
      throw internal_error("the name '", taken_twice_, "' is registered twice");
    return entries_;
  }

  std::vector<std::string> usages() const {
    std::vector<std::string> list;
    for (const auto& [name, entry] : entries()) list.push_back(entry.usage);
    return list;
  }

  bool contains(const std::string& name) const { return entries_.count(name) > 0; }

  /// Makes the object that `text` specifies. Throws Error kArgument for an unknown name (the
  /// message lists the choices) or an unknown parameter.
  std::unique_ptr<Interface> make(const std::string& what, const std::string& text,
                                  Args... args) const {
    Spec spec(text);
    const auto entry = entries().find(spec.name());
    if (entry == entries().end())
      throw argument_error("unknown ", what, " '", spec.name(), "'; choose from ", join(usages()));
    auto made = entry->second.factory(spec, std::forward<Args>(args)...);
    spec.finish();
    return made;
  }

  /// The name is the beginning of the usage.
  void add(Entry entry) {
    const std::string name = entry.usage.substr(0, entry.usage.find_first_of(":["));
    if (!entries_.emplace(name, std::move(entry)).second) taken_twice_ = name;
  }

 private:
  std::map<std::string, Entry> entries_;
  std::string taken_twice_;
};

/// Enrols a factory at load time, under the name with which `usage` begins.
template <typename R>
struct Enrol {
  Enrol(std::string usage, std::string summary, std::string example, typename R::Factory factory) {
    R::instance().add(
        {std::move(usage), std::move(summary), std::move(example), std::move(factory)});
  }
};

/// The factory of a class without parameters.
template <typename T>
inline constexpr auto factory_of =  // NOLINT(readability-identifier-naming): it stands for a call
    [](Spec&, const auto&... args) { return std::make_unique<T>(args...); };

}  // namespace crais
