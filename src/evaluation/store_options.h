/// @file
/// Where finished chunks are kept, and what to do where there are some.
#pragma once

namespace crais {

/// What to do where a folder holds results already.
struct StoreOptions {
  bool resume = false;                ///< go on with them
  bool overwrite = false;             ///< remove them
  bool accept_other_version = false;  ///< go on although another build has computed them
  bool extend = false;                ///< resume, as a run of more of the same: see ResultStore
};

}  // namespace crais
