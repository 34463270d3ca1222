#include "programs/reproduce/experiment.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <memory>

#include "core/spec.h"
#include "io/json.h"
#include "programs/reproduce/matching.h"
#include "programs/reproduce/measures.h"
#include "programs/reproduce/page.h"
#include "programs/reproduce/subject.h"
#include "util/error.h"
#include "util/format.h"

namespace crais {
namespace {

using nlohmann::json;

/// The value for --full or --quick, and with the number of seeds that --seeds asks for.
json resolved(const json& value, const ExperimentOptions& options) {
  if (value.is_object() && value.size() == 2 && value.contains("full") && value.contains("quick"))
    return resolved(value.at(options.full ? "full" : "quick"), options);
  json copy = value;
  if (!value.is_structured()) return copy;
  for (auto& [name, part] : copy.items()) {
    part = resolved(json(part), options);
    if (options.seeds == 0 || part.is_array()) continue;
    if (name.ends_with("seeds")) part = options.seeds;
    if (name == "choosing") part = std::max<int64_t>(1, options.seeds / 3);
  }
  return copy;
}

/// The entries of a list: objects, or an object of equally long arrays, null for no value.
std::vector<json> entries_of(const json& list) {
  if (list.is_array()) return list.get<std::vector<json>>();
  std::vector<json> entries;
  for (const auto& [name, column] : list.items()) {
    entries.resize(std::max(entries.size(), column.size()), json::object());
    for (size_t i = 0; i < column.size(); ++i)
      if (!column[i].is_null()) entries[i][name] = column[i];
  }
  return entries;
}

/// Refuses keys that neither the program nor a text of the experiment uses.
void check_keys(const json& content, const std::string& where) {
  static const std::set<std::string> kKnown = {
      "summary", "about",     "set",      "lists",     "tables",    "columns", "stem",     "title",
      "each",    "axes",      "groups",   "folded",    "plans",     "full",    "quick",    "if",
      "unless",  "target",    "problems", "images",    "side",      "hidden",  "points",   "flags",
      "also",    "match",     "steps",    "repeats",   "settings",  "setting", "choosing", "truth",
      "upper",   "reference", "chains",   "particles", "first_seed"};
  std::set<std::string> used;
  const json leaves = content.flatten();
  for (const json& leaf : leaves)
    if (leaf.is_string()) {
      std::string words = leaf;
      for (char& c : words)
        if (std::string("{}/=:.,").find(c) != std::string::npos) c = ' ';
      const std::vector<std::string> parts = split(words, ' ');
      used.insert(parts.begin(), parts.end());
    }
  for (const auto& [pointer, leaf] : leaves.items()) {
    bool is_list = false;
    for (const std::string& key : split(pointer, '/')) {
      const bool is_index = key.find_first_not_of("0123456789") == std::string::npos;
      if (!is_index && kKnown.count(key) == 0) {
        if (used.count(key) == 0)
          throw data_error(where + ": nothing uses '" + key + "' of " + pointer);
        if (!is_list) break;  // a value: what it holds is its own affair
      }
      is_list = key == "lists";
    }
  }
}

/// A row before it is computed, and then its results.
struct Planned {
  json values;
  size_t first;  // the row that it is compared with
  std::shared_ptr<const Subject> subject = std::make_shared<const Subject>();
  std::vector<json> family = {};  // its values for each setting
  int64_t trials = 0;             // in the search for a setting
  std::vector<VariantResult> results = {}, references = {};
  std::map<std::string, VariantResult> also = {};
  Choice choice = {};

  const VariantResult& best() const {
    static const VariantResult kEmpty;
    return choice.chosen == Choice::kNone ? kEmpty : results[choice.chosen];
  }
  /// What its errors are of; undefined if nothing tells it. References are long runs; of several,
  /// each image's values are averaged by precision.
  at::Tensor truth() const {
    if (values.contains("truth")) return at::tensor(number(values, "truth"), at::kDouble);
    if (references.empty()) return subject->truth;
    if (!subject->has_images) return references[0].column("log_normalizer").mean();
    if (references.size() == 1) return references[0].column("log_normalizer")[0];
    at::Tensor sum = at::zeros({1}, at::kDouble), weights = sum;
    for (const VariantResult& run : references) {
      const at::Tensor weight = run.column("std_error")[0].square().reciprocal();
      sum = sum + weight * run.column("log_normalizer")[0];
      weights = weights + weight;
    }
    return sum / weights;
  }
};

std::vector<Cell> cells_of(const std::vector<Column>& columns, const Planned& row,
                           const Measures& measures) {
  const size_t chosen = row.choice.chosen;
  json values = row.family[chosen == Choice::kNone ? 0 : chosen];
  const auto setting = [&](size_t place) {
    return std::max(place, chosen) == Choice::kNone ? json("none")
                                                    : row.family[place].at("setting");
  };
  values.update({{"chosen", setting(chosen)}, {"oracle", setting(row.choice.oracle)}});
  std::vector<Cell> cells;
  for (const Column& column : columns) cells.push_back(column.cell(values, row.best(), measures));
  return cells;
}

Measures measures_of_row(const Planned& row, const VariantResult* first) {
  Comparison with{.truth = row.truth(),
                  .has_images = row.subject->has_images,
                  .choosing = integer(row.values, "choosing", 0),
                  .upper = row.values.contains("upper"),
                  .masses = row.subject->masses,
                  .first = first};
  const VariantResult& best = row.best();
  Measures measures = measures_of(best, with);
  if (with.choosing > 0 && !is_fair(measures["transitions"], integer(row.values, "steps", 0)))
    measures["t"] = NAN;
  with.first = nullptr;
  for (const auto& [name, result] : row.also)
    for (const auto& [measure, value] : measures_of(result, with))
      measures[name + "." + measure] = value;
  double search = static_cast<double>(row.trials) * best.mean("tuning");
  for (const VariantResult& result : row.results)
    if (result.failed.empty()) search += result.evaluations();
  measures["search"] = search;
  // Pilots have at most 256 chains, so they cost less than their count suggests.
  const auto pilots = static_cast<double>(std::min<int64_t>(integer(row.values, "chains", 1), 256));
  measures["comput"] = best.mean("transitions") + std::max(0.0, best.mean("tuning") / pilots - 1);
  measures["oracle_bias"] = NAN;
  if (row.choice.oracle != Choice::kNone) {
    const at::Tensor values = row.results[row.choice.oracle].column("log_normalizer").flatten();
    measures["oracle_bias"] =
        values.slice(0, with.choosing).mean().item<double>() - measures["truth"];
  }
  return measures;
}

std::vector<Task> tasks_of(const Planned& row, const std::string& flags, bool for_plans = false) {
  std::vector<Task> tasks;
  const int64_t first = integer(row.values, "first_seed", 0);
  for (int64_t s = first; s < first + integer(row.values, "repeats", 1); ++s)
    tasks.push_back(row.subject->task(flags, static_cast<uint64_t>(s), for_plans));
  return tasks;
}

/// The text of a value, with the setting in the place of @.
std::string with_setting(const json& values, const std::string& name) {
  std::string flags = text(values, "{" + name + "}");
  if (const size_t hole = flags.find('@'); hole != std::string::npos)
    flags.replace(hole, 1, text(values, "{setting}"));
  return flags;
}

/// The flags of other results by name.
std::map<std::string, std::string> also_of(const json& values) {
  return values.value("also", std::map<std::string, std::string>());
}

class Runner {
 public:
  Runner(const ExperimentOptions& options, const json& content, Page& page)
      : options_(options), content_(content), page_(page) {}

  void run(const std::string& file);

 private:
  void expand(const json& values, const json& axes, size_t depth, std::vector<Planned>& rows,
              size_t first) const;
  void run_table(const json& table, const json& values);
  void plan(Planned& row);
  void compute(std::vector<Planned>& rows, const std::string& label) const;
  void match(Planned& row) const;
  void add_plan(const at::Tensor& plan, const std::vector<Column>& columns,
                const std::vector<Cell>& shown);
  void add_particles(const Planned& row, bool is_first);

  const ExperimentOptions& options_;
  const json& content_;
  Page& page_;
  std::map<std::string, std::shared_ptr<const Subject>> subjects_;
  std::vector<std::string> plan_headers_;
  std::vector<std::vector<Cell>> plans_, particles_;
};

/// Adds a row for each combination of entries of the lists that `axes` names.
void Runner::expand(const json& values, const json& axes, size_t depth, std::vector<Planned>& rows,
                    size_t first) const {
  if (depth == axes.size()) {
    rows.push_back({values, first});
    return;
  }
  const std::string name = axes.at(depth);
  const json lists = content_.value("lists", json::object());
  if (!values.contains(name) && !lists.contains(name))
    throw data_error("there is no list '" + name + "'");
  first = rows.size();
  for (const json& entry : entries_of(values.contains(name) ? values.at(name) : lists.at(name))) {
    if (entry.contains("if") && !options_.full) continue;
    if (entry.contains("unless") && values.contains(entry.at("unless").get<std::string>()))
      continue;
    json next = values;
    next.update(entry);
    expand(next, axes, depth + 1, rows, first);
  }
}

/// Looks for the setting "@" whose plans have as many steps as the row.
void Runner::match(Planned& row) const {
  const int64_t steps = integer(row.values, "steps", 0);
  const Match found = match_transitions(
      text(row.values, "{match}"), steps, [&](const std::vector<std::string>& settings) {
        std::vector<Task> tasks;
        for (const std::string& setting : settings) {
          row.values["setting"] = setting;
          for (Task& task : tasks_of(row, pilot_flags(with_setting(row.values, "match"), steps),
                                     /*for_plans=*/true))
            tasks.push_back(std::move(task));
        }
        const std::vector<json> cells =
            run_tasks(options_, "plans of " + std::to_string(steps), tasks);
        const auto repeats = static_cast<int64_t>(cells.size() / settings.size());
        std::vector<double> counts;
        for (auto first = cells.begin(); first != cells.end(); first += repeats) {
          const VariantResult result = result_of({first, first + repeats});
          counts.push_back(result.unfinished ? INFINITY : result.mean("transitions"));
        }
        return counts;
      });
  row.values["setting"] = found.setting;
  row.trials = found.trials;
}

/// Finds the subject of the row and the values of all its settings.
void Runner::plan(Planned& row) {
  json& values = row.values;
  const auto count = [&](const char* name) { return integer(values, name, 0); };
  std::string name;
  for (const char* part : {"target", "problems", "images", "side", "hidden"})
    name += values.contains(part) ? text(values, std::string("{") + part + "} ") : " ";
  auto& subject = subjects_[name];
  if (!subject)
    subject = std::make_shared<const Subject>(
        !values.contains("images")
            ? density_subject(options_, text(values, "{target}"), integer(values, "problems", 1),
                              count("particles"))
        : !values.contains("side")
            ? checkpoint_subject(options_, count("images"))
            : vae_subject(options_,
                          small_vae(count("side"), values.at("hidden").get<std::vector<int64_t>>()),
                          count("images"), count("points")));
  row.subject = subject;
  if (values.contains("match")) match(row);
  if (!values.contains("setting")) values["setting"] = "-";
  if (!values.contains("flags")) values["flags"] = "{match}";
  row.family.clear();
  for (const json& setting : entries_of(values.value("settings", json::array({json::object()})))) {
    json one = values;
    one.update(setting.is_object() ? setting : json{{"setting", setting}});
    one["setting"] = text(one, "{setting}");
    row.family.push_back(one);
  }
}

/// Runs the tasks of all rows, and chooses between settings.
void Runner::compute(std::vector<Planned>& rows, const std::string& label) const {
  std::vector<Task> tasks;
  std::vector<std::pair<int64_t, VariantResult*>> wanted;  // number of tasks, where they go
  const auto want = [&](const Planned& row, const std::string& flags, VariantResult& result) {
    std::vector<Task> more = tasks_of(row, flags);
    wanted.emplace_back(static_cast<int64_t>(more.size()), &result);
    std::move(more.begin(), more.end(), std::back_inserter(tasks));
  };
  for (Planned& row : rows) {
    row.results.resize(row.family.size());
    for (size_t i = 0; i < row.family.size(); ++i)
      want(row, with_setting(row.family[i], "flags"), row.results[i]);
    for (const auto& [name, flags] : also_of(row.values))
      want(row, text(row.values, flags), row.also[name]);
    if (row.subject->truth.defined() || !row.values.contains("reference")) continue;
    Planned once = row;
    once.values.update({{"first_seed", 1000}, {"repeats", 1}});
    const json& given = row.values.at("reference");
    const json references = given.is_array() ? given : json::array({given});
    row.references.resize(references.size());
    for (size_t i = 0; i < references.size(); ++i)
      want(once, text(row.values, references[i]), row.references[i]);
  }
  const std::vector<json> cells = run_tasks(options_, label, tasks);
  auto first = cells.begin();
  for (const auto& [count, result] : wanted) {
    *result = result_of({first, first + count});
    first += count;
  }
  for (Planned& row : rows) {
    row.choice.chosen = 0;
    if (const int64_t choosing = integer(row.values, "choosing", 0); choosing > 0) {
      std::vector<at::Tensor> values;
      for (const VariantResult& result : row.results)
        values.push_back(result.column("log_normalizer")[0]);
      const at::Tensor truth = row.truth();
      row.choice = choose(values, choosing, truth.defined() ? truth.item<double>() : NAN);
    } else {
      while (row.choice.chosen + 1 < row.results.size() && !row.best().failed.empty())
        ++row.choice.chosen;
    }
  }
}

/// A plan under the names of its row.
void Runner::add_plan(const at::Tensor& plan, const std::vector<Column>& columns,
                      const std::vector<Cell>& shown) {
  if (plan.numel() == 0) return;
  plan_headers_.clear();
  std::vector<Cell>& cells = plans_.emplace_back();
  for (size_t i = 0; i < columns.size(); ++i)
    if (!columns[i].is_number()) {
      plan_headers_.push_back(columns[i].header);
      cells.push_back(shown[i]);
    }
  const std::vector<double> along = along_plan(plan);
  for (size_t part = 0; part < along.size(); ++part) {
    plan_headers_.push_back(
        fixed(static_cast<double>(part) / static_cast<double>(along.size() - 1), 2));
    cells.emplace_back(significant(along[part], 6));
  }
}

void Runner::add_particles(const Planned& row, bool is_first) {
  const auto add = [&](const std::string& sampler, const at::Tensor& x, const at::Tensor& y) {
    for (int64_t i = 0; i < x.numel(); ++i)
      particles_.push_back({text(row.values, "{target}"), sampler,
                            significant(x[i].item<double>(), 4),
                            significant(y[i].item<double>(), 4)});
  };
  if (const at::Tensor& exact = row.subject->draws; is_first && exact.defined())
    add("exact draws", exact.select(-1, 0), exact.select(-1, 1));
  add(text(row.values, "{sampler}"), row.best().first("x"), row.best().first("y"));
}

void Runner::run_table(const json& table, const json& values) {
  const std::string stem = text(values, table.at("stem")), title = text(values, table.at("title"));
  std::vector<Planned> rows;
  for (const json& group : table.value("groups", json::array({table}))) {
    json own = values;
    own.update(group.value("set", json::object()));
    expand(own, group.value("axes", json::array()), 0, rows, rows.size());
  }
  std::vector<Column> columns;
  std::vector<std::string> headers;
  for (const json& column : (table.contains("columns") ? table : content_).at("columns"))
    headers.push_back(columns.emplace_back(column.get<std::string>()).header);
  for (const Planned& row : rows) {  // columns are tried on nothing, before hours are spent
    Planned trial = row;
    trial.values["setting"] = "-";
    trial.family = {trial.values};
    for (const auto& [name, flags] : also_of(row.values)) trial.also[name] = {};
    cells_of(columns, trial, measures_of_row(trial, nullptr));
  }
  for (Planned& row : rows) plan(row);
  compute(rows, stem);
  std::vector<std::vector<Cell>> shown;
  for (size_t i = 0; i < rows.size(); ++i) {
    const Planned& row = rows[i];
    shown.push_back(cells_of(columns, row, measures_of_row(row, &rows[row.first].best())));
    if (row.values.contains("particles")) add_particles(row, row.first == i);
    if (table.contains("plans"))
      add_plan(row.best().first(table.at("plans")), columns, shown.back());
  }
  page_.table(stem, title, headers, shown, table.value("folded", false));
}

void Runner::run(const std::string& file) {
  std::string where = file + ": ";
  try {
    const json set = content_.value("set", json::object());
    page_.paragraph(text(set, content_.at("about")));
    for (int64_t place = 0; const json& table : content_.at("tables")) {
      where = file + ": tables/" + std::to_string(place++) + ": ";
      json values = set;
      values.update(table.value("set", json::object()));
      std::vector<Planned> each;  // the values of each table
      expand(values, table.value("each", json::array()), 0, each, 0);
      for (const Planned& one : each) run_table(table, one.values);
    }
  } catch (const json::exception& error) {
    throw data_error(where + error.what());
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kData) throw data_error(where + error.what());
    throw;
  }
  page_.table("plans", "First plans against transition / M", plan_headers_, plans_, true);
  page_.table("particles", "Particles of first runs", {"target", "sampler", "x", "y"}, particles_,
              /*folded=*/true);
}

}  // namespace

Experiment::Experiment(const std::string& name) : name_(name) {
  const auto& embedded = embedded_experiments();
  const std::string stem = name.substr(0, name.find(':'));
  std::string where = name;
  if (name.ends_with(".json")) {
    content_ = read_json(name);
    name_ = std::filesystem::path(name).stem().string();
  } else if (embedded.count(stem) == 0) {
    std::vector<std::string> names;
    for (const auto& [other, content] : embedded) names.push_back(other);
    throw argument_error("unknown experiment '" + name + "'; choose from " + join(names));
  } else {
    content_ = parse_json(embedded.at(stem), where = stem + ".json");
  }
  try {
    check_keys(content_, where);
    summary();
    if (name.ends_with(".json") || name == stem) return;
    std::vector<std::string> dims;
    json chosen;
    for (json entry : entries_of(content_.at("lists").value("dims", json::array()))) {
      dims.push_back(entry.at("dim").dump());
      entry.erase("if");
      if (stem + ":" + dims.back() == name) chosen.push_back(entry);
    }
    if (chosen.empty())
      throw argument_error(
          "'" + name +
          "': " + (dims.empty() ? "there are no parameters" : "choose from " + join(dims)));
    content_["lists"]["dims"] = chosen;
  } catch (const json::exception& error) {
    throw data_error(where + ": " + error.what());
  }
}

std::set<std::string> Experiment::uses() const {
  const std::string content = content_.dump();
  const auto has = [&](const char* words) { return content.find(words) != std::string::npos; };
  std::set<std::string> flags;
  if (has("\"seeds\":")) flags.insert("seeds");
  if (has("logistic-regression:")) flags.insert("data-dir");
  if (has("\"images\":") && !has("\"side\":")) flags.insert({"checkpoint", "data-dir"});
  return flags;
}

std::string Experiment::folder() const {
  std::string folder = name_;
  std::replace(folder.begin(), folder.end(), ':', '-');
  return folder;
}

void Experiment::run(ExperimentOptions options) const {
  options.out /= folder();
  Page page(options.out, summary());
  const json content = resolved(content_, options);
  Runner(options, content, page).run(name_ + ".json");
  page.finish();
}

}  // namespace crais
