#include "bench/bench_report.h"

#include "bench/machine.h"
#include "record/build_info.h"

namespace pace {

std::string BenchReport(std::string_view bench, const std::vector<Measurement>& measurements,
                        const std::function<void(JsonWriter&)>& settings,
                        const std::function<void(JsonWriter&)>& more) {
  std::string out;
  JsonWriter json(out);
  json.BeginObject();
  json.Put("bench", bench);
  json.Put("version", PaceVersion());
  json.Put("commit", PaceCommit());
  json.Key("machine");
  WriteMachine(json);
  json.Key("settings");
  settings(json);
  bool ok = true;
  json.Key("measurements");
  json.BeginArray();
  for (const Measurement& measurement : measurements) {
    measurement.Write(json);
    ok = ok && measurement.WithinLimit();
  }
  json.EndArray();
  more(json);
  json.Put("ok", ok);
  json.EndObject();
  return out;
}

}  // namespace pace
