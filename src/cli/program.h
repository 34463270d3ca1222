// What surrounds every program's work: exit codes, one-line errors, a checked stdout.
#pragma once

#include <functional>
#include <string>

#include "util/error.h"

namespace crais {

/// sysexits.h
int exit_code(ErrorKind kind);

/// The library's message for a user of `program`: options named as fields (`max_steps`) become
/// flags (--max-steps).
std::string with_flags(const std::string& program, const std::string& message);

/// Thrown to end a program well with a text on stdout (--help, --version).
struct Answer {
  std::string text;
};

/// Runs the body and returns the program's exit code; never lets an exception out.
///
/// An Error becomes "program: message" on stderr and its code. A fault of LibTorch or of ours is
/// one line too (its first) and 70. If what was printed could not be written (a full disk) the code
/// is 74; if its reader went away (`| head`) the work goes on and the code is the body's.
int run_main(const std::string& program, const std::function<int()>& body);

/// Leaves freed memory with the process: the tensors of every move come and go, and each page that
/// is given back has to be asked for and cleared again. glibc only; run_main does it.
void keep_freed_memory();

}  // namespace crais
