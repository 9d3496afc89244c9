// What the checks of `models` share: the folder under test, and how one field of
// its expected.json is compared and counted. A namespace of their own, since
// other kinds compare in other ways.
// Thread-safety: none.
#ifndef PACE_CONFORMANCE_MODELS_KIND_CHECKS_H_
#define PACE_CONFORMANCE_MODELS_KIND_CHECKS_H_

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/kinds.h"
#include "core/status.h"
#include "core/token_id.h"
#include "model/devices.h"
#include "model/model_config.h"
#include "model/weight_set.h"

namespace pace::models {

using Json = nlohmann::json;

struct ModelFolder {
  std::string path;
  ModelConfig config;
  WeightSet weights;
  Json expected;
};

// A difference passes up to absolute + relative * |expected|, times the file's
// noise (NoiseOf).
struct Tolerance {
  double absolute = 0;
  double relative = 0;
};

// As README.md of the reference data measures them, times ten.
inline constexpr Tolerance kLogitTolerance = {.absolute = 1e-4};
inline constexpr Tolerance kLogprobTolerance = {.absolute = 5e-5};
inline constexpr Tolerance kGradientTolerance = {.absolute = 1e-7, .relative = 5e-5};

// The peer's own noise, as the file tells it, in units of that of the reference
// data, but at least 1: larger logits have larger rounding errors.
double NoiseOf(const Json& expected);

// One field of one case: any number of comparisons that count as one check.
class Field {
 public:
  Field(std::string where, std::string name, double noise)
      : where_(std::move(where)), name_(std::move(name)), noise_(noise) {}

  void Near(std::string_view position, double ours, double expected, const Tolerance& tolerance);
  // Lists of equal length; positions are indices.
  void Near(const std::vector<double>& ours, const std::vector<double>& expected,
            const Tolerance& tolerance);
  void Same(std::string_view position, int64_t ours, int64_t expected);
  void Same(const std::vector<int64_t>& ours, const std::vector<int64_t>& expected);
  void Differs(std::string_view what);

  const std::string& name() const { return name_; }
  int64_t num_differences() const { return num_differences_; }
  // "DIR: CASE: FIELD: POSITION: ours 1, expected 2 (and 3 more positions)"
  std::string Line() const;
  double largest() const { return largest_; }
  double largest_share() const { return largest_share_; }

 private:
  bool SameLength(size_t ours, size_t expected);

  std::string where_;
  std::string name_;
  double noise_;
  std::string first_;
  int64_t num_differences_ = 0;
  double largest_ = 0;        // difference
  double largest_share_ = 0;  // difference / tolerance
};

// Counts fields, and keeps the largest difference of each name.
class FieldCounts {
 public:
  FieldCounts(const ModelFolder& folder, Tally& tally);

  Field Begin(const std::string& where, const std::string& name) const {
    return {folder_ + ": " + where, name, noise_};
  }
  void Count(const Field& field);
  // A field that the file has and that cannot be checked.
  void Skip(const std::string& where, const std::string& name, const std::string& why);
  // "DIR: largest differences (share of the tolerance): logits 4.1e-06 (4 %), ..."
  std::string Summary() const;

 private:
  struct Largest {
    double difference = 0;
    double share = 0;
  };
  const std::string& folder_;
  double noise_;
  Tally& tally_;
  std::map<std::string, Largest> largest_;
};

// input_ids of a case, all in the vocabulary.
Result<std::vector<TokenId>> CaseTokens(const ModelFolder& folder, const Json& one);
// log_probs of a bfloat16 computation may be twice as far from those of float32
// as the peer's are, in this case or over all of them, and so may their mean.
// `one` is an entry of bf16_compute, `name` the name of its log_probs.
void CheckBfloat16(const ModelFolder& folder, const Json& one, const std::string& name,
                   const std::vector<double>& ours, FieldCounts& counts);
// The case of this name, or null.
const Json* FindCase(const ModelFolder& folder, const std::string& name);

// The training network: every field. The decoder: log_probs and greedy.
Status CheckTrainingNetwork(const ModelFolder& folder, FieldCounts& counts);
Status CheckDecoder(const ModelFolder& folder, DeviceKind device, FieldCounts& counts);

}  // namespace pace::models

#endif  // PACE_CONFORMANCE_MODELS_KIND_CHECKS_H_
