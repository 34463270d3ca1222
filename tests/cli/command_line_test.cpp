#include "cli/command_line.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <regex>
#include <utility>

#include "support/expect_error.h"
#include "util/version.h"

namespace crais {
namespace {

using nlohmann::json;
using Words = std::vector<std::string>;

Synopsis synopsis() {
  return {.program = "measure",
          .summary = "Measures a thing.",
          .operands = "CHECKPOINT",
          .min_operands = 1,
          .max_operands = 1,
          .groups =
              {{"Estimator",
                {option::text("method", "ais|iwae|elbo", {"ais"}, "estimators").listed(),
                 option::text("schedule", "SPEC", {"linear"}, "the temperatures"),
                 Option{"extra", "SPEC", {}, "schedules", Option::Kind::kText, /*many=*/true},
                 option::integer("steps", "T", {"64"}, "how many").between(1, 1000000),
                 option::integer("limit", "N", {}, "images").at_least(1),
                 option::number("step-size", "E", {"0.5"}, "of a leapfrog").above(0),
                 option::number("offset", "X", {"-1.5"}, "of nothing"),
                 option::text("base", "prior|encoder", {"prior"}, "where to start"),
                 option::flag("per-image", "one schedule an image")}},
               {"Network",
                {option::integer("hidden", "N,N", {"200", "200"}, "layers").listed().at_least(1),
                 option::number("adam", "B,B", {"0.9", "0.999"}, "betas").listed().between(0, 1)}},
               {"Run", {option::device(), option::threads(), option::seed(1), option::quiet()}}},
          .examples = "  measure vae.safetensors --steps 64"};
}

CommandLine read(const Words& arguments) {
  Words all{"vae.safetensors"};
  all.insert(all.end(), arguments.begin(), arguments.end());
  return CommandLine(synopsis(), all);
}

std::string answer_to(const Words& arguments) {
  try {
    CommandLine(synopsis(), arguments);
  } catch (const Answer& answer) {
    return answer.text;
  }
  return "nothing was answered";
}

TEST(CommandLine, DefaultsHold) {
  const CommandLine cli = read({});
  EXPECT_EQ(cli.operands(), Words{"vae.safetensors"});
  EXPECT_EQ(cli.settings()["method"], Words{"ais"});
  EXPECT_EQ(cli.text("schedule"), "linear");
  EXPECT_EQ(cli.integer("steps"), 64);
  EXPECT_EQ(cli.number("step-size"), 0.5);
  EXPECT_EQ(cli.integers("hidden"), (std::vector<int64_t>{200, 200}));
  EXPECT_EQ(cli.numbers("adam"), (std::vector<double>{0.9, 0.999}));
  EXPECT_FALSE(cli.flag("per-image"));
  EXPECT_TRUE(cli.has("steps"));
  EXPECT_FALSE(cli.given("steps"));
  EXPECT_FALSE(cli.has("limit"));
  EXPECT_EQ(cli.integer("limit", 100), 100);
}

TEST(CommandLine, ReadsValuesInBothForms) {
  const CommandLine cli = read({"--steps", "8", "--step-size=0.25", "--offset", "-3", "--per-image",
                                "--schedule", "cess:0.7,max-step=0.1", "--limit=7"});
  EXPECT_EQ(cli.integer("steps"), 8);
  EXPECT_EQ(cli.number("step-size"), 0.25);
  EXPECT_EQ(cli.number("offset"), -3.0);
  EXPECT_TRUE(cli.flag("per-image"));
  EXPECT_EQ(cli.text("schedule"), "cess:0.7,max-step=0.1");
  EXPECT_EQ(cli.integer("limit", 100), 7);
  EXPECT_TRUE(cli.given("steps"));
}

TEST(CommandLine, RepeatsAndCommasMakeLists) {
  const CommandLine cli = read({"--method", "iwae", "--method=elbo,ais", "--hidden", "10,20",
                                "--extra", "cess:0.7,max-step=0.1", "--extra", "linear"});
  EXPECT_EQ(cli.settings()["method"], (Words{"iwae", "elbo", "ais"}));
  EXPECT_EQ(cli.integers("hidden"), (std::vector<int64_t>{10, 20}));
  EXPECT_EQ(cli.settings()["extra"], (Words{"cess:0.7,max-step=0.1", "linear"}));
}

TEST(CommandLine, TakesWordsOfSeveralLines) {
  EXPECT_EQ(read({"--schedule=a\nb=c"}).text("schedule"), "a\nb=c");
  EXPECT_EQ(read({"--offset", "-3"}).number("offset"), -3);
  EXPECT_EQ(CommandLine(synopsis(), Words{"-"}).operands(), Words{"-"});
  EXPECT_TRUE(read({"--quiet=true"}).flag("quiet"));
  EXPECT_FALSE(read({"--quiet=false"}).flag("quiet"));
}

/// Words, and what must be in the message.
const std::vector<std::pair<Words, Words>>& refused() {
  static const std::string kWord("a\0b", 3);  // where the system would take what stands before it
  static const std::vector<std::pair<Words, Words>> kRefused = {
      // Unknown flags, with the nearest.
      {{"--scheduel", "linear"}, {"--scheduel", "did you mean --schedule?"}},
      {{"--scheduel=linear"}, {"--scheduel;", "did you mean --schedule?"}},
      {{"-steps", "3"}, {"-steps", "did you mean --steps?"}},
      {{"--per_image"}, {"did you mean --per-image?"}},
      {{"--zzzzzz"}, {"unknown flag --zzzzzz"}},
      {{"--vers"}, {"did you mean --version?"}},
      // Missing and repeated values.
      {{"--schedule=" + kWord}, {"--schedule", "NUL"}},
      {{"--extra", kWord}, {"--extra", "NUL"}},
      {{"--steps"}, {"--steps needs a value", "--steps T"}},
      {{"--schedule", "--per-image"}, {"--schedule needs a value"}},
      {{"--schedule="}, {"--schedule", "empty"}},
      {{"--schedule", ""}, {"--schedule", "empty"}},
      {{"--hidden", "200,,200"}, {"--hidden", "empty"}},
      {{"--hidden", "200,"}, {"--hidden", "empty"}},
      {{"--steps", "1", "--steps", "2"}, {"--steps is given twice"}},
      {{"--method", "ais", "--method", "ais"}, {"--method", "'ais' is given twice"}},
      // Values of the wrong kind, and out of range.
      {{"--steps", "abc"}, {"--steps", "'abc' is not a whole number"}},
      {{"--steps", "1.5"}, {"--steps", "'1.5' is not a whole number"}},
      {{"--offset", "1x"}, {"--offset", "'1x' is not a number"}},
      {{"--offset", "nan"}, {"--offset", "not a finite number"}},
      {{"--per-image=maybe"}, {"--per-image", "true or false", "'maybe'"}},
      {{"--hidden", "200,x"}, {"--hidden", "'x' is not a whole number"}},
      {{"--steps", "0"}, {"--steps", "[1, 1000000]", "not 0"}},
      {{"--steps", "1000001"}, {"--steps", "[1, 1000000]"}},
      {{"--limit", "0"}, {"--limit", "at least 1", "not 0"}},
      {{"--step-size", "0"}, {"--step-size", "above 0"}},
      {{"--hidden", "200,0"}, {"--hidden", "at least 1"}},
      {{"--base", "posterior"}, {"--base", "'posterior'", "prior, encoder"}},
      {{"--method", "ais,foo"}, {"--method", "'foo'", "ais, iwae, elbo"}}};
  return kRefused;
}

TEST(CommandLine, NamesWhatItRefuses) {
  for (const auto& [arguments, words] : refused())
    expect_error(ErrorKind::kArgument, words, [&given = arguments] { read(given); });
  const std::string word("a\0b", 3);
  expect_error(ErrorKind::kArgument, {"NUL"}, [&] { CommandLine(synopsis(), Words{word}); });
}

TEST(CommandLine, TakesTypedValuesByName) {
  const CommandLine cli(synopsis(), {"--help"},
                        {{"steps", {8}},
                         {"step-size", {0.25}},
                         {"offset", {-3}},
                         {"limit", {"7"}},
                         {"per-image", {true}},
                         {"method", {"iwae", "elbo"}},
                         {"hidden", {"10,20", 30}}});
  EXPECT_EQ(cli.operands(), Words{"--help"});
  EXPECT_EQ(cli.settings(), read({"--steps=8", "--step-size=0.25", "--offset=-3", "--limit=7",
                                  "--per-image", "--method=iwae,elbo", "--hidden=10,20,30"})
                                .settings());
  EXPECT_TRUE(cli.given("steps"));
  EXPECT_FALSE(cli.given("base"));
}

TEST(CommandLine, RefusesTypedValuesAsItDoesTexts) {
  const std::vector<std::pair<FlagValues, Words>> refused = {
      {{{"step", {8}}}, {"unknown flag --step; did you mean --steps?"}},
      {{{"help", {true}}}, {"unknown flag --help"}},
      {{{"steps", {0}}}, {"--steps", "[1, 1000000]", "not 0"}},
      {{{"steps", {1.5}}}, {"--steps", "'1.5' is not a whole number"}},
      {{{"steps", {1, 2}}}, {"--steps is given twice"}},
      {{{"steps", {true}}}, {"--steps needs a value: --steps T"}},
      {{{"step-size", {0.0}}}, {"--step-size", "above 0"}},
      {{{"per-image", {2}}}, {"--per-image", "true or false", "'2'"}},
      {{{"base", {5}}}, {"--base", "'5'", "prior, encoder"}}};
  for (const auto& [values, words] : refused)
    expect_error(ErrorKind::kArgument, words,
                 [&given = values] { CommandLine(synopsis(), {"vae.safetensors"}, given); });
}

TEST(CommandLineAnswers, HelpHoldsGroupsDefaultsAndExamples) {
  const std::string help = answer_to({"--help"});
  for (const char* part :
       {"Measures a thing.", "measure [FLAGS] CHECKPOINT", "Estimator", "--method ais|iwae|elbo",
        "--steps T", "(default: 64)", "Network", "(default: 200,200)", "--version",
        "Examples:\n  measure vae.safetensors --steps 64\n"})
    EXPECT_NE(help.find(part), std::string::npos) << part << "\n" << help;
  EXPECT_EQ(answer_to({"-h"}), help);
  EXPECT_EQ(answer_to({"x", "--steps", "3", "--help"}), help);
}

TEST(CommandLineAnswers, HelpOfBasicFlagsIsShort) {
  Synopsis s = synopsis();
  s.examples = "  one\n  two\n  three\n  four\n";
  s.groups.push_back({"More",
                      {option::text("way", "NAME", {"a"}, "how:\na  well\nb  badly").basic(),
                       option::flag("one", "first").basic(), option::flag("two", "second").basic(),
                       option::flag("rare", "seldom")}});
  const std::string all = CommandLine::help(s, true), some = CommandLine::help(s, false);
  for (const char* part : {"--rare", "badly", "four", "--steps"}) {
    EXPECT_NE(all.find(part), std::string::npos) << part;
    EXPECT_EQ(some.find(part), std::string::npos) << part;
  }
  EXPECT_NE(some.find("--way NAME"), std::string::npos);
  EXPECT_NE(some.find("  three\n\nmeasure --help all"), std::string::npos) << some;
}

TEST(Settings, AreTyped) {
  const json settings = read({"--steps", "8", "--per-image", "--method", "iwae,elbo"}).settings();
  EXPECT_EQ(settings["steps"], json(8));
  EXPECT_TRUE(settings["steps"].is_number_integer());
  EXPECT_EQ(settings["step-size"], json(0.5));
  EXPECT_EQ(settings["per-image"], json(true));
  EXPECT_EQ(settings["quiet"], json(false));
  EXPECT_EQ(settings["method"], json({"iwae", "elbo"}));
  EXPECT_EQ(settings["hidden"], json({200, 200}));
  EXPECT_EQ(settings["extra"], json::array());
  EXPECT_EQ(settings["schedule"], json("linear"));
  EXPECT_TRUE(settings["limit"].is_null());
  EXPECT_FALSE(settings.contains("help"));
  EXPECT_EQ(settings.size(), 15u);
}

TEST(Command, LeavesOutWhatTheDefaultsSay) {
  EXPECT_EQ(command_of(synopsis(), {"vae.safetensors"}, read({}).settings()),
            "measure vae.safetensors");
  EXPECT_EQ(command_of(synopsis(), {"a b.pt"},
                       read({"--steps", "64", "--limit", "5", "--per-image"}).settings()),
            "measure 'a b.pt' --limit 5 --per-image");
}

TEST(Command, GivesTheSettingsAgain) {
  const Words flags = {"--method", "iwae,elbo",  "--extra",  "it's $HOME, `x`", "--offset",
                       "-0.1",     "--adam",     "0.5,0.25", "--hidden",        "7",
                       "--quiet",  "--schedule", "a\nb\\"};
  const json settings = read(flags).settings();
  const std::string line = command_of(synopsis(), {"vae.safetensors"}, settings);
  // The shell itself says what the words are.
  const std::string script = "measure() { for word; do printf '%s\\0' \"$word\"; done; }\n" + line;
  FILE* const shell = ::popen(
      ("bash -c '" + std::regex_replace(script, std::regex("'"), "'\\''") + "'").c_str(), "r");
  ASSERT_NE(shell, nullptr);
  Words words(1);
  for (int c = std::fgetc(shell); c != EOF; c = std::fgetc(shell))
    if (c == 0)
      words.emplace_back();
    else
      words.back() += static_cast<char>(c);
  EXPECT_EQ(::pclose(shell), 0);
  words.pop_back();
  EXPECT_EQ(CommandLine(synopsis(), words).settings(), settings) << line;
}

TEST(Command, KnowsWhatAPresetSays) {
  Synopsis s = synopsis();
  s.presets = {{"usual", "as ever", {}}, {"short", "few steps", {{"steps", "8"}}}};
  const auto line = [&](const Words& arguments) {
    return command_of(s, {"m"}, CommandLine(s, arguments).settings());
  };
  EXPECT_EQ(line({"m", "--preset", "short"}), "measure m --preset short");
  EXPECT_EQ(line({"m", "--preset", "short", "--steps", "64"}),
            "measure m --preset short --steps 64");
}

}  // namespace
}  // namespace crais
