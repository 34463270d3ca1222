// crais._crais: the library for the Python package, which says what everything means.
#include "module.h"

#include <c10/util/Exception.h>
#include <signal.h>
#include <torch/csrc/Exceptions.h>

#include "cli/program.h"
#include "core/plan_error.h"
#include "util/format.h"

namespace crais {
namespace {

/// crais.errors knows the kinds by their order in ErrorKind.
void set_error(int kind, const std::string& message, bool is_plan = false) {
  const py::object error =
      py::module_::import("crais.errors").attr("of_kind")(kind, printable(message), is_plan);
  PyErr_SetObject(py::type::handle_of(error).ptr(), error.ptr());
}

void restore(const std::exception_ptr& cause) {
  try {
    std::rethrow_exception(cause);
  } catch (py::error_already_set& error) {
    error.restore();
  }
}

void translate(std::exception_ptr thrown) {
  try {
    if (thrown) std::rethrow_exception(std::move(thrown));
  } catch (const Raised& raised) {
    restore(raised.cause());
  } catch (const Error& error) {
    set_error(static_cast<int>(error.kind()), error.what(),
              dynamic_cast<const PlanError*>(&error) != nullptr);
  } catch (python_error& error) {  // of a Python function inside LibTorch
    error.restore();
  } catch (const c10::Error& error) {
    set_error(static_cast<int>(ErrorKind::kInternal), error.what_without_backtrace());
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

/// True in the main thread, where SIGINT raises KeyboardInterrupt unless somebody has changed it.
bool raises_keyboard_interrupt() {
  const py::module_ signal = py::module_::import("signal");
  const py::module_ threading = py::module_::import("threading");
  const py::object here = threading.attr("get_ident")();
  return here.equal(threading.attr("main_thread")().attr("ident")) &&
         signal.attr("getsignal")(SIGINT).is(signal.attr("default_int_handler"));
}

}  // namespace

SignalsToLibrary::SignalsToLibrary() {
  struct sigaction mine = action();
  if (mine.sa_handler != handle && raises_keyboard_interrupt()) {  // a model may run another model
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

void SignalsToLibrary::settle(const py::object& run) const {
  if (!installed_ || !interrupted()) return;
  run.attr("stopped") = true;
  if (PyErr_CheckSignals() == 0) return;
  const py::error_already_set raised;
  if (!raised.matches(PyExc_KeyboardInterrupt)) throw raised;
}

}  // namespace crais

PYBIND11_MODULE(_crais, m) {
  py::register_local_exception_translator(crais::translate);
  crais::bind_report(m);
  crais::bind_options(m);
  crais::bind_runs(m);
  m.def("begin_program", [] {
    crais::begin_program();
    crais::install_interrupt_handler();
  });
  m.def("finish_output", &crais::finish_output);
  m.def("stop", [] { crais::set_interrupted(true); });  // every run, since Python ends
}
