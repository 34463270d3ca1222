// Calls into Python from C++ threads, and the errors that come back.
#pragma once

#include <torch/csrc/utils/pybind.h>

#include "util/error.h"

namespace crais {

/// Holds the GIL for one call. What Python raises passes through C++ and comes out as it was, with
/// its traceback; Ctrl-C stops the run instead (see run_problems).
template <typename Call>
auto from_python(const Call& call) {
  const py::gil_scoped_acquire gil;
  try {
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
    return call();
  } catch (const py::error_already_set& error) {
    if (!error.matches(PyExc_KeyboardInterrupt)) throw;
    throw Error(ErrorKind::kInterrupted, "interrupted; nothing is done yet");
  }
}

/// From now on the module's errors are those of crais.errors.
void translate_errors();

}  // namespace crais
