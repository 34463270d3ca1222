/// @file
/// Signals such as Ctrl-C: the process saves finished work and exits.
#pragma once

#include <string>

namespace crais {

/// Makes SIGINT, SIGTERM, SIGHUP and SIGUSR1 set a flag. Work loops read the flag between two
/// steps; where none reads it within two seconds, the process ends with code 75. On a terminal, the
/// first SIGINT prints a line on stderr. A second signal ends the process at once with code 75; a
/// signal within a tenth of a second of the first one counts as the first one (wrappers such as
/// timeout(1) send their signal twice). SIGUSR1 does not count: a scheduler sends SIGUSR1 as a
/// warning, and the SIGTERM after it must leave time to stop. If SIGHUP or SIGUSR1 is ignored, as
/// under nohup(1), it stays ignored. The function may be called again.
void install_interrupt_handler();

/// Lets what follows a signal take longer than two seconds: it saves results.
void lift_deadline();

/// True once a signal has arrived.
bool interrupted();

/// Throws Error kInterrupted ("interrupted; <advice>") if a signal has arrived.
void throw_if_interrupted(const std::string& advice);

/// Throws Error kInterrupted if a signal has arrived. Called between two evaluations of a target,
/// whose unfinished work is lost.
void stop_if_interrupted();

/// Sets or clears the flag. Safe in a signal handler; for other handlers and for tests.
void set_interrupted(bool value);

}  // namespace crais
