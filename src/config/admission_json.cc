#include "config/admission_json.h"

#include <limits>
#include <set>

#include "core/json_scanner.h"

namespace pace {
namespace {

// Reads whatever value is next as far as a field can take it.
FieldValue ScanValue(JsonScanner& scan) {
  if (scan.TakeNull()) return nullptr;
  switch (scan.NextKind()) {
    case JsonScanner::Kind::kText: {
      std::string text;
      scan.Text(text);
      return text;
    }
    case JsonScanner::Kind::kBool: {
      bool value = false;
      scan.Bool(value);
      return value;
    }
    default: {
      double value = 0;
      constexpr double kLargest = std::numeric_limits<double>::max();
      scan.Real(-kLargest, kLargest, "", value);
      return value;
    }
  }
}

void ScanConfig(JsonScanner& scan, AdmissionOptions& options) {
  const std::vector<Field> fields = options.Fields();
  std::vector<std::string> keys;
  for (const Field& field : fields) keys.push_back(field.key());
  std::set<std::string, std::less<>> seen;
  scan.EnterObject();
  while (scan.NextKey()) {
    const std::string key(scan.key());
    if (!seen.insert(key).second) {
      scan.Fail("given twice");
      return;
    }
    const Field* field = nullptr;
    for (const Field& candidate : fields) {
      if (candidate.key() == key) field = &candidate;
    }
    if (field == nullptr) {
      scan.Fail(Concat("unknown key (nearest: ", Nearest(key, keys), ")"));
      return;
    }
    const FieldValue value = ScanValue(scan);
    if (!scan.ok()) return;
    const Status set = field->Set(value, "config." + key);
    if (!set.ok()) {
      scan.FailWith(set);
      return;
    }
  }
}

}  // namespace

Result<AdmissionOptions> AdmissionFromJson(std::string_view json, const std::string& name) {
  AdmissionOptions options;
  bool has_config = false;
  JsonScanner scan(json);
  scan.EnterObject();
  while (scan.NextKey()) {
    if (scan.key() == "config" && !has_config) {
      has_config = true;
      ScanConfig(scan, options);
    } else {
      scan.FailUnknownKey();
    }
  }
  scan.End();
  if (!scan.ok()) return scan.status().At(name);
  if (!has_config) return InvalidArgument(name, ": config: missing (must be an object)");
  return options;
}

}  // namespace pace
