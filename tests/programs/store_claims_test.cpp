#include "programs/store_claims.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "support/expect_error.h"
#include "util/interrupt.h"

namespace crais {
namespace {

using namespace std::chrono_literals;

/// A socket that listens at a port of its own and never answers.
class Mute {
 public:
  Mute() : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(::bind(socket_, generic, length), 0);
    EXPECT_EQ(::listen(socket_, 4), 0);
    EXPECT_EQ(::getsockname(socket_, generic, &length), 0);
    port = ntohs(address.sin_port);
  }
  ~Mute() { ::close(socket_); }
  Mute(const Mute&) = delete;
  Mute& operator=(const Mute&) = delete;

  int64_t port = 0;

 private:
  int socket_;
};

int64_t free_port() { return Mute().port; }

bool has_store() {
  try {
    store_claims({"127.0.0.1", free_port(), true}, "any", 20s);
  } catch (const Error& error) {
    return error.kind() != ErrorKind::kArgument;
  }
  return true;
}

class StoreClaims : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!has_store()) GTEST_SKIP() << "this LibTorch has no TCPStore";
  }
};

TEST_F(StoreClaims, AreSeenByAllWorkersOfTheRun) {
  const int64_t port = free_port();
  const auto here = store_claims({"127.0.0.1", port, true}, "run", 20s);
  const auto there = store_claims({"127.0.0.1", port, false}, "run", 20s);
  const auto other = store_claims({"127.0.0.1", port, false}, "another run", 20s);
  const std::string a = "00000000000000aa", b = "00000000000000bb";
  EXPECT_EQ(here->take("plan.0", a), a);
  EXPECT_EQ(there->take("plan.0", b), a);
  EXPECT_EQ(here->take("plan.0", a), a);
  EXPECT_EQ(other->take("plan.0", b), b);

  std::multiset<int64_t> drawn;
  while (const auto chunk = (drawn.size() % 2 == 0 ? here : there)->draw(5)) drawn.insert(*chunk);
  EXPECT_EQ(drawn, (std::multiset<int64_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(there->draw(5), std::nullopt);
  EXPECT_EQ(other->draw(5), 0);

  const std::string before = there->last_beat(a);
  here->beat(a);
  EXPECT_NE(there->last_beat(a), before);
  EXPECT_EQ(there->last_beat(a), there->last_beat(a));
  here->leave(a);
  here->beat(a);  // was under way
  EXPECT_EQ(there->last_beat(a), Claims::kGone);
  EXPECT_EQ(there->last_beat("../" + a), "");
}

TEST_F(StoreClaims, ShareOutTheChunksOfAQueue) {
  const int64_t port = free_port();
  const auto here = store_claims({"127.0.0.1", port, true}, "run", 20s);
  std::mutex mutex;
  std::map<int64_t, int> given;
  std::set<int64_t> finished;
  std::vector<std::thread> workers;
  workers.reserve(4);
  for (int i = 0; i < 4; ++i)
    workers.emplace_back([&] {
      WorkQueue queue(store_claims({"127.0.0.1", port, false}, "run", 20s), 1h);
      const auto done = [&] {
        const std::lock_guard lock(mutex);
        return finished;
      };
      while (const auto chunk = queue.next(50, done, [] { return false; })) {
        const std::lock_guard lock(mutex);
        ++given[*chunk];
        finished.insert(*chunk);
      }
    });
  for (auto& worker : workers) worker.join();
  EXPECT_EQ(given.size(), 50u);
  for (const auto& [chunk, times] : given) EXPECT_EQ(times, 1) << chunk;
}

TEST_F(StoreClaims, SayWhereAStoreIsNotAndHowLongItWasWaitedFor) {
  const int64_t port = free_port();
  const std::string place = "127.0.0.1:" + std::to_string(port);
  expect_error(ErrorKind::kInterrupted, {"cannot reach", place, "MASTER_ADDR", "waited", " s: "},
               [&] {
                 store_claims({"127.0.0.1", port, false}, "run", 300ms);
               });
  expect_error(ErrorKind::kInterrupted, {"cannot reach", "no.such.host.invalid:1"}, [&] {
    store_claims({"no.such.host.invalid", 1, false}, "run", 300ms);
  });
  const Mute mute;
  expect_error(ErrorKind::kInterrupted, {"cannot reach", std::to_string(mute.port), "waited"}, [&] {
    store_claims({"127.0.0.1", mute.port, false}, "run", 300ms);
  });
}

TEST_F(StoreClaims, ALostStoreInterrupts) {
  const int64_t port = free_port();
  auto here = store_claims({"127.0.0.1", port, true}, "run", 20s);
  const auto there = store_claims({"127.0.0.1", port, false}, "run", 20s);
  there->beat("00000000000000aa");
  here.reset();
  const auto ask = [&] { there->take("000000.0", "00000000000000aa"); };
  expect_error(ErrorKind::kInterrupted, {"is lost", std::to_string(port), "the same command"}, ask);
  expect_error(ErrorKind::kInterrupted, {"is lost"}, ask);
}

TEST_F(StoreClaims, ASignalWaitsForNoStore) {
  set_interrupted(true);
  const Mute mute;
  expect_error(ErrorKind::kInterrupted, {"interrupted"}, [&] {
    store_claims({"127.0.0.1", mute.port, false}, "run", 1h);
  });
  set_interrupted(false);
}

using Variables = std::map<std::string, std::string>;

Environment environment(const Variables& variables) {
  return [variables](const std::string& name) {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
}

TEST(StoreAddress, IsWhatTorchrunSays) {
  Variables set = {
      {"RANK", "0"}, {"WORLD_SIZE", "4"}, {"MASTER_ADDR", "node7"}, {"MASTER_PORT", "29400"}};
  StoreAddress address = store_address("x", environment(set));
  EXPECT_EQ(address.host, "node7");
  EXPECT_EQ(address.port, 29400);
  EXPECT_TRUE(address.is_here);
  set["TORCHELASTIC_USE_AGENT_STORE"] = "True";
  EXPECT_FALSE(store_address("x", environment(set)).is_here);
  set["TORCHELASTIC_USE_AGENT_STORE"] = "False";
  set["RANK"] = "3";
  EXPECT_FALSE(store_address("x", environment(set)).is_here);

  const auto refuse = [&](const std::string& name, const std::string& value,
                          const std::vector<std::string>& words) {
    Variables spoiled = set;
    if (value.empty())
      spoiled.erase(name);
    else
      spoiled[name] = value;
    expect_error(ErrorKind::kArgument, words, [&] { store_address("x", environment(spoiled)); });
  };
  refuse("WORLD_SIZE", "", {"x: ", "WORLD_SIZE is not"});
  refuse("RANK", "", {"RANK is not"});
  refuse("RANK", "4", {"RANK is 4", "WORLD_SIZE is 4"});
  for (const char* bad : {"two", "1.5", "-1", "1000000001", "99999999999999999999"}) {
    refuse("RANK", bad, {"RANK"});
    refuse("WORLD_SIZE", bad, {"WORLD_SIZE"});
  }
  refuse("WORLD_SIZE", "0", {"WORLD_SIZE"});
  refuse("MASTER_ADDR", "", {"MASTER_ADDR is not"});
  refuse("MASTER_PORT", "", {"MASTER_PORT is not"});
  refuse("MASTER_PORT", "65536", {"MASTER_PORT", "65536"});
  refuse("MASTER_PORT", "0", {"MASTER_PORT"});
  refuse("MASTER_PORT", "http", {"MASTER_PORT", "'http'"});
  expect_error(ErrorKind::kArgument, {"torchrun has not started"},
               [&] { store_address("x", environment({})); });
}

}  // namespace
}  // namespace crais
