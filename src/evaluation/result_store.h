// The folder of a run: what was asked, and the chunks done so far.
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
///
/// A run may become one with more problems or more chains. Until the larger run is whole, down to
/// its reports, it has a folder of its own, `DIR/extension`, and takes from DIR what is there
/// already. Then `replace_earlier` puts it in the place of what it extends.
class ResultStore {
 public:
  /// Opens a folder for a run decided by `run` and by what computes it (computed_by; this build,
  /// unless `run` says "computed_by" itself); makes it, or resumes or overwrites what it holds.
  /// Throws Error: kCannotCreate; kArgument if it holds results and neither option is given, or,
  /// naming the first difference, results of another run or another build.
  ResultStore(std::filesystem::path folder, const nlohmann::json& run, const StoreOptions& options);

  /// Opens an existing folder for reading. Throws Error kNoInput or kData.
  explicit ResultStore(std::filesystem::path folder);

  const std::filesystem::path& folder() const { return folder_; }
  const nlohmann::json& run() const { return run_; }
  const std::string& fingerprint() const { return fingerprint_; }

  /// Of chunks that killed workers were writing. Only once every chunk is there.
  void remove_leftovers() const;
  void write_chunk(const ChunkResult& result) const;
  /// Every chunk of this run in the folder.
  /// Throws Error kData naming a file that is damaged, of another run or no chunk of `expected`.
  std::map<int64_t, ChunkResult> read_chunks(const RunShape& expected) const;

  /// True where this is an extension of results that still stand.
  bool extends() const { return earlier_ != nullptr; }
  /// Chunks of the run that is extended, checked by themselves only.
  std::map<int64_t, ChunkResult> read_earlier_chunks() const;
  /// Moves a whole extension to where the results are that it extends; run.json goes last. Does
  /// nothing for any other run.
  void replace_earlier();

  /// The run of an extension that has begun in this folder and does not stand in its place yet.
  std::optional<nlohmann::json> extension() const;
  /// True where files of an extension stand among those that they are to replace.
  bool is_being_replaced() const;

  /// The numbers of the chunk files there are, not read.
  std::set<int64_t> finished() const;
  /// True once the reports are there: summary.json is written last.
  bool has_report() const;

  void write_state(const TunedState& state) const;
  bool has_state() const;
  /// That of this run, or of the earlier one.
  std::optional<TunedState> read_state() const;

  /// Removes the reports and chunks, and nothing that is not ours.
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

/// Names the first thing in which two records of runs differ, settings before what they decide;
/// "" where they are the same.
std::string difference_of_runs(const nlohmann::json& here, const nlohmann::json& there);

/// {"sources": digest, "libtorch": version, "evaluator": by its instruction set, "compiler":
/// version}: two runs that agree in it and in their settings give the same results, bit for bit on
/// the same kind of device. The digest is of the sources that
/// decide estimates (cmake/source_digest.cmake): reports, programs and documents are not in it.
nlohmann::json computed_by();

/// "" where `stored`, of a file, is `computed_by()`; else what differs, for a message.
std::string difference_of_builds(const nlohmann::json& stored);

}  // namespace crais
