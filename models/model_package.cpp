#include "models/model_package.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "core/rng.h"
#include "data/binarisation.h"
#include "io/json.h"
#include "io/safetensors.h"
#include "io/zip.h"
#include "models/package_runner.h"
#include "util/error.h"
#include "util/files.h"
#include "util/version.h"

namespace crais {
namespace {

using nlohmann::json;

constexpr const char* kEntry = "/extra/crais.safetensors";
constexpr int64_t kFormatVersion = 1;
constexpr int64_t kMaxLatent = 1 << 16;
constexpr int64_t kMaxValues = int64_t{1} << 30;
constexpr int64_t kMaxBatch = 1 << 16;
constexpr double kValueTolerance = 1e-4;  // relative, of compiled against eager values
constexpr double kGradTolerance = 1e-3;
constexpr const char* kAgain = "; export the model again with crais.export";

/// The entry that describes the model; "" in another archive.
std::string entry_of(const ZipArchive& archive) {
  const std::string end = kEntry;
  for (const std::string& name : archive.names())
    if (name.size() > end.size() && name.compare(name.size() - end.size(), end.size(), end) == 0)
      return name;
  return "";
}

/// What a package says of itself, checked.
struct Manifest {
  ModelDescription model;
  std::string torch;                   // "2.13.0"
  std::string machine;                 // "x86_64"
  std::vector<std::string> cpu_flags;  // instructions that its code may use
  int64_t uniforms = 0;                // that a draw takes
  int64_t batch = 1;
};

class ManifestReader {
 public:
  ManifestReader(const json& object, std::string where)
      : object_(object), where_(std::move(where)) {}

  Manifest read() const {
    if (text("format") != "crais-model") throw wrong("format", "crais-model");
    if (integer("version", 1, kMaxValues) != kFormatVersion)
      throw wrong("version", std::to_string(kFormatVersion) + kAgain);
    if (text("dtype") != "float32") throw wrong("dtype", "float32");
    if (text("device") != "cpu") throw wrong("device", "cpu: this crais runs packages on the CPU");
    Manifest m;
    m.model.kind = "exported";
    m.model.name = text("name");
    m.model.latent = integer("latent", 1, kMaxLatent);
    m.model.data_shape = shape("data_shape");
    m.model.functions = words("functions");
    if (!m.model.has("joint")) throw wrong("functions", "a list with \"joint\"");
    m.model.likelihood = name_of("likelihood");
    m.model.prior = name_of("prior");
    m.model.low = number("low");
    m.model.high = number("high");
    m.model.step = number("step");
    if (m.model.step && !(*m.model.step > 0)) throw wrong("step", "positive");
    m.model.is_mass = number("levels").has_value();
    const json& binarisation = field("binarisation");
    if (!binarisation.is_null()) m.model.binarisation = checked_binarisation(text("binarisation"));
    m.torch = text("torch");
    m.machine = text("machine");
    m.cpu_flags = words("cpu_flags");
    m.uniforms = integer("uniforms", 0, kMaxValues);
    m.batch = integer("batch", 1, kMaxBatch);
    return m;
  }

 private:
  Error wrong(const std::string& key, const std::string& right) const {
    return data_error(where_ + ": \"" + key + "\" is not " + right);
  }
  const json& field(const std::string& key) const {
    const auto found = object_.find(key);
    if (found == object_.end()) throw data_error(where_ + ": \"" + key + "\" is missing");
    return *found;
  }
  std::string text(const std::string& key) const {
    const json& value = field(key);
    if (!value.is_string() || value.get_ref<const std::string&>().size() > 200)
      throw wrong(key, "a short text");
    const auto text = value.get<std::string>();
    if (std::any_of(text.begin(), text.end(),
                    [](char c) { return static_cast<unsigned char>(c) < 32 || c == 127; }))
      throw wrong(key, "a text without control characters");
    return text;
  }
  std::string checked_binarisation(const std::string& name) const {
    try {
      return to_string(parse_binarisation(name));
    } catch (const Error& error) {
      throw data_error(where_ + ": " + error.what());
    }
  }
  std::string name_of(const std::string& key) const {
    const json& spec = field(key);
    if (!spec.is_object()) throw wrong(key, "an object with a name");
    return ManifestReader(spec, where_ + ": \"" + key + "\"").text("name");
  }
  int64_t integer(const std::string& key, int64_t low, int64_t high) const {
    return checked(field(key), key, low, high);
  }
  int64_t checked(const json& value, const std::string& key, int64_t low, int64_t high) const {
    if (!value.is_number_unsigned() || value.get<uint64_t>() > static_cast<uint64_t>(high) ||
        value.get<int64_t>() < low)
      throw wrong(key, "a whole number in " + std::to_string(low) + ".." + std::to_string(high));
    return value.get<int64_t>();
  }
  std::optional<double> number(const std::string& key) const {
    const json& value = field(key);
    if (value.is_null()) return {};
    if (!value.is_number() || !std::isfinite(value.get<double>()))
      throw wrong(key, "a finite number or null");
    return value.get<double>();
  }
  std::vector<int64_t> shape(const std::string& key) const {
    const json& list = field(key);
    if (!list.is_array() || list.empty() || list.size() > 8)
      throw wrong(key, "a list of 1 to 8 sizes");
    std::vector<int64_t> sizes;
    int64_t product = 1;
    for (const json& size : list) {
      sizes.push_back(checked(size, key, 1, kMaxValues / product));
      product *= sizes.back();
    }
    return sizes;
  }
  std::vector<std::string> words(const std::string& key) const {
    const json& list = field(key);
    if (!list.is_array() || list.size() > 1000) throw wrong(key, "a list of words");
    std::vector<std::string> found;
    for (const json& word : list) {
      if (!word.is_string()) throw wrong(key, "a list of words");
      found.push_back(word.get<std::string>());
    }
    return found;
  }

  const json& object_;
  std::string where_;
};

/// What the processor can do, by the names of /proc/cpuinfo; empty where nothing says so.
std::set<std::string> processor_flags() {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line))
    if (line.rfind("flags", 0) == 0 || line.rfind("Features", 0) == 0) {
      std::istringstream words(line.substr(line.find(':') + 1));
      return {std::istream_iterator<std::string>(words), std::istream_iterator<std::string>()};
    }
  return {};
}

std::string without_patch(const std::string& version) {
  return version.substr(0, version.find('.', version.find('.') + 1));
}

/// Native code must be of this LibTorch and for this processor.
void check_machine(const Manifest& m, const std::string& where) {
  if (without_patch(m.torch) != without_patch(libtorch_version()))
    throw data_error(where + ": exported with PyTorch " + quoted(m.torch) + ", this is LibTorch " +
                     libtorch_version() + kAgain + " under PyTorch " +
                     without_patch(libtorch_version()));
#if defined(__x86_64__)
  const std::string here = "x86_64";
#elif defined(__aarch64__)
  const std::string here = "aarch64";
#else
  const std::string here = "another";
#endif
  if (m.machine != here)
    throw data_error(where + ": exported on " + quoted(m.machine) + ", this machine is " + here +
                     kAgain + " here");
  const std::set<std::string> present = processor_flags();
  if (present.empty()) return;
  std::string missing;
  for (const std::string& flag : m.cpu_flags)
    if (present.count(flag) == 0) missing += " " + flag;
  if (!missing.empty())
    throw data_error(where + ": its code needs" + missing.substr(0, 80) +
                     ", which this processor lacks" + kAgain +
                     " here, or for both machines (march=\"x86-64-v3\")");
}

class ModelPackage : public LatentModel {
 public:
  explicit ModelPackage(const std::filesystem::path& path) : where_(path.string()) {
    const std::string bytes = read_file(path);
    ZipArchive archive(bytes, where_);
    const std::string entry = entry_of(archive);
    if (entry.empty())
      throw data_error(where_ + ": a zip archive without " + (kEntry + 1) + kAgain);
    arrays_ = parse_safetensors(archive.read(entry), where_ + ": " + (kEntry + 1));
    const auto text = arrays_.metadata.find("crais");
    if (text == arrays_.metadata.end())
      throw data_error(where_ + ": " + (kEntry + 1) + " does not describe a model" + kAgain);
    const std::string place = where_ + ": description";
    manifest_ = ManifestReader(parse_json(text->second, place), place).read();
    check_arrays();
    check_machine(manifest_, where_);
    for (const std::string& function : manifest_.model.functions)
      runners_.emplace(function, PackageRunner(where_, function));
    check_values();
  }

  const ModelDescription& description() const override { return manifest_.model; }
  std::string evaluator() const override { return "aoti"; }
  int64_t batch() const override { return manifest_.batch; }

  Density joint(const at::Tensor& z, const at::Tensor& x) const override {
    auto result = call("joint", {z, x}, {{z.size(0)}, {z.size(0), z.size(1)}});
    return {result[0], result[1]};
  }
  std::optional<Posterior> encode(const at::Tensor& x) const override {
    if (!manifest_.model.has("encode")) return {};
    const int64_t rows = x.size(0), dim = manifest_.model.latent;
    auto result = call("encode", {x}, {{rows, dim}, {}});
    if (result[1].sizes() == at::IntArrayRef({rows, dim}))
      return Posterior{result[0], (0.5 * result[1]).exp()};
    if (result[1].sizes() != at::IntArrayRef({rows, dim, dim}))
      throw data_error(where_ + ": its encoder returns no log_var and no scale_tril");
    return Posterior{result[0], result[1]};
  }
  std::optional<Output> output(const at::Tensor& z) const override {
    if (!manifest_.model.has("output")) return {};
    auto result = call("output", {z}, {{}, {}});
    if (result[0].dim() != 2 || result[0].size(0) != z.size(0) ||
        result[0].sizes() != result[1].sizes())
      throw data_error(where_ + ": its output and Fisher weights are not [rows, M]");
    return Output{result[0], result[1]};
  }
  std::optional<Density> prior(const at::Tensor& z) const override {
    if (!manifest_.model.has("prior")) return {};
    auto result = call("prior", {z}, {{z.size(0)}, {z.size(0), z.size(1)}});
    return Density{result[0], result[1]};
  }
  std::optional<Moments> prior_moments() const override {
    const at::Tensor *loc = arrays_.find("prior.loc"), *root = arrays_.find("prior.scale_tril");
    if (!loc || !root) return {};
    return Moments{*loc, *root};
  }

  int64_t num_draws() const override {
    if (manifest_.model.has("simulate")) return std::numeric_limits<int64_t>::max();
    const at::Tensor* pairs = arrays_.find("pairs.z");
    return pairs ? pairs->size(0) : 0;
  }
  Draws draw(uint64_t seed, int64_t i) const override {
    if (!manifest_.model.has("simulate"))
      return {arrays_.find("pairs.x")->slice(0, i, i + 1),
              arrays_.find("pairs.z")->slice(0, i, i + 1)};
    constexpr double kLeast =
        1.0 / (1 << 25);  // uniform numbers are above 0, half a step of float32
    const int64_t dim = manifest_.model.latent;
    at::Generator rng =
        make_generator(derive_seed(seed, Purpose::kSimulate, static_cast<uint64_t>(i)));
    const at::Tensor normal = at::empty({1, dim}, at::kFloat).normal_(0, 1, rng);
    const at::Tensor uniform =
        at::empty({1, manifest_.uniforms}, at::kFloat).uniform_(0, 1, rng).clamp_min_(kLeast);
    std::vector<int64_t> shape = manifest_.model.data_shape;
    shape.insert(shape.begin(), 1);
    auto result = call("simulate", {normal, uniform}, {{1, dim}, shape});
    return {result[1], result[0]};
  }

 private:
  /// Calls a function; its results must have these shapes (an empty one: any).
  std::vector<at::Tensor> call(const std::string& function, std::vector<at::Tensor> inputs,
                               const std::vector<std::vector<int64_t>>& shapes) const {
    for (at::Tensor& input : inputs) input = input.contiguous();
    std::vector<at::Tensor> results = runners_.at(function)(inputs);
    bool fits = results.size() == shapes.size();
    for (size_t i = 0; fits && i < shapes.size(); ++i)
      fits = results[i].scalar_type() == at::kFloat &&
             (shapes[i].empty() || results[i].sizes() == at::IntArrayRef(shapes[i]));
    if (!fits)
      throw data_error(where_ + ": '" + function + "' does not return what its description says" +
                       kAgain);
    return results;
  }

  const at::Tensor& array(const std::string& name, std::vector<int64_t> shape) const {
    const at::Tensor* found = arrays_.find(name);
    if (!found || found->scalar_type() != at::kFloat || found->dim() < 1 ||
        found->sizes().slice(1) != at::IntArrayRef(shape) || found->size(0) < 1)
      throw data_error(where_ + ": \"" + name + "\" is missing or of another shape" + kAgain);
    if (!found->isfinite().all().item<bool>())
      throw data_error(where_ + ": \"" + name + "\" is not finite" + kAgain);
    return *found;
  }

  void check_arrays() const {
    const int64_t dim = manifest_.model.latent;
    const int64_t rows = array("check.z", {dim}).size(0);
    if (array("check.x", manifest_.model.data_shape).size(0) != rows ||
        array("check.value", {}).size(0) != rows || array("check.grad", {dim}).size(0) != rows)
      throw data_error(where_ + ": the self-check's arrays do not belong together" + kAgain);
    if (manifest_.model.has("prior") &&
        (array("prior.loc", {}).size(0) != dim || array("prior.scale_tril", {dim}).size(0) != dim))
      throw data_error(where_ + ": the prior's moments are not of " + std::to_string(dim) +
                       " dimensions" + kAgain);
    if (arrays_.find("pairs.z") &&
        array("pairs.x", manifest_.model.data_shape).size(0) != array("pairs.z", {dim}).size(0))
      throw data_error(where_ + ": simulated data and latents are not as many" + kAgain);
  }

  /// Stored inputs, recomputed.
  void check_values() const {
    const auto differ = [](const at::Tensor& a, const at::Tensor& b, double tolerance) {
      return !((a - b).abs().max().item<double>() <=
               tolerance * (1 + b.abs().max().item<double>()));
    };
    const Density found = joint(*arrays_.find("check.z"), *arrays_.find("check.x"));
    if (differ(found.value, *arrays_.find("check.value"), kValueTolerance) ||
        differ(found.grad, *arrays_.find("check.grad"), kGradTolerance))
      throw data_error(where_ + ": its code does not compute here what PyTorch did at export" +
                       kAgain + " on this machine");
  }

  std::string where_;
  SafeTensors arrays_;
  Manifest manifest_;
  std::map<std::string, PackageRunner> runners_;
};

}  // namespace

bool is_model_package(const std::filesystem::path& path) {
  const std::string bytes = read_file(path);
  return is_zip(bytes) && !entry_of(ZipArchive(bytes, path.string())).empty();
}

std::shared_ptr<const LatentModel> read_model_package(const std::filesystem::path& path) {
  return std::make_shared<ModelPackage>(path);
}

}  // namespace crais
