// What a program shows while a method learns.
#pragma once

#include <string>

#include "estimates/method.h"

namespace crais {

/// A progress line of its own with the bound so far, in nats; throws Error kInterrupted, with
/// `advice`, at the first iteration after Ctrl-C.
PrepareReport training_bar(const std::string& label, const std::string& advice, bool enabled);

}  // namespace crais
