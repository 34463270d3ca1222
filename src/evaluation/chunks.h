/// @file
/// Units of work, and options for results that exist already.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>

namespace crais {

/// The division of problems into units of work. Chunks of the run's control follow the others.
struct Chunks {
  int64_t problems = 0;
  int64_t size = 1;
  int64_t control = 0;  // problems of the control

  int64_t count() const { return first_control() + (control + size - 1) / size; }
  int64_t first_control() const { return (problems + size - 1) / size; }
  bool is_control(int64_t chunk) const { return chunk >= first_control(); }
  /// The problems of a chunk, among those of its kind.
  int64_t begin(int64_t chunk) const {
    return (is_control(chunk) ? chunk - first_control() : chunk) * size;
  }
  int64_t end(int64_t chunk) const {
    return std::min(is_control(chunk) ? control : problems, begin(chunk) + size);
  }
};

/// The name of a chunk in its file name: "000012" for chunk 12.
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

/// Options for a folder that holds results already.
struct StoreOptions {
  bool resume = false;                ///< continue with the results
  bool overwrite = false;             ///< remove the results
  bool accept_other_version = false;  ///< continue even if another build computed the results
  bool shared = false;                ///< beside other processes that share it: see ResultStore
};

}  // namespace crais
