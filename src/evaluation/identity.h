// What computes: the part of a result's identity that no setting shows.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace crais {

/// {"sources": digest, "libtorch": version, "evaluator": by its instruction set, "compiler":
/// version}: two runs that agree in it and in their settings give the same results, bit for bit on
/// the same kind of device. The digest is of the sources that
/// decide estimates (cmake/source_digest.cmake): reports, programs and documents are not in it.
nlohmann::json computed_by();

/// "" where `stored`, of a file, is `computed_by()`; else what differs, for a message.
std::string difference_of_builds(const nlohmann::json& stored);

}  // namespace crais
