// A flag's values: checked against its declaration, and as JSON. `what` begins every message.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "cli/options.h"

namespace crais {

/// Throws Error kArgument if the text holds a NUL character: the system would take what stands
/// before it.
void check_whole(const std::string& text, const std::string& what);

/// Throws Error kArgument unless the text is of the flag's type, in its range, among its choices.
void check_value(const Option& option, const std::string& text, const std::string& what);
/// The same of all its values; only a repeatable flag may have several.
void check_values(const Option& option, const std::vector<std::string>& values,
                  const std::string& what);

/// One occurrence's text as values: cut at commas where the declaration says so.
std::vector<std::string> cut(const Option& option, const std::string& text);

/// A JSON value as the texts that the command line would have held. Throws Error kArgument.
std::vector<std::string> config_texts(const Option& option, const nlohmann::json& value,
                                      const std::string& what);
/// The inverse, for one text.
nlohmann::json typed(const Option& option, const std::string& text);

}  // namespace crais
