// LiveView shows a training run while it goes on: on a terminal a few lines that
// redraw themselves in place, elsewhere one plain line per step.
//
//   LiveView view(STDERR_FILENO);
//   view.Update(status);   // as often as something changes
//   view.Note("checkpoint 50 written");
//   view.Finish();         // what was shown last stays
//
// What it says is RenderLiveView's, a pure function. No line is wider than the
// terminal, and none holds a control character that came from a name.
//
// Thread-safety: Update, Note and Finish may be called from any thread.
#ifndef PACE_TERMINAL_LIVE_VIEW_H_
#define PACE_TERMINAL_LIVE_VIEW_H_

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/clock.h"
#include "core/mutex.h"
#include "record/step_metrics.h"

namespace pace {

// Shares of correct responses.
struct LiveAccuracy {
  std::string benchmark = {};
  std::optional<double> start = {};  // before the first step
  double now = 0;                    // in the latest evaluation
  int64_t version = 0;               // that it evaluated
};

enum class LiveEnd { kNone, kFinished, kStopped, kFailed };

struct LiveStatus {
  std::string run = {};
  std::string method = {};
  bool filters = true;     // whether the budget means anything
  int64_t step = 0;        // steps finished
  int64_t num_steps = 0;   // 0 = not known
  int64_t first_step = 0;  // where this process began; a resumed run began later
  Seconds elapsed{0};      // since this process began
  MetricsRow row = {};     // of the last step; may be empty
  // Of the last steps, oldest first; LiveView adds what it has seen. Staleness is the
  // lag of trained groups, accuracies are those of the evaluations.
  std::vector<double> rewards = {};
  std::vector<double> staleness = {};
  std::vector<double> accuracies = {};
  std::optional<LiveAccuracy> accuracy = {};
  std::string waits_for = {};  // the trainer; empty while it works
  LiveEnd end = LiveEnd::kNone;
  std::optional<double> tokens_per_s = {};  // generated now; else the row's
  std::optional<int64_t> occupancy = {};    // of the pool now; else the row's
};

// What the terminal can show.
struct LiveLook {
  bool unicode = true;  // else plain ASCII
  bool colour = false;  // bold, dim and one colour
};

// Lines of at most `width` columns, each with its newline. Where the terminal has
// `rows` enough, charts of reward, staleness and accuracy fill them; 0 = not known.
std::string RenderLiveView(const LiveStatus& status, int width, const LiveLook& look = {},
                           int rows = 0);
// A note in lines of at most `width` columns, broken at spaces; 0 = one line however
// long.
std::string RenderNote(std::string_view note, int width, const LiveLook& look);
// One line for a log, without newline, in ASCII.
std::string RenderLiveLine(const LiveStatus& status);

// From LC_ALL, LC_CTYPE or LANG, and NO_COLOR.
LiveLook LookFromEnvironment();

struct LiveViewOptions {
  std::optional<bool> terminal = {};  // else it asks the file
  std::optional<LiveLook> look = {};  // else the environment
  std::chrono::milliseconds redraw_every{100};
};

class LiveView {
 public:
  // Writes to `fd`, which stays open and is not closed here.
  explicit LiveView(int fd, const LiveViewOptions& options = {});
  ~LiveView() { Finish(LiveEnd::kFailed); }
  LiveView(const LiveView&) = delete;
  LiveView& operator=(const LiveView&) = delete;

  void Update(const LiveStatus& status) PACE_EXCLUDES(mutex_);
  // A line of its own that stays, above the view.
  void Note(std::string_view line) PACE_EXCLUDES(mutex_);
  // Shows the last status with how the run ended. Later calls do nothing.
  void Finish(LiveEnd end = LiveEnd::kFinished) PACE_EXCLUDES(mutex_);

 private:
  using SteadyClock = std::chrono::steady_clock;
  void Remember(const LiveStatus& status) PACE_REQUIRES(mutex_);
  void Draw() PACE_REQUIRES(mutex_);
  void PrintLine() PACE_REQUIRES(mutex_);
  // Takes the cursor back to where the view began, and what follows away.
  std::string Erase(int width) PACE_REQUIRES(mutex_);

  const int fd_;
  const bool is_terminal_;
  const LiveLook look_;
  const std::chrono::milliseconds redraw_every_;

  Mutex mutex_;
  LiveStatus status_ PACE_GUARDED_BY(mutex_);
  bool has_status_ PACE_GUARDED_BY(mutex_) = false;
  bool finished_ PACE_GUARDED_BY(mutex_) = false;
  SteadyClock::time_point last_drawn_ PACE_GUARDED_BY(mutex_);
  std::vector<int> drawn_columns_ PACE_GUARDED_BY(mutex_);  // of each line on the screen
  std::string last_line_ PACE_GUARDED_BY(mutex_);
};

}  // namespace pace

#endif  // PACE_TERMINAL_LIVE_VIEW_H_
