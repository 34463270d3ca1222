// Which flags each kind of model and of images takes.
#pragma once

#include <set>
#include <string>

#include "cli/command_line.h"

namespace crais {

/// What flags can be about: models, then images.
enum class FlagsOf {
  kCheckpoint,   // of train-vae
  kExported,     // by crais.export, which says all of itself
  kStateDict,    // of another program
  kTorchScript,  // of another program
  kMnist,
  kArray,      // of a file, or in memory
  kSimulated,  // images drawn from the model
};

/// Of the flags that are about models or images, those that were given.
std::set<std::string> given_of_table(const CommandLine& cli);

/// Throws Error kArgument, whose message `where` begins, for the first of the `given` flags that is
/// about what `kind` is one of, models or images, and does nothing for that kind.
void refuse_idle_flags(const std::set<std::string>& given, FlagsOf kind, const std::string& where);

/// True if one of the `given` flags is there for this kind.
bool has_flag_of(const std::set<std::string>& given, FlagsOf kind);

}  // namespace crais
