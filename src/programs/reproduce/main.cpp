#include "programs/reproduce/reproduce.h"

int main(int argc, char** argv) {
  return crais::run_main("reproduce", [&] {
    return crais::reproduce(crais::CommandLine(crais::reproduce_synopsis(), argc, argv));
  });
}
