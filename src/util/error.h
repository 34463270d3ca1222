/// @file
/// Errors: each has one line of text (what went wrong, where, what would be right) and a kind. The
/// programs turn the kind into an exit code.
#pragma once

#include <c10/util/StringUtil.h>

#include <stdexcept>
#include <string>

namespace crais {

enum class ErrorKind {
  kArgument,      // a value that the caller gave: an option, a name, a shape
  kData,          // a file's content, or a density that is not finite where it must be
  kNoInput,       // a file that is missing or cannot be read
  kNoDevice,      // a device that is not there
  kInternal,      // a fault of ours
  kCannotCreate,  // an output that cannot be made
  kIo,            // a write that failed (a full disk)
  kInterrupted,   // a signal; can be resumed
};

/// Every error that crais throws. A message names options as fields in backquotes, `max_steps`.
/// Callers that use other names (flags of a program, keywords of a language) replace the backquoted
/// names.
///
///     try {
///       crais::estimate_log_normalizer(target, {.schedule = "cess:0.9999", .max_steps = 10});
///     } catch (const crais::ScheduleError& error) {
///       std::printf("stuck at beta = %g: %s\n", error.beta(), error.what());
///     }
class Error : public std::runtime_error {
 public:
  /// The message is all parts in a row, as in c10::str: texts and whole numbers.
  template <class... Parts>
  Error(ErrorKind kind, const Parts&... message)
      : std::runtime_error(c10::str(message...)), kind_(kind) {}
  ErrorKind kind() const { return kind_; }

 private:
  ErrorKind kind_;
};

template <class... Parts>
Error argument_error(const Parts&... message) {
  return {ErrorKind::kArgument, message...};
}
template <class... Parts>
Error data_error(const Parts&... message) {
  return {ErrorKind::kData, message...};
}
template <class... Parts>
Error no_input_error(const Parts&... message) {
  return {ErrorKind::kNoInput, message...};
}
template <class... Parts>
Error internal_error(const Parts&... message) {
  return {ErrorKind::kInternal, message...};
}

}  // namespace crais
