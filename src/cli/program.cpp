#include "cli/program.h"

#include <c10/util/Exception.h>
#include <fcntl.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <poll.h>
#include <signal.h>
#include <sysexits.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <map>

#include "evaluation/option_table.h"
#include "util/error.h"
#include "util/format.h"
#include "util/interrupt.h"
#include "util/memory.h"

namespace crais {
namespace {

/// Opens standard streams that were closed: otherwise an output file could get their number and
/// receive what is printed. stdout is opened for reading, so that writing to it stays an error.
void occupy_standard_streams() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(descriptor, F_GETFD) != -1 || errno != EBADF) continue;
    if (::open("/dev/null", descriptor == STDERR_FILENO ? O_WRONLY : O_RDONLY) != descriptor)
      return;
  }
}

/// The exit code of an error, as in sysexits.h.
int exit_code(ErrorKind kind) {
  static const std::map<ErrorKind, int> kCodes = {
      {ErrorKind::kArgument, EX_USAGE},    {ErrorKind::kData, EX_DATAERR},
      {ErrorKind::kNoInput, EX_NOINPUT},   {ErrorKind::kNoDevice, EX_UNAVAILABLE},
      {ErrorKind::kInternal, EX_SOFTWARE}, {ErrorKind::kCannotCreate, EX_CANTCREAT},
      {ErrorKind::kIo, EX_IOERR},          {ErrorKind::kInterrupted, EX_TEMPFAIL}};
  return kCodes.at(kind);
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

int complain(const std::string& program, const std::string& message, ErrorKind kind) {
  const std::string line = with_flags(program, printable(message));
  std::fprintf(stderr, "%s: %s\n", program.c_str(), line.c_str());
  return exit_code(kind);
}

std::string advice(const std::string& program) {
  return program == "train-vae" ? "lower --batch or --threads"
                                : "lower --chains, --steps, --chunk or --threads";
}

/// The message for an unexpected exception. A lack of memory happens during a computation: a file
/// that is too large has its own message.
std::string fault_of(const std::exception& error, const std::string& program) {
  if (is_out_of_memory(error)) return "out of memory; " + advice(program);
  if (const auto* torch = dynamic_cast<const c10::Error*>(&error))
    return "LibTorch: " + first_line(torch->what_without_backtrace());
  return std::string("internal error: ") + error.what();
}

int run_caught(const std::string& program, const std::function<int()>& body) {
  try {
    return body();
  } catch (const Answer& answer) {
    std::cout << answer.text;
    return 0;
  } catch (const Error& error) {
    lift_deadline();  // the run has ended
    return complain(program, error.what(), error.kind());
  } catch (const std::filesystem::filesystem_error& error) {
    return complain(program, error.path1().string() + ": " + error.code().message(),
                    ErrorKind::kIo);
  } catch (const std::exception& error) {
    return complain(program, fault_of(error, program), ErrorKind::kInternal);
  } catch (...) {
    return complain(program, "internal error", ErrorKind::kInternal);
  }
}

bool reader_went_away() {
  pollfd output{STDOUT_FILENO, POLLOUT, 0};
  return ::poll(&output, 1, 0) > 0 && (output.revents & POLLERR) != 0;
}

}  // namespace

std::string with_flags(const std::string& program, const std::string& message) {
  const std::string per = program == "eval-loglik" ? "image" : "problem";
  std::string text;
  size_t from = 0;
  for (size_t open = 0; (open = message.find('`', from)) != std::string::npos;) {
    const size_t close = message.find_first_not_of("abcdefghijklmnopqrstuvwxyz_", open + 1);
    const bool is_field = close != std::string::npos && close > open + 1 && message[close] == '`';
    text.append(message, from, open - from);
    text += is_field ? "--" + flag_of(message.substr(open + 1, close - open - 1), per) : "`";
    from = is_field ? close + 1 : open + 1;
  }
  return text.append(message, from);
}

void keep_freed_memory() {
#ifdef __GLIBC__
  ::mallopt(M_MMAP_THRESHOLD, 32 << 20);  // the largest allowed value
  ::mallopt(M_TRIM_THRESHOLD, 256 << 20);
#endif
}

void finish_output() {
  errno = 0;
  std::cout.flush();
  const bool written = std::fflush(stdout) == 0 && std::ferror(stdout) == 0 && std::cout.good();
  if (written || reader_went_away()) return;
  throw Error(ErrorKind::kIo, "cannot write to standard output", (errno != 0 ? ": " : ""),
              (errno != 0 ? std::strerror(errno) : ""));
}

void begin_program() {
  occupy_standard_streams();
  keep_freed_memory();
  ::signal(SIGPIPE, SIG_IGN);  // `| head` must not end a run before its files are written
}

int run_main(const std::string& program, const std::function<int()>& body) {
  begin_program();
  const int code = run_caught(program, body);
  if (code != 0) return code;
  return run_caught(program, [] {
    finish_output();
    return 0;
  });
}

}  // namespace crais
