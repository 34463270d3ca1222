#include "apps/memory.h"

#include <sys/resource.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/format.h"

namespace crais {
namespace {

constexpr int64_t kMebi = int64_t{1} << 20;

}  // namespace

int64_t parse_size(const std::string& text, const std::string& what) {
  const std::string units = "KMGT";
  size_t end = 0;
  double number = 0;
  try {
    number = std::stod(text, &end);
  } catch (const std::exception&) {
    end = 0;
  }
  double scale = 1;
  std::string rest = text.substr(end);
  if (const size_t unit = rest.empty() ? std::string::npos : units.find(rest[0]);
      unit != std::string::npos) {
    scale = std::pow(1024.0, static_cast<double>(unit + 1));
    rest = rest.substr(1);
    if (!rest.empty() && rest[0] == 'i') rest = rest.substr(1);
  }
  if (rest == "B") rest.clear();
  const double bytes = number * scale;
  if (end == 0 || !rest.empty() || !(bytes >= 1 && bytes < 1e18))
    throw usage_error(what + ": '" + text + "' is not a size; write 512M, 1.5G or bytes");
  return static_cast<int64_t>(bytes);
}

std::string size_text(int64_t bytes) {
  const double mebi = static_cast<double>(bytes) / static_cast<double>(kMebi);
  return mebi < 1024 ? fixed(std::ceil(mebi), 0) + " MiB" : fixed(mebi / 1024, 1) + " GiB";
}

int64_t peak_memory() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
#ifdef __APPLE__
  return usage.ru_maxrss;
#else
  return usage.ru_maxrss * 1024;  // Linux counts in KiB
#endif
}

int64_t chunk_memory(const ChunkShape& shape) {
  // Of an HMC move: three of the state, as many of the proposal, momenta before and after,
  // gradients, z, and what an expression holds in between.
  constexpr int64_t kStates = 14, kScalars = 20;
  constexpr int64_t kFactors = 6;  // of [D,D], while a base is fitted, in float64
  const int64_t particles =
      shape.particles * (kStates * shape.dim * shape.bytes_per_number + kScalars * 8);
  const int64_t base = kFactors * shape.problems * shape.dim * shape.dim * 8;
  return std::max(particles, base) + shape.target;
}

int64_t threads_within(int64_t limit, int64_t present, int64_t chunk, int64_t threads) {
  const int64_t fitting = (limit - present) / chunk;
  if (limit <= present || fitting < 1)
    throw usage_error("--memory-limit " + size_text(limit) + ": the program takes " +
                      size_text(present) + " and a thread up to " + size_text(chunk) +
                      " more; ask for " + size_text(present + chunk + kMebi) +
                      ", or for a smaller --chunk");
  return std::min(threads, fitting);
}

}  // namespace crais
