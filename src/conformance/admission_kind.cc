// `admission`: the verdicts of a trace, computed again.
#include <cmath>
#include <vector>

#include "config/admission_options.h"
#include "conformance/case_file.h"
#include "core/file.h"
#include "sim/replay.h"
#include "text/python_text.h"

namespace pace {
namespace {

constexpr double kTolerance = 1e-12;
constexpr std::string_view kSuffix = ".trace.jsonl";
constexpr size_t kMaxBytes = size_t{1} << 30;

bool IsNumber(const Value& value) {
  return value.is_integer() || value.is_real();
}
double AdmissionNumber(const Value& value) {
  return value.is_integer() ? static_cast<double>(value.integer()) : value.real();
}

bool Same(const Value& ours, const Value& expected) {
  if (IsNumber(ours) && IsNumber(expected)) {
    const double a = AdmissionNumber(ours);
    const double b = AdmissionNumber(expected);
    return a == b || std::abs(a - b) <= kTolerance * std::max(std::abs(a), std::abs(b));
  }
  if (ours.is_text() && expected.is_text()) return ours.text() == expected.text();
  if (ours.is_bool() && expected.is_bool()) return ours.boolean() == expected.boolean();
  return ours.is_none() && expected.is_none();
}

// The first field that differs, in words; empty if none does.
std::string FirstDifference(const Value& ours, const Value& expected) {
  const auto& a = ours.dict().entries();
  const auto& b = expected.dict().entries();
  for (size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
    if (i >= a.size()) return Concat(b[i].first, ": missing");
    if (i >= b.size() || a[i].first != b[i].first) return Concat(a[i].first, ": not expected");
    if (Same(a[i].second, b[i].second)) continue;
    const Result<std::string> left = ToPythonJson(a[i].second);
    const Result<std::string> right = ToPythonJson(b[i].second);
    return Concat(a[i].first, ": ours ", left.ok() ? *left : "?", ", expected ",
                  right.ok() ? *right : "?");
  }
  return "";
}

Result<std::vector<Value>> ParseLines(std::string_view text, const std::string& name) {
  std::vector<Value> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    Result<Value> line = ParsePythonJson(text.substr(0, end));
    const std::string where = Concat(name, ":", lines.size() + 1);
    if (!line.ok()) return line.status().At(where);
    if (!line->is_dict()) return InvalidArgument(where, ": must be an object");
    lines.push_back(std::move(line).value());
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

Status CheckTrace(const std::string& path, Tally& tally) {
  if (!path.ends_with(kSuffix)) return InvalidArgument(path, ": must be named X", kSuffix);
  const std::string stem = path.substr(0, path.size() - kSuffix.size());
  PACE_ASSIGN_OR_RETURN(const std::string config, ReadFile(stem + ".json", kMaxBytes));
  PACE_ASSIGN_OR_RETURN(const AdmissionOptions options, AdmissionFromJson(config, stem + ".json"));
  const std::string expected_path = stem + ".expected.jsonl";
  PACE_ASSIGN_OR_RETURN(const std::string expected_text, ReadFile(expected_path, kMaxBytes));
  PACE_ASSIGN_OR_RETURN(const std::vector<Value> expected,
                        ParseLines(expected_text, expected_path));
  std::string output;
  PACE_RETURN_IF_ERROR(ReplayTrace(path, options, static_cast<uint64_t>(Settings().run.seed),
                                   [&](std::string_view line) { output += line; }));
  PACE_ASSIGN_OR_RETURN(const std::vector<Value> ours, ParseLines(output, "our output"));
  for (size_t i = 0; i < std::max(ours.size(), expected.size()); ++i) {
    const std::string where = Concat(expected_path, ":", i + 1);
    if (i >= ours.size() || i >= expected.size()) {
      tally.Fail(Concat(where, i >= ours.size() ? ": we have no such line" : ": not expected"));
      continue;
    }
    const std::string difference = FirstDifference(ours[i], expected[i]);
    difference.empty() ? tally.Pass() : tally.Fail(Concat(where, ": ", difference));
  }
  return Status::Ok();
}

}  // namespace

Status CheckAdmission(const KindArguments& arguments, Tally& tally) {
  for (const std::string& path : arguments.paths) PACE_RETURN_IF_ERROR(CheckTrace(path, tally));
  return Status::Ok();
}

}  // namespace pace
