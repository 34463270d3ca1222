#include <gtest/gtest.h>

#include <map>

#include "programs/eval_loglik/settings.h"
#include "programs/run_program.h"
#include "support/expect_error.h"
#include "util/parallel.h"

namespace crais {
namespace {

using Variables = std::map<std::string, std::string>;

const Variables kTorchrun = {{"RANK", "5"},
                             {"WORLD_SIZE", "8"},
                             {"LOCAL_RANK", "1"},
                             {"LOCAL_WORLD_SIZE", "4"},
                             {"MASTER_ADDR", "node7"},
                             {"MASTER_PORT", "29400"},
                             {"TORCHELASTIC_USE_AGENT_STORE", "True"}};

EvalSettings resolved(std::vector<std::string> flags, const Variables& variables) {
  flags.insert(flags.begin(), "model");
  const CommandLine cli(eval_loglik_synopsis(), flags);
  EvalSettings settings = read_settings(cli);
  resolve_sharing(settings, cli, cli.given("shard"), [&](const std::string& name) {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  });
  return settings;
}

TEST(Sharing, IsAutomaticUnderTorchrunAlone) {
  const EvalSettings alone = resolved({"--out", "d"}, {});
  EXPECT_FALSE(alone.is_shared);
  EXPECT_FALSE(alone.store.resume);
  EXPECT_EQ(alone.threads, 0);

  const EvalSettings shared = resolved({"--out", "d", "--device", "cpu"}, kTorchrun);
  EXPECT_TRUE(shared.is_shared);
  EXPECT_TRUE(shared.store.resume);
  EXPECT_EQ(shared.threads, std::max<int64_t>(1, resolve_threads(0) / 4));
  EXPECT_TRUE(shared.device.is_cpu());
  EXPECT_EQ(resolved({"--out", "d", "--threads", "3"}, kTorchrun).threads, 3);
  EXPECT_EQ(resolved({"--out", "d", "--lease", "2m"}, kTorchrun).lease, 120);

  for (const auto& flags :
       {std::vector<std::string>{"--queue", "none"}, {"--shard", "1/2", "--out", "d"}})
    EXPECT_FALSE(resolved(flags, kTorchrun).is_shared) << flags[0];
}

TEST(Sharing, DecidesNoResult) {
  EXPECT_EQ(deciding_settings(resolved({"--out", "d", "--lease", "5s"}, kTorchrun)),
            deciding_settings(resolved({}, {})));
}

TEST(Sharing, RefusesWhatCannotBeShared) {
  const auto refuse = [](const std::vector<std::string>& words,
                         const std::vector<std::string>& flags, const Variables& variables) {
    expect_error(ErrorKind::kArgument, words, [&] { resolved(flags, variables); });
  };
  refuse({"under torchrun", "--out", "--queue none"}, {}, kTorchrun);
  refuse({"under torchrun", "--overwrite", "d"}, {"--out", "d", "--overwrite"}, kTorchrun);
  refuse({"--lease", "as under torchrun"}, {"--out", "d", "--lease", "5s"}, {});
  refuse({"under torchrun", "RANK is set, but WORLD_SIZE is not"}, {"--out", "d"}, {{"RANK", "0"}});
  Variables broken = kTorchrun;
  broken["LOCAL_WORLD_SIZE"] = "many";
  refuse({"LOCAL_WORLD_SIZE", "'many'"}, {"--out", "d"}, broken);
}

}  // namespace
}  // namespace crais
