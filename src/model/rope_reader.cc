#include "model/rope_reader.h"

#include "core/printable.h"

namespace pace {
namespace {

constexpr std::string_view kSupportedTypes = "must be default, linear or llama3";
constexpr double kMinFactor = 1e-3;
constexpr double kMaxFactor = 1e6;

bool ScanFactor(JsonScanner& scan, std::optional<double>& out) {
  if (scan.TakeNull()) return true;
  return scan.Real(kMinFactor, kMaxFactor, "", out.emplace());
}

bool ScanField(JsonScanner& scan, RopeFields& out) {
  const std::string_view key = scan.key();
  if (key == "rope_type") return scan.Text(out.type.emplace());
  if (key == "type") return scan.Text(out.old_type.emplace());
  if (key == "rope_theta") return scan.Real(kMinRopeTheta, kMaxRopeTheta, "", out.theta.emplace());
  if (key == "factor") return ScanFactor(scan, out.factor);
  if (key == "low_freq_factor") return ScanFactor(scan, out.low_freq_factor);
  if (key == "high_freq_factor") return ScanFactor(scan, out.high_freq_factor);
  if (key == "partial_rotary_factor") return ScanPartialRotaryFactor(scan);
  if (scan.TakeNull()) return true;
  if (key == "original_max_position_embeddings") {
    return scan.Integer(1, kMaxPositions, "", out.original_max_positions.emplace());
  }
  return scan.Fail("is not supported (rope types: default, linear, llama3)");
}

Status Missing(const RopeFields& fields, std::string_view field, std::string_view type) {
  return InvalidArgument(fields.key, ".", field, ": is missing: rope_type ", type, " needs it");
}

Status CheckLlama3(const RopeFields& fields) {
  if (!fields.factor) return Missing(fields, "factor", "llama3");
  if (!fields.low_freq_factor) return Missing(fields, "low_freq_factor", "llama3");
  if (!fields.high_freq_factor) return Missing(fields, "high_freq_factor", "llama3");
  if (*fields.high_freq_factor > *fields.low_freq_factor) return Status::Ok();
  return InvalidArgument(fields.key, ".high_freq_factor = ", *fields.high_freq_factor,
                         ": must be greater than low_freq_factor, ", *fields.low_freq_factor);
}

}  // namespace

bool ScanPartialRotaryFactor(JsonScanner& scan) {
  if (scan.TakeNull()) return true;
  double factor = 0;
  if (!scan.Real(0, 1, "", factor)) return false;
  return factor == 1 ||
         scan.FailValue(Concat(factor), "must be 1", "partial rotation is not supported");
}

bool ScanRopeFields(JsonScanner& scan, RopeFields& out) {
  out = RopeFields();
  out.key = scan.key();
  if (scan.TakeNull()) return true;
  if (!scan.EnterObject()) return false;
  while (scan.NextKey()) {
    out.present = true;
    if (!ScanField(scan, out)) return false;
  }
  return scan.ok();
}

Result<RopeConfig> ResolveRope(const RopeFields& fields, std::optional<double> theta,
                               std::optional<int64_t> original_max_positions,
                               int64_t max_positions) {
  RopeConfig rope;
  rope.theta = fields.theta.value_or(theta.value_or(rope.theta));
  const std::string type = fields.type.value_or(fields.old_type.value_or("default"));
  if (type == "default") {
    if (fields.factor.value_or(1) != 1) {
      return InvalidArgument(fields.key, ".factor = ", *fields.factor,
                             ": must not stand with rope_type default (linear and llama3 use it)");
    }
    return rope;
  }
  if (type == "linear") {
    if (!fields.factor) return Missing(fields, "factor", type);
    rope.type = RopeType::kLinear;
    rope.factor = *fields.factor;
    return rope;
  }
  if (type != "llama3") {
    return InvalidArgument(fields.key, ".rope_type = ", Printable(type), ": ", kSupportedTypes);
  }
  PACE_RETURN_IF_ERROR(CheckLlama3(fields));
  rope.type = RopeType::kLlama3;
  rope.factor = *fields.factor;
  rope.low_freq_factor = *fields.low_freq_factor;
  rope.high_freq_factor = *fields.high_freq_factor;
  rope.original_max_positions =
      original_max_positions.value_or(fields.original_max_positions.value_or(max_positions));
  return rope;
}

}  // namespace pace
