// DecodeTable: measured decode times, a line each:
//
//   {"batch": 64, "context": 2048, "seconds": 0.0119}
//
// `context` is tokens per response. Between measured points times are interpolated linearly,
// first in context, then in batch. Outside, the nearest slope in context is extrapolated and
// the nearest batch is used. Every batch needs the same set of contexts.
//
// Thread-safety: immutable.
#ifndef PACE_CLUSTER_DECODE_TABLE_H_
#define PACE_CLUSTER_DECODE_TABLE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/decode_curve.h"
#include "core/status.h"

namespace pace {

class DecodeTable {
 public:
  // An error begins with `name` and the line.
  static Result<DecodeTable> Parse(std::string_view text, const std::string& name);
  static Result<DecodeTable> Load(const std::string& path);

  // Curve over the total context of `batch` responses. REQUIRES: batch >= 1.
  DecodeCurve Curve(int64_t batch) const;

  // Seconds of one iteration. REQUIRES: batch >= 1, context >= 0.
  double Seconds(double batch, double context) const;

 private:
  DecodeTable() = default;
  double AtBatch(size_t row, double context) const;

  // Sorted; seconds_[b * contexts_.size() + c].
  std::vector<int64_t> batches_;
  std::vector<int64_t> contexts_;
  std::vector<double> seconds_;
};

}  // namespace pace

#endif  // PACE_CLUSTER_DECODE_TABLE_H_
