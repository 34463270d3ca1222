#include "programs/sharing.h"

#include <torch/cuda.h>

#include <algorithm>
#include <chrono>

#include "core/spec.h"
#include "programs/store_claims.h"
#include "util/error.h"
#include "util/parallel.h"

namespace crais {
namespace {

/// Of torchrun's workers on one machine, which all ask for the same.
void share_machine(RunSettings& settings, const CommandLine& cli, const Environment& variables) {
  const auto number = [&](const char* name, int64_t least) {
    return std::max(least, parse_integer(variables(name).value_or("0"), name));
  };
  const int64_t workers = number("LOCAL_WORLD_SIZE", 1), index = number("LOCAL_RANK", 0);
  if (settings.threads == 0) settings.threads = std::max<int64_t>(1, resolve_threads(0) / workers);
  const std::string device = cli.text("device");
  if (settings.device.is_cuda() && (device == "auto" || device == "cuda"))
    settings.device = at::Device(
        at::kCUDA,
        static_cast<at::DeviceIndex>(index % static_cast<int64_t>(torch::cuda::device_count())));
}

}  // namespace

void resolve_sharing(RunSettings& settings, const CommandLine& cli, bool is_shard,
                     const Environment& variables) {
  const bool is_asked = settings.sharing != Sharing::kAuto;
  const std::string what = is_asked ? "--queue " + cli.text("queue") : "under torchrun";
  if (!is_asked)
    settings.sharing =
        !is_shard && torchrun_rank(what, variables) ? Sharing::kStore : Sharing::kNone;
  if (settings.sharing == Sharing::kNone) {
    cli.refuse_idle("lease", "without a queue of workers, as under torchrun");
    return;
  }
  const std::string otherwise = is_asked ? "" : "; --queue none does without the other workers";
  if (is_shard) throw argument_error(what + " and --shard exclude each other: a queue needs none");
  if (settings.out.empty())
    throw argument_error(what + " workers share a folder: give --out DIR" + otherwise);
  if (settings.store.overwrite)
    throw argument_error(what + " no worker may --overwrite what the others do: remove " +
                         settings.out + " first, or choose another" + otherwise);
  settings.store.resume = true;
  store_address(what, variables);
  share_machine(settings, cli, variables);
}

std::unique_ptr<WorkQueue> open_queue(const RunSettings& settings,
                                      const std::optional<ResultStore>& store) {
  if (!is_shared(settings)) return nullptr;
  const std::chrono::seconds lease(settings.lease);
  return std::make_unique<WorkQueue>(
      store_claims(store_address("--queue store"), store->fingerprint(), lease), lease);
}

}  // namespace crais
