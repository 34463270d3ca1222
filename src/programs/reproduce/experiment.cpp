#include "programs/reproduce/experiment.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
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
    "target", "problems",  "images",  "side",       "hidden",   "points",  "flags",    "also",
    "match",  "steps",     "repeats", "first_seed", "settings", "setting", "choosing", "choose",
    "truth",  "reference", "upper",   "particles",  "chains",   "if",      "unless"};

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() &&
         text.compare(text.size() - end.size(), std::string::npos, end) == 0;
}

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

void check_keys(const json& object, const std::set<std::string>& known, const std::string& where) {
  for (const auto& [key, value] : object.items())
    if (known.count(key) == 0)
      throw data_error(where + ": unknown key '" + key + "'; choose from " +
                       join({known.begin(), known.end()}));
}

/// Adds the words of all texts.
void gather_words(const json& value, std::set<std::string>& words) {
  if (value.is_structured())
    for (const json& part : value) gather_words(part, words);
  if (!value.is_string()) return;
  std::string word;
  for (const char c : value.get<std::string>() + " ") {
    if (std::isalnum(static_cast<unsigned char>(c)) || c == '_') {
      word += c;
    } else {
      words.insert(word);
      word.clear();
    }
  }
}

/// Refuses keys that are unknown and values that nothing uses.
void check(const json& content, const std::string& where) {
  check_keys(content, {"summary", "about", "uses", "faults", "set", "lists", "tables"}, where);
  std::set<std::string> words;
  gather_words(content, words);
  const auto check_values = [&](const json& values, const std::string& place) {
    for (const auto& [name, value] : values.items())
      if (kRowValues.count(name) == 0 && words.count(name) == 0)
        throw data_error(place + ": nothing uses '" + name + "'");
  };
  check_values(content.value("set", json::object()), where + ": set");
  const json lists = content.value("lists", json::object());
  for (const auto& [name, list] : lists.items())
    for (const json& entry : entries_of(list)) check_values(entry, where + ": lists/" + name);
  int64_t place = 0;
  for (const json& table : content.at("tables")) {
    const std::string at = where + ": tables/" + std::to_string(place++);
    check_keys(
        table,
        {"stem", "title", "if", "each", "axes", "set", "groups", "columns", "folded", "plans"}, at);
    check_values(table.value("set", json::object()), at + "/set");
    for (const json& group : table.value("groups", json::array())) {
      check_keys(group, {"axes", "set"}, at + "/groups");
      check_values(group.value("set", json::object()), at + "/groups");
    }
  }
}

/// A row before it is computed, and then its results.
struct Planned {
  Bindings values;
  size_t first;  // the row that it is compared with
  std::shared_ptr<const Subject> subject = {};
  std::vector<Bindings> family = {};  // one for each setting
  int64_t trials = 0;                 // in the search for a setting
  std::vector<VariantResult> results = {};
  std::map<std::string, VariantResult> also = {};
  Choice choice = {};

  const VariantResult& best() const {
    static const VariantResult none;
    return results.empty() || choice.chosen == Choice::kNone ? none : results[choice.chosen];
  }
};

class Runner {
 public:
  Runner(const ExperimentOptions& options, const json& content, std::string where, Page& page)
      : options_(options), content_(content), where_(std::move(where)), page_(page) {}

  void run();

 private:
  bool is_there(const json& entry, const Bindings& beside = {"", json::object()}) const {
    if (entry.contains("unless") && beside.has(entry.at("unless"))) return false;
    if (!entry.contains("if")) return true;
    const std::string condition = entry.at("if");
    return condition == "full" ? options_.full : options_.has(condition);
  }
  Bindings bindings(const std::string& where, const json& values) const;
  void expand(const Bindings& values, const json& axes, size_t depth, std::vector<Planned>& rows,
              size_t first) const;
  void run_table(const json& table, const Bindings& values);
  void plan(Planned& row);
  void compute(std::vector<Planned>& rows, const std::string& label) const;
  void choose_setting(Planned& row);
  std::shared_ptr<const Subject> subject_of(const Bindings& values);
  std::string subject_name(const Bindings& values) const;
  at::Tensor truth_of(const Planned& row);
  MatchedPlans match(const Planned& row, int64_t steps) const;
  std::vector<Task> tasks_of(const Planned& row, const std::string& flags,
                             bool for_plans = false) const;
  Measures measures_of_row(const Planned& row, const std::vector<Planned>& rows);
  Row cells_of(const json& columns, const Planned& row, const Measures& measures) const;
  void add_particles(const Planned& row, bool is_first);

  const ExperimentOptions& options_;
  const json& content_;
  std::string where_;
  Page& page_;
  std::map<std::string, std::shared_ptr<const Subject>> subjects_;
  std::map<std::string, at::Tensor> references_;
  std::vector<Row> plans_, particles_;
};

/// The values, with the number of seeds that --seeds asks for.
Bindings Runner::bindings(const std::string& where, const json& values) const {
  json all = values;
  for (const auto& [name, value] : values.items()) {
    if (options_.seeds > 0 && ends_with(name, "seeds")) all[name] = options_.seeds;
    if (options_.seeds > 0 && name == "choosing")
      all[name] = std::max<int64_t>(1, options_.seeds / 3);
  }
  return {where, all};
}

void Runner::expand(const Bindings& values, const json& axes, size_t depth,
                    std::vector<Planned>& rows, size_t first) const {
  if (depth == axes.size()) {
    rows.push_back({values, first});
    return;
  }
  const std::string name = axes.at(depth);
  const json& lists = content_.at("lists");
  if (!values.has(name) && !lists.contains(name))
    throw data_error(values.where() + ": there is no list '" + name + "'");
  first = rows.size();
  for (const json& entry : entries_of(values.has(name) ? values.at(name) : lists.at(name))) {
    if (!is_there(entry, values)) continue;
    Bindings next = values;
    next.add(entry);
    expand(next, axes, depth + 1, rows, first);
  }
}

std::string Runner::subject_name(const Bindings& values) const {
  return values.text(values.text_of("target") + " " + values.text_of("problems", "") +
                     values.text_of("images", "") + values.text_of("side", "") +
                     values.text_of("hidden", ""));
}

std::shared_ptr<const Subject> Runner::subject_of(const Bindings& values) {
  auto& subject = subjects_[subject_name(values)];
  if (subject) return subject;
  if (!values.has("images")) {
    subject = std::make_shared<DensitySubject>(options_, values.text_of("target"),
                                               values.integer("problems", 1));
  } else if (!values.has("side")) {
    subject = std::make_shared<VaeSubject>(options_, values.integer("images", 1));
  } else {
    const Vae vae =
        small_vae(values.integer("side", 0), values.at("hidden").get<std::vector<int64_t>>());
    subject = std::make_shared<VaeSubject>(options_, vae, values.integer("images", 1),
                                           values.integer("points", 0));
  }
  return subject;
}

std::vector<Task> Runner::tasks_of(const Planned& row, const std::string& flags,
                                   bool for_plans) const {
  std::vector<Task> tasks;
  for (int64_t s = 0; s < row.values.integer("repeats", 1); ++s)
    tasks.push_back(
        row.subject->task(flags, static_cast<uint64_t>(row.values.integer("first_seed", 0) + s),
                          for_plans, for_plans ? 0 : row.values.integer("particles", 0)));
  return tasks;
}

MatchedPlans Runner::match(const Planned& row, int64_t steps) const {
  return match_transitions(
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
          counts.push_back(result.unfinished ? INFINITY : result.transitions);
        }
        return counts;
      });
}

/// Finds the subject of the row and the flags of all its settings.
void Runner::plan(Planned& row) {
  row.subject = subject_of(row.values);
  if (row.values.has("match")) {
    const MatchedPlans plans = match(row, row.values.integer("steps", 0));
    row.values.add({{"matched", plans.flags}, {"setting", plans.setting}});
    row.trials = plans.trials;
  }
  if (!row.values.has("setting")) row.values.add({{"setting", "-"}});
  if (!row.values.has("flags")) row.values.add({{"flags", "{matched}"}});
  row.family.clear();
  for (const json& setting :
       row.values.has("settings") ? row.values.at("settings") : json{json::object()}) {
    Bindings one = row.values;
    one.add(setting.is_object() ? setting : json{{"setting", setting}});
    one.add({{"setting", one.text_of("setting")}});
    row.family.push_back(one);
  }
}

/// Runs the tasks of all rows.
void Runner::compute(std::vector<Planned>& rows, const std::string& label) const {
  std::vector<Task> tasks;
  std::vector<std::pair<size_t, VariantResult*>> wanted;  // number of tasks, where they go
  const auto want = [&](const Planned& row, const std::string& flags, VariantResult& result) {
    std::vector<Task> more = tasks_of(row, flags);
    wanted.emplace_back(more.size(), &result);
    std::move(more.begin(), more.end(), std::back_inserter(tasks));
  };
  for (Planned& row : rows) {
    row.results.resize(row.family.size());
    for (size_t i = 0; i < row.family.size(); ++i)
      want(row, row.family[i].text_of("flags"), row.results[i]);
    if (row.values.has("also"))
      for (const auto& [name, flags] : row.values.at("also").items())
        want(row, row.values.text(flags), row.also[name]);
  }
  const std::vector<json> cells = run_tasks(options_, label, tasks);
  auto first = cells.begin();
  for (const auto& [count, result] : wanted) {
    const auto end = first + static_cast<int64_t>(count);
    try {
      *result = result_of({first, end});
    } catch (const json::exception&) {  // a cell that was stored without a digest
      throw data_error(options_.cells.string() +
                       ": a cell lacks a result or has another in its place; delete the folder to "
                       "have its cells computed again");
    }
    first = end;
  }
}

/// The truth about the problems of a row; undefined if nothing tells it. References are long runs;
/// of several, each image's values are averaged by precision.
at::Tensor Runner::truth_of(const Planned& row) {
  if (row.values.has("truth")) return at::tensor(row.values.number("truth"), at::kDouble);
  const at::Tensor truth = row.subject->truth();
  if (truth.defined() || !row.values.has("reference")) return truth;
  at::Tensor& found = references_[subject_name(row.values)];
  if (found.defined()) return found;
  const json& given = row.values.at("reference");
  std::vector<Planned> runs;
  for (const json& flags : given.is_array() ? given : json{given}) {
    runs.push_back({row.values, 0, row.subject, {row.values}});
    for (Bindings* values : {&runs.back().values, &runs.back().family[0]}) {
      values->add({{"flags", flags}, {"first_seed", 1000}, {"repeats", 1}});
      values->add({{"also", json::object()}});
    }
  }
  compute(runs, "reference");
  if (!row.subject->has_images()) return found = runs[0].results[0].value.mean();
  if (runs.size() == 1) return found = runs[0].results[0].value[0];
  at::Tensor sum, weights;
  for (const Planned& run : runs) {
    const at::Tensor weight = run.results[0].std_error[0].square().reciprocal();
    const at::Tensor weighted = weight * run.results[0].value[0];
    sum = sum.defined() ? sum + weighted : weighted;
    weights = weights.defined() ? weights + weight : weight;
  }
  return found = sum / weights;
}

void Runner::choose_setting(Planned& row) {
  row.choice.chosen = 0;
  const int64_t choosing = row.values.integer("choosing", 0);
  if (choosing > 0) {
    std::vector<at::Tensor> values;
    for (const VariantResult& result : row.results) values.push_back(result.value[0]);
    const at::Tensor truth = truth_of(row);
    row.choice = choose(values, choosing, truth.defined() ? truth.item<double>() : NAN);
  } else if (row.values.has("settings")) {
    while (row.choice.chosen + 1 < row.results.size() && !row.best().failed.empty())
      ++row.choice.chosen;
  }
}

Measures Runner::measures_of_row(const Planned& row, const std::vector<Planned>& rows) {
  Comparison with;
  with.truth = truth_of(row);
  with.has_images = row.subject->has_images();
  with.choosing = row.values.integer("choosing", 0);
  with.upper = row.values.has("upper");
  with.first = &rows[row.first].best();
  if (row.values.has("particles")) with.masses = row.subject->masses();
  Measures measures = measures_of(row.best(), with);
  if (with.choosing > 0 && !is_fair(measures["transitions"], row.values.integer("steps", 0)))
    measures["t"] = NAN;
  with.first = nullptr;
  for (const auto& [name, result] : row.also)
    for (const auto& [measure, value] : measures_of(result, with))
      measures[name + "." + measure] = value;
  double search = static_cast<double>(row.trials) * row.best().tuning;
  for (const VariantResult& result : row.results)
    if (result.failed.empty()) search += result.evaluations();
  measures["search"] = search;
  // Pilots have at most 256 chains, so they cost less than their count suggests.
  const double pilots = std::min<double>(static_cast<double>(row.values.integer("chains", 1)), 256);
  measures["comput"] = row.best().transitions + std::max(0.0, row.best().tuning / pilots - 1);
  measures["oracle_bias"] = row.choice.oracle == Choice::kNone ? NAN : [&] {
    const at::Tensor values = row.results[row.choice.oracle].value.flatten();
    return values.slice(0, with.choosing).mean().item<double>() - measures["truth"];
  }();
  return measures;
}

bool is_number(const std::string& column) {
  const size_t colon = column.rfind(':');
  if (ends_with(column, " or reason") || ends_with(column, " at length")) return true;
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
    const bool is_there = ends_with(column, end);
    if (is_there) column.resize(column.size() - end.size());
    return is_there;
  };
  const bool or_reason = without(" or reason"), at_length = without(" at length");
  const size_t colon = column.rfind(':');
  if (or_reason && !result.failed.empty()) return result.reason();
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

Row Runner::cells_of(const json& columns, const Planned& row, const Measures& measures) const {
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

void Runner::add_particles(const Planned& row, bool is_first) {
  const auto add = [&](const std::string& sampler, const std::vector<double>& x,
                       const std::vector<double>& y) {
    for (size_t i = 0; i < x.size(); ++i)
      particles_.push_back({{"target", row.values.text_of("target")},
                            {"sampler", sampler},
                            {"x", significant(x[i], 4)},
                            {"y", significant(y[i], 4)}});
  };
  const at::Tensor exact =
      is_first ? row.subject->exact_draws(row.values.integer("particles", 0)) : at::Tensor();
  if (exact.defined())
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
  for (Planned& row : rows) {
    row.values = bindings(values.where(), row.values.all());
    // Columns are tried on nothing, before hours are spent.
    Planned trial = row;
    trial.values.add({{"matched", ""}, {"setting", "-"}});
    trial.family = {trial.values};
    Measures names = measures_of({}, {});
    for (const char* more : {"search", "comput", "oracle_bias"}) names[more] = NAN;
    if (row.values.has("also"))
      for (const auto& [name, flags] : row.values.at("also").items())
        for (const auto& [measure, value] : measures_of({}, {})) names[name + "." + measure] = NAN;
    cells_of(columns, trial, names);
  }
  for (Planned& row : rows) plan(row);
  compute(rows, stem);
  for (Planned& row : rows) choose_setting(row);
  std::vector<Row> shown;
  for (size_t i = 0; i < rows.size(); ++i) {
    const VariantResult& best = rows[i].best();
    shown.push_back(cells_of(columns, rows[i], measures_of_row(rows[i], rows)));
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
  const Bindings set = bindings(where_, content_.value("set", json::object()));
  page_.paragraph(set.text(content_.at("about")));
  int64_t place = 0;
  for (const json& table : content_.at("tables")) {
    const std::string where = where_ + ": tables/" + std::to_string(place++);
    if (!is_there(table)) continue;
    Bindings values(where, set.all());
    values.add(table.value("set", json::object()));
    if (!table.contains("each")) {
      run_table(table, values);
      continue;
    }
    for (const json& entry : entries_of(content_.at("lists").at(std::string(table.at("each"))))) {
      if (!is_there(entry)) continue;
      Bindings one = values;
      one.add(entry);
      run_table(table, bindings(where, one.all()));
    }
  }
  if (!plans_.empty())
    page_.table("plans", "First plans against transition / M", plans_, /*folded=*/true);
  if (!particles_.empty())
    page_.table("particles", "Particles of first runs", particles_, /*folded=*/true);
  std::vector<Row> faults;
  for (const json& fault : content_.value("faults", json::array())) {
    const std::string name = fault.at(0);
    faults.push_back({{"it did", std::string(fault.at(1))},
                      {"right is", std::string(fault.at(2))},
                      {"what changes", std::string(fault.at(3))},
                      {"repeated here", name.empty()         ? "no"
                                        : options_.has(name) ? "yes, above"
                                                             : "--fault " + name}});
  }
  if (!faults.empty()) page_.table("faults", "Where the released code did otherwise", faults);
}

}  // namespace

Experiment::Experiment(const std::string& name) : name_(name) {
  const auto& embedded = embedded_experiments();
  std::string where = name;
  if (ends_with(name, ".json")) {
    content_ = read_json(name);
    name_ = std::filesystem::path(name).stem().string();
  } else {
    const std::string stem = name.substr(0, name.find(':'));
    std::vector<std::string> names;
    for (const auto& [other, text] : embedded) names.push_back(other);
    if (const auto found = embedded.find(stem); found != embedded.end())
      content_ = parse_json(found->second, where = stem + ".json");
    if (content_.is_null())
      throw argument_error("unknown experiment '" + name + "'; choose from " + join(names));
    if (name != stem) {
      json chosen = json::array();
      std::vector<std::string> dims;
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
    faults();
  } catch (const json::exception& error) {
    throw data_error(where + ": " + error.what());
  }
}

std::vector<std::string> Experiment::uses() const {
  return content_.value("uses", std::vector<std::string>{"seeds"});
}

std::vector<std::string> Experiment::faults() const {
  std::vector<std::string> names;
  for (const json& fault : content_.value("faults", json::array()))
    if (fault.at(0) != "") names.push_back(fault.at(0));
  return names;
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
