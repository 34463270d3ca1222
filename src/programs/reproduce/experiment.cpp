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

/// The entries of a list: objects, or single values of that name; or an object of equally long
/// arrays, null for no value.
std::vector<json> entries_of(const json& list, const std::string& name) {
  std::vector<json> entries;
  if (list.is_array())
    for (const json& entry : list)
      entries.push_back(entry.is_object() ? entry : json{{name, entry}});
  else
    for (const auto& [key, column] : list.items()) {
      entries.resize(std::max(entries.size(), column.size()), json::object());
      for (size_t i = 0; i < column.size(); ++i)
        if (!column[i].is_null()) entries[i][key] = column[i];
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

/// The text of a value, with the setting in the place of @.
std::string with_setting(const json& values, const std::string& name) {
  std::string flags = text(values, "{" + name + "}");
  if (const size_t hole = flags.find('@'); hole != std::string::npos)
    flags.replace(hole, 1, text(values, "{setting}"));
  return flags;
}

struct Planned {  // a row
  json values;
  size_t first;  // the row that it is compared with
  std::shared_ptr<const Subject> subject = {};
  int64_t trials = 0;  // in the search for a setting

  /// The tasks of flags, for the seeds from `first` on. None without a subject.
  std::vector<Task> tasks(const std::string& flags, int64_t first_seed, int64_t repeats,
                          bool for_plans = false) const {
    std::vector<Task> tasks;
    for (int64_t s = first_seed; subject && s < first_seed + repeats; ++s)
      tasks.push_back(subject->task(flags, static_cast<uint64_t>(s), for_plans));
    return tasks;
  }
};

/// What a row comes to.
struct Outcome {
  std::vector<json> family;            // its values for each setting
  std::vector<VariantResult> results;  // of each setting
  std::map<std::string, VariantResult> also;
  at::Tensor truth;  // what its errors are of; undefined if nothing tells it
  Choice choice;

  const VariantResult& best() const {
    static const VariantResult kEmpty;
    return choice.chosen == Choice::kNone ? kEmpty : results[choice.chosen];
  }
};

/// The truth that long runs tell: for a density a mean, for images the averages by precision.
at::Tensor truth_of(const std::vector<VariantResult>& references, bool has_images) {
  std::vector<at::Tensor> values, precisions;
  for (const VariantResult& run : references) {
    values.push_back(run.column("log_normalizer")[0]);
    precisions.push_back(run.column("std_error")[0].square().reciprocal());
  }
  if (!has_images) return values.at(0).mean();
  if (values.size() == 1) return values[0];
  const at::Tensor weights = at::stack(precisions);
  return (weights * at::stack(values)).sum(0) / weights.sum(0);
}

/// The outcome of a row whose tasks are done. With `wanted`, the tasks are added there, and results
/// are empty.
Outcome outcome_of(const Planned& row, const ExperimentOptions& options,
                   std::vector<Task>* wanted) {
  const json& values = row.values;
  const auto result = [&](const std::string& flags, int64_t first_seed, int64_t repeats) {
    std::vector<Task> tasks = row.tasks(flags, first_seed, repeats);
    if (!wanted) return result_of(run_tasks(options, "", tasks));
    std::move(tasks.begin(), tasks.end(), std::back_inserter(*wanted));
    return VariantResult();
  };
  const int64_t first_seed = integer(values, "first_seed", 0);
  const int64_t repeats = integer(values, "repeats", 1);
  Outcome found;
  const json settings = values.value("settings", json::array({json::object()}));
  for (const json& setting : entries_of(settings, "setting")) {
    json& one = found.family.emplace_back(values);
    one.update(setting);
    one["setting"] = text(one, "{setting}");
    found.results.push_back(result(with_setting(one, values.contains("flags") ? "flags" : "match"),
                                   first_seed, repeats));
  }
  for (const auto& [name, flags] : values.value("also", std::map<std::string, std::string>()))
    found.also[name] = result(text(values, flags), first_seed, repeats);
  if (row.subject) found.truth = row.subject->truth;
  if (values.contains("truth")) {
    found.truth = at::tensor(number(values, "truth"), at::kDouble);
  } else if (!found.truth.defined() && values.contains("reference")) {
    const json& given = values.at("reference");
    std::vector<VariantResult> references;
    for (const json& flags : given.is_array() ? given : json::array({given}))
      references.push_back(result(text(values, flags), 1000, 1));
    found.truth = truth_of(references, row.subject && row.subject->has_images);
  }
  found.choice.chosen = 0;
  if (const int64_t choosing = integer(values, "choosing", 0); choosing > 0) {
    std::vector<at::Tensor> estimates;
    for (const VariantResult& one : found.results)
      estimates.push_back(one.column("log_normalizer")[0]);
    found.choice =
        choose(estimates, choosing, found.truth.defined() ? found.truth.item<double>() : NAN);
  } else {
    while (found.choice.chosen + 1 < found.results.size() && !found.best().failed.empty())
      ++found.choice.chosen;
  }
  return found;
}

/// The measures of a row, and of its results beside `first`.
Measures measures_of_row(const Planned& row, const Outcome& found, const VariantResult& first) {
  Comparison with{.truth = found.truth,
                  .has_images = row.subject && row.subject->has_images,
                  .choosing = integer(row.values, "choosing", 0),
                  .upper = row.values.contains("upper"),
                  .masses = row.subject ? row.subject->masses : at::Tensor(),
                  .first = &first};
  const VariantResult& best = found.best();
  Measures measures = measures_of(best, with);
  if (with.choosing > 0 && !is_fair(measures["transitions"], integer(row.values, "steps", 0)))
    measures["t"] = NAN;
  with.first = nullptr;
  for (const auto& [name, result] : found.also)
    for (const auto& [measure, value] : measures_of(result, with))
      measures[name + "." + measure] = value;
  double search = static_cast<double>(row.trials) * best.mean("tuning");
  for (const VariantResult& result : found.results)
    if (result.failed.empty()) search += result.evaluations();
  measures["search"] = search;
  // Pilots have at most 256 chains, so they cost less than their count suggests.
  const auto pilots = static_cast<double>(std::min<int64_t>(integer(row.values, "chains", 1), 256));
  measures["comput"] = best.mean("transitions") + std::max(0.0, best.mean("tuning") / pilots - 1);
  measures["oracle_bias"] = NAN;
  if (found.choice.oracle != Choice::kNone) {
    const at::Tensor values = found.results[found.choice.oracle].column("log_normalizer").flatten();
    measures["oracle_bias"] =
        values.slice(0, with.choosing).mean().item<double>() - measures["truth"];
  }
  return measures;
}

std::vector<Cell> cells_of(const json& columns, const Outcome& found, const Measures& measures) {
  const size_t chosen = found.choice.chosen;
  json values = found.family[chosen == Choice::kNone ? 0 : chosen];
  const auto setting = [&](size_t place) {
    return std::max(place, chosen) == Choice::kNone ? json("none")
                                                    : found.family[place].at("setting");
  };
  values.update({{"chosen", setting(chosen)}, {"oracle", setting(found.choice.oracle)}});
  std::vector<Cell> cells;
  for (const json& column : columns)
    cells.push_back(cell_of(column, values, found.best(), measures));
  return cells;
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
  std::shared_ptr<const Subject> subject_of(const json& values);
  void match(Planned& row) const;
  void add_plan(const at::Tensor& plan, const std::vector<Cell>& shown);
  void add_particles(const Planned& row, const VariantResult& result, bool is_first);

  const ExperimentOptions& options_;
  const json& content_;
  Page& page_;
  std::map<std::string, std::shared_ptr<const Subject>> subjects_;
  std::vector<std::vector<Cell>> plans_, particles_;
};

/// Adds a row for each combination of entries of the lists that `axes` names.
void Runner::expand(const json& values, const json& axes, size_t depth, std::vector<Planned>& rows,
                    size_t first) const {
  if (depth == axes.size()) {
    rows.push_back({values, first});
    rows.back().values.emplace("setting", "-");
    return;
  }
  const std::string name = axes.at(depth);
  const json lists = content_.value("lists", json::object());
  if (!values.contains(name) && !lists.contains(name))
    throw data_error("there is no list '" + name + "'");
  first = rows.size();
  for (const json& entry :
       entries_of(values.contains(name) ? values.at(name) : lists.at(name), name)) {
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
          std::vector<Task> more =
              row.tasks(pilot_flags(with_setting(row.values, "match"), steps),
                        integer(row.values, "first_seed", 0), integer(row.values, "repeats", 1),
                        /*for_plans=*/true);
          std::move(more.begin(), more.end(), std::back_inserter(tasks));
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

std::shared_ptr<const Subject> Runner::subject_of(const json& values) {
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
  return subject;
}

/// Adds the values of a plan [M + 1] at each fiftieth of its transitions, with its row's texts.
void Runner::add_plan(const at::Tensor& plan, const std::vector<Cell>& shown) {
  constexpr int kParts = 50;
  const std::vector<double> all = to_column(plan);
  if (all.empty()) return;
  std::vector<Cell>& cells = plans_.emplace_back();
  for (const Cell& cell : shown)
    if (!cell.is_number) cells.push_back(cell);
  for (int part = 0; part <= kParts; ++part) {
    const double share = static_cast<double>(part) / kParts;
    const double place = share * static_cast<double>(all.size() - 1);
    const auto before = static_cast<size_t>(place);
    const size_t after = std::min(before + 1, all.size() - 1);
    const std::string value =
        significant(std::lerp(all[before], all[after], place - std::floor(place)), 6);
    cells.push_back({fixed(share, 2), value, value});
  }
}

void Runner::add_particles(const Planned& row, const VariantResult& result, bool is_first) {
  const auto add = [&](const std::string& sampler, const at::Tensor& x, const at::Tensor& y) {
    for (int64_t i = 0; i < x.numel(); ++i) {
      std::vector<Cell>& cells = particles_.emplace_back();
      for (const auto& [header, value] :
           {std::pair("target", text(row.values, "{target}")), std::pair("sampler", sampler),
            std::pair("x", significant(x[i].item<double>(), 4)),
            std::pair("y", significant(y[i].item<double>(), 4))})
        cells.push_back({header, value, value});
    }
  };
  if (const at::Tensor& exact = row.subject->draws; is_first && exact.defined())
    add("exact draws", exact.select(-1, 0), exact.select(-1, 1));
  add(text(row.values, "{sampler}"), result.first("x"), result.first("y"));
}

void Runner::run_table(const json& table, const json& values) {
  const std::string stem = text(values, table.at("stem")), title = text(values, table.at("title"));
  std::vector<Planned> rows;
  for (const json& group : table.value("groups", json::array({table}))) {
    json own = values;
    own.update(group.value("set", json::object()));
    expand(own, group.value("axes", json::array()), 0, rows, rows.size());
  }
  const json& columns = (table.contains("columns") ? table : content_).at("columns");
  std::vector<Task> tasks;
  for (const Planned& row : rows) {  // words are tried on nothing, before hours are spent
    const Outcome nothing = outcome_of(row, options_, &tasks);
    cells_of(columns, nothing, measures_of_row(row, nothing, nothing.best()));
  }
  for (Planned& row : rows) {
    row.subject = subject_of(row.values);
    if (row.values.contains("match")) match(row);
    outcome_of(row, options_, &tasks);
  }
  run_tasks(options_, stem, tasks);
  std::vector<Outcome> found;
  std::vector<std::vector<Cell>> shown;
  for (const Planned& row : rows) {
    const Outcome& one = found.emplace_back(outcome_of(row, options_, nullptr));
    const bool is_first = row.first + 1 == found.size();
    const VariantResult& first = found[row.first].best();
    shown.push_back(cells_of(columns, one, measures_of_row(row, one, first)));
    if (row.values.contains("particles")) add_particles(row, one.best(), is_first);
    if (table.contains("plans")) add_plan(one.best().first(table.at("plans")), shown.back());
  }
  page_.table(stem, title, shown, table.value("folded", false));
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
  page_.table("plans", "First plans against transition / M", plans_, /*folded=*/true);
  page_.table("particles", "Particles of first runs", particles_, /*folded=*/true);
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
    std::string names;
    for (const auto& [other, content] : embedded) names += (names.empty() ? "" : ", ") + other;
    throw argument_error("unknown experiment '", name, "'; choose from ", names);
  } else {
    content_ = parse_json(embedded.at(stem), where = stem + ".json");
  }
  try {
    check_keys(content_, where);
    summary();
    if (name.ends_with(".json") || name == stem) return;
    std::vector<std::string> dims;
    json chosen;
    for (json entry : entries_of(content_.at("lists").value("dims", json::array()), "dim")) {
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
