/// @file
/// Units of work, and what to do where some are done.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>

namespace crais {

/// How problems are cut into units of work.
struct Chunks {
  int64_t problems = 0;
  int64_t size = 1;

  int64_t count() const { return (problems + size - 1) / size; }
  int64_t begin(int64_t chunk) const { return chunk * size; }
  int64_t end(int64_t chunk) const { return std::min(problems, (chunk + 1) * size); }
};

/// "000012" of chunk 12: as its file and claims to it are called.
inline std::string chunk_name(int64_t chunk) {
  char name[24];
  std::snprintf(name, sizeof name, "%06lld", static_cast<long long>(chunk));
  return name;
}

/// Part `index` of `count`; index counts from 1. Part i holds the pieces i-1, i-1+count, ...
struct Shard {
  int64_t index = 1;
  int64_t count = 1;
  bool holds(int64_t piece) const { return piece % count == index - 1; }
};

/// What to do where a folder holds results already.
struct StoreOptions {
  bool resume = false;                ///< go on with them
  bool overwrite = false;             ///< remove them
  bool accept_other_version = false;  ///< go on although another build has computed them
  bool extend = false;                ///< resume, as a run of more of the same: see ResultStore
};

}  // namespace crais
