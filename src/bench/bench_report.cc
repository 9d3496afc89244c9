#include "bench/bench_report.h"

#include <algorithm>
#include <cstdio>

#include "bench/bench_model.h"
#include "bench/machine.h"
#include "bench/reprefill.h"
#include "record/build_info.h"
#include "rollout/engine_core.h"
#include "terminal/terminal_text.h"

namespace pace {
namespace {

// Four digits, whatever the size.
std::string Shown(double value) {
  char buffer[32];
  std::snprintf(buffer, sizeof(buffer), "%.4g", value);
  return buffer;
}

}  // namespace

Status BenchOptions::Validate() const {
  if (repetitions < 1 || repetitions > 1000) {
    return InvalidArgument("repetitions = ", repetitions, ": must be in [1, 1000]");
  }
  if (num_threads < 1 || context < 1 || num_responses < 1 || num_tokens < 1) {
    return InvalidArgument("threads, context, responses and tokens must be at least 1");
  }
  if (num_reprefilled < 0 ||
      (num_reprefilled > 0 && context < kReprefillPrompt + RolloutOptions{}.min_scored)) {
    return InvalidArgument("reprefill = ", num_reprefilled, ", context = ", context,
                           ": a response that is scored has at least ",
                           kReprefillPrompt + RolloutOptions{}.min_scored, " tokens");
  }
  if (batches.empty()) return InvalidArgument("no batch");
  for (const int64_t batch : batches) {
    if (batch < 1) return InvalidArgument("batch = ", batch, ": must be >= 1");
  }
  if (!(seconds_per_measurement > 0) || seconds_per_measurement > 60) {
    return InvalidArgument("seconds_per_measurement = ", seconds_per_measurement,
                           ": must be in (0, 60]");
  }
  if (small_pool < 100 || large_pool <= small_pool || large_pool > 10'000'000) {
    return InvalidArgument("small_pool = ", small_pool, ", large_pool = ", large_pool,
                           ": must be 100 <= small < large <= 10000000");
  }
  return Status::Ok();
}

void BenchReport::PutProfiles(const std::vector<StepProfile>& profiles) {
  JsonWriter& json = more();
  json.Key("parts");
  json.BeginArray();
  for (const StepProfile& profile : profiles) {
    json.BeginObject();
    json.Put("shape", profile.shape);
    json.Put("step_s", profile.step_seconds);
    json.Key("parts");
    json.BeginArray();
    for (const StepProfile::Part& part : profile.parts) {
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

std::string BenchReport::Json(std::string_view bench) const {
  std::string out;
  JsonWriter json(out);
  json.BeginObject();
  json.Put("bench", bench);
  json.Put("version", PaceVersion());
  json.Put("commit", PaceCommit());
  json.Key("machine");
  WriteMachine(json);
  json.Key("settings");
  json.BeginObject();
  out += settings_;
  json.EndObject();
  json.Key("measurements");
  json.BeginArray();
  for (const Measurement& measurement : measurements) measurement.Write(json);
  json.EndArray();
  if (!more_.empty()) out += "," + more_;
  json.Put("ok", std::ranges::all_of(measurements, &Measurement::WithinLimit));
  json.EndObject();
  return out;
}

std::string BenchReport::Table() const {
  TextTable table({"measurement", "median", "+-", "unit", "limit", ""});
  for (const Measurement& row : measurements) {
    const bool is_limited = row.limit.has_value();
    table.Add({row.name, Shown(row.Median()), Shown(row.InterquartileRange()), row.unit,
               is_limited
                   ? Concat(row.limit_kind == Limit::kAtLeast ? ">= " : "<= ", Shown(*row.limit))
                   : "",
               !is_limited         ? ""
               : row.WithinLimit() ? "ok"
                                   : "FAILS"});
  }
  return table.Render();
}

}  // namespace pace
