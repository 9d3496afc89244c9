#include "terminal/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

namespace pace {
namespace {

constexpr int kBarWidth = 30;
constexpr std::chrono::milliseconds kRedrawEvery{100};
constexpr std::chrono::seconds kLineEvery{10};

}  // namespace

Progress::Progress(std::string title, std::string what, size_t num_parts)
    : title_(std::move(title)),
      what_(std::move(what)),
      is_terminal_(isatty(STDERR_FILENO) != 0),
      start_(Clock::now()),
      done_(num_parts),
      total_(num_parts),
      last_drawn_(start_) {}

Progress::~Progress() {
  const MutexLock lock(mutex_);
  if (is_terminal_ && drawn_) std::fputs("\r\033[K", stderr);
}

void Progress::Update(size_t part, int64_t done, int64_t total) {
  const Clock::time_point now = Clock::now();
  const MutexLock lock(mutex_);
  done_[part] = done;
  total_[part] = total;
  if (is_terminal_ ? now - last_drawn_ < kRedrawEvery : now - last_drawn_ < kLineEvery) return;
  last_drawn_ = now;
  Draw(now);
}

void Progress::Draw(Clock::time_point now) {
  drawn_ = true;
  int64_t done = 0;
  int64_t total = 0;
  size_t num_begun = 0;
  for (size_t i = 0; i < done_.size(); ++i) {
    done += done_[i];
    total += total_[i];
    num_begun += total_[i] > 0;
  }
  // Parts that have not begun are taken to be as large as the others.
  if (num_begun > 0) {
    total = total * static_cast<int64_t>(done_.size()) / static_cast<int64_t>(num_begun);
  }
  const double share = total == 0 ? 0 : static_cast<double>(done) / static_cast<double>(total);
  const double elapsed = std::chrono::duration<double>(now - start_).count();
  const double left = share > 0 ? elapsed * (1 - share) / share : 0;
  if (!is_terminal_) {
    std::fprintf(stderr, "%s: %lld of %lld %s, about %.0f s left\n", title_.c_str(),
                 static_cast<long long>(done), static_cast<long long>(total), what_.c_str(), left);
    return;
  }
  const int filled = std::min(kBarWidth, static_cast<int>(share * kBarWidth));
  const std::string bar = std::string(static_cast<size_t>(filled), '#') +
                          std::string(static_cast<size_t>(kBarWidth - filled), '.');
  std::fprintf(stderr, "\r\033[K%s [%s] %3.0f%%  %lld %s  %.0f s left", title_.c_str(), bar.c_str(),
               share * 100, static_cast<long long>(done), what_.c_str(), left);
  std::fflush(stderr);
}

}  // namespace pace
