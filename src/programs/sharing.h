// Workers that share one run: who they are, and by what they share.
#pragma once

#include <memory>
#include <optional>

#include "cli/command_line.h"
#include "cli/process_rank.h"
#include "evaluation/result_store.h"
#include "evaluation/work_queue.h"
#include "programs/estimator_flags.h"

namespace crais {

/// Makes `settings.sharing` what `auto` stands for here, `is_shard` where --shard was given. A
/// worker that shares goes on with what the folder holds, and, of torchrun's, with its part of the
/// cores and with a GPU of its own. Throws Error kArgument where flags exclude each other, no
/// folder is shared, or a launcher has set half of what it should.
void resolve_sharing(RunSettings& settings, const CommandLine& cli, bool is_shard,
                     const Environment& variables = environment_variable);

/// The queue of a run in this store; null where nothing is shared. Throws Error as claims do.
std::unique_ptr<WorkQueue> open_queue(const RunSettings& settings,
                                      const std::optional<ResultStore>& store);

}  // namespace crais
