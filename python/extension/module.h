// The parts of crais._crais, a file each, and what its runs share: calls back into Python from C++
// threads, the errors that come back, Ctrl-C.
#pragma once

#include <c10/core/GradMode.h>
#include <torch/csrc/utils/pybind.h>

#include <atomic>
#include <exception>

#include "cli/command_line.h"
#include "evaluation/run_problems.h"
#include "util/error.h"
#include "util/interrupt.h"
#include "util/parallel.h"

namespace crais {

/// What surrounds a run: Python's other threads go on, LibTorch does one operation on one thread,
/// and computes no gradient that is not asked for. The end restores everything.
struct Released {
  py::gil_scoped_release no_gil;
  OneThreadPerOperation one_thread;
  c10::NoGradGuard no_grad;
};

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

/// Tells a `crais.native.Run` how a run goes. Whoever makes it holds the GIL; the run does not.
class PythonObserver : public RunObserver {
 public:
  /// `value` is what the running mean is of: "log p".
  PythonObserver(py::object run, const std::string& value) : run_(std::move(run)), mean_(value) {}

  void begin(int64_t done, int64_t total) override {
    tell([&] { run_.attr("show")(done, total); });
  }
  void chunk(const ChunkResult& result) override {
    const std::string status = mean_.add(result);
    tell([&] { run_.attr("advance")(result.indices.size(), status); });
  }
  bool stop() override {
    tell([&] { stopped_ = stopped_ || run_.attr("stopped").cast<bool>(); });
    return stopped_ || interrupted();
  }

 private:
  /// A finished chunk is kept whatever comes: Ctrl-C stops what is to follow.
  template <typename Call>
  void tell(const Call& call) {
    if (!told(call)) stopped_ = true;
  }

  py::object run_;
  RunningMean mean_;
  std::atomic<bool> stopped_{false};
};

using Options = std::map<std::string, std::vector<py::object>>;  // by the names of flags

/// Objects that are neither numbers nor True are their texts, as of a Path.
FlagValues values_of(const Options& options);

void bind_report(py::module_& m);
void bind_options(py::module_& m);
void bind_runs(py::module_& m);

}  // namespace crais
