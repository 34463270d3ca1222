// The frame of every program: exit codes, one-line errors, a checked stdout.
#pragma once

#include <functional>
#include <string>

#include "util/error.h"

namespace crais {

/// The library's message in the words of `program`: options in backquotes (`max_steps`) become
/// flags (--max-steps).
std::string with_flags(const std::string& program, const std::string& message);

/// Thrown to end a program successfully with a text on stdout (--help, --version).
struct Answer {
  std::string text;
};

/// Runs the body and returns the program's exit code. No exception leaves this function.
///
/// An Error becomes "program: message" on stderr and sets the exit code. A fault of LibTorch or of
/// crais becomes one line too (its first) and code 70. If stdout could not be written (a full
/// disk), the code is 74. If its reader has closed it (`| head`), the work continues and the code
/// is the body's.
int run_main(const std::string& program, const std::function<int()>& body);

// What run_main does before the body and after it, for a program with another main function.
void begin_program();
void finish_output();

/// Makes the allocator keep freed memory: tensors of every move come and go, and the system would
/// have to supply and clear each returned page again. Only for glibc; run_main calls it.
void keep_freed_memory();

}  // namespace crais
