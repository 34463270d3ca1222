#include "programs/eval_loglik/flag_table.h"

#include <algorithm>
#include <map>
#include <vector>

#include "core/spec.h"
#include "util/error.h"

namespace crais {
namespace {

using Kind = FlagsOf;

/// Each flag with the kinds of images that it affects. docs/reference.md has this table.
const std::map<std::string, std::vector<Kind>>& table() {
  static const std::map<std::string, std::vector<Kind>> kTable = {
      {"data", {Kind::kArray}},
      {"labels", {Kind::kArray, Kind::kMnist}},
      {"data-dir", {Kind::kMnist}},
      {"split", {Kind::kMnist}},
      {"binarisation", {Kind::kArray, Kind::kMnist}},
      {"scale", {Kind::kArray, Kind::kMnist}},
      {"dequantise", {Kind::kArray, Kind::kMnist}},
      {"limit", {Kind::kArray, Kind::kMnist, Kind::kSimulated}},
      {"indices", {Kind::kArray, Kind::kMnist, Kind::kSimulated}},
      {"simulate", {Kind::kSimulated}},
  };
  return kTable;
}

/// Names of the kinds, in the order of FlagsOf.
const std::string kNames[] = {"MNIST", "an array", "images drawn from the model"};

const std::string& name_of(Kind kind) { return kNames[static_cast<size_t>(kind)]; }

bool takes(const std::vector<Kind>& kinds, Kind kind) {
  return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
}

}  // namespace

std::set<std::string> given_of_table(const CommandLine& cli) {
  std::set<std::string> given;
  for (const auto& [flag, kinds] : table())
    if (cli.given(flag)) given.insert(flag);
  return given;
}

void refuse_idle_flags(const std::set<std::string>& given, FlagsOf kind, const std::string& where) {
  for (const std::string& flag : given) {
    const std::vector<Kind>& kinds = table().at(flag);
    if (takes(kinds, kind)) continue;
    std::vector<std::string> others;
    for (const Kind other : kinds) others.push_back(name_of(other));
    throw argument_error(where + ": --" + flag + " does nothing for " + name_of(kind) +
                         ", but for " + join(others, " or ") + "; leave it out");
  }
}

bool has_flag_of(const std::set<std::string>& given, FlagsOf kind) {
  return std::any_of(given.begin(), given.end(),
                     [&](const std::string& flag) { return takes(table().at(flag), kind); });
}

}  // namespace crais
