// Messages with words of files in them, as the programs print them. Text of any length ends there.
#include "cli/program.h"
#include "harness.h"
#include "util/format.h"

void crais::fuzz::read(std::string_view input) {
  constexpr size_t kRepeats = 64;  // short inputs too become long messages
  std::string text(input);
  for (size_t i = 1; i < kRepeats; ++i) text += input;
  for (const char* program : {"eval-loglik", "estimate-logz", "train-vae"}) {
    with_flags(program, std::string(input));
    printable(with_flags(program, text));
  }
}
