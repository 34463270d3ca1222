// The flags that each kind of images takes.
#pragma once

#include <set>
#include <string>

#include "cli/command_line.h"

namespace crais {

/// The kinds of images that flags depend on.
enum class FlagsOf {
  kMnist,
  kArray,      // from a file or from memory
  kSimulated,  // images drawn from the model
};

/// The given flags among those on images.
std::set<std::string> given_of_table(const CommandLine& cli);

/// Throws Error kArgument, which begins with `where`, for the first of the `given` flags that has
/// no effect for `kind`.
void refuse_idle_flags(const std::set<std::string>& given, FlagsOf kind, const std::string& where);

/// True if one of the `given` flags exists for this kind.
bool has_flag_of(const std::set<std::string>& given, FlagsOf kind);

}  // namespace crais
