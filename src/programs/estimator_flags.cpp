#include "programs/estimator_flags.h"

#include "cli/program.h"
#include "core/rng.h"
#include "evaluation/option_table.h"
#include "util/digest.h"
#include "util/error.h"
#include "util/files.h"
#include "util/format.h"

namespace crais {
namespace {

using nlohmann::json;

// The types of OptionRow::Field.
using Kind = Option::Kind;
constexpr Kind kKinds[] = {Kind::kFlag, Kind::kInteger, Kind::kInteger, Kind::kNumber,
                           Kind::kText, Kind::kInteger, Kind::kNumber,  Kind::kText};
static_assert(std::size(kKinds) == std::variant_size_v<OptionRow::Field>);

/// A default as the words of a command line.
std::vector<std::string> words_of(const json& value) {
  if (value.is_null() || value.is_boolean() || value == json("")) return {};
  if (value.is_array()) return value;
  if (value.is_number_float()) return {shortest(value.get<double>())};
  return {value.is_string() ? value.get<std::string>() : value.dump()};
}

Option option_of(const OptionRow& row, const std::string& problem) {
  const json value = value_of(row, {});
  Option option;
  option.name = flag_of(row.name, problem);
  option.value_name = row.value_name;
  const std::string word = word_of(row.value_name);
  option.fallback = word.empty() ? words_of(value) : std::vector{word};
  option.help =
      with_flags(problem == "image" ? "eval-loglik" : "estimate-logz",
                 of_problem(row.help + (row.names != nullptr ? ":" + row.names() : ""), problem));
  option.kind = choices_of(row.value_name).empty() ? kKinds[row.field.index()] : Kind::kText;
  option.many = value.is_array();
  option.range = row.range;
  option.is_basic = row.is_basic;
  return option;
}

}  // namespace

Option estimator_option(const std::string& field, const std::string& problem) {
  return option_of(option_row(field), problem);
}

std::vector<OptionGroup> estimator_options(const std::string& problem) {
  std::vector<OptionGroup> groups;
  for (const char* title : {"Method", "Annealing", "Pilot"}) {
    groups.push_back({title, {}});
    for (const OptionRow& row : option_table())
      if (row.group == title) groups.back().options.push_back(option_of(row, problem));
  }
  return groups;
}

std::vector<Preset> estimator_presets(const std::string& paper_summary, const std::string& rate,
                                      const std::string& chains) {
  return {{"recommended", "choice of the other defaults", {}},
          {"paper",
           paper_summary,
           {{"base", "prior"},
            {"kernel", "hmc"},
            {"step-size", "0.5"},
            {"schedule", "constant-rate:" + rate},
            {"chains", chains}}}};
}

OptionGroup output_options(const std::string& files) {
  return {"Output",
          {option::text("out", "DIR", {}, files).basic(),
           option::flag("resume", "continue the run in DIR").basic(),
           option::flag("overwrite", "replace the results in DIR"),
           option::flag("accept-other-version",
                        "continue even if another build of crais made the results"),
           option::text("max-time", "TIME", {},
                        "55m, 1h30m or HH:MM:SS: start no chunk that would end later, then exit "
                        "with 75; --resume continues"),
           option::text("format", "table|json|csv", {"table"},
                        "printed output: a table as wide as the terminal, the summary as JSON, or "
                        "CSV with a line for each method"),
           option::quiet()}};
}

namespace {

StoreOptions read_store(const CommandLine& cli) {
  const StoreOptions options{cli.flag("resume"), cli.flag("overwrite"),
                             cli.flag("accept-other-version")};
  cli.exclude("resume", "overwrite");
  for (const char* flag : {"resume", "overwrite"})
    if (cli.flag(flag) && !cli.has("out")) throw argument_error("--", flag, " needs --out DIR");
  return options;
}

EstimateOptions read_estimator(const CommandLine& cli, const std::string& problem) {
  EstimateOptions options;
  const json settings = cli.settings();
  for (const OptionRow& row : option_table())
    if (!row.group.empty())
      set_value(row, settings.value(flag_of(row.name, problem), json()), options);
  check(options);
  return options;
}

}  // namespace

RunSettings read_run(const CommandLine& cli, const std::string& problem) {
  RunSettings s{.estimator = read_estimator(cli, problem),
                .device = parse_device(cli.text("device")),
                .dtype = cli.text("dtype") == "float64" ? at::kDouble : at::kFloat,
                .threads = cli.integer("threads"),
                .out = cli.text("out", ""),
                .store = read_store(cli)};
  if (cli.has("max-time")) s.max_time = parse_duration(cli.text("max-time"), "--max-time");
  if (s.max_time && s.out.empty())
    throw argument_error("--max-time needs --out DIR: nothing would be kept");
  s.format = cli.text("format");
  s.quiet = cli.flag("quiet");
  s.resolved = cli.settings();
  return s;
}

bool given_length(const CommandLine& cli) {
  for (const char* flag :
       {"budget", "chains", "steps", "schedule", "step-size", "interpolate", "path"})
    if (cli.given(flag)) return true;
  return false;
}

json deciding_settings(const RunSettings& settings) {
  json deciding = settings.resolved;
  for (const char* operational : {"data-dir", "threads", "shard", "out", "resume", "overwrite",
                                  "accept-other-version", "max-time", "format", "dry-run", "quiet"})
    deciding.erase(operational);
  if (deciding.contains("expect") && deciding["expect"].empty()) deciding.erase("expect");
  // The temperatures in the file decide the results; its path does not.
  if (const std::string& schedule = settings.estimator.schedule; schedule.rfind("file:", 0) == 0)
    deciding["schedule_sha256"] = sha256(read_file(schedule.substr(5)));
  deciding["stream"] = std::to_string(kStreamVersion);
  deciding["device"] = c10::DeviceTypeName(settings.device.type(), /*lower_case=*/true);
  return deciding;
}

}  // namespace crais
