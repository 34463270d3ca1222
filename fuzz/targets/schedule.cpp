// Schedules of a file.
#include "core/schedule.h"

#include "harness.h"

void crais::fuzz::read(std::string_view input) {
  ScheduleRegistry::instance().make("schedule", "file:" + file(input), {});
}
