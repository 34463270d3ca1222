// Suggestions for misspelled names: "did you mean schedule?"
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace crais {

/// The candidate closest to `word`: a candidate that begins with `word`, or else the candidate at
/// the smallest edit distance. Returns nothing if no candidate is close.
std::optional<std::string> nearest(const std::string& word,
                                   const std::vector<std::string>& candidates);

/// "; did you mean PREFIXcandidate?", or "" if no candidate is close to `word`.
std::string did_you_mean(const std::string& word, const std::vector<std::string>& candidates,
                         const std::string& prefix = "");

}  // namespace crais
