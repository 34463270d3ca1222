// "did you mean schedule?"
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace crais {

/// The candidate closest to `word`: one that begins with it, or else the fewest letters inserted,
/// deleted, replaced or swapped away. Nothing where none is near.
std::optional<std::string> nearest(const std::string& word,
                                   const std::vector<std::string>& candidates);

/// "; did you mean PREFIXcandidate?", or "" where none is near.
std::string did_you_mean(const std::string& word, const std::vector<std::string>& candidates,
                         const std::string& prefix = "");

}  // namespace crais
