#include "util/interrupt.h"

#include <signal.h>
#include <sys/time.h>
#include <sysexits.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <ctime>

#include "util/error.h"

namespace crais {
namespace {

// The signal handlers touch only these flags, clock_gettime, setitimer, write and _exit. All of
// them are async-signal-safe on the systems that crais is built for.
std::atomic<bool> flag{false};
std::atomic<bool> counted{false};  // true after the first signal: a second one ends the process
std::atomic<int64_t> first_time{0};
std::atomic<bool> notices{false};
std::atomic<bool> deadline{false};  // the timer is ours: a caller of the library may have another
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int64_t>::is_always_lock_free);

constexpr int64_t kSameKeystroke = 100'000'000;  // nanoseconds

int64_t now() {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

/// Of a run whose work loops have not seen the flag in time.
void leave(int /*signal*/) {
  static constexpr char kNotice[] = "\ninterrupted; unfinished work is lost\n";
  if (::write(STDERR_FILENO, kNotice, sizeof(kNotice) - 1) < 0) notices = false;
  ::_exit(EX_TEMPFAIL);
}

void set_timer(time_t seconds, suseconds_t microseconds) {
  const itimerval patience{{0, 0}, {seconds, microseconds}};
  ::setitimer(ITIMER_REAL, &patience, nullptr);
}

void handle(int signal) {
  const int saved = errno;
  flag = deadline = true;
  set_timer(1, 500'000);          // the system takes its time to free what a process holds
  if (signal == SIGUSR1) return;  // a warning; the signal that follows counts as the first
  if (!counted.exchange(true)) {
    first_time = now();
    static constexpr char kNotice[] =
        "\ninterrupted: saving what is finished; Ctrl-C again stops now\n";
    if (signal == SIGINT && notices && ::write(STDERR_FILENO, kNotice, sizeof(kNotice) - 1) < 0)
      notices = false;
  } else if (now() - first_time > kSameKeystroke) {
    ::_exit(EX_TEMPFAIL);  // the exit code of Error kInterrupted (sysexits.h)
  }
  errno = saved;
}

/// Installs the handler unless the process ignores the signal.
void replace_unless_ignored(int signal, const struct sigaction& action) {
  struct sigaction before {};
  if (::sigaction(signal, nullptr, &before) == 0 && before.sa_handler != SIG_IGN)
    ::sigaction(signal, &action, nullptr);
}

}  // namespace

void install_interrupt_handler() {
  notices = ::isatty(STDERR_FILENO) == 1;
  struct sigaction action {};
  action.sa_handler = handle;
  action.sa_flags = SA_RESTART;  // pending reads and writes continue
  sigemptyset(&action.sa_mask);  // a macro on macOS
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
  replace_unless_ignored(SIGHUP, action);
  replace_unless_ignored(SIGUSR1, action);
  action.sa_handler = leave;
  ::sigaction(SIGALRM, &action, nullptr);
}

void lift_deadline() {
  if (deadline.exchange(false)) set_timer(0, 0);
}

bool interrupted() { return flag; }

void throw_if_interrupted(const std::string& advice) {
  if (flag) throw Error(ErrorKind::kInterrupted, "interrupted; ", advice);
}

void stop_if_interrupted() { throw_if_interrupted("unfinished work is lost"); }

void set_interrupted(bool value) {
  lift_deadline();
  first_time = value ? now() : 0;
  counted = value;
  flag = value;
}

}  // namespace crais
