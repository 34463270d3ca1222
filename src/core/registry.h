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

  void add(const std::string& name, Entry entry) {
    if (!entries_.emplace(name, std::move(entry)).second) taken_twice_ = name;
  }

 private:
  std::map<std::string, Entry> entries_;
  std::string taken_twice_;
};

/// Enrols a factory at load time: `const Enrol<ScheduleRegistry> kEnrol("linear", {...});`
///
///     const crais::Enrol<crais::ScheduleRegistry> kQuadratic(
///         "quadratic", {"quadratic", "beta = (t/T)^2", "quadratic",  // usage, summary, example
///                       [](crais::Spec&, const crais::ScheduleOptions& options) {
///                         return crais::make_heuristic(options.steps,
///                                                      [](double t) { return t * t; });
///                       }});
template <typename R>
struct Enrol {
  Enrol(const std::string& name, typename R::Entry entry) {
    R::instance().add(name, std::move(entry));
  }
};

}  // namespace crais
