#include "cli/program.h"

#include <c10/util/Exception.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <iostream>
#include <new>
#include <stdexcept>

#include "util/error.h"

namespace crais {
namespace {

// run_main changes what the process does with signals and streams, so each runs in a child.
[[noreturn]] void run_and_leave(const std::function<int()>& body) {
  ::_exit(run_main("measure", body));
}

auto exits(int code) { return ::testing::ExitedWithCode(code); }

TEST(RunMainDeathTest, AnErrorIsOneLineAndItsCode) {
  EXPECT_EXIT(run_and_leave([]() -> int { throw argument_error("--steps: must be at least 1"); }),
              exits(64), "^measure: --steps: must be at least 1\n$");
  EXPECT_EXIT(run_and_leave([]() -> int { throw Error(ErrorKind::kInterrupted, "interrupted"); }),
              exits(75), "^measure: interrupted\n$");
  EXPECT_EXIT(run_and_leave([]() -> int { throw data_error("two\nlines"); }), exits(65),
              "^measure: two\\\\nlines\n$");
}

TEST(RunMainDeathTest, EverythingElseIsInternal) {
  EXPECT_EXIT(run_and_leave([]() -> int { throw std::bad_alloc(); }), exits(70),
              "^measure: out of memory; lower --chains, --steps, --chunk or --threads\n$");
  const auto torch = [](const char* what) {
    run_and_leave([&] {
      TORCH_CHECK(false, what);
      return 0;
    });
  };
  EXPECT_EXIT(torch("can't allocate memory: 9 bytes"), exits(70),
              "^measure: out of memory; lower --chains, --steps, --chunk or --threads\n$");
  EXPECT_EXIT(torch("shapes differ"), exits(70), "^measure: LibTorch: shapes differ\n$");
  EXPECT_EXIT(run_and_leave([]() -> int { throw std::runtime_error("odd"); }), exits(70),
              "^measure: internal error: odd\n$");
  EXPECT_EXIT(run_and_leave([]() -> int { throw 5; }), exits(70), "^measure: internal error\n$");
}

TEST(RunMainDeathTest, AnswersGoToStdout) {
  EXPECT_EXIT(
      {
        ::dup2(STDERR_FILENO, STDOUT_FILENO);  // where the test can see it
        run_and_leave([]() -> int { throw Answer{"the help\n"}; });
      },
      exits(0), "^the help\n$");
}

int print_something() {
  std::cout << "a table\n";
  return 0;
}

TEST(RunMainDeathTest, AClosedStdoutIsReportedAndNeverReused) {
  const auto run = [] {
    ::close(STDOUT_FILENO);
    run_and_leave([] {
      if (::open("/dev/null", O_WRONLY) == STDOUT_FILENO) return 99;
      return print_something();
    });
  };
  EXPECT_EXIT(run(), exits(74), "^measure: cannot write to standard output: Bad file");
}

TEST(RunMainDeathTest, AReaderThatWentAwayEndsNothing) {
  const auto run = [] {
    int ends[2];
    if (::pipe(ends) != 0) ::_exit(98);
    ::dup2(ends[1], STDOUT_FILENO);
    ::close(ends[0]);
    ::close(ends[1]);
    run_and_leave([] {
      std::cout << "a table" << std::endl;  // would be SIGPIPE
      std::cerr << "still here\n";
      return 0;
    });
  };
  EXPECT_EXIT(run(), exits(0), "^still here\n$");
}

TEST(RunMainDeathTest, AFailureKeepsItsCodeThoughStdoutFailsToo) {
  if (::access("/dev/full", W_OK) != 0) GTEST_SKIP() << "there is no /dev/full";
  const auto run = [] {
    ::dup2(::open("/dev/full", O_WRONLY), STDOUT_FILENO);
    run_and_leave([]() -> int {
      std::cout << "half a table\n";
      throw data_error("image 7 is damaged");
    });
  };
  EXPECT_EXIT(run(), exits(65), "^measure: image 7 is damaged\n$");
}

TEST(WithFlags, TurnsOptionsIntoFlags) {
  EXPECT_EQ(with_flags("estimate-logz", "raise `max_steps`, or `pilot_chains`; not `this one`"),
            "raise --max-steps, or --pilot-chains; not `this one`");
  EXPECT_EQ(with_flags("estimate-logz", "`resampling` and `num_leapfrog`"),
            "--resample and --leapfrog");
  EXPECT_EQ(with_flags("eval-loglik", "`plan_per_problem`, `pilot_problems`"),
            "--per-image, --pilot-images");
  EXPECT_EQ(with_flags("estimate-logz", "`plan_per_problem`, `pilot_problems`"),
            "--per-problem, --pilot-problems");
  EXPECT_EQ(with_flags("x", "nothing"), "nothing");
}

}  // namespace
}  // namespace crais
