#include "programs/store_claims.h"

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <functional>
#include <limits>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "core/limits.h"
#include "core/spec.h"
#include "util/error.h"
#include "util/format.h"
#include "util/interrupt.h"

#ifdef CRAIS_HAS_TCP_STORE
#include <c10/util/Exception.h>
#include <c10/util/Logging.h>

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#endif

namespace crais {

std::optional<std::string> environment_variable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value ? std::optional<std::string>(value) : std::nullopt;
}

std::optional<int64_t> torchrun_rank(const std::string& what, const Environment& variables) {
  if (!variables("RANK") && !variables("WORLD_SIZE")) return {};
  const auto number = [&](const std::string& name, const std::string& other, int64_t least) {
    const auto text = variables(name);
    if (!text) throw argument_error(what + ": " + other + " is set, but " + name + " is not");
    const int64_t value = parse_integer(*text, what + ": " + name);
    check_range(Range::between(static_cast<double>(least), kMostCount), value, what + ": " + name);
    return value;
  };
  const int64_t rank = number("RANK", "WORLD_SIZE", 0), count = number("WORLD_SIZE", "RANK", 1);
  if (rank >= count)
    throw argument_error(what + ": RANK is " + std::to_string(rank) + ", but WORLD_SIZE is " +
                         std::to_string(count) + ": the first is 0");
  return rank;
}

StoreAddress store_address(const std::string& what, const Environment& variables) {
  const std::optional<int64_t> rank = torchrun_rank(what, variables);
  if (!rank) throw argument_error(what + ": torchrun has not started this process (no RANK)");
  for (const char* name : {"MASTER_ADDR", "MASTER_PORT"})
    if (variables(name).value_or("").empty())
      throw argument_error(what + ": RANK is set, but " + name + " is not");
  StoreAddress address{*variables("MASTER_ADDR"),
                       parse_integer(*variables("MASTER_PORT"), what + ": MASTER_PORT"),
                       *rank == 0 && variables("TORCHELASTIC_USE_AGENT_STORE") != "True"};
  if (address.port < 1 || address.port > std::numeric_limits<uint16_t>::max())
    throw argument_error(what + ": MASTER_PORT must lie in [1, 65535], not " +
                         std::to_string(address.port));
  return address;
}

#ifdef CRAIS_HAS_TCP_STORE

namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using Bytes = std::vector<uint8_t>;

std::string reason_of(const std::exception& error) {
  const auto* torch = dynamic_cast<const c10::Error*>(&error);
  const std::string text = torch ? torch->what_without_backtrace() : error.what();
  const std::string line = text.substr(0, text.find('\n'));
  return line.substr(0, line.find_last_not_of(". ") + 1);  // the first sentence alone
}

std::string seconds_since(std::chrono::steady_clock::time_point start) {
  const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - start;
  return fixed(waited.count(), 1) + " s";
}

/// The answer of a thread. Not a std::future: a program with the code of std::future would give its
/// address to LibTorch's libraries, and libraries that bring parts of their own C++ library would
/// then crash in oneDNN.
struct Answered {
  std::mutex mutex;
  std::condition_variable ready;
  bool is_there = false;
  std::string text;
  std::exception_ptr error;
};

class StoreClaims : public Claims {
 public:
  StoreClaims(const StoreAddress& address, const std::string& run, milliseconds patience)
      : place_(address.host + ":" + std::to_string(address.port)), patience_(patience) {
    FLAGS_caffe2_log_level = 3;  // only fatal messages: crais reports the error in one line
    c10d::TCPStoreOptions options;
    options.port = static_cast<uint16_t>(address.port);
    options.isServer = address.is_here;
    options.waitWorkers = false;
    options.multiTenant = true;
    options.timeout = patience;  // the store may still be starting
    const auto start = std::chrono::steady_clock::now();
    const auto made = std::make_shared<Store>();
    try {
      answer([made, options, host = address.host, prefix = "crais/" + run] {
        *made = c10::make_intrusive<c10d::PrefixStore>(
            prefix, c10::make_intrusive<c10d::TCPStore>(host, options));
        return std::string();
      });
    } catch (const std::exception& error) {
      stop_if_interrupted();
      throw Error(ErrorKind::kInterrupted, "cannot reach the store at " + place_ +
                                               " (MASTER_ADDR, MASTER_PORT), waited " +
                                               seconds_since(start) + ": " + reason_of(error) +
                                               "; the same command goes on once it is there");
    }
    store_ = *made;
  }

  std::string take(const std::string& name, const std::string& worker) override {
    return ask([name, worker](c10d::Store& store) {
      const Bytes owner = store.compareSet(name, Bytes(), Bytes(worker.begin(), worker.end()));
      return std::string(owner.begin(), owner.end());
    });
  }

  std::optional<int64_t> draw(int64_t count) override {
    const int64_t drawn = add("drawn", 1);
    return 1 <= drawn && drawn <= count ? std::optional(drawn - 1) : std::nullopt;
  }

  void beat(const std::string& worker) override { add("worker-" + worker, 1); }
  void leave(const std::string& worker) override { add("worker-" + worker, kLeft); }

  std::string last_beat(const std::string& worker) override {
    if (!is_worker(worker)) return "";
    const int64_t beats = add("worker-" + worker, 0);
    return beats < 0 ? kGone : std::to_string(beats);
  }

 private:
  using Store = c10::intrusive_ptr<c10d::Store>;
  static constexpr int64_t kLeft = -(int64_t{1} << 60);  // beats cannot raise this to a valid count

  /// The answer of a thread to a question. The thread is left behind if no answer comes. Throws the
  /// exceptions of the question, and std::runtime_error without an answer.
  std::string answer(std::function<std::string()> question) const {
    const auto answered = std::make_shared<Answered>();
    std::thread thread([answered, question = std::move(question)]() mutable {
      try {
        answered->text = question();
      } catch (...) {
        answered->error = std::current_exception();
      }
      question = {};  // destroys its captures on this thread
      const std::lock_guard lock(answered->mutex);
      answered->is_there = true;
      answered->ready.notify_all();
    });
    const auto start = std::chrono::steady_clock::now();
    std::unique_lock lock(answered->mutex);
    while (!answered->ready.wait_for(lock, 50ms, [&] { return answered->is_there; })) {
      const auto waited = std::chrono::steady_clock::now() - start;
      if (waited <= patience_ + 1s && !(interrupted() && waited > 1s)) continue;
      thread.detach();
      throw std::runtime_error("no answer for " + seconds_since(start));
    }
    lock.unlock();
    thread.join();
    if (answered->error) std::rethrow_exception(answered->error);
    return answered->text;
  }

  std::string ask(const std::function<std::string(c10d::Store&)>& question) {
    try {
      if (is_lost_) throw std::runtime_error("it has gone");
      return answer([question, store = store_] { return question(*store); });
    } catch (const std::exception& error) {
      is_lost_ = true;
      throw Error(ErrorKind::kInterrupted,
                  "the store at " + place_ + " is lost: " + reason_of(error) +
                      "; finished chunks are kept, and the same command goes on from there");
    }
  }

  int64_t add(const std::string& name, int64_t amount) {
    return std::stoll(ask(
        [name, amount](c10d::Store& store) { return std::to_string(store.add(name, amount)); }));
  }

  std::string place_;
  milliseconds patience_;
  std::atomic<bool> is_lost_{false};
  Store store_;
};

}  // namespace

std::shared_ptr<Claims> store_claims(const StoreAddress& address, const std::string& run,
                                     std::chrono::milliseconds patience) {
  return std::make_shared<StoreClaims>(address, run, patience);
}

#else

std::shared_ptr<Claims> store_claims(const StoreAddress& /*address*/, const std::string& /*run*/,
                                     std::chrono::milliseconds /*patience*/) {
  throw argument_error(
      "this LibTorch has no TCPStore, by which workers of torchrun share chunks; --queue none "
      "--shard i/N does without");
}

#endif

}  // namespace crais
