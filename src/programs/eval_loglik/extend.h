// More of the same: chains or images for results that are there.
#pragma once

namespace crais {

/// True for `eval-loglik extend ...`, whose flags are not those of eval-loglik.
bool is_extension(int argc, const char* const* argv);

/// Runs `eval-loglik extend DIR --chains +N | --images +N`: the run of DIR becomes the one that had
/// asked for all from the start, under the same plan. Chunks and chains that are there are kept;
/// the chains of an unfinished random stream and the images of an unfinished chunk are computed
/// again. DIR stays what it was until all of the new is whole. Returns the exit code. Throws Error
/// as an EvalRun does, and kArgument for a run whose chains cannot be added to, or whose model or
/// images are not what they were.
int extend_evaluation(int argc, const char* const* argv);

}  // namespace crais
