#include "sandbox/program_watch.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <csignal>
#include <optional>

#include "sandbox/program_control.h"

namespace pace {
namespace {

using TimePoint = std::chrono::steady_clock::time_point;

constexpr std::chrono::seconds kStartPatience{60};
constexpr std::chrono::seconds kEndPatience{30};
constexpr std::chrono::seconds kAskPatience{2};

// One stream of the program.
class OutputReader {
 public:
  OutputReader(FileDescriptor end, int64_t limit)
      : end_(std::move(end)), limit_(static_cast<size_t>(limit)) {}

  // -1, which poll passes over, once the stream has ended.
  int descriptor() const { return end_.get(); }

  // At most a few pages at a time, so that no stream starves the other.
  void Read() {
    char buffer[65536];
    for (int round = 0; round < 16 && end_.valid(); ++round) {
      const ssize_t count = ::read(end_.get(), buffer, sizeof(buffer));
      if (count < 0 && errno == EINTR) continue;
      if (count < 0 && errno == EAGAIN) return;
      if (count <= 0) return end_.Close();
      const size_t kept = std::min(static_cast<size_t>(count), limit_ - text_.size());
      text_.append(buffer, kept);
      cut_ = cut_ || kept < static_cast<size_t>(count);
    }
  }
  std::string TakeText() { return std::move(text_); }
  bool cut() const { return cut_; }

 private:
  FileDescriptor end_;
  const size_t limit_;
  std::string text_;
  bool cut_ = false;
};

class Watch {
 public:
  Watch(ProgramEnds ends, const WatchLimits& limits, const Cancellation& cancellation)
      : limits_(limits),
        cancellation_(cancellation),
        control_(std::move(ends.control)),
        out_(std::move(ends.out), limits.max_output_bytes),
        error_(std::move(ends.error), limits.max_output_bytes),
        deadline_(Now() + kStartPatience) {}

  Result<ProgramResult> Run() {
    while (!gone_) {
      Wait();
      PACE_RETURN_IF_ERROR(Hear());
      if (unsignalled_ && control_.process() >= 0) {
        unsignalled_ = false;
        Signal(insisted_ ? SIGKILL : SIGTERM);
      }
      if (control_.closed() && control_.process() < 0) return NeverStarted();
      if (!ended_ && Now() >= deadline_) PACE_RETURN_IF_ERROR(Expire());
      if (ended_ && Now() >= deadline_) Insist();
    }
    PACE_RETURN_IF_ERROR(Hear());
    return Finish();
  }

 private:
  static TimePoint Now() { return std::chrono::steady_clock::now(); }

  // What the first process says. Nonsense is an error until the program has started, and
  // ends it afterwards.
  Status Hear() {
    if (deaf_) return Status::Ok();
    const Status heard = control_.Receive();
    if (control_.started() && !started_at_.has_value()) NoteStart();
    if (heard.ok()) return heard;
    deaf_ = true;
    if (!ended_) End(ProgramOutcome::kFinished);
    return started_at_.has_value() ? Status::Ok() : heard;
  }

  void NoteStart() {
    started_at_ = Now();
    if (ended_) return;
    deadline_ = *started_at_ + std::chrono::duration_cast<TimePoint::duration>(limits_.timeout);
  }

  void Wait() {
    pollfd waiting[] = {{control_.closed() || deaf_ ? -1 : control_.descriptor(), POLLIN, 0},
                        {out_.descriptor(), POLLIN, 0},
                        {error_.descriptor(), POLLIN, 0},
                        {control_.process(), POLLIN, 0},
                        {ended_ ? -1 : cancellation_.descriptor, cancellation_.events, 0}};
    const Seconds left = std::max<Seconds>(deadline_ - Now(), Seconds(0));
    const int wait_ms = static_cast<int>(std::min(std::ceil(left.count() * 1e3), 60'000.0));
    if (::poll(waiting, std::size(waiting), wait_ms) <= 0) return;
    if (waiting[1].revents != 0) out_.Read();
    if (waiting[2].revents != 0) error_.Read();
    if (waiting[3].revents != 0) gone_ = true;
    if (waiting[4].revents != 0) End(ProgramOutcome::kCancelled);
  }

  Status NeverStarted() const {
    return Unavailable("sandbox: the program was not started: ",
                       control_.failure().value_or("its interpreter died"));
  }

  Status Expire() {
    if (!started_at_.has_value()) {
      End(ProgramOutcome::kCancelled);
      return Unavailable("sandbox: the program was not started within ", kStartPatience.count(),
                         " s (is the machine overloaded?)");
    }
    End(ProgramOutcome::kTimeLimit);
    return Status::Ok();
  }

  void End(ProgramOutcome outcome) {
    ended_ = true;
    outcome_ = outcome;
    ended_at_ = Now();
    insisted_ = !limits_.ask_first;
    deadline_ = Now() + (insisted_ ? kEndPatience : kAskPatience);
    Signal(insisted_ ? SIGKILL : SIGTERM);
    unsignalled_ = control_.process() < 0;  // its pidfd has yet to come
  }

  void Insist() {
    if (insisted_) {
      // Killed long ago: the kernel is busy with it, or the machine with others.
      gone_ = true;
      return;
    }
    insisted_ = true;
    deadline_ = Now() + kEndPatience;
    Signal(SIGKILL);
  }

  void Signal(int number) const {
    if (control_.process() < 0) return;
    ::syscall(SYS_pidfd_send_signal, control_.process(), number, nullptr, 0);
  }

  Result<ProgramResult> Finish() {
    // All writers are gone, so both streams are at their end soon.
    while (out_.descriptor() >= 0 && Readable(out_.descriptor())) out_.Read();
    while (error_.descriptor() >= 0 && Readable(error_.descriptor())) error_.Read();
    const std::optional<ProgramEnd>& end = control_.end();
    if (!ended_ && !started_at_.has_value()) return NeverStarted();
    ProgramResult result;
    result.outcome = outcome_;
    if (outcome_ == ProgramOutcome::kFinished) {
      // The first process may be gone without a word, as when memory ran out.
      result.return_code = end.has_value() && !ended_ ? end->return_code : -SIGKILL;
    }
    result.time = end.has_value() && !ended_ ? end->time
                  : started_at_.has_value()  ? Seconds((ended_ ? ended_at_ : Now()) - *started_at_)
                                             : Seconds(0);
    if (end.has_value()) result.files = end->files;
    result.out = out_.TakeText();
    result.error = error_.TakeText();
    result.out_cut = out_.cut();
    result.error_cut = error_.cut();
    return result;
  }

  static bool Readable(int descriptor) {
    pollfd waiting{descriptor, POLLIN, 0};
    return ::poll(&waiting, 1, 0) > 0;
  }

  const WatchLimits& limits_;
  const Cancellation& cancellation_;
  ProgramControl control_;
  OutputReader out_;
  OutputReader error_;
  TimePoint deadline_;  // of the start, then of the program, then of its end
  std::optional<TimePoint> started_at_;
  TimePoint ended_at_;
  ProgramOutcome outcome_ = ProgramOutcome::kFinished;
  bool ended_ = false;  // by us
  bool insisted_ = false;
  bool unsignalled_ = false;
  bool gone_ = false;
  bool deaf_ = false;  // nonsense came on control
};

}  // namespace

Result<ProgramResult> WatchProgram(ProgramEnds ends, const WatchLimits& limits,
                                   const Cancellation& cancellation) {
  return Watch(std::move(ends), limits, cancellation).Run();
}

}  // namespace pace
