// Reading the rotary part of a config.json: rope_scaling of the classic layout,
// rope_parameters of transformers 5.
// Thread-safety: pure but for the scanner.
#ifndef PACE_MODEL_ROPE_READER_H_
#define PACE_MODEL_ROPE_READER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/json_scanner.h"
#include "core/status.h"
#include "model/model_config.h"

namespace pace {

// The keys of one such object; an object without keys counts as absent.
struct RopeFields {
  std::string key;  // under which it stood, for messages
  bool present = false;
  std::optional<std::string> type;      // rope_type
  std::optional<std::string> old_type;  // its older spelling, type
  std::optional<double> theta;
  std::optional<double> factor;
  std::optional<double> low_freq_factor;
  std::optional<double> high_freq_factor;
  std::optional<int64_t> original_max_positions;
};

inline constexpr double kMinRopeTheta = 1.0;
inline constexpr double kMaxRopeTheta = 1e18;
inline constexpr int64_t kMaxPositions = int64_t{1} << 30;

// The value of the scanner's current key: null or an object.
bool ScanRopeFields(JsonScanner& scan, RopeFields& out);

// A factor of 1 rotates the whole head; anything else is refused.
bool ScanPartialRotaryFactor(JsonScanner& scan);

// theta and original_max_positions are those beside the object, if any: the
// object's theta comes first, its original_max_position_embeddings last.
Result<RopeConfig> ResolveRope(const RopeFields& fields, std::optional<double> theta,
                               std::optional<int64_t> original_max_positions,
                               int64_t max_positions);

}  // namespace pace

#endif  // PACE_MODEL_ROPE_READER_H_
