// The parts of the extension, a file each, and what its runs share: calls back into Python from C++
// threads, the errors that come back, Ctrl-C. It keeps to Python's limited API, so that one binary
// serves every Python. Arguments and results cross as JSON text, tensors within it by address.
#pragma once

#include <ATen/ATen.h>
#include <Python.h>
#include <c10/core/GradMode.h>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/command_line.h"
#include "evaluation/run_problems.h"
#include "util/error.h"
#include "util/interrupt.h"
#include "util/parallel.h"

/// {"tensor": A}, where A is the address of an at::Tensor on the heap. Whoever reads it takes the
/// tensor from there, so it is read once. PyTorch has the other side of this in Python.
template <>
struct nlohmann::adl_serializer<at::Tensor> {
  static void to_json(json& j, const at::Tensor& tensor) {
    j = {{"tensor", reinterpret_cast<uintptr_t>(new at::Tensor(tensor))}};
  }
  static void from_json(const json& j, at::Tensor& tensor) {
    const auto address = j.at("tensor").get<uintptr_t>();
    const std::unique_ptr<at::Tensor> owned(reinterpret_cast<at::Tensor*>(address));
    tensor = *owned;
  }
};

template <typename T>
struct nlohmann::adl_serializer<std::optional<T>> {
  static void to_json(json& j, const std::optional<T>& value) { j = value ? json(*value) : json(); }
  static void from_json(const json& j, std::optional<T>& value) {
    value = j.is_null() ? std::nullopt : std::optional(j.get<T>());
  }
};

namespace crais {

using Json = nlohmann::json;
using Array = std::optional<at::Tensor>;

at::Tensor doubles(const std::vector<double>& values);  // JSON has no NaN

/// The GIL, for a thread that may have it already.
class WithPython {
 public:
  WithPython() : state_(PyGILState_Ensure()) {}
  ~WithPython() { PyGILState_Release(state_); }
  WithPython(const WithPython&) = delete;
  WithPython& operator=(const WithPython&) = delete;

 private:
  PyGILState_STATE state_;
};

/// Python's other threads go on.
class WithoutPython {
 public:
  WithoutPython() : thread_(PyEval_SaveThread()) {}
  ~WithoutPython() { PyEval_RestoreThread(thread_); }
  WithoutPython(const WithoutPython&) = delete;
  WithoutPython& operator=(const WithoutPython&) = delete;

 private:
  PyThreadState* thread_;
};

/// What surrounds a run: LibTorch does one operation on one thread, and computes no gradient that
/// is not asked for. The end restores everything.
struct Released {
  WithoutPython without_python;
  OneThreadPerOperation one_thread;
  c10::NoGradGuard no_grad;
};

/// What Python raised, taken from the thread that has the GIL; Python gets it back as it was.
class PythonError {
 public:
  PythonError();
  void restore() const;

 private:
  std::shared_ptr<PyObject> type_, value_, traceback_;
};

/// The library lets an Error through.
class Raised : public Error, public PythonError {
 public:
  Raised() : Error(ErrorKind::kArgument, "raised in Python") {}
};

/// Memory that is short goes to who asked for it, as from LibTorch.
class OutOfMemory : public std::runtime_error, public PythonError {
 public:
  OutOfMemory() : std::runtime_error("out of memory") {}
};

/// A `crais.native.Run`, which _crais.py answers for. What Python raises comes out as Raised, but
/// Ctrl-C stops the run (see run_problems).
class Run {
 public:
  /// `heeds_signals`: SIGINT raises KeyboardInterrupt in this thread. Both live longer.
  Run(PyObject* answer, bool heeds_signals) : answer_(answer), heeds_signals_(heeds_signals) {}

  /// The value of the run's attribute, or what its method returns. From any thread.
  template <typename... Arguments>
  Json ask(const char* name, const Arguments&... arguments) const {
    return asked(name, Json::array({Json(arguments)...}));
  }
  /// A call that no work is lost for: false if Ctrl-C came in it.
  template <typename... Arguments>
  bool tell(const char* name, const Arguments&... arguments) const {
    try {
      ask(name, arguments...);
      return true;
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kInterrupted) throw;
      return false;
    }
  }
  bool heeds_signals() const { return heeds_signals_; }

 private:
  Json asked(const char* name, const Json& arguments) const;

  PyObject* answer_;
  bool heeds_signals_;
};

/// While it lives, Ctrl-C stops the library between two evaluations: Python by itself looks for
/// signals only when its code runs. Python's own handler is called as well. All this only in
/// Python's main thread, and where the handler is Python's first one: another decides for itself.
///
/// The runs of all threads stop together, for there is one flag a process; it falls when the last
/// run has ended. Whoever makes and destroys one holds the GIL.
class SignalsToLibrary {
 public:
  explicit SignalsToLibrary(const Run& run);
  ~SignalsToLibrary();
  SignalsToLibrary(const SignalsToLibrary&) = delete;
  SignalsToLibrary& operator=(const SignalsToLibrary&) = delete;

  /// Where Ctrl-C came, stops the run, whose caller then raises Interrupted. Python's own
  /// KeyboardInterrupt, still to be raised, is taken back.
  void settle(const Run& run) const;

 private:
  bool installed_ = false;
};

/// What `work` returns. Ctrl-C stops it.
template <typename Work>
auto stoppable(const Run& run, const Work& work) {
  const SignalsToLibrary signals(run);
  try {
    auto result = work();
    signals.settle(run);
    return result;
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kInterrupted) signals.settle(run);
    throw;
  }
}

/// Tells how a run goes.
class PythonObserver : public RunObserver {
 public:
  /// `value` is what the running mean is of: "log p".
  PythonObserver(const Run& run, const std::string& value) : run_(run), mean_(value) {}

  // A finished chunk is kept whatever comes: Ctrl-C stops what is to follow.
  void begin(int64_t done, int64_t total) override {
    if (!run_.tell("show", done, total)) stopped_ = true;
  }
  void chunk(const ChunkResult& result) override {
    if (!run_.tell("advance", result.indices.size(), mean_.add(result))) stopped_ = true;
  }
  bool stop() override {
    if (!run_.tell("poll")) stopped_ = true;
    return stopped_ || interrupted();
  }

 private:
  const Run& run_;
  RunningMean mean_;
  std::atomic<bool> stopped_{false};
};

/// By name; `arguments` is an array.
using Functions = std::map<std::string, std::function<Json(const Json& arguments, const Run& run)>>;
Functions functions_of_options();
Functions functions_of_reports();
Functions functions_of_runs();
struct RunReport;
Json keep(RunReport report);  // its handle

}  // namespace crais
