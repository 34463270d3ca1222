// How much memory a run takes, and how many threads fit into a limit.
#pragma once

#include <cstdint>
#include <string>

namespace crais {

/// "512M", "1.5G", "100000000": bytes, with K, M, G, T for powers of 1024.
/// Throws Error kUsage, naming `what`, otherwise.
int64_t parse_size(const std::string& text, const std::string& what);

/// Bytes as "512 MiB" or "1.5 GiB".
std::string size_text(int64_t bytes);

/// The most resident memory this process has had so far, bytes.
int64_t peak_memory();

/// How large a chunk is where it is largest.
struct ChunkShape {
  int64_t problems = 0;
  int64_t particles = 0;  // evaluated together, of all problems
  int64_t dim = 0;
  int64_t bytes_per_number = 4;
  int64_t target = 0;  // bytes, VaePosterior::working_memory
};

/// What a thread needs for it, bytes: an upper estimate.
int64_t chunk_memory(const ChunkShape& shape);

/// As many of `threads` as fit into `limit` bytes beside what the process has already.
/// Throws Error kUsage, saying what would be enough, if not even one does.
int64_t threads_within(int64_t limit, int64_t present, int64_t chunk, int64_t threads);

}  // namespace crais
