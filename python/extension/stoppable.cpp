#include "stoppable.h"

#include <signal.h>

#include "util/interrupt.h"

namespace crais {
namespace {

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
