#include "terminal/live_view.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "core/concat.h"
#include "core/utf8.h"
#include "record/worker_metrics.h"
#include "terminal/terminal_text.h"

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

constexpr int kLabelColumns = 11;
constexpr size_t kMostSpark = 32;
// Charts fill a terminal that has more rows than the lines need.
constexpr int kRowsOfLines = 12;
constexpr int kNumTrends = 3;
constexpr int kMostTrendRows = 6;
constexpr int kMostWaitLines = 3;
constexpr int64_t kMostWorkerLines = 4;

template <typename Value>
std::string Format(const char* format, Value value) {
  std::array<char, 64> buffer{};
  std::snprintf(buffer.data(), buffer.size(), format, value);
  return buffer.data();
}

// "45 s", "2 min 14 s", "1 h 05 min", "3 d 4 h".
std::string Duration(Seconds duration) {
  const double seconds = duration.count() > 0 ? std::min(duration.count(), 1e9) : 0;
  const int64_t whole = std::llround(seconds);
  if (whole < 60) return Concat(whole, " s");
  if (whole < 3600) return Concat(whole / 60, " min ", whole % 60, " s");
  const int64_t minutes = whole / 60;
  if (whole < 86400) return Concat(minutes / 60, " h ", minutes % 60, " min");
  return Concat(whole / 86400, " d ", whole % 86400 / 3600, " h");
}

std::string Short(double value) {
  if (!std::isfinite(value)) return "-";
  if (std::abs(value) >= 1e7) return Format("%.1fM", value / 1e6);
  if (std::abs(value) >= 1e4) return Format("%.1fk", value / 1e3);
  return Format("%.0f", value);
}

std::string Percent(double share) {
  return std::isfinite(share) && std::abs(share) < 1e6 ? Format("%.0f %%", 100 * share) : "-";
}
std::string Tenths(double share) {
  return std::isfinite(share) && std::abs(share) < 1e6 ? Format("%.1f %%", 100 * share) : "-";
}

// One line of the view, never wider than it may be.
class Line {
 public:
  enum class Ink { kPlain, kStrong, kQuiet, kBar };

  Line(int width, const LiveLook& look) : left_(std::max(0, width)), look_(look) {}

  int left() const { return left_; }

  // The text if all of it fits.
  bool Add(std::string_view text, Ink ink = Ink::kPlain) {
    const std::string clean = CleanText(text, look_.unicode);
    if (TextColumns(clean) > left_) return false;
    Put(clean, ink);
    return true;
  }
  // As much of it as fits.
  void AddCut(std::string_view text, Ink ink = Ink::kPlain) {
    if (Add(text, ink)) return;
    const std::string_view dots = look_.unicode ? "\u2026" : "...";
    const int room = left_ - TextColumns(dots);
    const std::string clean = CleanText(text, look_.unicode);
    std::string cut;
    for (size_t at = 0; at < clean.size();) {
      const size_t size = ReadCodePoint(clean, at).num_bytes;
      if (TextColumns(cut) + TextColumns(clean.substr(at, size)) > room) break;
      cut += clean.substr(at, size);
      at += size;
    }
    if (room >= 0) Put(cut + std::string(dots), ink);
    left_ = 0;
  }
  // A name before its value, apart from what came before; both or nothing.
  void AddPair(std::string_view name, std::string_view value) {
    if (static_cast<int>(name.size() + value.size()) + 3 > left_) {
      left_ = 0;  // nothing later takes its place
      return;
    }
    if (!first_) Add("  ");
    Add(Concat(name, name.empty() ? "" : " "), Ink::kQuiet);
    Add(value);
    first_ = false;
  }
  void AddLabel(std::string_view label) {
    AddCut(Concat(label, std::string(kLabelColumns - label.size(), ' ')), Ink::kQuiet);
  }

  std::string Take() && { return std::move(text_) + "\n"; }

 private:
  void Put(const std::string& text, Ink ink) {
    constexpr std::array<std::string_view, 4> kCodes = {"", "\033[1m", "\033[2m", "\033[36m"};
    const std::string_view code = look_.colour ? kCodes[static_cast<size_t>(ink)] : "";
    text_ += Concat(code, text, code.empty() ? "" : "\033[0m");
    left_ -= TextColumns(text);
  }

  int left_;
  const LiveLook& look_;
  std::string text_;
  bool first_ = true;
};

std::optional<double> Reward(const MetricsRow& row) {
  const std::optional<double> trained = Find(row, "train/reward");
  return trained.has_value() ? trained : Find(row, "selection/reward_trained");
}

std::optional<double> RejectedShare(const MetricsRow& row) {
  const auto rejected = Find(row, "admission/rejected"), offered = Find(row, "admission/offered");
  if (!rejected.has_value() || !offered.has_value() || *offered <= 0) return std::nullopt;
  return *rejected / *offered;
}

// Methods that only observe compute one as well.
std::optional<double> Budget(const LiveStatus& status) {
  return status.filters ? Find(status.row, "admission/budget") : std::nullopt;
}

std::optional<double> Occupancy(const LiveStatus& status) {
  if (status.occupancy.has_value()) return static_cast<double>(*status.occupancy);
  return Find(status.row, "pool/occupancy");
}

std::optional<double> TokensPerSecond(const LiveStatus& status) {
  return status.tokens_per_s.has_value() ? status.tokens_per_s
                                         : Find(status.row, "rollout/tokens_per_s");
}

// From the steps of this process alone.
std::optional<Seconds> TimeLeft(const LiveStatus& status) {
  const int64_t done = status.step - status.first_step;
  if (done <= 0 || status.num_steps <= 0) return std::nullopt;
  const auto left = static_cast<double>(std::max<int64_t>(0, status.num_steps - status.step));
  return status.elapsed * (left / static_cast<double>(done));
}

using Ink = Line::Ink;

std::string TitleLine(const LiveStatus& status, int width, const LiveLook& look) {
  const std::string time = Duration(status.elapsed);
  const bool has_room = width >= 30;
  Line name(has_room ? width - static_cast<int>(time.size()) - 2 : width, look);
  name.AddCut(status.run, Ink::kStrong);
  if (!status.method.empty() && !status.run.empty()) name.Add(look.unicode ? " \u00b7 " : " - ");
  name.AddCut(status.method);
  const int num_spaces = name.left() + 2;
  std::string text = std::move(name).Take();
  text.pop_back();
  if (!has_room) return text + "\n";
  Line rest(num_spaces + static_cast<int>(time.size()), look);
  rest.Add(std::string(static_cast<size_t>(num_spaces), ' '));
  rest.Add(time, Ink::kQuiet);
  return text + std::move(rest).Take();
}

std::string BarLine(const LiveStatus& status, int width, const LiveLook& look) {
  Line line(width, look);
  if (status.num_steps <= 0) {
    line.AddCut(Concat("step ", status.step));
    return std::move(line).Take();
  }
  const std::string count = Concat(" ", status.step, " of ", status.num_steps);
  const std::optional<Seconds> left = TimeLeft(status);
  std::string more = " steps";
  if (left.has_value()) {
    more += Concat(look.unicode ? " \u00b7 " : " - ", Duration(*left), " left");
  }
  const bool whole = width >= 60;
  std::string tail = whole ? count + more : count;
  if (!whole && left.has_value() && width >= 36) tail += Concat("  ", Duration(*left), " left");
  const int num_cells = width - static_cast<int>(CountCodePoints(tail));
  if (num_cells >= 5) {
    const double share = std::clamp(
        static_cast<double>(status.step) / static_cast<double>(status.num_steps), 0.0, 1.0);
    const int num_full = static_cast<int>(share * num_cells);
    std::string full, rest;
    for (int i = 0; i < num_full; ++i) full += look.unicode ? "\u2501" : "#";
    for (int i = num_full; i < num_cells; ++i) rest += look.unicode ? "\u2500" : ".";
    line.Add(full, Ink::kBar);
    line.Add(rest, Ink::kQuiet);
  } else {
    tail.erase(0, 1);
  }
  line.AddCut(tail);
  return std::move(line).Take();
}

std::string RewardLine(const LiveStatus& status, int width, const LiveLook& look) {
  const std::optional<double> reward = Reward(status.row);
  if (!reward.has_value()) return "";
  Line line(width, look);
  line.AddLabel("reward");
  line.AddPair("", Format("%.3f", *reward));
  const int room = std::max(0, line.left() - 2);
  line.Add("  ");
  line.Add(Sparkline(status.rewards, std::min(kMostSpark, static_cast<size_t>(room)), look.unicode),
           Ink::kBar);
  return std::move(line).Take();
}

std::string AccuracyLine(const LiveStatus& status, int width, const LiveLook& look) {
  if (!status.accuracy.has_value()) return "";
  const LiveAccuracy& accuracy = *status.accuracy;
  Line line(width, look);
  line.AddLabel("accuracy");
  std::string text = Tenths(accuracy.now);
  if (accuracy.start.has_value()) {
    text = Concat(Tenths(*accuracy.start), look.unicode ? " \u2192 " : " -> ", text);
  }
  line.AddCut(text);
  if (!accuracy.benchmark.empty() && line.left() > 8) {
    line.AddCut(Concat("  on ", accuracy.benchmark), Ink::kQuiet);
  }
  return std::move(line).Take();
}

// A labelled line of the values that are known; empty without any.
using Pairs = std::vector<std::pair<std::string, std::optional<std::string>>>;
std::string PairLine(std::string_view label, const Pairs& pairs, int width, const LiveLook& look) {
  Line line(width, look);
  bool any = false;
  if (!label.empty()) line.AddLabel(label);
  for (const auto& [name, value] : pairs) {
    if (!value.has_value()) continue;
    line.AddPair(name, *value);
    any = true;
  }
  return any ? std::move(line).Take() : "";
}

template <typename Show>
std::optional<std::string> Shown(std::optional<double> value, const Show& show) {
  if (!value.has_value()) return std::nullopt;
  return show(*value);
}

std::optional<std::string> Number(const char* format, std::optional<double> value) {
  return Shown(value, [format](double v) { return Format(format, v); });
}

// Of the first workers; the rest is counted.
std::string WorkerLines(const MetricsRow& row, int width, const LiveLook& look) {
  std::string out;
  int64_t num_workers = 0;
  for (; Find(row, WorkerMetric(num_workers, "tokens_per_s")).has_value(); ++num_workers) {
    if (num_workers >= kMostWorkerLines) continue;
    const auto metric = [&](std::string_view name) {
      return Find(row, WorkerMetric(num_workers, name));
    };
    std::optional<double> failures = metric("failures");
    if (failures == 0) failures.reset();
    out += PairLine(
        Concat("worker ", num_workers),
        {{"", Shown(metric("tokens_per_s"), [](double n) { return Short(n) + " tokens/s"; })},
         {"first token", Number("%.3f s", metric("first_token_s"))},
         {"paused", Number("%.3f s", metric("pause_s"))},
         {"failures", Shown(failures, Short)}},
        width, look);
  }
  if (num_workers > kMostWorkerLines) {
    out += PairLine("", {{"", Concat("and ", num_workers - kMostWorkerLines, " workers more")}},
                    width, look);
  }
  return out;
}

// What the trainer does, in as many lines as the sentence needs.
std::string TrainerLines(const LiveStatus& status, int width, const LiveLook& look) {
  constexpr std::array<std::string_view, 4> kEnds = {"training", "finished", "stopped early",
                                                     "failed"};
  std::string text(kEnds.at(static_cast<size_t>(status.end)));
  if (status.end == LiveEnd::kNone && !status.waits_for.empty()) {
    text = "waiting: " + status.waits_for;
  }
  std::vector<std::string> lines =
      WrappedText(CleanText(text, look.unicode), width - kLabelColumns);
  if (static_cast<int>(lines.size()) > kMostWaitLines) {
    for (size_t i = kMostWaitLines; i < lines.size(); ++i) {
      lines[kMostWaitLines - 1] += " " + lines[i];
    }
    lines.resize(kMostWaitLines);
  }
  std::string out;
  for (size_t i = 0; i < lines.size(); ++i) {
    Line line(width, look);
    line.AddLabel(i == 0 ? "trainer" : "");
    line.AddCut(lines[i]);
    out += std::move(line).Take();
  }
  return out;
}

// A chart with its name and its range.
std::string TrendLines(std::string_view name, const std::vector<double>& values, double factor,
                       const char* format, int num_rows, int width, const LiveLook& look) {
  const int room = width - kLabelColumns;
  if (room < 8) return "";
  std::vector<double> scaled = values;
  for (double& value : scaled) value *= factor;
  const std::vector<std::string> rows =
      TallSparkline(scaled, static_cast<size_t>(room), num_rows, look.unicode);
  if (rows.empty()) return "";
  double top = 0;
  for (const double value : scaled) {
    if (std::isfinite(value)) top = std::max(top, value);
  }
  std::string out;
  for (size_t i = 0; i < rows.size(); ++i) {
    Line line(width, look);
    line.AddLabel(i == 0 ? Format(format, top) : i + 1 == rows.size() ? std::string(name) : "");
    line.Add(rows[i], Ink::kBar);
    out += std::move(line).Take();
  }
  return out;
}

std::string Trends(const LiveStatus& status, int width, const LiveLook& look, int rows) {
  const int num_rows = std::min((rows - kRowsOfLines) / kNumTrends - 1, kMostTrendRows);
  if (num_rows < 2) return "";
  std::string out;
  const auto add = [&](std::string chart) {
    if (!chart.empty()) out += "\n" + chart;
  };
  add(TrendLines("reward", status.rewards, 1, "%.2f", num_rows, width, look));
  add(TrendLines("lag", status.staleness, 1, "%.1f", num_rows, width, look));
  add(TrendLines("accuracy", status.accuracies, 100, "%.0f %%", num_rows, width, look));
  return out;
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

std::string RenderNote(std::string_view note, int width, const LiveLook& look) {
  const std::string clean = CleanText(note, look.unicode);
  if (width <= 0) return clean + "\n";
  std::string out;
  for (const std::string& line : WrappedText(clean, width)) out += line + "\n";
  return out.empty() ? "\n" : out;
}

std::string RenderLiveView(const LiveStatus& status, int width, const LiveLook& look, int rows) {
  const MetricsRow& row = status.row;
  std::string out = TitleLine(status, width, look) + BarLine(status, width, look);
  out += RewardLine(status, width, look) + AccuracyLine(status, width, look);
  out += PairLine("staleness",
                  {{"waiting", Number("%.2f", Find(row, "staleness/waiting/mean"))},
                   {"generation", Number("%.2f", Find(row, "staleness/generation/mean"))}},
                  width, look);
  out += PairLine("pool",
                  {{"", Shown(Occupancy(status), [](double n) { return Short(n) + " groups"; })},
                   {"rejected", Shown(RejectedShare(row), Percent)},
                   {"budget", Shown(Budget(status), Percent)}},
                  width, look);
  out += PairLine(
      "rollout",
      {{"", Shown(TokensPerSecond(status), [](double n) { return Short(n) + " tokens/s"; })},
       {"engines busy", Shown(Find(row, "rollout/busy"), Percent)}},
      width, look);
  const std::string workers = WorkerLines(row, width, look);
  out += workers + TrainerLines(status, width, look);
  LiveLook quiet = look;
  quiet.colour = false;
  const std::string last = PairLine("",
                                    {{"lr", Number("%.2g", Find(row, "train/lr"))},
                                     {"entropy", Number("%.3f", Find(row, "train/entropy"))},
                                     {"grad norm", Number("%.3f", Find(row, "train/grad_norm"))}},
                                    width, quiet);
  const bool dim = !last.empty() && look.colour;
  out += dim ? Concat("\033[2m", last.substr(0, last.size() - 1), "\033[0m\n") : last;
  const auto num_worker_lines = std::count(workers.begin(), workers.end(), '\n');
  return out + Trends(status, width, look, rows - static_cast<int>(num_worker_lines));
}

std::string RenderLiveLine(const LiveStatus& status) {
  const MetricsRow& row = status.row;
  std::string out = Concat("step ", status.step);
  if (status.num_steps > 0) out += Concat(" of ", status.num_steps);
  const auto add = [&out](std::string_view name, const std::optional<std::string>& value) {
    if (value.has_value()) out += Concat("  ", name, *value);
  };
  add("reward ", Number("%.3f", Reward(row)));
  if (status.accuracy.has_value()) add("accuracy ", Tenths(status.accuracy->now));
  add("waiting ", Number("%.2f", Find(row, "staleness/waiting/mean")));
  add("generation ", Number("%.2f", Find(row, "staleness/generation/mean")));
  add("pool ", Shown(Occupancy(status), Short));
  add("rejected ", Shown(RejectedShare(row), Percent));
  add("budget ", Shown(Budget(status), Percent));
  add("", Shown(TokensPerSecond(status), [](double n) { return Short(n) + " tokens/s"; }));
  if (const std::optional<Seconds> left = TimeLeft(status); left.has_value()) {
    add("", Duration(*left) + " left");
  }
  return out;
}

}  // namespace pace
