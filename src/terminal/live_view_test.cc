#include "terminal/live_view.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "core/concat.h"
#include "core/utf8.h"

namespace pace {
namespace {

LiveStatus SomeStatus() {
  LiveStatus status;
  status.run = "tiny";
  status.method = "effective";
  status.step = 152;
  status.num_steps = 300;
  status.elapsed = Seconds(134);
  status.row = {{"step", 151},
                {"staleness/waiting/mean", 1.2},
                {"staleness/generation/mean", 0.346},
                {"pool/occupancy", 20},
                {"admission/budget", 0.231},
                {"admission/offered", 16},
                {"admission/rejected", 5},
                {"rollout/tokens_per_s", 900},
                {"train/reward", 0.6118},
                {"train/lr", 1e-6},
                {"train/entropy", 0.8123},
                {"train/grad_norm", 0.4239}};
  status.rewards = {0.1, 0.2, 0.3, 0.5, 0.6118};
  status.accuracy = {.benchmark = "sums", .start = 0.213, .now = 0.57};
  status.tokens_per_s = 12400;
  status.occupancy = 14;
  return status;
}

std::vector<std::string> LinesOf(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = text.find('\n', begin);
    EXPECT_NE(end, std::string::npos) << "the last line has no newline";
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

std::string WithoutEscapes(std::string text) {
  for (size_t at = text.find('\033'); at != std::string::npos; at = text.find('\033')) {
    text.erase(at, text.find('m', at) - at + 1);
  }
  return text;
}

TEST(RenderLiveViewTest, SaysHowTheRunGoes) {
  EXPECT_EQ(RenderLiveView(SomeStatus(), 72),
            R"(tiny · effective                                              2 min 14 s
━━━━━━━━━━━━━━━━━━─────────────────── 152 of 300 steps · 2 min 10 s left
reward     0.612  ▁▂▄▇█
accuracy   21.3 % → 57.0 %  on sums
staleness  waiting 1.20  generation 0.35
pool       14 groups  rejected 31 %  budget 23 %
rollout    12.4k tokens/s
trainer    training
lr 1e-06  entropy 0.812  grad norm 0.424
)");
}

TEST(RenderLiveViewTest, FortyColumnsInAsciiSayTheSame) {
  LiveStatus status = SomeStatus();
  status.waits_for = "3 more groups, the pool is empty";
  EXPECT_EQ(RenderLiveView(status, 40, {.unicode = false}),
            R"(tiny - effective              2 min 14 s
######...... 152 of 300  2 min 10 s left
reward     0.612  _.~*#
accuracy   21.3 % -> 57.0 %  on sums
staleness  waiting 1.20  generation 0.35
pool       14 groups  rejected 31 %
rollout    12.4k tokens/s
trainer    waiting: 3 more groups, the
           pool is empty
lr 1e-06  entropy 0.812  grad norm 0.424
)");
}

TEST(RenderLiveViewTest, NoLineIsEverWiderThanTheTerminal) {
  LiveStatus status = SomeStatus();
  status.run = "a run with quite a long name, \u8a9e\u8a00\u6a21\u578b";
  status.accuracy->benchmark = "a benchmark with a long name as well";
  status.waits_for = "the weights to reach every engine, 12 of 16 have them";
  status.rewards.assign(100, 0.5);
  for (int width = 0; width <= 130; ++width) {
    for (const bool unicode : {false, true}) {
      for (const bool colour : {false, true}) {
        const std::string view = RenderLiveView(status, width, {unicode, colour});
        for (const std::string& line : LinesOf(view)) {
          const std::string plain = WithoutEscapes(line);
          // The four characters of the name are two columns each.
          size_t num_columns = CountCodePoints(plain);
          for (const char* wide : {"\u8a9e", "\u8a00", "\u6a21", "\u578b"}) {
            num_columns += plain.find(wide) != std::string::npos ? 1 : 0;
          }
          EXPECT_LE(num_columns, static_cast<size_t>(width)) << plain;
        }
      }
    }
  }
}

TEST(RenderLiveViewTest, AsciiMeansAscii) {
  LiveStatus status = SomeStatus();
  status.run = "\u00e9t\u00e9";
  for (const char c : RenderLiveView(status, 80, {.unicode = false})) {
    EXPECT_TRUE(c == '\n' || (c >= ' ' && c <= '~')) << static_cast<int>(c);
  }
}

TEST(RenderLiveViewTest, NamesCannotSteerTheTerminal) {
  LiveStatus status = SomeStatus();
  status.run = "a\033[2Jb\nc\x9b\x7f\xff\u009b\u202e";
  status.method = status.waits_for = status.accuracy->benchmark = status.run;
  const std::string view = RenderLiveView(status, 200);
  EXPECT_EQ(view.find('\033'), std::string::npos);
  EXPECT_EQ(LinesOf(view).size(), 9u) << view;
  EXPECT_TRUE(IsWellFormed(view));
  EXPECT_EQ(view.find("\u009b"), std::string::npos);
  EXPECT_EQ(view.find("\u202e"), std::string::npos);
}

TEST(RenderLiveViewTest, WhatIsNotKnownIsLeftOut) {
  LiveStatus status;
  status.run = "tiny";
  status.num_steps = 10;
  EXPECT_EQ(RenderLiveView(status, 60, {.unicode = false}),
            "tiny                                                     0 s\n"
            ".............................................. 0 of 10 steps\n"
            "trainer    training\n");
  EXPECT_EQ(LinesOf(RenderLiveView({}, 60)).size(), 3u);
}

TEST(RenderLiveViewTest, ValuesOfAnySizeStayShort) {
  LiveStatus status = SomeStatus();
  for (const double value :
       {std::nan(""), std::numeric_limits<double>::infinity(), -1e308, 1e308}) {
    for (auto& [name, old] : status.row) old = value;
    status.rewards = {value, 1, -value, 2};
    status.accuracy = {.benchmark = "x", .start = value, .now = value};
    status.tokens_per_s = value;
    status.elapsed = Seconds(value);
    for (const std::string& line : LinesOf(RenderLiveView(status, 70))) {
      EXPECT_LE(CountCodePoints(line), 70u) << line;
    }
    EXPECT_LT(RenderLiveLine(status).size(), 1000u);
  }
}

TEST(RenderLiveViewTest, TheTimeLeftCountsTheStepsOfThisProcess) {
  LiveStatus status;
  status.step = 110;
  status.first_step = 100;
  status.num_steps = 200;
  status.elapsed = Seconds(10);
  EXPECT_NE(RenderLiveLine(status).find("1 min 30 s left"), std::string::npos);
  status.step = 100;
  EXPECT_EQ(RenderLiveLine(status).find("left"), std::string::npos);
}

// Both ends of a pipe.
class Pipe {
 public:
  Pipe() {
    EXPECT_EQ(pipe(ends_), 0);
    fcntl(ends_[0], F_SETFL, O_NONBLOCK);
  }
  ~Pipe() {
    close(ends_[0]);
    close(ends_[1]);
  }
  int in() const { return ends_[1]; }
  // What was written since the last call.
  std::string Read() const {
    std::string text(65536, '\0');
    const ssize_t size = read(ends_[0], text.data(), text.size());
    text.resize(size < 0 ? 0 : static_cast<size_t>(size));
    return text;
  }

 private:
  int ends_[2] = {-1, -1};
};

TEST(LiveViewTest, WithoutATerminalEveryStepIsOneLine) {
  const Pipe pipe;
  LiveView view(pipe.in());
  LiveStatus status = SomeStatus();
  const MetricsRow row = std::exchange(status.row, {});
  status.step = 0;
  view.Update(status);
  EXPECT_EQ(pipe.Read(), "");
  status.row = row;
  for (status.step = 1; status.step <= 2; ++status.step) {
    view.Update(status);
    view.Update(status);
  }
  EXPECT_EQ(pipe.Read(),
            "step 1 of 300  reward 0.612  accuracy 57.0 %  waiting 1.20  generation 0.35  pool 14  "
            "rejected 31 %  budget 23 %  12.4k tokens/s  11 h 7 min left\n"
            "step 2 of 300  reward 0.612  accuracy 57.0 %  waiting 1.20  generation 0.35  pool 14  "
            "rejected 31 %  budget 23 %  12.4k tokens/s  5 h 32 min left\n");
  view.Note("checkpoint 2 written");
  status.step = 2;
  status.accuracy->now = 0.625;
  view.Update(status);
  EXPECT_EQ(pipe.Read(), "checkpoint 2 written\n");
  view.Finish();
  EXPECT_EQ(pipe.Read(), "") << "the last step has had its line";
  view.Finish();
  EXPECT_EQ(pipe.Read(), "");
}

// A terminal's memory: text, newlines, cursor up, erase below.
class Screen {
 public:
  void Write(const std::string& text) {
    for (size_t at = 0; at < text.size(); ++at) {
      if (text[at] == '\r') continue;
      if (text.compare(at, 2, "\033[") == 0) {
        const size_t end = text.find_first_not_of("0123456789", at + 2);
        if (text[end] == 'A') row_ -= std::stoul(text.substr(at + 2, end - at - 2));
        if (text[end] == 'J') lines_.resize(row_);
        at = end;
      } else if (text[at] == '\n') {
        ++row_;
      } else {
        lines_.resize(std::max(lines_.size(), row_ + 1));
        lines_[row_] += text[at];
      }
    }
  }
  std::string Text() const {
    std::string text;
    for (const std::string& line : lines_) text += line + "\n";
    return text;
  }

 private:
  std::vector<std::string> lines_;
  size_t row_ = 0;
};

LiveViewOptions OnATerminal(std::chrono::milliseconds redraw_every) {
  return {.terminal = true, .look = LiveLook{}, .redraw_every = redraw_every};
}

TEST(LiveViewTest, OnATerminalTheLastStatusStandsAloneAndNotesAboveIt) {
  const Pipe pipe;
  Screen screen;
  LiveView view(pipe.in(), OnATerminal(std::chrono::milliseconds(0)));
  LiveStatus status = SomeStatus();
  status.row.clear();
  status.rewards = {};
  view.Update(status);
  screen.Write(pipe.Read());
  status = SomeStatus();
  for (const char* waits_for : {"a", "b", ""}) {
    status.waits_for = waits_for;
    view.Update(status);
    screen.Write(pipe.Read());
    EXPECT_EQ(screen.Text(), RenderLiveView(status, 79));
  }
  view.Note("checkpoint 50 written");
  screen.Write(pipe.Read());
  EXPECT_EQ(screen.Text(), "checkpoint 50 written\n" + RenderLiveView(status, 79));
  view.Finish();
  screen.Write(pipe.Read());
  status.end = LiveEnd::kFinished;
  EXPECT_EQ(screen.Text(), "checkpoint 50 written\n" + RenderLiveView(status, 79));
}

TEST(RenderLiveViewTest, AMethodThatRejectsNothingHasNoBudget) {
  LiveStatus status = SomeStatus();
  status.filters = false;
  EXPECT_EQ(RenderLiveView(status, 72).find("budget"), std::string::npos);
  EXPECT_EQ(RenderLiveLine(status).find("budget"), std::string::npos);
}

TEST(RenderLiveViewTest, TheEndIsNamed) {
  LiveStatus status = SomeStatus();
  status.waits_for = "something";
  status.end = LiveEnd::kFinished;
  EXPECT_NE(RenderLiveView(status, 72).find("trainer    finished\n"), std::string::npos);
  status.end = LiveEnd::kStopped;
  EXPECT_NE(RenderLiveView(status, 72).find("trainer    stopped early\n"), std::string::npos);
}

TEST(RenderLiveViewTest, TheReasonOfAWaitIsNotCutOff) {
  LiveStatus status = SomeStatus();
  status.waits_for =
      "step 6 has 8 of 12 groups; 88 groups run on 1 workers, 1 of them syncing weights";
  const std::string view = RenderLiveView(status, 79);
  EXPECT_NE(view.find(R"(
trainer    waiting: step 6 has 8 of 12 groups; 88 groups run on 1 workers, 1 of
           them syncing weights
)"),
            std::string::npos)
      << view;
}

TEST(RenderLiveViewTest, ALargeTerminalShowsCharts) {
  LiveStatus status = SomeStatus();
  status.staleness = {0, 1, 2, 4};
  status.accuracies = {0.2, 0.4};
  const std::string small = RenderLiveView(status, 79, {}, 12);
  EXPECT_EQ(small, RenderLiveView(status, 79));
  const std::string view = RenderLiveView(status, 79, {}, 24);
  EXPECT_NE(view.find("4.0           \u2588\n"), std::string::npos) << view;
  EXPECT_NE(view.find("lag        \u2581\u2586\u2588\u2588\n"), std::string::npos) << view;
  EXPECT_NE(view.find("40 %        \u2588\n"), std::string::npos) << view;
  EXPECT_LT(LinesOf(view).size(), 24u);
  EXPECT_LT(LinesOf(RenderLiveView(status, 199, {}, 50)).size(), 50u);
  for (const std::string& line : LinesOf(RenderLiveView(status, 30, {.unicode = false}, 50))) {
    EXPECT_LE(line.size(), 30u);
  }
}

TEST(RenderNoteTest, NotesNeitherSteerTheTerminalNorPassItsEdge) {
  EXPECT_EQ(RenderNote("a\033[2Jb\nc", 0, {}), "a?[2Jb?c\n");
  EXPECT_EQ(RenderNote("one two three", 8, {}), "one two\nthree\n");
  EXPECT_EQ(RenderNote(std::string(20, 'x'), 8, {}), "xxxxxxxx\nxxxxxxxx\nxxxx\n");
  EXPECT_EQ(RenderNote("", 8, {}), "\n");
  const Pipe pipe;
  LiveView view(pipe.in(), OnATerminal(std::chrono::milliseconds(0)));
  view.Note("version 3: \033[31mred " + std::string(200, 'n'));
  for (const std::string& line : LinesOf(pipe.Read())) {
    EXPECT_EQ(line.find('\033'), std::string::npos);
    EXPECT_LE(line.size(), 79u);
  }
}

TEST(LiveViewTest, ATerminalIsNotRedrawnMoreOftenThanAsked) {
  const Pipe pipe;
  LiveView view(pipe.in(), OnATerminal(std::chrono::hours(1)));
  LiveStatus status = SomeStatus();
  view.Update(status);
  EXPECT_NE(pipe.Read(), "");
  status.step = 153;
  view.Update(status);
  EXPECT_EQ(pipe.Read(), "");
  view.Finish();
  EXPECT_NE(pipe.Read().find("153 of 300"), std::string::npos);
}

TEST(LiveViewTest, RemembersTheRewardOfEveryStep) {
  const Pipe pipe;
  Screen screen;
  LiveView view(pipe.in(), OnATerminal(std::chrono::milliseconds(0)));
  LiveStatus status;
  for (status.step = 1; status.step <= 4; ++status.step) {
    status.row = {{"train/reward", static_cast<double>(status.step)}};
    view.Update(status);
    view.Update(status);
  }
  view.Finish();
  screen.Write(pipe.Read());
  EXPECT_NE(screen.Text().find("\u2581\u2583\u2586\u2588\n"), std::string::npos) << screen.Text();
}

TEST(LookFromEnvironmentTest, TheFirstLocaleThatIsSetDecides) {
  setenv("LC_ALL", "", 1);
  setenv("LC_CTYPE", "en_GB.UTF-8", 1);
  setenv("LANG", "C", 1);
  unsetenv("NO_COLOR");
  EXPECT_TRUE(LookFromEnvironment().unicode);
  EXPECT_TRUE(LookFromEnvironment().colour);
  setenv("LC_ALL", "C", 1);
  setenv("NO_COLOR", "1", 1);
  EXPECT_FALSE(LookFromEnvironment().unicode);
  EXPECT_FALSE(LookFromEnvironment().colour);
  setenv("LC_ALL", "C.utf8", 1);
  EXPECT_TRUE(LookFromEnvironment().unicode);
}

TEST(LiveViewTest, EachWorkerHasALineWithItsSpeedAndItsFailures) {
  LiveStatus status = SomeStatus();
  for (int i = 0; i < 6; ++i) {
    const std::string worker = Concat("worker/", i, "/");
    status.row.emplace_back(worker + "tokens_per_s", 100 + i);
    status.row.emplace_back(worker + "first_token_s", 0.0125);
    status.row.emplace_back(worker + "pauses", 1);
    status.row.emplace_back(worker + "pause_s", 0.25);
    status.row.emplace_back(worker + "failures", i == 1 ? 2 : 0);
  }
  const std::string text = RenderLiveView(status, 80, {.unicode = false});
  EXPECT_NE(text.find("worker 0   100 tokens/s  first token 0.013 s  paused 0.250 s\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("worker 1   101 tokens/s  first token 0.013 s  paused 0.250 s  failures 2\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("worker 3"), std::string::npos);
  EXPECT_EQ(text.find("worker 4"), std::string::npos);
  EXPECT_NE(text.find("and 2 workers more"), std::string::npos);
  // Charts leave them their lines.
  for (const int rows : {20, 24, 30, 40}) {
    const std::string whole = RenderLiveView(status, 80, {.unicode = false}, rows);
    EXPECT_LE(std::ssize(LinesOf(whole)), std::max<std::ptrdiff_t>(rows, 16)) << rows;
  }
}

}  // namespace
}  // namespace pace
