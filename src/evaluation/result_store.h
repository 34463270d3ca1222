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
/// A run may be extended to more problems or more chains. Until the larger run is complete, with
/// its reports, it has its own folder `DIR/extension` and reads existing results from DIR. Then
/// `replace_earlier` moves it to the place of the earlier run.
class ResultStore {
 public:
  /// Opens a folder for a run that is determined by `run` and by the build (computed_by of this
  /// build, unless `run` has its own "computed_by"). Makes the folder, or resumes or overwrites its
  /// results. Throws Error: kCannotCreate; kArgument if it holds results and neither option is
  /// given, or if it holds results of another run or another build, whose first difference the
  /// message names.
  ResultStore(std::filesystem::path folder, const nlohmann::json& run, const StoreOptions& options);

  /// Opens an existing folder for reading. Throws Error kNoInput or kData.
  explicit ResultStore(std::filesystem::path folder);

  const std::filesystem::path& folder() const { return folder_; }
  const nlohmann::json& run() const { return run_; }
  const std::string& fingerprint() const { return fingerprint_; }

  /// Removes the temporary files of chunks whose workers were killed. Call it only once every chunk
  /// is stored.
  void remove_leftovers() const;
  void write_chunk(const ChunkResult& result) const;
  /// Reads every chunk of this run in the folder. Throws Error kData that names a file that is
  /// damaged, of another run, or not a chunk of `expected`.
  std::map<int64_t, ChunkResult> read_chunks(const RunShape& expected) const;

  /// True if this is an extension of results that are still in place.
  bool extends() const { return earlier_ != nullptr; }
  /// Reads the chunks of the extended run. Checks only each chunk by itself.
  std::map<int64_t, ChunkResult> read_earlier_chunks() const;
  /// Moves a complete extension to the place of the results that it extends; run.json goes last.
  /// Does nothing for any other run.
  void replace_earlier();

  /// The run of an extension that has begun in this folder and has not yet replaced its results.
  std::optional<nlohmann::json> extension() const;
  /// True if files of an extension are among those that they replace.
  bool is_being_replaced() const;

  /// The numbers of the existing chunk files, without reading the files.
  std::set<int64_t> finished() const;
  /// True once the reports exist: summary.json is written last.
  bool has_report() const;

  void write_state(const TunedState& state) const;
  bool has_state() const;
  /// The state of this run, or of the earlier run.
  std::optional<TunedState> read_state() const;

  /// Removes the reports and chunks, and no other files.
  void clear() const;

 private:
  void continue_with(const nlohmann::json& there, const nlohmann::json& run,
                     const StoreOptions& options);
  void extend_to(const nlohmann::json& run);
  std::map<int64_t, ChunkResult> all_chunks() const;
  std::filesystem::path chunk_path(int64_t chunk) const;

  std::filesystem::path folder_;
  nlohmann::json run_;
  std::string fingerprint_;
  std::shared_ptr<const ResultStore> earlier_;
};

/// The name of the first difference between two records of runs, settings before other fields; ""
/// if they are equal.
std::string difference_of_runs(const nlohmann::json& here, const nlohmann::json& there);

/// {"sources": digest, "libtorch": version, "evaluator": by its instruction set, "compiler":
/// version}. Two runs with equal values and equal settings give the same results, bit for bit on
/// the same kind of device. The digest covers the sources that determine estimates
/// (cmake/source_digest.cmake), not reports, programs and documents.
nlohmann::json computed_by();

/// "" if `stored`, from a file, equals `computed_by()`; else the difference, for a message.
std::string difference_of_builds(const nlohmann::json& stored);

}  // namespace crais
