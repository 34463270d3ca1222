// The folder of a run: what was asked, and the chunks done so far.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "evaluation/chunks.h"
#include "evaluation/store_options.h"
#include "evaluation/tuned_estimator.h"

namespace crais {

/// What every chunk of a run must agree with.
struct RunShape {
  Chunks chunks;
  std::vector<std::string> methods;
  int64_t repeats = 1;
  std::vector<int64_t> indices = {};  // of all problems in their data set; empty: not known
};

/// `DIR/run.json` says what decides the results (its sha256 is the run's fingerprint);
/// `DIR/plan.json` is what chunks share: base and plan; `DIR/chunks/000012.json` the results of
/// chunk 12, with the fingerprint and a digest of its own. Every file is written whole or not at
/// all.
class ResultStore {
 public:
  /// Opens a folder for a run decided by `run` and by what computes it (see identity.h; this build,
  /// unless `run` says "computed_by" itself); makes it, or resumes or overwrites what it holds.
  /// Throws Error: kCannotCreate; kArgument if it holds results and neither option is given, or,
  /// naming the first difference, results of another run or another build.
  ResultStore(std::filesystem::path folder, const nlohmann::json& run, const StoreOptions& options);

  /// Opens an existing folder for reading. Throws Error kNoInput or kData.
  explicit ResultStore(std::filesystem::path folder);

  const std::filesystem::path& folder() const { return folder_; }
  const nlohmann::json& run() const { return run_; }

  void write_chunk(const ChunkResult& result) const;
  /// Every chunk in the folder.
  /// Throws Error kData naming a file that is damaged, of another run or no chunk of `expected`.
  std::map<int64_t, ChunkResult> read_chunks(const RunShape& expected) const;

  void write_state(const TunedState& state) const;
  std::optional<TunedState> read_state() const;

  /// Removes the reports and chunks, and nothing that is not ours.
  void clear() const;

 private:
  void continue_with(const nlohmann::json& there, const nlohmann::json& run,
                     const StoreOptions& options);
  std::filesystem::path chunk_path(int64_t chunk) const;

  std::filesystem::path folder_;
  nlohmann::json run_;
  std::string fingerprint_;
};

}  // namespace crais
