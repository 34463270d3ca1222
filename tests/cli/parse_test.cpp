#include "cli/parse.h"

#include <gtest/gtest.h>
#include <torch/cuda.h>

#include "support/expect_error.h"

namespace crais {
namespace {

TEST(ParseDevice, AMissingGpuIsAnErrorNeverAFallback) {
  if (torch::cuda::device_count() > 0) GTEST_SKIP() << "this machine has a GPU";
  for (const char* text : {"cuda", "cuda:0", "cuda:7"})
    expect_error(ErrorKind::kNoDevice, {"--device " + std::string(text), "no CUDA device"},
                 [&] { parse_device(text); });
}

TEST(ParseDevice, AGpuBeyondTheLastIsAnError) {
  // NOLINTNEXTLINE(bugprone-signed-char-misuse): an int8_t of newer LibTorch, never negative
  const auto gpus = static_cast<int>(torch::cuda::device_count());
  if (gpus == 0) GTEST_SKIP() << "this machine has no GPU";
  EXPECT_EQ(parse_device("cuda"), c10::Device(c10::kCUDA, 0));
  expect_error(ErrorKind::kNoDevice, {"cuda:0"},
               [&] { parse_device("cuda:" + std::to_string(gpus)); });
  expect_error(ErrorKind::kNoDevice, {"cuda:0"}, [&] { parse_device("cuda:1000"); });
}

TEST(ParseDevice, OtherNamesListTheChoices) {
  for (const char* text : {"", "tpu", "cuda:x", "cuda:-1", "cuda:", "cudax", "CPU"})
    expect_error(ErrorKind::kArgument, {"--device"}, [&] { parse_device(text); });
  expect_error(ErrorKind::kArgument, {"auto, cpu, cuda, cuda:N"}, [] { parse_device("tpu"); });
}

TEST(ParseRange, HalfOpenRanges) {
  const IndexRange range = parse_range("3:10", "--indices");
  EXPECT_EQ(range.begin, 3);
  EXPECT_EQ(range.end, 10);
  EXPECT_EQ(range.size(), 7);
  EXPECT_EQ(parse_range(":5", "--indices").begin, 0);
  EXPECT_EQ(parse_range(":5", "--indices").end, 5);
}

TEST(ParseRange, BadRangesAreNamed) {
  for (const char* text : {"", ":", "5", "a:b", "1:2:3", "-1:3", "5:5", "6:5", "1.5:3", ":0"})
    expect_error(ErrorKind::kArgument, {"--indices"}, [&] { parse_range(text, "--indices"); });
  expect_error(ErrorKind::kArgument, {"--indices", "10 images"},
               [] { parse_range("0:11", "--indices").within(10, "--indices", "images"); });
  expect_error(ErrorKind::kArgument, {"--indices", "10 images"},
               [] { parse_range("10:", "--indices").within(10, "--indices", "images"); });
}

TEST(ParseShard, ShardsShareThePiecesOut) {
  for (int64_t piece = 0; piece < 12; ++piece) {
    int holders = 0;
    for (const char* text : {"1/5", "2/5", "3/5", "4/5", "5/5"})
      holders += parse_shard(text, "--shard").holds(piece) ? 1 : 0;
    EXPECT_EQ(holders, 1);
  }
  EXPECT_TRUE(parse_shard("1/5", "--shard").holds(0));
  EXPECT_TRUE(parse_shard("1/5", "--shard").holds(5));
  EXPECT_TRUE(parse_shard("1/1", "--shard").holds(3));
}

TEST(ParseShard, BadShardsAreNamed) {
  for (const char* text : {"", "1", "/", "1/", "/4", "0/4", "5/4", "-1/4", "1/0", "a/4", "1/4/4"})
    expect_error(ErrorKind::kArgument, {"--shard"}, [&] { parse_shard(text, "--shard"); });
}

TEST(ParseDuration, UnitsAndTheClockOfSlurm) {
  EXPECT_EQ(parse_duration("90s", "--max-time"), 90);
  EXPECT_EQ(parse_duration("55m", "--max-time"), 3'300);
  EXPECT_EQ(parse_duration("2h", "--max-time"), 7'200);
  EXPECT_EQ(parse_duration("1h30m", "--max-time"), 5'400);
  EXPECT_EQ(parse_duration("2d1s", "--max-time"), 172'801);
  EXPECT_EQ(parse_duration("01:02:03", "--max-time"), 3'723);
  EXPECT_EQ(parse_duration("36:00:00", "--max-time"), 129'600);
  EXPECT_EQ(parse_duration("1-02:03:04", "--max-time"), 93'784);
}

TEST(ParseDuration, NothingElseIsATime) {
  for (const char* text :
       {"",        "90",    "1.5h",       "m",        "h30m",       "30m1h",
        "1h 30m",  "-5m",   "0s",         "00:00:00", "1:30",       "1:60:00",
        "1:00:60", "1:2:3", "1-2",        "1001d",    "999999999d", "99999999999999999999s",
        "2h ",     "soon",  "1d-1:00:00", "1:00:0a",  "1s1s",       "1s 1:00:00",
        "1-1d"})
    expect_error(ErrorKind::kArgument, {"--max-time", "55m", "D-HH:MM:SS"},
                 [&] { parse_duration(text, "--max-time"); });
}

}  // namespace
}  // namespace crais
