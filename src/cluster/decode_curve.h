// DecodeCurve: the time of decode iterations, summed in closed form.
//
// With a fixed number of responses an iteration's time is piecewise linear in
// the context tokens it reads, and every iteration adds one token to each
// response. So the time of k iterations is a sum of arithmetic series, and no
// simulation needs to go token by token.
//
//   double t = curve.Span(context, 100);               // 100 iterations
//   int64_t k = curve.IterationsToReach(context, t, 100);  // 100
//
// Thread-safety: immutable.
#ifndef PACE_CLUSTER_DECODE_CURVE_H_
#define PACE_CLUSTER_DECODE_CURVE_H_

#include <cstdint>
#include <vector>

namespace pace {

// From `begin` context tokens on, an iteration takes base + slope * context.
struct DecodePiece {
  int64_t begin = 0;
  double base = 0;
  double slope = 0;
};

class DecodeCurve {
 public:
  // REQUIRES: batch >= 1; pieces in growing order of begin, the first at 0;
  // no iteration takes negative time.
  DecodeCurve(int64_t batch, std::vector<DecodePiece> pieces);

  // One iteration that reads `context` tokens in all.
  double Iteration(int64_t context) const;

  // `iterations` of them, the first of which reads `context` tokens.
  double Span(int64_t context, int64_t iterations) const;

  // The fewest iterations, at most `limit`, that take at least `seconds`.
  int64_t IterationsToReach(int64_t context, double seconds, int64_t limit) const;

  int64_t batch() const { return batch_; }
  const std::vector<DecodePiece>& pieces() const { return pieces_; }

 private:
  int64_t batch_;
  std::vector<DecodePiece> pieces_;
};

// The larger of two lines as pieces over context >= 0.
std::vector<DecodePiece> UpperEnvelope(const DecodePiece& a, const DecodePiece& b);

}  // namespace pace

#endif  // PACE_CLUSTER_DECODE_CURVE_H_
