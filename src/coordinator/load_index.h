// LoadIndex: which of a row of places has the smallest load.
//
// One bitmap per load, with a summary bit per word, so that setting a place and
// finding the first place of the smallest load touch a handful of words for
// thousands of places. Equal loads: the smaller place.
//
// Thread-safety: none.
#ifndef PACE_COORDINATOR_LOAD_INDEX_H_
#define PACE_COORDINATOR_LOAD_INDEX_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace pace {

class LoadIndex {
 public:
  void Insert(size_t place, int64_t load) {
    const auto level = static_cast<size_t>(load);
    if (levels_.size() <= level) levels_.resize(level + 1);
    levels_[level].Set(place);
    if (level < smallest_) smallest_ = level;
    ++size_;
  }
  // REQUIRES: the place was inserted with this load.
  void Erase(size_t place, int64_t load) {
    levels_[static_cast<size_t>(load)].Clear(place);
    --size_;
  }

  std::optional<size_t> First() {
    for (; smallest_ < levels_.size(); ++smallest_) {
      if (const auto place = levels_[smallest_].First()) return place;
    }
    return std::nullopt;
  }

  bool Contains(size_t place, int64_t load) const {
    return static_cast<size_t>(load) < levels_.size() &&
           levels_[static_cast<size_t>(load)].Has(place);
  }
  size_t size() const { return size_; }
  void Clear() {
    levels_.clear();
    smallest_ = 0;
    size_ = 0;
  }

 private:
  class Bitmap {
   public:
    void Set(size_t i) {
      if (words_.size() <= i / 64) {
        words_.resize(i / 64 + 1);
        summary_.resize(words_.size() / 64 + 1);
      }
      words_[i / 64] |= Bit(i);
      summary_[i / 4096] |= Bit(i / 64);
    }
    void Clear(size_t i) {
      words_[i / 64] &= ~Bit(i);
      if (words_[i / 64] == 0) summary_[i / 4096] &= ~Bit(i / 64);
    }
    bool Has(size_t i) const { return i / 64 < words_.size() && (words_[i / 64] & Bit(i)) != 0; }
    std::optional<size_t> First() const {
      for (size_t s = 0; s < summary_.size(); ++s) {
        if (summary_[s] == 0) continue;
        const size_t word = s * 64 + static_cast<size_t>(std::countr_zero(summary_[s]));
        return word * 64 + static_cast<size_t>(std::countr_zero(words_[word]));
      }
      return std::nullopt;
    }

   private:
    static uint64_t Bit(size_t i) { return uint64_t{1} << (i % 64); }
    std::vector<uint64_t> words_;
    std::vector<uint64_t> summary_;
  };

  std::vector<Bitmap> levels_;  // by load
  size_t smallest_ = 0;         // no level below has a place
  size_t size_ = 0;
};

}  // namespace pace

#endif  // PACE_COORDINATOR_LOAD_INDEX_H_
