#include "task/word_problems.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <utility>

#include "core/check.h"
#include "task/splits.h"
#include "task/word_stories.h"

namespace pace {
namespace {

constexpr int64_t kSmallest = 2;
constexpr int64_t kMostOfSmall = 12;  // what {p} and {q} stand for at most
constexpr std::string_view kOperators = "+-*/%~";
constexpr std::string_view kNumberNames = "xyzpq";
// Numbers for one sentence that are tried, and stories: a story whose quantity has no
// divisor, say, is given up for another.
constexpr int kMaxDraws = 32;
constexpr int kMaxStories = 100000;

// Random numbers one after the other, as many as a story takes.
class Dice {
 public:
  explicit Dice(const ExerciseDraw& draw)
      : random_(static_cast<uint64_t>(draw.Below(std::numeric_limits<int64_t>::max(), 0)),
                static_cast<uint32_t>(TaskStream::kStory)) {}

  // REQUIRES: bound >= 1
  int64_t Below(int64_t bound) {
    return static_cast<int64_t>(random_.Bits(next_++) % static_cast<uint64_t>(bound));
  }
  template <typename List>
  const auto& Pick(const List& list) {
    return list[static_cast<size_t>(Below(std::ssize(list)))];
  }

 private:
  CounterRandom random_;
  uint64_t next_ = 0;
};

bool IsOperator(char c) {
  return kOperators.find(c) != std::string_view::npos;
}

int64_t CountSteps(std::string_view code) {
  return std::count_if(code.begin(), code.end(), IsOperator);
}

// The numbers of one sentence, by name.
using Numbers = std::array<int64_t, kNumberNames.size()>;

int64_t& NumberOf(Numbers& numbers, char name) {
  return numbers[kNumberNames.find(name)];
}

Numbers DrawNumbers(std::string_view code, int64_t largest, Dice& dice) {
  Numbers numbers = {};
  for (const char c : code) {
    if (IsOperator(c) || NumberOf(numbers, c) != 0) continue;
    const int64_t most = c == 'p' || c == 'q' ? std::min(largest, kMostOfSmall) : largest;
    NumberOf(numbers, c) = kSmallest + dice.Below(most - kSmallest + 1);
  }
  return numbers;
}

// None where a story would make no sense: nothing is left, or it does not come out even.
std::optional<int64_t> Compute(int64_t a, char operation, int64_t b) {
  switch (operation) {
    case '+':
      return a + b;
    case '-':
      return a - b;
    case '~':
      return b - a;
    case '*':
      return a * b;
    case '/':
      return a % b == 0 && a > b ? std::optional(a / b) : std::nullopt;
    default:
      return a > b ? std::optional(a % b) : std::nullopt;
  }
}

std::string StepText(int64_t a, char operation, int64_t b, int64_t result) {
  if (operation == '~') return StepText(b, '-', a, result);
  return Concat(a, " ", operation, " ", b, " = ", result, "\n");
}

// Who and what a story is about.
struct Cast {
  std::array<WordPerson, 3> people = {};
  std::vector<std::string_view> parts = {};  // of the variant
};

std::vector<std::string_view> SplitParts(std::string_view text) {
  std::vector<std::string_view> parts;
  for (size_t bar = 0; (bar = text.find('|')) != std::string_view::npos;) {
    parts.push_back(text.substr(0, bar));
    text.remove_prefix(bar + 1);
  }
  parts.push_back(text);
  return parts;
}

Cast DrawCast(const WordStory& story, Dice& dice) {
  Cast cast{.parts = SplitParts(dice.Pick(story.variants))};
  for (size_t i = 0; i < cast.people.size();) {
    cast.people[i] = dice.Pick(WordPeople());
    const auto known = std::find_if(cast.people.begin(), cast.people.begin() + i,
                                    [&](const auto& p) { return p.name == cast.people[i].name; });
    if (known == cast.people.begin() + i) ++i;
  }
  return cast;
}

std::string_view Pronoun(std::string_view male, bool female) {
  if (male == "he") return female ? "she" : "he";
  if (male == "He") return female ? "She" : "He";
  if (male == "him") return female ? "her" : "him";
  if (male == "his") return female ? "her" : "his";
  if (male == "His") return female ? "Her" : "His";
  PACE_CHECK(false, "a blank of unknown name: ", male);
  return {};
}

// A story as it is told.
class Telling {
 public:
  Telling(Cast cast, int64_t largest) : cast_(std::move(cast)), largest_(largest) {}

  // Adds a sentence with numbers that fit; false where none were found.
  bool Add(std::string_view text, std::string_view code, Dice& dice) {
    for (int i = 0; i < kMaxDraws; ++i) {
      Numbers numbers = DrawNumbers(code, largest_, dice);
      if (!Run(code, numbers)) continue;
      if (!problem_.text.empty()) problem_.text += ' ';
      Fill(text, numbers);
      return true;
    }
    return false;
  }

  WordProblem Finish() && {
    PACE_CHECK(values_.size() == 1, "a story of ", values_.size(), " quantities");
    problem_.answer = values_.back();
    return std::move(problem_);
  }

 private:
  // Carries out the code, or leaves everything as it was.
  bool Run(std::string_view code, Numbers& numbers) {
    std::vector<int64_t> values = values_;
    std::vector<std::string> formula = problem_.formula;
    std::string steps = problem_.steps;
    for (const char c : code) {
      if (!IsOperator(c)) {
        values.push_back(NumberOf(numbers, c));
        formula.push_back(Concat(values.back()));
        continue;
      }
      PACE_CHECK(values.size() >= 2, "an operator without operands: ", code);
      const int64_t b = values.back();
      values.pop_back();
      const std::optional<int64_t> result = Compute(values.back(), c, b);
      if (!result.has_value() || *result < 1 || *result > largest_) return false;
      steps += StepText(values.back(), c, b, *result);
      values.back() = *result;
      formula.emplace_back(1, c);
    }
    values_ = std::move(values);
    problem_.formula = std::move(formula);
    problem_.steps = std::move(steps);
    return true;
  }

  void Fill(std::string_view text, Numbers& numbers) {
    for (size_t open = 0; (open = text.find('{')) != std::string_view::npos;) {
      const size_t close = text.find('}', open);
      PACE_CHECK(close != std::string_view::npos, "an open blank: ", text);
      problem_.text += text.substr(0, open);
      FillBlank(text.substr(open + 1, close - open - 1), numbers);
      text.remove_prefix(close + 1);
    }
    problem_.text += text;
  }

  void FillBlank(std::string_view blank, Numbers& numbers) {
    const char first = blank.front();
    if (blank.size() > 1) {
      problem_.text += Pronoun(blank, cast_.people[0].female);
    } else if ('A' <= first && first <= 'C') {
      problem_.text += cast_.people[static_cast<size_t>(first - 'A')].name;
    } else if ('0' <= first && first <= '9') {
      problem_.text += cast_.parts.at(static_cast<size_t>(first - '0'));
    } else {
      problem_.numbers.push_back(NumberOf(numbers, first));
      problem_.text += Concat(problem_.numbers.back());
    }
  }

  Cast cast_;
  int64_t largest_;
  std::vector<int64_t> values_;
  WordProblem problem_;
};

bool Fits(WordTiming timing, bool has_events) {
  return timing == WordTiming::kAlways || has_events == (timing == WordTiming::kAfterEvents);
}

// Different events of so many steps together; none where the dice did not fall so.
std::optional<std::vector<WordSentence>> DrawEvents(const WordStory& story, int64_t num_steps,
                                                    Dice& dice) {
  std::vector<WordSentence> left(story.events.begin(), story.events.end());
  std::vector<WordSentence> events;
  while (num_steps > 0 && !left.empty()) {
    const int64_t at = dice.Below(std::ssize(left));
    events.push_back(left[static_cast<size_t>(at)]);
    left.erase(left.begin() + at);
    num_steps -= CountSteps(events.back().code);
  }
  if (num_steps != 0) return std::nullopt;
  return events;
}

std::optional<WordProblem> TryToTell(int64_t num_steps, int64_t largest, Dice& dice) {
  const WordStory& story = dice.Pick(WordStories());
  const WordSentence& opening = dice.Pick(story.openings);
  const WordEnding& ending = dice.Pick(story.endings);
  const auto events =
      DrawEvents(story, num_steps - CountSteps(opening.code) - CountSteps(ending.code), dice);
  if (!events.has_value() || !Fits(ending.timing, !events->empty())) return std::nullopt;
  Telling telling(DrawCast(story, dice), std::min(largest, story.largest));
  bool told = telling.Add(opening.text, opening.code, dice);
  for (const WordSentence& event : *events) {
    told = told && telling.Add(event.text, event.code, dice);
  }
  told = told && telling.Add(ending.text, ending.code, dice);
  return told ? std::optional(std::move(telling).Finish()) : std::nullopt;
}

}  // namespace

WordProblem WordProblems::Tell(int64_t num_steps, const ExerciseDraw& draw) const {
  Dice dice(draw);
  for (int i = 0; i < kMaxStories; ++i) {
    std::optional<WordProblem> problem = TryToTell(num_steps, largest_, dice);
    if (problem.has_value()) return *std::move(problem);
  }
  PACE_CHECK(false, "no story of ", num_steps, " steps with numbers up to ", largest_);
  return {};
}

int64_t WordProblems::KindAt(double u) const {
  return std::min(static_cast<int64_t>(u * static_cast<double>(num_kinds_)), num_kinds_ - 1);
}

Exercise WordProblems::Draw(int64_t kind, const ExerciseDraw& draw) const {
  WordProblem problem = Tell(min_steps_ + kind, draw);
  std::sort(problem.numbers.begin(), problem.numbers.end());
  std::string key;
  for (const int64_t number : problem.numbers) key += Concat(number, " ");
  return {.prompt = std::move(problem.text),
          .answer = Concat(problem.answer),
          .steps = std::move(problem.steps),
          .key = Concat(key, "= ", problem.answer)};
}

std::string WordProblems::Describe(int64_t kind) const {
  return Concat(min_steps_ + kind, "-step problems");
}

}  // namespace pace
