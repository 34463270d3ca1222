// Calls into Python from C++ threads, and the errors that come back.
#pragma once

#include <torch/csrc/utils/pybind.h>

#include <exception>

#include "util/error.h"

namespace crais {

/// What Python raised: the library lets an Error through, and Python gets it back as it was.
class Raised : public Error {
 public:
  Raised() : Error(ErrorKind::kArgument, "raised in Python"), cause_(std::current_exception()) {}
  const std::exception_ptr& cause() const { return cause_; }

 private:
  std::exception_ptr cause_;
};

/// Holds the GIL for one call. What Python raises comes out as Raised. Two exceptions: Ctrl-C stops
/// the run (see run_problems), and memory that is short goes to who asked for it, as from LibTorch.
template <typename Call>
auto from_python(const Call& call) {
  const py::gil_scoped_acquire gil;
  try {
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
    return call();
  } catch (const py::error_already_set& error) {
    if (error.matches(PyExc_KeyboardInterrupt))
      throw Error(ErrorKind::kInterrupted, "interrupted; nothing is done yet");
    if (error.matches(py::module_::import("torch").attr("OutOfMemoryError"))) throw;
    throw Raised();
  }
}

/// A call that no work is lost for: false if Ctrl-C came in it.
template <typename Call>
bool told(const Call& call) {
  try {
    from_python(call);
    return true;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kInterrupted) throw;
    return false;
  }
}

/// From now on the module's errors are those of crais.errors.
void translate_errors();

}  // namespace crais
