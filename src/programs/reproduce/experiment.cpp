#include "programs/reproduce/experiment.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <map>
#include <memory>
#include <set>

#include "core/spec.h"
#include "io/json.h"
#include "programs/reproduce/bindings.h"
#include "programs/reproduce/matching.h"
#include "programs/reproduce/page.h"
#include "programs/reproduce/subject.h"
#include "util/error.h"
#include "util/format.h"

namespace crais {
namespace {

using nlohmann::json;

const std::set<std::string> kRowValues = {
    "target", "problems",  "images",  "side",     "hidden",  "points",   "flags", "also",
    "match",  "steps",     "repeats", "settings", "setting", "choosing", "truth", "first_seed",
    "upper",  "reference", "chains",  "if",       "unless",  "particles"};

/// The value with each {"full": ..., "quick": ...} in it replaced by one of the two.
json picked(const json& value, bool full) {
  if (value.is_object() && value.size() == 2 && value.contains("full") && value.contains("quick"))
    return picked(value.at(full ? "full" : "quick"), full);
  json copy = value;
  if (value.is_structured())
    for (json& part : copy) part = picked(json(part), full);
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

/// Refuses keys that are unknown and values that nothing uses.
void check(const json& content, const std::string& where) {
  const auto check_keys = [](const json& object, const std::set<std::string>& known,
                             const std::string& place) {
    for (const auto& [key, value] : object.items())
      if (known.count(key) == 0)
        throw data_error(place + ": unknown key '" + key + "'; choose from " +
                         join({known.begin(), known.end()}));
  };
  std::set<std::string> words;  // of all texts
  std::string word;
  for (const json& value : content.flatten())
    for (const char c : value.is_string() ? value.get<std::string>() + " " : "") {
      const bool goes_on = std::isalnum(static_cast<unsigned char>(c)) || c == '_';
      if (!goes_on) words.insert(word);
      word = goes_on ? word + c : "";
    }
  const auto check_values = [&](const json& values, const std::string& place) {
    for (const auto& [name, value] : values.items())
      if (kRowValues.count(name) == 0 && words.count(name) == 0)
        throw data_error(place + ": nothing uses '" + name + "'");
  };
  const auto part = [](const json& object, const char* key) {
    return object.value(key, json::object());
  };
  check_keys(content, {"summary", "about", "uses", "set", "lists", "tables"}, where);
  check_values(part(content, "set"), where + ": set");
  const json lists = part(content, "lists");
  for (const auto& [name, list] : lists.items())
    for (const json& entry : entries_of(list)) check_values(entry, where + ": lists/" + name);
  for (int64_t place = 0; const json& table : content.at("tables")) {
    const std::string at = where + ": tables/" + std::to_string(place++);
    check_keys(table,
               {"stem", "title", "each", "axes", "set", "groups", "columns", "folded", "plans"},
               at);
    check_values(part(table, "set"), at + "/set");
    for (const json& group : part(table, "groups")) {
      check_keys(group, {"axes", "set"}, at + "/groups");
      check_values(part(group, "set"), at + "/groups");
    }
  }
}

/// A row before it is computed, and then its results.
struct Planned {
  Bindings values;
  size_t first;  // the row that it is compared with
  std::shared_ptr<const Subject> subject = std::make_shared<const Subject>();
  std::vector<Bindings> family = {};  // one for each setting
  int64_t trials = 0;                 // in the search for a setting
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
    if (values.has("truth")) return at::tensor(values.number("truth"), at::kDouble);
    if (references.empty()) return subject->truth;
    if (!subject->has_images) return references[0].column("log_normalizer").mean();
    if (references.size() == 1) return references[0].column("log_normalizer")[0];
    at::Tensor sum = at::zeros({references[0].column("log_normalizer").size(1)}, at::kDouble),
               weights = sum.clone();
    for (const VariantResult& run : references) {
      const at::Tensor weight = run.column("std_error")[0].square().reciprocal();
      sum += weight * run.column("log_normalizer")[0];
      weights += weight;
    }
    return sum / weights;
  }
};

bool is_number(const std::string& column) {
  if (column.ends_with(" or reason") || column.ends_with(" at length")) return true;
  const size_t colon = column.rfind(':');
  return colon != std::string::npos && colon + 1 < column.size() &&
         column.find_first_not_of("0123456789", colon + 1) == std::string::npos;
}

/// A cell of a column "sum:DECIMALS", or of a text.
Cell cell_of(std::string column, const Bindings& values, const VariantResult& result,
             const Measures& measures) {
  if (!is_number(column)) {
    const std::string text = values.text(column);
    const size_t begin = text.find_first_not_of(' ');
    return begin == std::string::npos ? ""
                                      : text.substr(begin, text.find_last_not_of(' ') + 1 - begin);
  }
  const auto without = [&](const std::string& end) {
    const bool is_there = column.ends_with(end);
    if (is_there) column.resize(column.size() - end.size());
    return is_there;
  };
  const bool or_reason = without(" or reason"), at_length = without(" at length");
  if (or_reason && !result.failed.empty()) {
    const std::string words = result.failed.substr(0, result.failed.find_first_of("(;:"));
    return words.substr(0, words.find_last_not_of(' ') + 1);
  }
  const size_t colon = column.rfind(':');
  const auto decimals = static_cast<int>(parse_integer(column.substr(colon + 1), values.where()));
  const std::string sum = values.text(column.substr(0, colon));
  const size_t spread = sum.find(" +- ");
  const double value = values.number(sum.substr(0, spread), measures);
  if (std::isnan(value)) return "-";
  if (spread != std::string::npos)
    return Cell::with_spread(value, values.number(sum.substr(spread + 4), measures), decimals);
  const double transitions = measures.at("transitions");
  if (at_length && !is_fair(transitions, values.integer("steps", 0)))
    return fixed(value, decimals) + " (M = " + fixed(transitions, 0) + ")";
  return Cell::number(value, decimals);
}

Row cells_of(const json& columns, const Planned& row, const Measures& measures) {
  const bool is_found = row.choice.chosen != Choice::kNone;
  Bindings values = row.family[is_found ? row.choice.chosen : 0];
  const auto setting = [&](size_t place) {
    return place == Choice::kNone || !is_found ? "none" : row.family[place].text_of("setting");
  };
  values.add({{"chosen", setting(row.choice.chosen)}, {"oracle", setting(row.choice.oracle)}});
  Row cells;
  for (const std::string column : columns) {
    const size_t equals = column.find(" = ");
    if (equals == std::string::npos)
      throw data_error(values.where() + ": a column is 'header = value', not '" + column + "'");
    cells.emplace_back(column.substr(0, equals),
                       cell_of(column.substr(equals + 3), values, row.best(), measures));
  }
  return cells;
}

Measures measures_of_row(const Planned& row, const VariantResult* first) {
  Comparison with;
  with.truth = row.truth();
  with.has_images = row.subject->has_images;
  with.choosing = row.values.integer("choosing", 0);
  with.upper = row.values.has("upper");
  with.first = first;
  with.masses = row.subject->masses;
  const VariantResult& best = row.best();
  Measures measures = measures_of(best, with);
  if (with.choosing > 0 && !is_fair(measures["transitions"], row.values.integer("steps", 0)))
    measures["t"] = NAN;
  with.first = nullptr;
  for (const auto& [name, result] : row.also)
    for (const auto& [measure, value] : measures_of(result, with))
      measures[name + "." + measure] = value;
  double search = static_cast<double>(row.trials) * best.means.at("tuning");
  for (const VariantResult& result : row.results)
    if (result.failed.empty()) search += result.evaluations();
  measures["search"] = search;
  // Pilots have at most 256 chains, so they cost less than their count suggests.
  const double pilots = std::min<double>(static_cast<double>(row.values.integer("chains", 1)), 256);
  measures["comput"] =
      best.means.at("transitions") + std::max(0.0, best.means.at("tuning") / pilots - 1);
  measures["oracle_bias"] = NAN;
  if (row.choice.oracle != Choice::kNone) {
    const at::Tensor values = row.results[row.choice.oracle].column("log_normalizer").flatten();
    measures["oracle_bias"] =
        values.slice(0, with.choosing).mean().item<double>() - measures["truth"];
  }
  return measures;
}

class Runner {
 public:
  Runner(const ExperimentOptions& options, const json& content, std::string where, Page& page)
      : options_(options), content_(content), where_(std::move(where)), page_(page) {}

  void run();

 private:
  Bindings seeded(Bindings values) const;
  void expand(const Bindings& values, const json& axes, size_t depth, std::vector<Planned>& rows,
              size_t first) const;
  void run_table(const json& table, const Bindings& values);
  void plan(Planned& row);
  void compute(std::vector<Planned>& rows, const std::string& label) const;
  std::vector<Task> tasks_of(const Planned& row, const std::string& flags,
                             bool for_plans = false) const;
  void match(Planned& row) const;
  void add_particles(const Planned& row, bool is_first);

  const ExperimentOptions& options_;
  const json& content_;
  std::string where_;
  Page& page_;
  std::map<std::string, std::shared_ptr<const Subject>> subjects_;
  std::vector<Row> plans_, particles_;
};

/// The values, with the number of seeds that --seeds asks for.
Bindings Runner::seeded(Bindings values) const {
  const json before = values.all();
  for (const auto& [name, value] : before.items()) {
    if (options_.seeds > 0 && name.ends_with("seeds")) values.add({{name, options_.seeds}});
    if (options_.seeds > 0 && name == "choosing")
      values.add({{name, std::max<int64_t>(1, options_.seeds / 3)}});
  }
  return values;
}

/// Adds a row for each combination of entries of the lists that `axes` names.
void Runner::expand(const Bindings& values, const json& axes, size_t depth,
                    std::vector<Planned>& rows, size_t first) const {
  if (depth == axes.size()) {
    rows.push_back({seeded(values), first});
    return;
  }
  const std::string name = axes.at(depth);
  const json lists = content_.value("lists", json::object());
  if (!values.has(name) && !lists.contains(name))
    throw data_error(values.where() + ": there is no list '" + name + "'");
  first = rows.size();
  for (const json& entry : entries_of(values.has(name) ? values.at(name) : lists.at(name))) {
    if (entry.contains("if") && !options_.full) continue;
    if (entry.contains("unless") && values.has(entry.at("unless"))) continue;
    Bindings next = values;
    next.add(entry);
    expand(next, axes, depth + 1, rows, first);
  }
}

std::vector<Task> Runner::tasks_of(const Planned& row, const std::string& flags,
                                   bool for_plans) const {
  std::vector<Task> tasks;
  const int64_t first = row.values.integer("first_seed", 0);
  for (int64_t s = first; s < first + row.values.integer("repeats", 1); ++s)
    tasks.push_back(row.subject->task(flags, static_cast<uint64_t>(s), for_plans));
  return tasks;
}

/// Looks for the setting "@" whose plans have as many steps as the row.
void Runner::match(Planned& row) const {
  const int64_t steps = row.values.integer("steps", 0);
  const MatchedPlans plans = match_transitions(
      row.values.text_of("match"), steps, [&](const std::vector<std::string>& trials) {
        std::vector<Task> tasks;
        for (const std::string& trial : trials)
          for (Task& task : tasks_of(row, pilot_flags(trial, steps), /*for_plans=*/true))
            tasks.push_back(std::move(task));
        const std::vector<json> cells =
            run_tasks(options_, "plans of " + std::to_string(steps), tasks);
        const auto repeats = static_cast<int64_t>(cells.size() / trials.size());
        std::vector<double> counts;
        for (auto first = cells.begin(); first != cells.end(); first += repeats) {
          const VariantResult result = result_of({first, first + repeats});
          counts.push_back(result.unfinished ? INFINITY : result.means.at("transitions"));
        }
        return counts;
      });
  row.values.add({{"matched", plans.flags}, {"setting", plans.setting}});
  row.trials = plans.trials;
}

/// Finds the subject of the row and the flags of all its settings.
void Runner::plan(Planned& row) {
  Bindings& values = row.values;
  const auto number = [&](const char* name) { return values.integer(name, 0); };
  std::string name;
  for (const char* part : {"target", "problems", "images", "side", "hidden"})
    name += values.text_of(part) + " ";
  auto& subject = subjects_[name];
  if (!subject)
    subject = std::make_shared<const Subject>(
        !values.has("images") ? density_subject(options_, values.text_of("target"),
                                                values.integer("problems", 1), number("particles"))
        : !values.has("side")
            ? checkpoint_subject(options_, number("images"))
            : vae_subject(
                  options_,
                  small_vae(number("side"), values.at("hidden").get<std::vector<int64_t>>()),
                  number("images"), number("points")));
  row.subject = subject;
  if (values.has("match")) match(row);
  if (!values.has("setting")) values.add({{"setting", "-"}});
  if (!values.has("flags")) values.add({{"flags", "{matched}"}});
  row.family.clear();
  for (const json& setting :
       entries_of(values.has("settings") ? values.at("settings") : json::array({json::object()}))) {
    Bindings one = values;
    one.add(setting.is_object() ? setting : json{{"setting", setting}});
    one.add({{"setting", one.text_of("setting")}});
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
      want(row, row.family[i].text_of("flags"), row.results[i]);
    if (row.values.has("also"))
      for (const auto& [name, flags] : row.values.at("also").items())
        want(row, row.values.text(flags), row.also[name]);
    if (row.subject->truth.defined() || !row.values.has("reference")) continue;
    Planned once = row;
    once.values.add({{"first_seed", 1000}, {"repeats", 1}});
    const json& given = row.values.at("reference");
    const json references = given.is_array() ? given : json::array({given});
    row.references.resize(references.size());
    for (size_t i = 0; i < references.size(); ++i)
      want(once, row.values.text(references[i]), row.references[i]);
  }
  const std::vector<json> cells = run_tasks(options_, label, tasks);
  auto first = cells.begin();
  for (const auto& [count, result] : wanted) {
    *result = result_of({first, first + count});
    first += count;
  }
  for (Planned& row : rows) {
    row.choice.chosen = 0;
    if (const int64_t choosing = row.values.integer("choosing", 0); choosing > 0) {
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

void Runner::add_particles(const Planned& row, bool is_first) {
  const auto add = [&](const std::string& sampler, const std::vector<double>& x,
                       const std::vector<double>& y) {
    for (size_t i = 0; i < x.size(); ++i)
      particles_.push_back({{"target", row.values.text_of("target")},
                            {"sampler", sampler},
                            {"x", significant(x[i], 4)},
                            {"y", significant(y[i], 4)}});
  };
  if (const at::Tensor& exact = row.subject->draws; is_first && exact.defined())
    add("exact draws", to_column(exact.select(-1, 0)), to_column(exact.select(-1, 1)));
  add(row.values.text_of("sampler"), row.best().x, row.best().y);
}

void Runner::run_table(const json& table, const Bindings& values) {
  const std::string stem = values.text(table.at("stem")), title = values.text(table.at("title"));
  std::vector<Planned> rows;
  if (!table.contains("groups")) expand(values, table.value("axes", json::array()), 0, rows, 0);
  for (const json& group : table.value("groups", json::array())) {
    Bindings own = values;
    own.add(group.value("set", json::object()));
    expand(own, group.at("axes"), 0, rows, rows.size());
  }
  const json& columns = table.at("columns");
  for (const Planned& row : rows) {  // columns are tried on nothing, before hours are spent
    Planned trial = row;
    trial.values.add({{"matched", ""}, {"setting", "-"}});
    trial.family = {trial.values};
    if (row.values.has("also"))
      for (const auto& [name, flags] : row.values.at("also").items()) trial.also[name] = {};
    cells_of(columns, trial, measures_of_row(trial, nullptr));
  }
  for (Planned& row : rows) plan(row);
  compute(rows, stem);
  std::vector<Row> shown;
  for (size_t i = 0; i < rows.size(); ++i) {
    const VariantResult& best = rows[i].best();
    shown.push_back(
        cells_of(columns, rows[i], measures_of_row(rows[i], &rows[rows[i].first].best())));
    if (rows[i].values.has("particles")) add_particles(rows[i], rows[i].first == i);
    if (!table.contains("plans") || best.traces.empty()) continue;
    const Trace& trace = best.traces[0];
    const std::vector<double> along =
        along_plan(table.at("plans") == "betas" ? trace.betas : trace.divergence);
    Row plan;
    for (size_t column = 0; column < columns.size(); ++column)
      if (!is_number(columns.at(column))) plan.push_back(shown.back()[column]);
    for (size_t part = 0; part < along.size(); ++part)
      plan.emplace_back(fixed(static_cast<double>(part) / static_cast<double>(along.size() - 1), 2),
                        significant(along[part], 6));
    plans_.push_back(plan);
  }
  if (!shown.empty()) page_.table(stem, title, shown, table.value("folded", false));
}

void Runner::run() {
  const json set = content_.value("set", json::object());
  page_.paragraph(seeded({where_, set}).text(content_.at("about")));
  for (int64_t place = 0; const json& table : content_.at("tables")) {
    Bindings values(where_ + ": tables/" + std::to_string(place++), set);
    values.add(table.value("set", json::object()));
    std::vector<Planned> each;  // the values of each table
    expand(values, table.value("each", json::array()), 0, each, 0);
    for (const Planned& one : each) run_table(table, one.values);
  }
  if (!plans_.empty())
    page_.table("plans", "First plans against transition / M", plans_, /*folded=*/true);
  if (!particles_.empty())
    page_.table("particles", "Particles of first runs", particles_, /*folded=*/true);
}

}  // namespace

Experiment::Experiment(const std::string& name) : name_(name) {
  const auto& embedded = embedded_experiments();
  std::string where = name;
  if (name.ends_with(".json")) {
    content_ = read_json(name);
    name_ = std::filesystem::path(name).stem().string();
  } else {
    const std::string stem = name.substr(0, name.find(':'));
    std::vector<std::string> names, dims;
    for (const auto& [other, text] : embedded) names.push_back(other);
    if (embedded.count(stem) == 0)
      throw argument_error("unknown experiment '" + name + "'; choose from " + join(names));
    content_ = parse_json(embedded.at(stem), where = stem + ".json");
    if (name != stem) {
      json chosen = json::array();
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
    }
  }
  try {
    for (const bool full : {true, false}) check(picked(content_, full), where);
    summary();
    uses();
  } catch (const json::exception& error) {
    throw data_error(where + ": " + error.what());
  }
}

std::vector<std::string> Experiment::uses() const {
  return content_.value("uses", std::vector<std::string>{"seeds"});
}

std::string Experiment::folder() const {
  std::string folder = name_;
  std::replace(folder.begin(), folder.end(), ':', '-');
  return folder;
}

void Experiment::run(ExperimentOptions options) const {
  options.out /= folder();
  Page page(options.out, summary());
  try {
    Runner(options, picked(content_, options.full), name_ + ".json", page).run();
  } catch (const json::exception& error) {
    throw data_error(name_ + ".json: " + error.what());
  }
  page.finish();
}

}  // namespace crais
