/// @file
/// Ctrl-C and kill: finish what is begun, save, leave.
#pragma once

#include <string>

namespace crais {

/// From now on SIGINT and SIGTERM set a flag that work loops ask for between two steps. On a
/// terminal the first SIGINT says so on stderr. A second SIGINT leaves the process at once with
/// code 75; one within a tenth of a second counts as the first (wrappers such as timeout(1) send
/// their signal twice). May be called again.
void install_interrupt_handler();

/// True once a signal has come.
bool interrupted();

/// Throws Error kInterrupted ("interrupted; <advice>") if a signal has come.
void throw_if_interrupted(const std::string& advice);

/// For tests: sets or clears the flag.
void set_interrupted(bool value);

}  // namespace crais
