// Result folders whole: run.json, plan.json and chunks, each a part of the input.
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "evaluation/result_store.h"
#include "harness.h"
#include "io/json.h"
#include "programs/eval_loglik/commands.h"
#include "programs/eval_loglik/settings.h"
#include "util/digest.h"
#include "util/error.h"

namespace crais::fuzz {
namespace {

using nlohmann::json;

/// Digests of content and run as they should be, where both are JSON: else the fuzzer would have to
/// guess a sha256.
std::string sealed(const std::string& content, const std::string& run) {
  try {
    const std::string text = parse_json(content, "content").dump();
    return "{\"digest\":\"" + sha256(text) + "\",\"fingerprint\":\"" +
           sha256(parse_json(run, "run").dump()) + "\",\"content\":" + text + "}\n";
  } catch (const Error&) {
    return content;
  }
}

/// A run's own files, and any in chunks.
bool belongs(const std::string& path) {
  const bool below = path.rfind("chunks/", 0) == 0 && path.size() > 7 && path.size() < 100 &&
                     path != "chunks/." && path != "chunks/.." &&
                     path.find_first_of(std::string_view("/\0", 2), 7) == std::string::npos;
  return below || path == "run.json" || path == "plan.json" || path == "summary.json";
}

}  // namespace

/// "=== sealed chunks/000000.json" is a part that gets its digests here.
void read(std::string_view input) {
  static const Synopsis kSynopsis = eval_loglik_synopsis();
  static const CommandLine kMerge(kSynopsis, {"merge", (folder() / "run").string(), "--out",
                                              (folder() / "merged").string(), "--quiet"});
  static const std::string kRun = (folder() / "run").string();
  static const CommandLine kCompare(kSynopsis, {"compare", kRun, kRun});
  static const CommandLine kDiagnose(kSynopsis, {"diagnose", kRun});
  constexpr std::string_view kSealed = "sealed ";
  std::string run;
  for (const auto& [name, bytes] : parts(input)) {
    const bool seal = name.rfind(kSealed, 0) == 0;
    const std::string path = seal ? name.substr(kSealed.size()) : name;
    if (!belongs(path)) continue;
    if (path == "run.json") run = bytes;
    file(seal ? sealed(bytes, run) : bytes, "run/" + path);
  }
  attempt([&] { merge_evaluations(kMerge); });
  attempt([&] { compare_evaluations(kCompare); });
  attempt([&] { diagnose_evaluation(kDiagnose); });
  json asked = parse_json(run, "run.json");
  if (!asked.is_object()) asked = json::object();  // a program asks for nothing else
  asked.erase("computed_by");
  const ResultStore store(folder() / "run", asked, {.resume = true, .accept_other_version = true});
  store.read_state();
  store.read_chunks({{3, 2}, {"ais"}, 1});
}

}  // namespace crais::fuzz
