#include "bench/step_profile.h"

namespace pace {

void WriteProfiles(const std::vector<StepProfile>& profiles, JsonWriter& json) {
  json.Key("parts");
  json.BeginArray();
  for (const StepProfile& profile : profiles) {
    json.BeginObject();
    json.Put("shape", profile.shape);
    json.Put("step_s", profile.step_seconds);
    json.Key("parts");
    json.BeginArray();
    for (const ProfilePart& part : profile.parts) {
      json.BeginObject();
      json.Put("name", part.name);
      json.Put("seconds", part.seconds);
      json.Put("limit_s", part.limit);
      json.EndObject();
    }
    json.EndArray();
    json.EndObject();
  }
  json.EndArray();
}

}  // namespace pace
