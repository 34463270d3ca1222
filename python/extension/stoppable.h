// Ctrl-C while the library computes for Python.
#pragma once

#include <torch/csrc/utils/pybind.h>

#include "util/error.h"

namespace crais {

/// While it lives, Ctrl-C stops the library between two evaluations: Python by itself looks for
/// signals only when its code runs. Python's own handler is called as well. All this only in
/// Python's main thread, and where the handler is Python's first one: another decides for itself.
///
/// The runs of all threads stop together, for there is one flag a process; it falls when the last
/// run has ended. Whoever makes and destroys one holds the GIL.
class SignalsToLibrary {
 public:
  SignalsToLibrary();
  ~SignalsToLibrary();
  SignalsToLibrary(const SignalsToLibrary&) = delete;
  SignalsToLibrary& operator=(const SignalsToLibrary&) = delete;

  /// Where Ctrl-C came, sets `run.stopped`, whose caller then raises Interrupted. Python's own
  /// KeyboardInterrupt, still to be raised, is taken back.
  void settle(const py::object& run) const;

 private:
  bool installed_ = false;
};

/// What `work` returns. Ctrl-C stops it.
template <typename Work>
auto stoppable(const py::object& run, const Work& work) {
  const SignalsToLibrary signals;
  try {
    auto result = work();
    signals.settle(run);
    return result;
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kInterrupted) signals.settle(run);
    throw;
  }
}

}  // namespace crais
