// check_layers ROOT: fails where the sources include something they must not.
//
// The folders are layers: an include may point to the same layer or an earlier one, and files may
// not include each other in a circle. A public header ("/// @file" is its first line) includes
// public headers only; crais.h, which stands above all layers, is for others to include. Needs only
// C++17, so that it runs before anything is built.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <regex>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;

// As in docs/ARCHITECTURE.md. `models` stands beside src/, the others in it.
const std::vector<std::string> kLayers = {
    "util",      "simd",        "core",     "io",        "data",        "models",   "kernels",
    "targets",   "divergences", "paths",    "schedules", "transitions", "samplers", "bases",
    "estimates", "evaluation",  "evidence", "report",    "cli",         "programs"};

const std::string kUmbrella = "crais.h";

struct Include {
  std::string file;  // as written: "util/error.h"
  int line;
};

struct Source {
  std::vector<Include> includes;
  bool is_public = false;
};

using Graph = std::map<std::string, Source>;  // by "util/error.h"

// The place of a file's layer in kLayers; their number if it lies in none.
size_t layer_of(const std::string& file) {
  const std::string layer = file.substr(0, file.find('/'));
  return static_cast<size_t>(std::find(kLayers.begin(), kLayers.end(), layer) - kLayers.begin());
}

Source read_source(const fs::path& path) {
  static const std::regex kInclude("^\\s*#\\s*include\\s*\"([^\"]+)\".*");
  Source source;
  std::ifstream in(path);
  std::smatch match;
  std::string text;
  for (int line = 1; std::getline(in, text); ++line) {
    if (line == 1) source.is_public = text == "/// @file";
    if (std::regex_match(text, match, kInclude)) source.includes.push_back({match[1], line});
  }
  return source;
}

void read_folder(const fs::path& base, const fs::path& folder, Graph& graph) {
  if (!fs::is_directory(folder)) return;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const std::string extension = entry.path().extension().string();
    if (extension == ".h" || extension == ".cpp")
      graph[fs::relative(entry.path(), base).generic_string()] = read_source(entry.path());
  }
}

// Every include that does not exist or points to a later layer.
int check_layers(const Graph& graph) {
  int faults = 0;
  for (const auto& [file, source] : graph) {
    if (layer_of(file) == kLayers.size() && file != kUmbrella) {
      std::cerr << file << ": lies in no known layer\n";
      ++faults;
      continue;
    }
    for (const auto& include : source.includes) {
      std::string fault;
      const auto there = graph.find(include.file);
      if (there == graph.end())
        fault = "which is not here; name it by its layer, as in \"util/error.h\"";
      else if (layer_of(include.file) > layer_of(file))
        fault = "of a later layer";
      else if (source.is_public && !there->second.is_public)
        fault = "which is not public (its first line is not \"/// @file\")";
      if (fault.empty()) continue;
      std::cerr << file << ":" << include.line << ": includes \"" << include.file << "\", " << fault
                << "\n";
      ++faults;
    }
  }
  return faults;
}

// Depth-first search; `path` holds the files on the way, `done` those known to lead to no circle.
int check_circles(const Graph& graph, const std::string& file, std::vector<std::string>& path,
                  std::map<std::string, bool>& done) {
  const auto start = std::find(path.begin(), path.end(), file);
  if (start != path.end()) {
    std::cerr << "include circle: ";
    for (auto it = start; it != path.end(); ++it) std::cerr << *it << " -> ";
    std::cerr << file << "\n";
    return 1;
  }
  const auto node = graph.find(file);
  if (done[file] || node == graph.end()) return 0;
  path.push_back(file);
  int faults = 0;
  for (const auto& include : node->second.includes)
    faults += check_circles(graph, include.file, path, done);
  path.pop_back();
  done[file] = true;
  return faults;
}

}  // namespace

int main(int argc, char** argv) {
  const fs::path root = argc == 2 ? argv[1] : ".";
  Graph graph;
  read_folder(root / "src", root / "src", graph);
  read_folder(root, root / "models", graph);
  if (argc > 2 || graph.empty()) {
    std::cerr << "usage: check_layers ROOT, where ROOT holds src/ and models/\n";
    return 64;
  }
  int faults = check_layers(graph);
  std::vector<std::string> path;
  std::map<std::string, bool> done;
  for (const auto& node : graph) faults += check_circles(graph, node.first, path, done);
  std::cout << "check_layers: " << graph.size() << " files, " << faults << " faults\n";
  return faults == 0 ? 0 : 1;
}
