#include "core/spec.h"

#include <gtest/gtest.h>

#include "core/path.h"
#include "core/registry.h"
#include "core/schedule.h"
#include "core/transition.h"
#include "support/expect_error.h"

namespace crais {
namespace {

TEST(Spec, ReadsNamedAndUnnamedValues) {
  Spec spec("constant-rate:32,max-step=0.1,n=7,word=a=b");
  EXPECT_EQ(spec.name(), "constant-rate");
  EXPECT_EQ(spec.number("delta", 0, 100), 32.0);
  EXPECT_EQ(spec.number("max-step", 0, 1), 0.1);
  EXPECT_EQ(spec.integer("n", 0, 10), 7);
  EXPECT_EQ(spec.word("word"), "a=b");
  spec.finish();
  Spec named("cess:ratio=-2.5e-1");
  EXPECT_EQ(named.number("ratio", -1, 1), -0.25);
  named.finish();
}

TEST(Spec, FallsBack) {
  Spec spec("linear");
  EXPECT_EQ(spec.number("a", 0, 1, 0.5), 0.5);
  EXPECT_EQ(spec.integer("b", 0, 9, 4), 4);
  EXPECT_EQ(spec.word("c", "x"), "x");
  spec.finish();
}

TEST(Spec, TakesAWholePathAfterFile) {
  Spec spec("file:/a,b=c:d.csv");
  EXPECT_EQ(spec.word("path"), "/a,b=c:d.csv");
  spec.finish();
}

TEST(Spec, RejectsWhatIsNotOfTheForm) {
  expect_error(ErrorKind::kArgument, {"name"}, [] { Spec spec(""); });
  expect_error(ErrorKind::kArgument, {"name"}, [] { Spec spec(":3"); });
  expect_error(ErrorKind::kArgument, {"'power:'", "nothing follows"}, [] { Spec spec("power:"); });
  expect_error(ErrorKind::kArgument, {"key=value"}, [] { Spec spec("a:1,2"); });
  expect_error(ErrorKind::kArgument, {"key=value"}, [] { Spec spec("a:=2"); });
  expect_error(ErrorKind::kArgument, {"repeats"}, [] { Spec spec("a:x=1,x=2"); });
}

TEST(Spec, RejectsAValueGivenTwice) {
  expect_error(ErrorKind::kArgument, {"cess:0.5,ratio=0.7", "ratio", "twice"}, [] {
    Spec spec("cess:0.5,ratio=0.7");
    spec.number("ratio", 0, 1);
    spec.finish();
  });
}

TEST(Spec, RejectsBadValues) {
  const auto number = [](const std::string& text) {
    return [text] { Spec(text).number("x", 0, 1); };
  };
  expect_error(ErrorKind::kArgument, {"'a:abc'", "x", "'abc' is not a number"}, number("a:abc"));
  expect_error(ErrorKind::kArgument, {"not a number"}, number("a:0.5z"));
  expect_error(ErrorKind::kArgument, {"not a finite number"}, number("a:nan"));
  expect_error(ErrorKind::kArgument, {"not a finite number"}, number("a:inf"));
  expect_error(ErrorKind::kArgument, {"x", "[0, 1]"}, number("a:1.5"));
  expect_error(ErrorKind::kArgument, {"needs x"}, number("a"));
  expect_error(ErrorKind::kArgument, {"not a whole number"},
               [] { Spec("a:1.5").integer("n", 0, 9); });
  expect_error(ErrorKind::kArgument, {"[0, 9]"}, [] { Spec("a:10").integer("n", 0, 9); });
  expect_error(ErrorKind::kArgument, {"needs n"}, [] { Spec("a").integer("n", 0, 9); });
  expect_error(ErrorKind::kArgument, {"needs w"}, [] { Spec("a").word("w"); });
}

TEST(Spec, RejectsWhatNobodyRead) {
  expect_error(ErrorKind::kArgument, {"unknown parameter", "steps", "choose from", "ratio"}, [] {
    Spec spec("cess:0.5,steps=3");
    spec.number("ratio", 0, 1);
    spec.finish();
  });
  expect_error(ErrorKind::kArgument, {"unknown parameter", "3", "linear takes none"},
               [] { Spec("linear:3").finish(); });
}

TEST(Registry, ListsTheChoices) {
  expect_error(ErrorKind::kArgument, {"unknown schedule 'liner'", "linear", "cess:R", "file:F"},
               [] { ScheduleRegistry::instance().make("schedule", "liner", {}); });
  expect_error(ErrorKind::kArgument, {"unknown path", "geometric", "power:ALPHA"},
               [] { PathRegistry::instance().make("path", "arithmetic"); });
  expect_error(ErrorKind::kArgument, {"'power:abc'", "alpha", "not a number"},
               [] { PathRegistry::instance().make("path", "power:abc"); });
  expect_error(ErrorKind::kArgument, {"needs alpha"},
               [] { PathRegistry::instance().make("path", "power"); });
  expect_error(ErrorKind::kArgument, {"geometric takes none"},
               [] { PathRegistry::instance().make("path", "geometric:1"); });
  expect_error(ErrorKind::kArgument, {"ratio", "[0.001, 0.9999]"},
               [] { ScheduleRegistry::instance().make("schedule", "cess:1", {}); });
  expect_error(ErrorKind::kArgument, {"rho"},
               [] { TransitionRegistry::instance().make("kernel", "ghmc:1", {}); });
}

}  // namespace
}  // namespace crais
