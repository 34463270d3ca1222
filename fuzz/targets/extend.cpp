// eval-loglik extend, of folders of results with a model and, perhaps, an extension under way.
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "evaluation/result_store.h"
#include "harness.h"
#include "io/json.h"
#include "models/checkpoint.h"
#include "programs/eval_loglik/commands.h"
#include "util/error.h"
#include "util/files.h"

namespace crais::fuzz {
namespace {

using nlohmann::json;

/// The model that summaries of the corpus name.
const std::string& model() {
  static const std::string kBytes = [] {
    VaeArchitecture architecture;
    architecture.image_rows = architecture.image_cols = 2;
    architecture.latent = 1;
    architecture.hidden = {2};
    const std::string path = (folder() / "made").string();
    write_checkpoint(path, {make_vae(architecture, 0), {}, ""});
    return read_file(path);
  }();
  return kBytes;
}

/// A run's own files, those of its extension too.
bool belongs(const std::string& path) {
  for (const char* place : {"", "extension/", "replacing/"})
    for (const char* name : {"run.json", "summary.json", "plan.json", "chunks/000000.json",
                             "chunks/000001.json", "thumbnails.npy"})
      if (path == std::string(place) + name) return true;
  return false;
}

void extend(const std::vector<std::string>& more) {
  std::vector<std::string> words = {"extend", "run", "--dry-run", "--quiet"};
  words.insert(words.end(), more.begin(), more.end());
  attempt([&] { extend_evaluation(CommandLine(extend_synopsis(), words)); });
}

}  // namespace

/// "=== NAME" begins a file of the folder. Without a summary there is one that names the model.
void read(std::string_view input) {
  static const int kHere = ::chdir(folder().c_str());  // a summary's path leads to nobody's file
  (void)kHere;
  file(model(), "vae");
  file("{\"checkpoint\": {\"path\": \"vae\"}, \"shard\": \"1/1\"}", "run/summary.json");
  std::string run;
  for (const auto& [name, bytes] : parts(input)) {
    if (!belongs(name)) continue;
    if (name == "run.json") run = bytes;
    file(bytes, "run/" + name);
  }
  extend({"--chains", "+2"});
  extend({"--images", "+2"});
  extend({});
  json asked = parse_json(run, "run.json");
  if (!asked.is_object()) asked = json::object();
  asked.erase("computed_by");
  asked["more"] = true;
  ResultStore store("run", asked, {.resume = true, .accept_other_version = true, .extend = true});
  attempt([&] { store.read_earlier_chunks(); });
  attempt([&] { store.read_state(); });
  store.replace_earlier();
}

}  // namespace crais::fuzz
