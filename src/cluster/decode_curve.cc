#include "cluster/decode_curve.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/check.h"

namespace pace {

DecodeCurve::DecodeCurve(int64_t batch, std::vector<DecodePiece> pieces)
    : batch_(batch), pieces_(std::move(pieces)) {
  PACE_CHECK(batch_ >= 1, "batch = ", batch_);
  PACE_CHECK(!pieces_.empty() && pieces_.front().begin == 0, "the first piece begins at 0");
}

double DecodeCurve::Iteration(int64_t context) const {
  size_t i = pieces_.size() - 1;
  while (pieces_[i].begin > context) --i;
  return pieces_[i].base + pieces_[i].slope * static_cast<double>(context);
}

double DecodeCurve::Span(int64_t context, int64_t iterations) const {
  double sum = 0;
  for (size_t i = 0; i < pieces_.size() && iterations > 0; ++i) {
    int64_t here = iterations;
    if (i + 1 < pieces_.size()) {
      // Iterations whose context is still below the next piece.
      const int64_t room = pieces_[i + 1].begin - context;
      if (room <= 0) continue;
      here = std::min(iterations, (room + batch_ - 1) / batch_);
    }
    const double k = static_cast<double>(here);
    const double total =
        k * static_cast<double>(context) + static_cast<double>(batch_) * (0.5 * k * (k - 1));
    sum += k * pieces_[i].base + pieces_[i].slope * total;
    context += here * batch_;
    iterations -= here;
  }
  return sum;
}

int64_t DecodeCurve::IterationsToReach(int64_t context, double seconds, int64_t limit) const {
  int64_t low = 0, high = limit;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (Span(context, middle) >= seconds) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

std::vector<DecodePiece> UpperEnvelope(const DecodePiece& a, const DecodePiece& b) {
  DecodePiece low = a, high = b;  // by slope
  if (low.slope > high.slope) std::swap(low, high);
  if (high.base >= low.base) return {{0, high.base, high.slope}};
  if (high.slope == low.slope) return {{0, low.base, low.slope}};
  const double crossing = std::ceil((low.base - high.base) / (high.slope - low.slope));
  constexpr double kBeyondAnyContext = 1e15;
  if (!(crossing < kBeyondAnyContext)) return {{0, low.base, low.slope}};
  return {{0, low.base, low.slope}, {static_cast<int64_t>(crossing), high.base, high.slope}};
}

}  // namespace pace
