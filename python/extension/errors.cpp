// crais::Error as an exception of crais.errors.
#include <c10/util/Exception.h>
#include <torch/csrc/Exceptions.h>

#include "cli/program.h"
#include "core/plan_error.h"
#include "from_python.h"
#include "util/format.h"

namespace crais {
namespace {

/// crais.errors knows the kinds by their order in ErrorKind.
void raise(int kind, const std::string& message, bool is_plan = false) {
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
    raise(static_cast<int>(error.kind()), error.what(),
          dynamic_cast<const PlanError*>(&error) != nullptr);
  } catch (const Answer& answer) {
    raise(static_cast<int>(ErrorKind::kArgument), "`help` and `version` are for the programs");
  } catch (python_error& error) {  // of a Python function inside LibTorch
    error.restore();
  } catch (const c10::Error& error) {
    raise(static_cast<int>(ErrorKind::kInternal), error.what_without_backtrace());
  }
}

}  // namespace

void translate_errors() { py::register_local_exception_translator(translate); }

}  // namespace crais
