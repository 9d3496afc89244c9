#include "conformance/models_kind_checks.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>

#include "core/concat.h"
#include "core/printable.h"

namespace pace::models {
namespace {

std::string Short(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.2g", value);
  return text;
}

// Root mean square.
double Distance(const std::vector<double>& left, const std::vector<double>& right) {
  double squares = 0;
  const size_t count = std::min(left.size(), right.size());
  for (size_t i = 0; i < count; ++i) squares += (left[i] - right[i]) * (left[i] - right[i]);
  return count == 0 ? 0 : std::sqrt(squares / static_cast<double>(count));
}

// Of the peer's bfloat16 from its float32, over all cases.
double PeerDistance(const ModelFolder& folder) {
  std::vector<double> all;
  std::vector<double> all_exact;
  for (const Json& one : folder.expected.at("bf16_compute")) {
    const Json* const exact = FindCase(folder, one.at("name"));
    if (exact == nullptr || exact->at("log_probs").size() != one.at("log_probs").size()) continue;
    for (const double value : one.at("log_probs")) all.push_back(value);
    for (const double value : exact->at("log_probs")) all_exact.push_back(value);
  }
  return Distance(all, all_exact);
}

}  // namespace

double NoiseOf(const Json& expected) {
  constexpr double kReference = 1e-5;
  const Json noise = expected.value("noise", Json::object());
  return std::max(1.0, noise.value("eager_vs_sdpa_max_abs_logit_diff", 0.0) / kReference);
}

void Field::Near(std::string_view position, double ours, double expected,
                 const Tolerance& tolerance) {
  const double allowed = noise_ * (tolerance.absolute + tolerance.relative * std::abs(expected));
  const double difference = std::abs(ours - expected);
  if (difference > largest_) largest_ = difference;
  if (allowed > 0 && difference / allowed > largest_share_) largest_share_ = difference / allowed;
  if (difference <= allowed) return;
  Differs(Concat(position, ": ours ", ours, ", expected ", expected, ", tolerance ", allowed));
}

void Field::Near(const std::vector<double>& ours, const std::vector<double>& expected,
                 const Tolerance& tolerance) {
  if (!SameLength(ours.size(), expected.size())) return;
  for (size_t i = 0; i < ours.size(); ++i) Near(Concat(i), ours[i], expected[i], tolerance);
}

void Field::Same(std::string_view position, int64_t ours, int64_t expected) {
  if (ours == expected) return;
  Differs(Concat(position, ": ours ", ours, ", expected ", expected));
}

void Field::Same(const std::vector<int64_t>& ours, const std::vector<int64_t>& expected) {
  if (!SameLength(ours.size(), expected.size())) return;
  for (size_t i = 0; i < ours.size(); ++i) Same(Concat(i), ours[i], expected[i]);
}

void Field::Differs(std::string_view what) {
  if (num_differences_++ == 0) first_ = what;
}

bool Field::SameLength(size_t ours, size_t expected) {
  if (ours != expected) Differs(Concat("ours are ", ours, ", expected ", expected));
  return ours == expected;
}

std::string Field::Line() const {
  const std::string more =
      num_differences_ > 1 ? Concat(" (and ", num_differences_ - 1, " more positions)") : "";
  return Concat(where_, ": ", name_, ": ", first_, more);
}

FieldCounts::FieldCounts(const ModelFolder& folder, Tally& tally)
    : folder_(folder.path), noise_(NoiseOf(folder.expected)), tally_(tally) {}

void FieldCounts::Count(const Field& field) {
  Largest& largest = largest_[field.name()];
  largest.difference = std::max(largest.difference, field.largest());
  largest.share = std::max(largest.share, field.largest_share());
  field.num_differences() == 0 ? tally_.Pass() : tally_.Fail(field.Line());
}

void FieldCounts::Skip(const std::string& where, const std::string& name, const std::string& why) {
  tally_.Skip();
  tally_.notes.push_back(Concat(folder_, ": ", where, ": ", Printable(name), ": skipped: ", why));
}

std::string FieldCounts::Summary() const {
  std::string text = folder_ + ": largest differences (share of the tolerance):";
  for (const auto& [name, largest] : largest_) {
    if (largest.difference == 0) continue;
    text += Concat(text.back() == ':' ? " " : ", ", name, " ", Short(largest.difference), " (",
                   Short(100 * largest.share), " %)");
  }
  return text;
}

Result<std::vector<TokenId>> CaseTokens(const ModelFolder& folder, const Json& one) {
  std::vector<TokenId> tokens;
  for (const int64_t id : one.at("input_ids").get<std::vector<int64_t>>()) {
    if (id < 0 || id >= folder.config.vocab_size) {
      return InvalidArgument(folder.path, ": input_ids: ", id, " is not in the vocabulary");
    }
    tokens.push_back(static_cast<TokenId>(id));
  }
  if (tokens.empty()) return InvalidArgument(folder.path, ": input_ids: must not be empty");
  return tokens;
}

void CheckBfloat16(const ModelFolder& folder, const Json& one, const std::string& name,
                   const std::vector<double>& ours, FieldCounts& counts) {
  const std::string case_name = one.at("name");
  const auto peer = one.at("log_probs").get<std::vector<double>>();
  const auto exact = FindCase(folder, case_name)->at("log_probs").get<std::vector<double>>();
  Field field = counts.Begin(case_name, name);
  Field loss = counts.Begin(case_name, name.substr(0, name.rfind('.')) + ".loss");
  if (ours.size() != exact.size() || peer.size() != exact.size() || exact.empty()) {
    field.Differs(Concat("ours are ", ours.size(), ", expected ", exact.size()));
  } else {
    const double peers = std::max(Distance(peer, exact), PeerDistance(folder));
    field.Near("distance from float32", Distance(ours, exact), 0, {.absolute = 2 * peers});
    const auto mean = [](const std::vector<double>& values) {
      return std::reduce(values.begin(), values.end()) / static_cast<double>(values.size());
    };
    loss.Near("distance from float32", mean(ours) - mean(exact), 0, {.absolute = 2 * peers});
  }
  counts.Count(field);
  if (one.contains("loss")) counts.Count(loss);
}

const Json* FindCase(const ModelFolder& folder, const std::string& name) {
  for (const Json& one : folder.expected.at("cases")) {
    if (one.at("name") == name) return &one;
  }
  return nullptr;
}

}  // namespace pace::models
