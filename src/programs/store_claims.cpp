#include "programs/store_claims.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <limits>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

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

StoreAddress store_address(const std::string& what, const Environment& variables) {
  const std::optional<ProcessRank> rank = torchrun_rank(what, variables);
  if (!rank) throw argument_error(what + ": torchrun has not started this process (no RANK)");
  for (const char* name : {"MASTER_ADDR", "MASTER_PORT"})
    if (variables(name).value_or("").empty())
      throw argument_error(what + ": RANK is set, but " + name + " is not");
  StoreAddress address{*variables("MASTER_ADDR"),
                       parse_integer(*variables("MASTER_PORT"), what + ": MASTER_PORT"),
                       rank->index == 0 && variables("TORCHELASTIC_USE_AGENT_STORE") != "True"};
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
  return line.substr(0, line.find_last_not_of(". ") + 1);  // more follows
}

class Stopwatch {
 public:
  auto time() const { return std::chrono::steady_clock::now() - start_; }
  std::string text() const {
    return fixed(std::chrono::duration<double>(time()).count(), 1) + " s";
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// A thread that alone talks to the store. Where an answer never comes it is left behind.
class StoreLine {
 public:
  using Question = std::function<std::string(c10::intrusive_ptr<c10d::Store>&)>;

  explicit StoreLine(milliseconds patience) : patience_(patience) {
    thread_ = std::thread([shared = shared_] { shared->run(); });
  }
  StoreLine(const StoreLine&) = delete;
  StoreLine& operator=(const StoreLine&) = delete;
  ~StoreLine() {
    {
      const std::lock_guard lock(shared_->mutex);
      shared_->is_over = true;
    }
    shared_->some.notify_all();
    if (is_stuck_)
      thread_.detach();
    else
      thread_.join();
  }

  /// Throws whatever the question does; std::runtime_error where no answer comes.
  std::string ask(const Question& question) {
    const auto asked = std::make_shared<Asked>(Asked{question, {}, {}, false});
    std::unique_lock lock(shared_->mutex);
    shared_->questions.push_back(asked);
    shared_->some.notify_all();
    const Stopwatch waited;
    while (!shared_->some.wait_for(lock, 50ms, [&] { return asked->is_answered; })) {
      if (waited.time() > patience_ || (interrupted() && waited.time() > 1s)) is_stuck_ = true;
      if (is_stuck_) throw std::runtime_error("no answer for " + waited.text());
    }
    if (asked->error) std::rethrow_exception(asked->error);
    return asked->answer;
  }

  bool is_stuck() const { return is_stuck_; }

 private:
  // By hand, not by std::future: a program that holds its code gives LibTorch's libraries the
  // address of it, and those that bring pieces of a C++ library of their own then crash in oneDNN.
  struct Asked {
    Question question;
    std::string answer;
    std::exception_ptr error;
    bool is_answered;
  };

  struct Shared {  // outlives the line where the thread does
    std::mutex mutex;
    std::condition_variable some;
    std::deque<std::shared_ptr<Asked>> questions;
    bool is_over = false;
    c10::intrusive_ptr<c10d::Store> store;  // the thread's alone

    void run() {
      for (std::unique_lock lock(mutex);;) {
        some.wait(lock, [&] { return is_over || !questions.empty(); });
        if (is_over) return;
        const std::shared_ptr<Asked> asked = std::move(questions.front());
        questions.pop_front();
        lock.unlock();
        try {
          asked->answer = asked->question(store);
        } catch (...) {
          asked->error = std::current_exception();
        }
        asked->question = {};  // what it holds ends on this thread
        lock.lock();
        asked->is_answered = true;
        some.notify_all();
      }
    }
  };

  milliseconds patience_;
  std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
  std::atomic<bool> is_stuck_{false};
  std::thread thread_;
};

class StoreClaims : public Claims {
 public:
  StoreClaims(const StoreAddress& address, const std::string& run, milliseconds patience)
      : place_(address.host + ":" + std::to_string(address.port)), line_(patience) {
    FLAGS_caffe2_log_level = 3;  // fatal alone: what is wrong is said here, in one line
    c10d::TCPStoreOptions options;
    options.port = static_cast<uint16_t>(address.port);
    options.isServer = address.is_here;
    options.waitWorkers = false;
    options.multiTenant = true;
    options.timeout = std::min<milliseconds>(patience, 1s);
    connect(address.host, options, "crais/" + run, patience);
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
  static constexpr int64_t kLeft = -(int64_t{1} << 60);  // far below what beats can make up for

  /// Again and again for as long as there is patience: the store may be on its way.
  void connect(const std::string& host, const c10d::TCPStoreOptions& options,
               const std::string& prefix, milliseconds patience) {
    const Stopwatch waited;
    for (;;) {
      std::string reason;
      try {
        line_.ask([host, options, prefix](c10::intrusive_ptr<c10d::Store>& store) {
          store = c10::make_intrusive<c10d::PrefixStore>(
              prefix, c10::make_intrusive<c10d::TCPStore>(host, options));
          return std::string();
        });
        return;
      } catch (const std::exception& error) {
        reason = reason_of(error);
      }
      stop_if_interrupted();
      if (line_.is_stuck() || waited.time() >= patience)
        throw Error(ErrorKind::kInterrupted, "cannot reach the store at " + place_ +
                                                 " (MASTER_ADDR, MASTER_PORT), waited " +
                                                 waited.text() + ": " + reason +
                                                 "; the same command goes on once it is there");
      std::this_thread::sleep_for(100ms);
    }
  }

  std::string ask(const std::function<std::string(c10d::Store&)>& question) {
    try {
      if (is_lost_) throw std::runtime_error("it has gone");
      return line_.ask(
          [question](c10::intrusive_ptr<c10d::Store>& store) { return question(*store); });
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
  std::atomic<bool> is_lost_{false};
  StoreLine line_;
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
      "--shard auto does without");
}

#endif

}  // namespace crais
