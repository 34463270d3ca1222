// queue_bench [WORKERS [CHUNKS [MILLISECONDS]]]: what sharing chunks costs. First one chunk's
// claim, by files and by c10d's store; then a run of so many workers (256) on a trivial target,
// each a thread with a store and a connection of its own, whose CHUNKS (10) chunks each take about
// MILLISECONDS (2000) to "compute", asleep: how long workers wait for the queue between two chunks.
// The store's server is in this process too. Tables, then JSON.
#include <ATen/Parallel.h>
#include <arpa/inet.h>
#include <c10/core/GradMode.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "cli/program.h"
#include "core/target.h"
#include "evaluation/result_store.h"
#include "evaluation/run_problems.h"
#include "evaluation/work_queue.h"
#include "programs/store_claims.h"
#include "util/files.h"
#include "yardstick.h"

namespace crais::bench {
namespace {

using Clock = std::chrono::steady_clock;
using nlohmann::json;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// A port that was free a moment ago.
int64_t free_port() {
  const int probe = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (::bind(probe, generic, length) != 0 || ::getsockname(probe, generic, &length) != 0)
    throw std::runtime_error("no free port");
  ::close(probe);
  return ntohs(address.sin_port);
}

class Scratch {
 public:
  Scratch() {
    std::string pattern = (std::filesystem::temp_directory_path() / "queue-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no temporary folder");
    path_ = pattern;
  }
  ~Scratch() { std::filesystem::remove_all(path_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  std::string path() const { return path_; }

 private:
  std::string path_;
};

/// A standard normal under another name.
class Trivial : public Target {
 public:
  explicit Trivial(int64_t problems) : problems_(problems) {}
  int64_t num_problems() const override { return problems_; }
  int64_t dim() const override { return 2; }
  at::TensorOptions options() const override { return at::TensorOptions().dtype(at::kDouble); }
  at::Tensor log_density(const at::Tensor& z) const override { return z.square().sum(-1) * -0.5; }
  Evaluation evaluate(const at::Tensor& z) const override { return {log_density(z), -z}; }

 private:
  int64_t problems_;
};

/// Times of one worker: between chunks, in them, and after its last one.
class Watch : public RunObserver {
 public:
  void begin(int64_t /*done*/, int64_t /*total*/) override { last_ = Clock::now(); }
  void chunk(const ChunkResult& /*result*/) override {
    busy += seconds_since(last_);
    ++chunks;
    last_ = Clock::now();
  }
  void begin_chunk() {
    const double waited = seconds_since(last_);
    wait += waited;
    longest = std::max(longest, waited);
    last_ = Clock::now();
  }
  void end() { idle = seconds_since(last_); }

  double wait = 0, busy = 0, idle = 0, longest = 0;
  int64_t chunks = 0;

 private:
  Clock::time_point last_;
};

EstimateOptions trivial_options() {
  EstimateOptions options;
  options.base = "prior";
  options.steps = 2;
  options.chains = 4;
  options.chunk = 1;
  options.step_size = 0.5;
  return options;
}

using MakeClaims = std::function<std::shared_ptr<Claims>(const std::string& folder)>;

/// Microseconds to be given a chunk that nobody has.
double cost_of_claim(const MakeClaims& make, int64_t chunks) {
  const Scratch folder;
  WorkQueue queue(make(folder.path()), std::chrono::hours(1));
  const auto nothing = [] { return std::set<int64_t>(); };
  const auto start = Clock::now();
  for (int64_t i = 0; i < chunks; ++i) queue.next(chunks, nothing, [] { return false; });
  return seconds_since(start) / static_cast<double>(chunks) * 1e6;
}

json run_of_workers(const MakeClaims& make, int64_t workers, int64_t chunks, double seconds) {
  const Scratch folder;
  const std::string out = folder.path() + "/run";
  const json record = {{"bench", "queue"}};
  const Estimator estimator(trivial_options());
  std::vector<Watch> watches(static_cast<size_t>(workers));
  std::vector<std::thread> threads;
  const auto start = Clock::now();
  for (int64_t w = 0; w < workers; ++w)
    threads.emplace_back([&, w] {
      const c10::NoGradGuard no_grad;
      Watch& watch = watches[static_cast<size_t>(w)];
      std::mt19937_64 random(static_cast<uint64_t>(w));
      std::uniform_real_distribution<double> pace(0.5 * seconds, 1.5 * seconds);
      bool is_pilot = true;
      const ProblemSource source{
          workers * chunks, [&](int64_t begin, int64_t end) {
            if (!std::exchange(is_pilot, false)) {
              watch.begin_chunk();
              std::this_thread::sleep_for(std::chrono::duration<double>(pace(random)));
            }
            return std::make_shared<Trivial>(end - begin);
          }};
      const ResultStore store(out, record, {.resume = true});
      WorkQueue queue(make(out), std::chrono::seconds(60));
      const RunResults results = run_problems(source, estimator, {1, {}, &watch, &store, &queue});
      watch.end();
      if (!results.chunks.empty()) write_file_atomic(out + "/summary.json", "{}");
    });
  for (auto& thread : threads) thread.join();
  Watch all;
  for (const Watch& watch : watches) {
    all.wait += watch.wait;
    all.busy += watch.busy;
    all.idle += watch.idle;
    all.chunks += watch.chunks;
    all.longest = std::max(all.longest, watch.longest);
  }
  return {{"workers", workers},
          {"chunks", all.chunks},
          {"wall_seconds", seconds_since(start)},
          {"wait_share", all.wait / (all.wait + all.busy)},
          {"wait_milliseconds_a_chunk", all.wait / static_cast<double>(all.chunks) * 1e3},
          {"longest_wait_milliseconds", all.longest * 1e3},
          {"idle_at_the_end_share", all.idle / (all.wait + all.busy + all.idle)}};
}

/// Questions a second that the store answers to so many clients.
double throughput(int64_t port, int clients, int64_t each) {
  std::vector<std::thread> threads;
  threads.reserve(static_cast<size_t>(clients));
  const auto start = Clock::now();
  for (int c = 0; c < clients; ++c)
    threads.emplace_back([&] {
      const auto claims = store_claims({"127.0.0.1", port, false}, "load", std::chrono::minutes(1));
      for (int64_t i = 0; i < each; ++i) claims->beat("00000000000000aa");
    });
  for (auto& thread : threads) thread.join();
  return static_cast<double>(each * clients) / seconds_since(start);
}

}  // namespace
}  // namespace crais::bench

int main(int argc, char** argv) {
  using namespace crais;
  using namespace crais::bench;
  const int64_t workers = argc > 1 ? std::atol(argv[1]) : 256;
  const int64_t chunks = argc > 2 ? std::atol(argv[2]) : 10;
  const double seconds = argc > 3 ? std::atof(argv[3]) / 1e3 : 2.0;
  at::set_num_threads(1);
  return run_main("queue_bench", [&] {
    const int64_t port = free_port();
    const auto server = store_claims({"127.0.0.1", port, true}, "server", std::chrono::minutes(1));
    const auto in_store = [port](const std::string& name) -> MakeClaims {
      return [port, name](const std::string&) {
        return store_claims({"127.0.0.1", port, false}, name, std::chrono::minutes(1));
      };
    };
    const MakeClaims in_folder = [](const std::string& folder) {
      return std::make_shared<FolderClaims>(folder);
    };
    json found = {{"machine", machine()}};
    for (const auto& [name, make] :
         {std::pair<std::string, MakeClaims>{"folder", in_folder}, {"store", in_store("claims")}}) {
      const double cost = cost_of_claim(make, 10'000);
      found["claim_microseconds"][name] = cost;
      std::printf("%-8s one of 10,000 chunks is claimed in %.0f us\n", name.c_str(), cost);
    }
    found["store_questions_a_second"] = throughput(port, 16, 2'000);
    std::printf("store    answers %.0f questions a second to 16 clients\n",
                found["store_questions_a_second"].get<double>());
    for (const auto& [name, make] :
         {std::pair<std::string, MakeClaims>{"folder", in_folder}, {"store", in_store("run")}}) {
      const json of_run = run_of_workers(make, workers, chunks, seconds);
      found["runs"][name] = of_run;
      std::printf(
          "%-8s %ld workers, %ld chunks of %.1f s: wait %.3f%%, %.2f ms a chunk, at most %.0f ms; "
          "idle at the end %.1f%%; %.1f s in all\n",
          name.c_str(), static_cast<long>(workers), of_run["chunks"].get<long>(), seconds,
          100 * of_run["wait_share"].get<double>(),
          of_run["wait_milliseconds_a_chunk"].get<double>(),
          of_run["longest_wait_milliseconds"].get<double>(),
          100 * of_run["idle_at_the_end_share"].get<double>(),
          of_run["wall_seconds"].get<double>());
      std::fflush(stdout);
    }
    std::printf("%s\n", found.dump().c_str());
    return 0;
  });
}
