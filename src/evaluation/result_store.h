// The folder of a run: its settings, and its finished chunks.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "evaluation/chunks.h"
#include "evaluation/tuned_estimator.h"

namespace crais {

/// The properties that all chunks of a run must share.
struct RunShape {
  Chunks chunks;
  std::vector<std::string> methods;
  int64_t repeats = 1;
  std::vector<int64_t> indices = {};  // of all problems in their data set; empty: unknown
};

/// `DIR/run.json` holds the settings that determine the results; its sha256 is the run's
/// fingerprint. `DIR/plan.json` holds what chunks share: base and plan. `DIR/chunks/000012.json`
/// holds the results of chunk 12, with the fingerprint and its own digest. Every file is written
/// atomically.
///
/// A lock on `DIR/.lock` keeps other writers away for the lifetime of the object. Processes that
/// share a run exclude only those that do not.
class ResultStore {
 public:
  /// Opens a folder for a run that is determined by `run` and by the build (computed_by of this
  /// build, unless `run` has its own "computed_by"). Makes the folder, or resumes or overwrites its
  /// results. Throws Error: kCannotCreate; kArgument if another process writes to it, if it holds
  /// results and neither option is given, or if it holds results of another run or another build,
  /// whose first difference the message names.
  ResultStore(std::filesystem::path folder, const nlohmann::json& run, const StoreOptions& options);

  /// Opens an existing folder for reading. Throws Error kNoInput or kData.
  explicit ResultStore(std::filesystem::path folder);

  const std::filesystem::path& folder() const { return folder_; }
  const nlohmann::json& run() const { return run_; }

  void write_chunk(const ChunkResult& result) const;
  /// Reads every chunk of this run in the folder. Throws Error kData that names a file that is
  /// damaged, of another run, or not a chunk of `expected`.
  std::map<int64_t, ChunkResult> read_chunks(const RunShape& expected) const;

  /// The numbers of the existing chunk files, without reading the files.
  std::set<int64_t> finished() const;
  /// For a process of several that share a complete run: the claim to write the reports, which ends
  /// with the result. Null if another process writes them or has written them.
  std::shared_ptr<const void> claim_reports() const;

  /// The first of several processes writes the state. All have the same.
  void write_state(const TunedState& state) const;
  std::optional<TunedState> read_state() const;

 private:
  void continue_with(const nlohmann::json& there, const nlohmann::json& run,
                     const StoreOptions& options);
  void clear() const;
  void remove_leftovers() const;
  std::filesystem::path chunk_path(int64_t chunk) const;

  std::filesystem::path folder_;
  nlohmann::json run_;
  std::string fingerprint_;
  std::shared_ptr<const void> lock_;  // null: the folder is only read
};

/// {"sources": digest, "libtorch": version, "evaluator": by its instruction set, "compiler":
/// version}. Two runs with equal values and equal settings give the same results, bit for bit on
/// the same kind of device. The digest covers the sources that determine estimates
/// (cmake/source_digest.cmake), not reports, programs and documents.
nlohmann::json computed_by();

/// "" if `stored`, from a file, equals `computed_by()`; else the difference, for a message.
std::string difference_of_builds(const nlohmann::json& stored);

}  // namespace crais
