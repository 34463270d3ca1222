/// @file
/// Ctrl-C and kill: save what is finished, leave.
#pragma once

#include <string>

namespace crais {

/// From now on SIGINT, SIGTERM, SIGHUP and SIGUSR1 set a flag that work loops ask for between two
/// steps. On a terminal the first SIGINT says so on stderr. A second signal leaves the process at
/// once with code 75; one within a tenth of a second counts as the first (wrappers such as
/// timeout(1) send their signal twice). SIGUSR1 does not count: a scheduler sends it as a warning,
/// and the SIGTERM that follows must not cut the stop short. A SIGHUP or SIGUSR1 that is ignored,
/// as under nohup(1), stays so. May be called again.
void install_interrupt_handler();

/// True once a signal has come.
bool interrupted();

/// Throws Error kInterrupted ("interrupted; <advice>") if a signal has come.
void throw_if_interrupted(const std::string& advice);

/// The same between two evaluations of a target: what is under way is given up.
void stop_if_interrupted();

/// Sets or clears the flag, which a signal's handler may do: for handlers of others, and for tests.
void set_interrupted(bool value);

}  // namespace crais
