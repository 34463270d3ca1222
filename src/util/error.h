// Errors a user can act on: one line of text and a sysexits code.
#pragma once

#include <stdexcept>
#include <string>

namespace crais {

/// The exit codes of every program (sysexits.h).
enum class ExitCode : int {
  kUsage = 64,         // a flag or a value on the command line
  kData = 65,          // a file's content
  kNoInput = 66,       // a file that is missing or cannot be read
  kNoDevice = 69,      // a device that is not there
  kInternal = 70,      // a fault of ours
  kCannotCreate = 73,  // an output that cannot be made
  kIo = 74,            // a write that failed (a full disk)
  kInterrupted = 75,   // Ctrl-C; can be resumed
};

/// What went wrong, where, and what would be right, in one line.
class Error : public std::runtime_error {
 public:
  Error(ExitCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ExitCode code() const { return code_; }

 private:
  ExitCode code_;
};

inline Error usage_error(const std::string& message) { return {ExitCode::kUsage, message}; }
inline Error data_error(const std::string& message) { return {ExitCode::kData, message}; }
inline Error no_input_error(const std::string& message) { return {ExitCode::kNoInput, message}; }

}  // namespace crais
