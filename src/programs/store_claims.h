// Claims in c10d's TCPStore: that of torchrun's agent, or one that the first process has.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "evaluation/work_queue.h"

namespace crais {

/// The value of an environment variable; nothing where it is not set.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;
std::optional<std::string> environment_variable(const std::string& name);

/// The number of this process among those of torchrun: RANK, below WORLD_SIZE. Nothing where
/// neither is set.
/// Throws Error kArgument, whose message `what` begins, if one is missing or makes no sense.
std::optional<int64_t> torchrun_rank(const std::string& what,
                                     const Environment& variables = environment_variable);

/// Where the store is.
struct StoreAddress {
  std::string host;
  int64_t port = 0;
  bool is_here = false;  // this process has it: no agent does
};

/// As torchrun says it: RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT, TORCHELASTIC_USE_AGENT_STORE.
/// Throws Error kArgument, whose message `what` begins, where one is missing or makes no sense.
StoreAddress store_address(const std::string& what,
                           const Environment& variables = environment_variable);

/// Claims in the store, apart from those of other runs by the name of the `run`. Every call is one
/// question to the store or two, which a thread of its own asks, so that a store which never
/// answers holds nobody up: it counts as lost after `patience`, or a second after a signal. That is
/// Error kInterrupted, which says where the store was and how long it was waited for.
/// Throws Error: kInterrupted if it cannot be reached; kArgument if this LibTorch has no TCPStore.
std::shared_ptr<Claims> store_claims(const StoreAddress& address, const std::string& run,
                                     std::chrono::milliseconds patience);

}  // namespace crais
