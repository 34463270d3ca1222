#include "programs/eval_loglik/images.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "core/rng.h"
#include "core/spec.h"
#include "data/array_file.h"
#include "data/binarisation.h"
#include "data/images.h"
#include "util/digest.h"
#include "util/error.h"
#include "util/format.h"
#include "util/memory.h"

namespace crais {
namespace {

constexpr int64_t kSimulatedByDefault = 100;

/// The kinds of images that flags depend on: of MNIST, an array, images drawn from the model.
enum class FlagsOf { kMnist, kArray, kSimulated };
const std::string kNamesOfKinds[] = {"MNIST", "an array", "images drawn from the model"};

/// Each flag on images with the kinds that it affects. docs/reference.md has this table.
const std::map<std::string, std::vector<FlagsOf>> kKindsOfFlags = {
    {"data", {FlagsOf::kArray}},
    {"labels", {FlagsOf::kArray, FlagsOf::kMnist}},
    {"data-dir", {FlagsOf::kMnist}},
    {"split", {FlagsOf::kMnist}},
    {"binarisation", {FlagsOf::kArray, FlagsOf::kMnist}},
    {"scale", {FlagsOf::kArray, FlagsOf::kMnist}},
    {"dequantise", {FlagsOf::kArray, FlagsOf::kMnist}},
    {"limit", {FlagsOf::kArray, FlagsOf::kMnist, FlagsOf::kSimulated}},
    {"indices", {FlagsOf::kArray, FlagsOf::kMnist, FlagsOf::kSimulated}},
    {"simulate", {FlagsOf::kSimulated}}};

bool takes(const std::vector<FlagsOf>& kinds, FlagsOf kind) {
  return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
}

/// The selected range among `available` images.
IndexRange selection(const ImageSettings& settings, int64_t available) {
  IndexRange range;
  if (!settings.indices.empty()) range = parse_range(settings.indices, "--indices");
  range = range.within(available, "--indices", "images");
  if (settings.limit) range.end = std::min(range.end, range.begin + *settings.limit);
  if (range.size() < 1) throw argument_error("no image is selected: --indices is empty");
  return range;
}

/// Checks that an image of that shape has as many numbers as the model's data, and equal sides.
void check_shape(const std::string& source, const std::vector<int64_t>& shape,
                 const ModelDescription& model) {
  const std::vector<int64_t>& model_shape = model.data_shape;
  const bool is_flat = shape.size() <= 1 || model_shape.size() <= 1;
  const bool ends_alike =
      is_flat || std::equal(shape.rbegin(), shape.rbegin() + 2, model_shape.rbegin());
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  if (count == model.num_values() && ends_alike) return;
  throw data_error(source, ": images are ", shape_text(shape), ", the ", model.kind,
                   (model.kind == "checkpoint" ? "'s are " : " model's are "),
                   shape_text(model_shape));
}

/// Simulated images. Image i depends on (seed, i) alone, for any number of images.
EvalImages simulated_images(const ImageSettings& settings, int64_t count, const EvalModel& model) {
  if (model.num_draws() == 0)
    throw argument_error(
        "--simulate: there is no way to simulate from this model; it needs a likelihood and a "
        "prior that can be sampled, by `sample`");
  const IndexRange range = selection(settings, count);
  if (range.end > model.num_draws())
    throw argument_error("--simulate: the model stores ", model.num_draws(), " simulated images");
  const ModelDescription& described = model.description();
  require_memory(static_cast<double>(range.size()) *
                     static_cast<double>(described.num_values() + described.latent) * sizeof(float),
                 "--simulate: " + std::to_string(range.size()) + " images");
  const LatentModel::Draws draws = draws_of(model, settings.seed, range.begin, range.end);
  EvalImages images{.pixels = draws.data,
                    .shape = described.data_shape,
                    .latents = draws.latents,
                    .labels = draws.labels,
                    .source = "simulated",
                    .binarisation = "none"};
  images.indices.resize(static_cast<size_t>(range.size()));
  std::iota(images.indices.begin(), images.indices.end(), range.begin);
  return images;
}

/// The binarisation of the training images. If the file does not say: binary for Bernoulli pixels,
/// grey for others.
Binarisation trained_as(const ModelDescription& model) {
  if (!model.binarisation.empty()) return parse_binarisation(model.binarisation);
  return parse_binarisation(model.likelihood == "bernoulli" ? "dynamic" : "none");
}

/// The binarisation for evaluation of images that training saw as `trained`.
Binarisation evaluated_as(const std::string& name, const Binarisation& trained) {
  if (!name.empty()) return parse_binarisation(name);
  // A dynamic binarisation becomes one fixed draw: the test set is then equal in every run.
  return trained.kind == Binarisation::Kind::kDynamic ? parse_binarisation("static:0") : trained;
}

/// Adds to each stored number a uniform number in [0, 1) that depends on the seed and its index
/// alone.
at::Tensor dequantised(const at::Tensor& stored, uint64_t seed, int64_t first_index) {
  at::Tensor values = stored.to(at::kFloat).contiguous();
  auto* const numbers = values.data_ptr<float>();
  const int64_t first = first_index * values.size(1);
  for (int64_t i = 0; i < values.numel(); ++i)
    numbers[i] += static_cast<float>(hashed_uniform(seed, static_cast<uint64_t>(first + i)));
  return values;
}

/// The labels of a conditional model: entries `range` of --labels, or of the `available` labels
/// `beside` the images.
at::Tensor chosen_labels(const ImageSettings& settings, const ModelDescription& model,
                         const std::optional<at::Tensor>& beside, const std::string& source,
                         int64_t available, const IndexRange& range) {
  if (!model.labels) {
    if (!settings.labels.empty())
      throw argument_error("--labels: the model is not conditional on labels");
    return {};
  }
  if (settings.labels.empty() && !beside)
    throw argument_error("the model is conditional, p(x | y), and there are no labels beside ",
                         source, "; name them with --labels FILE[:KEY]");
  const at::Tensor stored =
      settings.labels.empty() ? *beside : read_array_file(settings.labels).values;
  const std::string where = settings.labels.empty() ? "labels of " + source : settings.labels;
  if (stored.size(0) != available)
    throw data_error(where, ": ", stored.size(0), " labels for ", available, " images of ", source);
  return labels_for(*model.labels, stored.slice(0, range.begin, range.end), where);
}

/// Pixels from 0 to 255 as bytes, also if they are stored as floats k / 255.
at::Tensor bytes_of(const at::Tensor& stored, double scale, const std::string& source) {
  if (stored.scalar_type() == at::kByte) return stored;
  const at::Tensor levels = stored.to(at::kDouble) / scale * 255;
  const at::Tensor whole = levels.round().clamp(0, 255);
  if (!((levels - whole).abs() < 1e-2).all().item<bool>())
    throw argument_error("--binarisation is for pixels of 0 to 255 (uint8), or floats k / 255; ",
                         source, " holds other ", at::toString(stored.scalar_type()));
  return whole.to(at::kByte);
}

/// A range of an array's images as numbers, divided by --scale, and binarised if there is a
/// binarisation. `first_index` is the index of the first image in its data set.
EvalImages images_of(const ImageSettings& settings, const ModelDescription& described,
                     const ArrayFile& file, int64_t first_index,
                     const std::optional<Binarisation>& binarisation) {
  // An array [N] holds N images of one number.
  const at::Tensor values = file.values.dim() > 1 ? file.values : file.values.unsqueeze(1);
  EvalImages images{.shape = values.sizes().slice(1).vec()};
  check_shape(file.source, images.shape, described);
  const IndexRange range = selection(settings, values.size(0));
  const at::Tensor stored = values.slice(0, range.begin, range.end).flatten(1);
  const int64_t first = first_index + range.begin;

  images.labels =
      chosen_labels(settings, described, file.labels, file.source, values.size(0), range);
  images.source = file.source;
  images.data_md5 = file.digest;
  images.binarisation = "none";
  images.scale = settings.scale.value_or(settings.dequantise ? 256.0 : 1.0);
  if (settings.dequantise) {
    if (at::isFloatingType(stored.scalar_type()))
      throw argument_error("--dequantise is for whole numbers; ", file.source, " holds ",
                           at::toString(stored.scalar_type()));
    images.dequantisation = "uniform:" + std::to_string(*settings.dequantise);
    images.pixels = dequantised(stored, *settings.dequantise, first) / images.scale;
  } else if (binarisation) {
    at::Generator rng = make_generator(derive_seed(settings.seed, Purpose::kBinarise));
    images.pixels =
        binarise(*binarisation, bytes_of(stored, images.scale, file.source), first, rng);
    images.binarisation = to_string(*binarisation);
  } else {
    images.pixels = stored.to(at::kFloat) / images.scale;
  }
  images.indices.resize(static_cast<size_t>(range.size()));
  std::iota(images.indices.begin(), images.indices.end(), range.begin);
  return images;
}

EvalImages mnist_images(const ImageSettings& settings, const EvalModel& model) {
  const ModelDescription& described = model.description();
  const Binarisation trained = trained_as(described);
  const Binarisation binarisation = evaluated_as(settings.binarisation, trained);
  const Split split = parse_split(settings.split);
  const Images stored = binarisation.kind == Binarisation::Kind::kAmat
                            ? load_amat(settings.data_dir, split)
                            : load_images(settings.data_dir, split);
  EvalImages images = images_of(settings, described,
                                {stored.pixels.view({stored.size(), stored.rows, stored.cols}),
                                 stored.labels, stored.source, stored.md5},
                                stored.first_index, binarisation);
  if (!settings.dequantise && binarisation.kind == Binarisation::Kind::kNone) images.scale = 255.0;
  if (!same_law(parse_binarisation(images.binarisation), trained))
    images.warning = "the " + described.kind + " model was trained on images binarised as '" +
                     to_string(trained) + "', these are '" + images.binarisation +
                     "': log p(x) is not comparable (differences of 1-2 nats and more)";
  const bool is_unsaid = described.kind == "checkpoint" && described.binarisation.empty();
  if (is_unsaid && settings.binarisation.empty())
    images.warning = "the file does not say how its training images were binarised; taken as " +
                     images.binarisation +
                     ", which may be off by 1-2 nats and more: give --binarisation";
  return images;
}

EvalImages array_images(const ImageSettings& settings, const EvalModel& model,
                        const ArrayFile& file) {
  std::optional<Binarisation> binarisation;
  if (!settings.binarisation.empty() &&
      (settings.binarisation != "none" || file.values.scalar_type() == at::kByte))
    binarisation = parse_binarisation(settings.binarisation);
  return images_of(settings, model.description(), file, 0, binarisation);
}

/// The array that --data names: a file's, or drawn digits, other ones than train-vae sees.
ArrayFile named_array(const std::string& data) {
  const std::string drawn = "synthetic:";
  if (data.rfind(drawn, 0) != 0) return read_array_file(data);
  const Images all = synthetic_images(parse_integer(data.substr(drawn.size()), "--data"), 1);
  return {all.pixels.view({all.size(), all.rows, all.cols}), all.labels, data, all.md5};
}

/// Rejects flags that have no effect for such images, or that exclude each other.
void check_given(const ImageSettings& settings, FlagsOf kind) {
  for (const auto& [flag, kinds] : kKindsOfFlags) {
    if (settings.given.count(flag) == 0 || takes(kinds, kind)) continue;
    std::vector<std::string> others;
    for (const FlagsOf other : kinds) others.push_back(kNamesOfKinds[static_cast<size_t>(other)]);
    throw argument_error("images: --", flag, " does nothing for ",
                         kNamesOfKinds[static_cast<size_t>(kind)], ", but for ",
                         join(others, " or "), "; leave it out");
  }
  const auto exclude = [](const char* one, const char* other) {
    throw argument_error(
        "--", one, " and --", other,
        " exclude each other: one makes pixels binary, the other makes them numbers");
  };
  if (!settings.binarisation.empty() && settings.dequantise) exclude("binarisation", "dequantise");
  if (!settings.binarisation.empty() && settings.scale) exclude("binarisation", "scale");
  if (kind == FlagsOf::kMnist && settings.scale && !settings.dequantise)
    throw argument_error(
        "--scale is for --data, or beside --dequantise: pixels of MNIST are divided by 255");
}

/// True if MNIST is missing and no given flag needs real images.
bool may_simulate(const ImageSettings& settings, const EvalModel& model) {
  for (const auto& [flag, kinds] : kKindsOfFlags)
    if (settings.given.count(flag) > 0 && takes(kinds, FlagsOf::kMnist) &&
        !takes(kinds, FlagsOf::kSimulated))
      return false;
  return settings.data_dir.empty() && model.num_draws() > 0;
}

std::string digest_of(const EvalImages& images) {
  const auto bytes_of = [](const at::Tensor& all) {
    const at::Tensor plain = all.contiguous();
    return std::string(static_cast<const char*>(plain.data_ptr()), plain.nbytes());
  };
  std::string bytes = bytes_of(images.pixels);
  bytes.append(reinterpret_cast<const char*>(images.indices.data()),
               images.indices.size() * sizeof(int64_t));
  if (images.labels.defined()) bytes += bytes_of(images.labels);
  return sha256(bytes);
}

/// The images after the checks, with their digest.
EvalImages ready(EvalImages images, const ImageSettings& settings, const EvalModel& model) {
  ModelDescription described = model.description();
  if (described.likelihood == "bernoulli" && settings.binarisation == "none") {
    described.step.reset();
    images.is_grey = images.pixels.gt(0).logical_and(images.pixels.lt(1)).any().item<bool>();
  }
  check_support(described, images.pixels, images.source);
  images.digest = digest_of(images);
  return images;
}

}  // namespace

LatentModel::Draws draws_of(const EvalModel& model, uint64_t seed, int64_t begin, int64_t end) {
  std::vector<at::Tensor> data, latents, labels;
  for (int64_t i = begin; i < end; ++i) {
    const LatentModel::Draws one = model.draw(seed, i);
    data.push_back(one.data);
    latents.push_back(one.latents);
    if (one.labels.defined()) labels.push_back(one.labels);
  }
  return {at::cat(data), at::cat(latents), labels.empty() ? at::Tensor() : at::cat(labels)};
}

EvalImages choose_images(const ImageSettings& settings, const EvalModel& model,
                         const ArrayFile& given) {
  check_given(settings, FlagsOf::kArray);
  return ready(array_images(settings, model, given), settings, model);
}

EvalImages choose_images(const ImageSettings& settings, const EvalModel& model,
                         std::string& notice) {
  if (settings.simulate) {
    check_given(settings, FlagsOf::kSimulated);
    return ready(simulated_images(settings, *settings.simulate, model), settings, model);
  }
  if (!settings.data.empty()) return choose_images(settings, model, named_array(settings.data));
  if (has_images(settings.data_dir, parse_split(settings.split)) ||
      !may_simulate(settings, model)) {
    check_given(settings, FlagsOf::kMnist);
    return ready(mnist_images(settings, model), settings, model);
  }
  notice = "MNIST was not found: evaluating " + std::to_string(kSimulatedByDefault) +
           " images simulated from the model. To evaluate real ones: scripts/fetch-mnist data";
  return ready(simulated_images(settings, kSimulatedByDefault, model), settings, model);
}

}  // namespace crais
