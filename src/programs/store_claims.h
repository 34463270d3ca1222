// Claims in c10d's TCPStore, either of torchrun's agent or of the first process.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "evaluation/work_queue.h"

namespace crais {

/// The value of an environment variable; nothing if it is not set.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;
std::optional<std::string> environment_variable(const std::string& name);

/// The rank of this process among torchrun's workers: RANK, below WORLD_SIZE. Returns nothing if
/// neither is set. Throws Error kArgument, which begins with `what`, if one is missing or invalid.
std::optional<int64_t> torchrun_rank(const std::string& what,
                                     const Environment& variables = environment_variable);

/// The address of the store.
struct StoreAddress {
  std::string host;
  int64_t port = 0;
  bool is_here = false;  // this process hosts the store: there is no agent
};

/// The address from torchrun's variables: RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT,
/// TORCHELASTIC_USE_AGENT_STORE. Throws Error kArgument, which begins with `what`, if one is
/// missing or invalid.
StoreAddress store_address(const std::string& what,
                           const Environment& variables = environment_variable);

/// Claims in the store under the name of the `run`, separate from other runs. Each call asks the
/// store one or two questions, from a thread of its own: a store that never answers blocks nobody.
/// The store counts as lost after `patience`, or a second after a signal. Throws Error:
/// kInterrupted, with the store's address and the time waited, if the store is lost or cannot be
/// reached; kArgument if this LibTorch has no TCPStore.
std::shared_ptr<Claims> store_claims(const StoreAddress& address, const std::string& run,
                                     std::chrono::milliseconds patience);

}  // namespace crais
