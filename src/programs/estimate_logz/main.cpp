#include "programs/estimate_logz/estimate_logz.h"
#include "programs/estimate_logz/settings.h"

int main(int argc, char** argv) {
  return crais::run_main("estimate-logz", [&] {
    return crais::estimate_logz(crais::CommandLine(crais::estimate_logz_synopsis(), argc, argv));
  });
}
