// crais's binary for Python: one function, which calls those of the other files by name.
#include "module.h"

#include <c10/util/Exception.h>
#include <signal.h>

#include "cli/program.h"
#include "core/plan_error.h"
#include "util/format.h"

/// What a Python function inside LibTorch raised, as torch/csrc/Exceptions.h has it, which needs
/// more than the limited API.
struct python_error : std::exception {
  PyObject *type, *value, *traceback;
  std::string message;
};

namespace crais {
namespace {

struct Decrease {
  void operator()(PyObject* object) const {
    if (object == nullptr || Py_IsInitialized() == 0) return;
    const WithPython python;
    Py_DecRef(object);
  }
};
using Owned = std::unique_ptr<PyObject, Decrease>;

/// Throws what is raised where there is no object.
Owned owned(PyObject* object) {
  if (object == nullptr) throw PythonError();
  return Owned(object);
}

Owned attribute(const char* module, const char* name) {
  return owned(PyObject_GetAttrString(owned(PyImport_ImportModule(module)).get(), name));
}

/// crais.errors knows the kinds by their order in ErrorKind.
void set_error(ErrorKind kind, const std::string& message, bool is_plan = false) {
  const Owned error = owned(PyObject_CallFunction(attribute("crais.errors", "of_kind").get(), "isi",
                                                  static_cast<int>(kind),
                                                  printable(message).c_str(), is_plan ? 1 : 0));
  PyErr_SetObject(owned(PyObject_Type(error.get())).get(), error.get());
}

/// What Python is to raise for the exception being handled.
void translate() {
  try {
    throw;
  } catch (const PythonError& raised) {
    raised.restore();
  } catch (const Error& error) {
    set_error(error.kind(), error.what(), dynamic_cast<const PlanError*>(&error) != nullptr);
  } catch (const c10::Error& error) {
    set_error(ErrorKind::kInternal, error.what_without_backtrace());
  } catch (const python_error& error) {
    for (PyObject* part : {error.type, error.value, error.traceback}) Py_IncRef(part);
    PyErr_Restore(error.type, error.value, error.traceback);
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, printable(error.what()).c_str());
  }
}

int runs = 0;              // under way in all threads; the GIL guards it
struct sigaction pythons;  // what `handle` stands for

void handle(int signal) {
  set_interrupted(true);
  pythons.sa_handler(signal);
}

struct sigaction action() {  // at SIGINT
  struct sigaction now {};
  ::sigaction(SIGINT, nullptr, &now);
  return now;
}

const Functions& functions() {
  static const Functions kFunctions = [] {
    Functions all = functions_of_runs();
    all.merge(functions_of_options());
    all.merge(functions_of_reports());
    all["begin_program"] = [](const Json&, const Run&) {
      begin_program();
      install_interrupt_handler();
      return Json();
    };
    all["finish_output"] = [](const Json&, const Run&) { return finish_output(), Json(); };
    all["stop"] = [](const Json&, const Run&) {  // every run, since Python ends
      return set_interrupted(true), Json();
    };
    return all;
  }();
  return kFunctions;
}

/// call(name, arguments, answer, heeds_signals) -> result: `arguments` is a JSON array, `answer`
/// what a Run asks.
PyObject* call(PyObject* /*module*/, PyObject* given) {
  const char *name = nullptr, *arguments = nullptr;
  PyObject* answer = nullptr;
  int heeds_signals = 0;
  if (PyArg_ParseTuple(given, "ssOp", &name, &arguments, &answer, &heeds_signals) == 0)
    return nullptr;
  try {
    const Run run(answer, heeds_signals != 0);
    return PyUnicode_FromString(functions().at(name)(Json::parse(arguments), run).dump().c_str());
  } catch (...) {
    try {
      translate();
    } catch (const PythonError& raised) {
      raised.restore();
    }
    return nullptr;
  }
}

}  // namespace

PythonError::PythonError() {
  PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  type_.reset(type, Decrease());
  value_.reset(value, Decrease());
  traceback_.reset(traceback, Decrease());
}

void PythonError::restore() const {
  for (const auto& part : {type_, value_, traceback_}) Py_IncRef(part.get());
  PyErr_Restore(type_.get(), value_.get(), traceback_.get());
}

Json Run::asked(const char* name, const Json& arguments) const {
  const auto replace = Json::error_handler_t::replace;
  const std::string text = arguments.dump(-1, ' ', false, replace);
  std::string answered;
  {
    const WithPython python;
    const Owned answer(PyErr_CheckSignals() != 0
                           ? nullptr
                           : PyObject_CallFunction(answer_, "ss", name, text.c_str()));
    const char* found = answer ? PyUnicode_AsUTF8AndSize(answer.get(), nullptr) : nullptr;
    if (found == nullptr) {
      if (PyErr_ExceptionMatches(PyExc_KeyboardInterrupt) != 0) {
        PyErr_Clear();
        throw Error(ErrorKind::kInterrupted, "interrupted; nothing is done yet");
      }
      const PythonError raised;
      const Owned memory = attribute("torch", "OutOfMemoryError");
      raised.restore();
      if (PyErr_ExceptionMatches(memory.get()) != 0) throw OutOfMemory();
      throw Raised();
    }
    answered = found;
  }
  return Json::parse(answered);
}

at::Tensor doubles(const std::vector<double>& values) { return at::tensor(values, at::kDouble); }

SignalsToLibrary::SignalsToLibrary(const Run& run) {
  struct sigaction mine = action();
  if (mine.sa_handler != handle && run.heeds_signals()) {  // a model may run another model
    pythons = mine;
    mine.sa_handler = handle;
    installed_ = ::sigaction(SIGINT, &mine, nullptr) == 0;
  }
  ++runs;
}

SignalsToLibrary::~SignalsToLibrary() {
  if (installed_ && action().sa_handler == handle) ::sigaction(SIGINT, &pythons, nullptr);
  if (--runs == 0) set_interrupted(false);
}

void SignalsToLibrary::settle(const Run& run) const {
  if (!installed_ || !interrupted()) return;
  const bool is_taken_back =
      PyErr_CheckSignals() == 0 || PyErr_ExceptionMatches(PyExc_KeyboardInterrupt) != 0;
  const PythonError raised;  // nothing is raised from here on
  run.ask("interrupt");
  if (!is_taken_back) throw raised;
}

}  // namespace crais

PyMODINIT_FUNC PyInit__native() {
  static PyMethodDef kMethods[] = {{"call", crais::call, METH_VARARGS, nullptr}, {}};
  static PyModuleDef kModule = {
      PyModuleDef_HEAD_INIT, "_native", nullptr, -1, kMethods, nullptr, nullptr, nullptr, nullptr};
  return PyModule_Create(&kModule);
}
