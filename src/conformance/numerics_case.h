// One case of data/numerics: reading its arrays, comparing with our numbers.
//
// A case is {name, inputs, config, expected}; arrays are padded, one row per sequence, and
// non-finite numbers are written as texts. The first number that is missing or differs is
// the case's failure.
//
//   NumericsCase entry(value, where);
//   const std::vector<double> logprobs = entry.Numbers("log_prob");
//   entry.Expect("loss", result->loss);
//   entry.Finish(tally);
#ifndef PACE_CONFORMANCE_NUMERICS_CASE_H_
#define PACE_CONFORMANCE_NUMERICS_CASE_H_

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/field.h"
#include "conformance/kinds.h"
#include "text/value.h"
#include "train/math/metric.h"
#include "train/math/token_batch.h"

namespace pace {

struct Tolerance {
  double relative = 1e-6;
  double absolute = 1e-9;
};
// Of fields that a peer computed in float32.
inline constexpr Tolerance kSinglePrecision = {1e-5, 1e-6};

class NumericsCase {
 public:
  // `where` is "FILE: NAME", in front of every failure.
  NumericsCase(const Value& entry, std::string where);

  // Runs in compatibility mode: the case records a peer's defect.
  bool has_quirk() const { return has_quirk_; }
  // The peer raised: our call must return an error.
  bool expects_error() const { return !Expected("error").is_undefined(); }
  // Computed in float32 as a whole.
  bool is_single_precision() const;

  // A field of `expected`, `inputs` or `config`; undefined if absent.
  Value Expected(std::string_view name) const;
  Value Input(std::string_view name) const;
  Value Config(std::string_view name) const;
  Value Config() const;                                           // the whole object
  std::string ConfigText(std::string_view name) const;            // "" if absent
  std::optional<double> ConfigReal(std::string_view name) const;  // none if absent or null
  bool ConfigBool(std::string_view name, bool fallback) const;
  // Settings of ours from a list of words: `ours=theirs` takes the config field, which is
  // left out where it is absent or null; `ours:=value` is the value itself. `compat` alone
  // tells whether the case has a quirk.
  NamedSettings Settings(std::string_view words) const;

  // All numbers of a nested array, in order. A failure if it is not one.
  std::vector<double> Numbers(std::string_view input);
  std::vector<int64_t> Integers(std::string_view input);
  std::vector<double> OptionalNumbers(std::string_view input);  // empty if absent

  // Each passes when ours is within tolerance of theirs. Arrays compare where
  // `mask` is not 0 (everywhere without one).
  void Compare(std::string_view field, double ours, const Value& theirs);
  void CompareAll(std::string_view field, std::span<const double> ours, const Value& theirs,
                  std::span<const uint8_t> mask = {});
  // The same against the field of `expected` of that name.
  void Expect(std::string_view field, double ours) { Compare(field, ours, Expected(field)); }
  void ExpectAll(std::string_view field, std::span<const double> ours,
                 std::span<const uint8_t> mask = {}) {
    CompareAll(field, ours, Expected(field), mask);
  }
  // The peer's metric against ours of that name, where both exist.
  void CompareMetric(const MetricList& metrics, const std::string& ours, const Value& theirs);
  // Comparisons from here on use this tolerance.
  void Use(Tolerance tolerance) { tolerance_ = tolerance; }

  // An error where the peer raised passes; any other fails the case.
  // Returns whether there is a result to compare.
  bool Check(const Status& status);
  void Fail(std::string message);
  bool failed() const { return !failure_.empty(); }
  void SkipBecause(std::string reason) { skipped_ = std::move(reason); }

  // Counts the case.
  void Finish(Tally& tally) const;

 private:
  bool Near(double ours, double theirs) const;

  Value entry_;
  std::string where_;
  bool has_quirk_ = false;
  bool accepts_zero_ = false;
  Tolerance tolerance_;
  std::string failure_;
  std::string skipped_;
};

// The number that `value` is; none where it is not one. Texts "NaN",
// "Infinity" and "-Infinity" are.
std::optional<double> NumberOf(const Value& value);
// Appends all numbers of a nested array; false if something else is in it.
bool AppendNumbers(const Value& value, std::vector<double>& out);

// The rows of a padded case as sequences: width tokens each, most of them
// masked. Owns what the layout borrows.
struct PaddedLayout {
  std::vector<int64_t> offsets;
  std::vector<int64_t> groups;
  std::vector<uint8_t> mask;
  int64_t width = 0;

  SequenceLayout layout() const { return {.offsets = offsets, .groups = groups, .mask = mask}; }
};
// From inputs.response_mask (and cu_seqlens, where tokens are packed already).
PaddedLayout ReadLayout(NumericsCase& entry);

// One family each: adds the case's verdict to `entry`.
void CheckVanillaLoss(NumericsCase& entry);
void CheckLossVariant(NumericsCase& entry);
void CheckDecoupledPpo(NumericsCase& entry);
void CheckM2po(NumericsCase& entry);
void CheckTopr(NumericsCase& entry);
void CheckAdvantages(NumericsCase& entry);
void CheckRolloutCorrection(NumericsCase& entry);
void CheckVcpo(NumericsCase& entry);
void CheckKlPenalty(NumericsCase& entry);
void CheckLogprobEntropy(NumericsCase& entry);
void CheckAdamW(NumericsCase& entry);
void CheckRewardShaping(NumericsCase& entry);

}  // namespace pace

#endif  // PACE_CONFORMANCE_NUMERICS_CASE_H_
