#include "terminal/live_view.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>

#include "core/concat.h"
#include "core/utf8.h"

namespace pace {
namespace {

constexpr int kDefaultColumns = 80;
constexpr size_t kMostRemembered = 256;

void AddTo(std::vector<double>& values, std::optional<double> value) {
  if (!value.has_value()) return;
  values.push_back(*value);
  if (values.size() > kMostRemembered) values.erase(values.begin());
}

struct Size {
  int columns = kDefaultColumns;
  int rows = 0;  // 0 = not known
};

Size SizeOf(int fd) {
  winsize size{};
  if (ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return {};
  return {size.ws_col, size.ws_row};
}

bool IsTerminal(int fd) {
  const char* term = std::getenv("TERM");
  return isatty(fd) != 0 && !(term != nullptr && std::string_view(term) == "dumb");
}

// What cannot be written is lost: a view is no reason to end a run.
void WriteAll(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    text.remove_prefix(static_cast<size_t>(written));
  }
}

// Columns of each line; at most what RenderLiveView was told, escapes aside.
std::vector<int> ColumnsOf(std::string_view text) {
  std::vector<int> columns;
  int count = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    const auto byte = static_cast<unsigned char>(text[at]);
    if (byte == '\033') {
      at = std::min(text.find('m', at), text.size() - 1);
    } else if (byte == '\n') {
      columns.push_back(count);
      count = 0;
    } else if ((byte & 0xC0) != 0x80) {
      ++count;
    }
  }
  return columns;
}

// The first lines that a terminal of this height can redraw.
std::string Fitting(const std::string& text, int rows) {
  if (rows <= 1) return text;
  size_t end = 0;
  for (int line = 0; line + 1 < rows && end < text.size(); ++line) end = text.find('\n', end) + 1;
  return text.substr(0, end);
}

}  // namespace

LiveLook LookFromEnvironment() {
  LiveLook look{.unicode = false, .colour = std::getenv("NO_COLOR") == nullptr};
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == '\0') continue;
    std::string charset(value);
    std::transform(charset.begin(), charset.end(), charset.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    look.unicode =
        charset.find("utf-8") != std::string::npos || charset.find("utf8") != std::string::npos;
    break;
  }
  return look;
}

LiveView::LiveView(int fd, const LiveViewOptions& options)
    : fd_(fd),
      is_terminal_(options.terminal.has_value() ? *options.terminal : IsTerminal(fd)),
      look_(options.look.has_value() ? *options.look : LookFromEnvironment()),
      redraw_every_(options.redraw_every) {}

void LiveView::Update(const LiveStatus& status) {
  const SteadyClock::time_point now = SteadyClock::now();
  const MutexLock lock(mutex_);
  if (finished_) return;
  const bool new_step = !has_status_ || status.step != status_.step;
  Remember(status);
  if (!is_terminal_) {
    if (new_step && !status.row.empty()) PrintLine();
    return;
  }
  if (!drawn_columns_.empty() && now - last_drawn_ < redraw_every_) return;
  last_drawn_ = now;
  Draw();
}

void LiveView::Remember(const LiveStatus& status) {
  LiveStatus before = std::move(status_);
  const bool new_step = !has_status_ || status.step != before.step;
  const std::optional<LiveAccuracy> last = before.accuracy;
  status_ = status;
  has_status_ = true;
  // What the caller keeps is not kept here.
  if (status.rewards.empty()) {
    status_.rewards = std::move(before.rewards);
    if (new_step) AddTo(status_.rewards, Find(status.row, "train/reward"));
  }
  if (status.staleness.empty()) {
    status_.staleness = std::move(before.staleness);
    if (new_step) AddTo(status_.staleness, Find(status.row, "staleness/lag/mean"));
  }
  if (status.accuracies.empty()) {
    status_.accuracies = std::move(before.accuracies);
    const bool evaluated = status.accuracy.has_value() &&
                           (!last.has_value() || last->version != status.accuracy->version);
    if (evaluated) AddTo(status_.accuracies, status.accuracy->now);
  }
}

void LiveView::Draw() {
  const Size size = SizeOf(fd_);
  // Not the last column: some terminals wrap as soon as it is written.
  const std::string view =
      Fitting(RenderLiveView(status_, size.columns - 1, look_, size.rows), size.rows);
  WriteAll(fd_, Erase(size.columns) + view);
  drawn_columns_ = ColumnsOf(view);
}

// Lines that were drawn on a wider terminal take several rows now.
std::string LiveView::Erase(int width) {
  if (drawn_columns_.empty()) return "";
  int num_rows = 0;
  for (const int columns : drawn_columns_) num_rows += std::max(1, (columns + width - 1) / width);
  drawn_columns_.clear();
  return Concat("\r\033[", num_rows, "A\033[J");
}

void LiveView::PrintLine() {
  const std::string line = RenderLiveLine(status_);
  if (line == last_line_) return;
  last_line_ = line;
  WriteAll(fd_, line + "\n");
}

void LiveView::Note(std::string_view line) {
  const MutexLock lock(mutex_);
  const bool redraw = is_terminal_ && !drawn_columns_.empty() && !finished_;
  const int columns = SizeOf(fd_).columns;
  const std::string erase = redraw ? Erase(columns) : "";
  WriteAll(fd_, erase + RenderNote(line, is_terminal_ ? columns - 1 : 0, look_));
  if (redraw) Draw();
}

void LiveView::Finish(LiveEnd end) {
  const MutexLock lock(mutex_);
  if (finished_ || !has_status_) return;
  finished_ = true;
  status_.end = end;
  status_.waits_for.clear();
  // Every step has had its line where lines are all there is.
  if (is_terminal_) Draw();
}

}  // namespace pace
