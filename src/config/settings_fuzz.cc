// Fuzzes the readers of settings: YAML, overrides, and the JSON beside a trace.
// What is accepted must write and read back to itself.
#include <cstdint>
#include <string>

#include "config/admission_options.h"
#include "config/settings.h"
#include "core/check.h"

namespace pace {
namespace {

void CheckOneLine(const Status& status) {
  PACE_CHECK(status.message().find('\n') == std::string::npos,
             "an error must be one line: ", status.message());
}

void Fuzz(const std::string& text) {
  Settings settings;
  if (const Status status = ApplyYaml(settings, text, "fuzz"); !status.ok()) {
    CheckOneLine(status);
  } else {
    Settings again;
    const std::string yaml = ToYaml(settings);
    const Status reread = ApplyYaml(again, yaml, "again");
    PACE_CHECK(reread.ok(), reread.message());
    PACE_CHECK(ToYaml(again) == yaml, "settings changed on the way");
    if (const Status valid = settings.Validate(); !valid.ok()) CheckOneLine(valid);
  }
  Settings overridden;
  if (const Status status = ApplyOverride(overridden, text); !status.ok()) CheckOneLine(status);
  if (const auto options = AdmissionFromJson(text, "fuzz"); !options.ok()) {
    CheckOneLine(options.status());
  }
}

}  // namespace
}  // namespace pace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  pace::Fuzz(std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}
