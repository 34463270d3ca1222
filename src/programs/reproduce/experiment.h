// An experiment of `reproduce`: what is estimated, how, and what tables show, all of it data.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>

#include "programs/reproduce/cells.h"

namespace crais {

/// The experiments that are part of the program, names and JSON: the files of `experiments`.
const std::map<std::string, std::string_view>& embedded_experiments();

/// An experiment is a JSON object:
///
/// - `summary` is one line; `about`, a text, stands above the tables. `columns` are those of tables
///   without columns of their own.
/// - `set` holds values by name, `lists` lists of objects with more values. Any value may be
///   {"full": ..., "quick": ...}. An entry with "if": "full" is there with --full only; one with
///   "unless" is not there beside an entry with a value of that name. --seeds N replaces values
///   whose names end with "seeds", and `choosing` by N / 3.
/// - `tables` have a `stem` of files, a `title`, `columns`, and rows: one for each combination of
///   entries of the lists that `axes` names. `groups` join rows of several such products. `each`
///   names lists with a table for each combination. `set` adds values; `folded` tables are only
///   files.
///   `plans` (of betas or divergences) adds the first plans of all rows as plans.csv.
///
/// Texts replace "{name}" by values (see words.h). These values say what a row is:
///
/// - `target` and the number of `problems` (`seeds`), or a number of `images` of the checkpoint,
///   or with `side`, `hidden` and `points` of a small VAE whose log p(x) is integrated;
/// - `flags` of estimate-logz or eval-loglik, with seeds from `first_seed` (0) for `repeats` (1);
///   `also`: names and flags of other results, whose measures are called "name.measure";
/// - `match`: flags (the default of `flags`) with a `setting` "@" that is looked for until plans
///   have `steps` transitions;
/// - `settings` to choose from, by the highest mean of the first `choosing` repetitions, or else
///   the first that makes a plan. `chosen` and `oracle` tell the choice;
/// - `truth`, or flags of a `reference` whose results are the truth where none is known;
/// - `upper`: of the upper bound; `particles` to draw; `chains`, of measures per chain.
///
/// A column is one of page.h, of measures (see Measures). Rows of the last axis are compared with
/// its first.
class Experiment {
 public:
  /// @param name  of an embedded experiment, with ":N" to choose one entry of its list `dims`; or
  ///              of a file NAME.json.
  /// Throws Error: kArgument for another name; kData, beginning with the place, for a wrong key.
  explicit Experiment(const std::string& name);

  const std::string& name() const { return name_; }
  std::string folder() const;  // in options.out
  std::string summary() const { return content_.at("summary"); }
  /// Those of the flags --seeds, --checkpoint and --data-dir that matter to it.
  std::set<std::string> uses() const;
  /// Writes tables into a folder of its own in options.out. Throws as run_tasks does.
  void run(ExperimentOptions options) const;

 private:
  std::string name_;
  nlohmann::json content_;
};

}  // namespace crais
