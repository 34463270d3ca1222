#include "programs/eval_loglik/images.h"

#include <algorithm>
#include <numeric>

#include "core/rng.h"
#include "data/binarisation.h"
#include "data/images.h"
#include "targets/vae_posterior.h"
#include "util/error.h"
#include "util/files.h"

namespace crais {
namespace {

constexpr int64_t kSimulatedByDefault = 100;

/// Begin and end of the selection among `available` images.
IndexRange selection(const ImageSettings& settings, int64_t available) {
  IndexRange range;
  if (!settings.indices.empty()) range = parse_range(settings.indices, "--indices");
  range = range.within(available, "--indices", "images");
  if (settings.limit) range.end = std::min(range.end, range.begin + *settings.limit);
  if (range.size() < 1) throw argument_error("no image is selected: --indices is empty");
  return range;
}

std::string digest_of(const EvalImages& images) {
  const at::Tensor pixels = images.pixels.contiguous();
  std::string bytes(static_cast<const char*>(pixels.data_ptr()), pixels.nbytes());
  bytes.append(reinterpret_cast<const char*>(images.indices.data()),
               images.indices.size() * sizeof(int64_t));
  return sha256(bytes);
}

/// Image i is decided by (seed, i) alone, however many are drawn.
EvalImages simulated_images(const ImageSettings& settings, int64_t count, const Vae& vae) {
  const IndexRange range = selection(settings, count);
  std::vector<at::Tensor> rows, latents;
  for (int64_t i = range.begin; i < range.end; ++i) {
    at::Generator rng =
        make_generator(derive_seed(settings.seed, Purpose::kSimulate, static_cast<uint64_t>(i)));
    const Simulated one = simulate(vae, 1, rng);
    rows.push_back(one.images);
    latents.push_back(one.latents);
  }
  EvalImages images;
  images.pixels = at::cat(rows);
  images.latents = at::cat(latents);
  images.source = "simulated";
  images.binarisation = "none";
  images.indices.resize(rows.size());
  std::iota(images.indices.begin(), images.indices.end(), range.begin);
  return images;
}

/// How to binarise for evaluation what training saw as `trained`.
Binarisation evaluated_as(const std::string& asked, const Binarisation& trained) {
  if (!asked.empty()) return parse_binarisation(asked);
  // One fixed draw stands for all: the test set is then the same in every run.
  return trained.kind == Binarisation::Kind::kDynamic ? parse_binarisation("static:0") : trained;
}

EvalImages stored_images(const ImageSettings& settings, const Checkpoint& checkpoint) {
  const Binarisation trained = parse_binarisation(checkpoint.info.binarisation);
  const Binarisation binarisation = evaluated_as(settings.binarisation, trained);
  const Split split = parse_split(settings.split);
  const Images stored = binarisation.kind == Binarisation::Kind::kAmat
                            ? load_amat(settings.data_dir, split)
                            : load_images(settings.data_dir, split);
  const VaeArchitecture& architecture = checkpoint.vae.architecture;
  if (stored.rows != architecture.image_rows || stored.cols != architecture.image_cols)
    throw data_error(stored.source + ": images are " + std::to_string(stored.rows) + " x " +
                     std::to_string(stored.cols) + ", the checkpoint's are " +
                     std::to_string(architecture.image_rows) + " x " +
                     std::to_string(architecture.image_cols));
  const IndexRange range = selection(settings, stored.size());
  at::Generator rng = make_generator(derive_seed(settings.seed, Purpose::kBinarise));

  EvalImages images;
  images.pixels = binarise(binarisation, stored.pixels.slice(0, range.begin, range.end),
                           stored.first_index + range.begin, rng);
  images.indices.resize(static_cast<size_t>(range.size()));
  std::iota(images.indices.begin(), images.indices.end(), range.begin);
  images.source = stored.source;
  images.data_md5 = stored.md5;
  images.binarisation = to_string(binarisation);
  if (!same_law(binarisation, trained))
    images.warning = "the checkpoint was trained on images binarised as '" + to_string(trained) +
                     "', these are '" + images.binarisation +
                     "': log p(x) is not comparable (differences of 1-2 nats and more)";
  return images;
}

}  // namespace

EvalImages choose_images(const ImageSettings& settings, const Checkpoint& checkpoint,
                         std::string& notice) {
  std::optional<int64_t> count = settings.simulate;
  if (!count && settings.data_dir.empty() && !has_images("", parse_split(settings.split))) {
    count = kSimulatedByDefault;
    notice =
        "MNIST is not at hand: evaluating " + std::to_string(*count) +
        " images simulated from the checkpoint. To evaluate real ones: scripts/fetch-mnist data";
  }
  EvalImages images = count ? simulated_images(settings, *count, checkpoint.vae)
                            : stored_images(settings, checkpoint);
  images.digest = digest_of(images);
  return images;
}

EvalImages choose_training_images(const ImageSettings& settings, const Checkpoint& checkpoint,
                                  const EvalImages& evaluated) {
  ImageSettings others = settings;
  others.limit = kTrainingImages;
  EvalImages images;
  if (evaluated.source == "simulated") {
    const int64_t first = evaluated.indices.back() + 1, end = first + kTrainingImages;
    others.indices = std::to_string(first) + ":" + std::to_string(end);
    images = simulated_images(others, end, checkpoint.vae);
  } else if (parse_split(settings.split) == Split::kTrain) {
    return {};
  } else {
    others.indices.clear();
    others.split = to_string(Split::kTrain);
    try {
      images = stored_images(others, checkpoint);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kNoInput) throw;
      return {};
    }
  }
  images.digest = digest_of(images);
  return images;
}

}  // namespace crais
