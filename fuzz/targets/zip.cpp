// Zip archives.
#include "io/zip.h"

#include "harness.h"

void crais::fuzz::read(std::string_view input) {
  ZipArchive archive(input, "input");
  for (const std::string& name : archive.names()) attempt([&] { archive.read(name); });
}
