// PoolMeter watches the pool as a queue: occupancy over time, arrivals, and how
// long groups stay. Thread-safety: none.
#ifndef PACE_RECORD_POOL_METER_H_
#define PACE_RECORD_POOL_METER_H_

#include <cstdint>

#include "core/clock.h"

namespace pace {

class PoolMeter {
 public:
  void Arrive(Seconds now) {
    Settle(now);
    ++occupancy_;
    ++num_arrivals_;
  }
  void Leave(Seconds now, Seconds arrived) {
    Settle(now);
    --occupancy_;
    ++num_departures_;
    sojourn_ += now - arrived;
  }
  // Forgets the past: what follows is measured from `now`.
  void Restart(Seconds now) {
    Settle(now);
    begin_ = now;
    area_ = 0;
    num_arrivals_ = num_departures_ = 0;
    sojourn_ = Seconds(0);
  }

  double MeanOccupancy(Seconds now) {
    Settle(now);
    return now > begin_ ? area_ / (now - begin_).count() : 0;
  }
  double ArrivalRate(Seconds now) const {
    return now > begin_ ? static_cast<double>(num_arrivals_) / (now - begin_).count() : 0;
  }
  // Of the groups that left.
  Seconds MeanSojourn() const {
    return num_departures_ == 0 ? Seconds(0) : sojourn_ / static_cast<double>(num_departures_);
  }

 private:
  void Settle(Seconds now) {
    area_ += static_cast<double>(occupancy_) * (now - last_).count();
    last_ = now;
  }

  Seconds begin_{0}, last_{0}, sojourn_{0};
  double area_ = 0;  // occupancy integrated over time
  int64_t occupancy_ = 0, num_arrivals_ = 0, num_departures_ = 0;
};

}  // namespace pace

#endif  // PACE_RECORD_POOL_METER_H_
