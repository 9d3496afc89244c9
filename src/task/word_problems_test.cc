#include "task/word_problems.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <unordered_set>
#include <variant>

#include "task/benchmark.h"
#include "task/character_tokenizer.h"
#include "task/prompt_renderer.h"
#include "task/synthetic_source.h"
#include "task/task.h"
#include "task/word_stories.h"
#include "text/tokenizer/regex.h"

namespace pace {
namespace {

constexpr std::string_view kOperators = "+-*/%~";

TaskOptions Options(int64_t min_steps = 1, int64_t max_steps = 3, int64_t largest_number = 100) {
  TaskOptions options;
  options.kind = TaskKind::kWordProblems;
  options.min_steps = min_steps;
  options.max_steps = max_steps;
  options.largest_number = largest_number;
  return options;
}

std::shared_ptr<const SyntheticTask> MakeProblems(const TaskOptions& options) {
  EXPECT_TRUE(options.Validate().ok());
  const auto task = MakeSyntheticTask(options);
  EXPECT_TRUE(task.ok()) << task.status().message();
  return *task;
}

WordProblem Tell(const TaskOptions& options, int64_t num_steps, uint64_t index) {
  const CounterRandom random(5, 0);
  return WordProblems(options).Tell(num_steps, ExerciseDraw(random, index, 0));
}

std::vector<std::string> PartsOf(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

bool IsOperator(const std::string& item) {
  return item.size() == 1 && kOperators.find(item[0]) != std::string_view::npos;
}

// The value of a formula, counted out: no arithmetic but adding and taking away one
// number again and again. What cannot be counted out is negative.
int64_t CountOut(int64_t a, char operation, int64_t b) {
  int64_t times = 0;
  switch (operation) {
    case '+':
      return a + b;
    case '-':
      return a - b;
    case '~':
      return b - a;
    case '*': {
      int64_t sum = 0;
      for (; b > 0; --b) sum += a;
      return sum;
    }
    case '/':
      for (; a > 0; a -= b) ++times;
      return a == 0 ? times : -1;
    default:
      while (a >= b) a -= b;
      return a;
  }
}

int64_t ValueOf(const std::vector<std::string>& formula) {
  std::vector<int64_t> values;
  for (const std::string& item : formula) {
    if (!IsOperator(item)) {
      values.push_back(std::stoll(item));
      continue;
    }
    const int64_t b = values.back();
    values.pop_back();
    values.back() = CountOut(values.back(), item[0], b);
    EXPECT_GE(values.back(), 1);
  }
  EXPECT_EQ(values.size(), 1U);
  return values.front();
}

std::vector<int64_t> NumbersIn(const std::string& text) {
  std::vector<int64_t> numbers;
  for (size_t at = 0; (at = text.find_first_of("0123456789", at)) != std::string::npos;) {
    size_t used = 0;
    numbers.push_back(std::stoll(text.substr(at), &used));
    at += used;
  }
  return numbers;
}

// "24 - 5 = 19" and so on; each line is true, and the last one gives the answer.
void ExpectStepsLeadToTheAnswer(const WordProblem& problem, int64_t num_steps) {
  const std::vector<std::string> lines = PartsOf(problem.steps, '\n');
  ASSERT_EQ(std::ssize(lines), num_steps) << problem.steps;
  for (const std::string& line : lines) {
    const std::vector<std::string> words = PartsOf(line, ' ');
    ASSERT_EQ(words.size(), 5U) << line;
    ASSERT_EQ(CountOut(std::stoll(words[0]), words[1][0], std::stoll(words[2])),
              std::stoll(words[4]))
        << line;
  }
  EXPECT_EQ(PartsOf(lines.back(), ' ').back(), Concat(problem.answer));
}

TEST(WordProblemsTest, AnswersAreWhatTheFormulaComesTo) {
  for (const int64_t largest : {20, 100, 1000, 1000000}) {
    const TaskOptions options = Options(1, 3, largest);
    for (uint64_t index = 0; index < 1500; ++index) {
      const int64_t num_steps = 1 + static_cast<int64_t>(index % 3);
      const WordProblem problem = Tell(options, num_steps, index);
      SCOPED_TRACE(problem.text);
      ASSERT_EQ(std::count_if(problem.formula.begin(), problem.formula.end(), IsOperator),
                num_steps);
      ASSERT_EQ(ValueOf(problem.formula), problem.answer);
      ExpectStepsLeadToTheAnswer(problem, num_steps);
      // The text names these numbers and the formula computes with them all.
      ASSERT_EQ(NumbersIn(problem.text), problem.numbers);
      std::set<std::string> named, used;
      for (const int64_t number : problem.numbers) {
        ASSERT_GE(number, 2);
        ASSERT_LE(number, largest);
        named.insert(Concat(number));
      }
      for (const std::string& item : problem.formula) {
        if (!IsOperator(item)) used.insert(item);
      }
      ASSERT_EQ(named, used);
      ASSERT_GE(problem.answer, 1);
      ASSERT_LE(problem.answer, largest);
    }
  }
}

TEST(WordProblemsTest, TheVerifierTakesTheAnswerAndNoOther) {
  const auto task = MakeProblems(Options());
  for (uint64_t index = 0; index < 300; ++index) {
    const Exercise exercise = task->At(Purpose::kTraining, 1, index);
    EXPECT_TRUE(Verify(task->verifier(), exercise.Worked(), exercise.answer).correct);
    EXPECT_TRUE(Verify(task->verifier(), exercise.Bare(), exercise.answer).correct);
    EXPECT_TRUE(
        Verify(task->verifier(), Concat("It is ", exercise.answer, "."), exercise.answer).correct);
    EXPECT_FALSE(Verify(task->verifier(), exercise.Worked() + "0", exercise.answer).correct);
  }
}

std::vector<TextSpan> Matches(std::string_view text, const Regex& pattern) {
  std::vector<TextSpan> found;
  EXPECT_TRUE(pattern.FindAll(text, found).ok());
  return found;
}

// Patterns that correct English does not contain.
const Regex& BadEnglish() {
  static const Regex kPattern =
      Regex::Compile(
          R"([{}|_]|  | [.,?]|[.?] [^A-Z]|(?<![A-Za-z])(?:[aA] [aeiou]|[aA]n (?!hour)[^aeiou]))")
          .value();
  return kPattern;
}
// A number and the word or punctuation mark after it.
const Regex& Counted() {
  static const Regex kPattern = Regex::Compile(R"(\d+(?: [A-Za-z-]+|[,.?]))").value();
  return kPattern;
}

std::vector<std::string_view> WordsOf(std::string_view text) {
  static const Regex kPattern = Regex::Compile("[A-Za-z]+").value();
  std::vector<std::string_view> words;
  for (const TextSpan& span : Matches(text, kPattern))
    words.push_back(text.substr(span.begin, span.end - span.begin));
  return words;
}

void ExpectNoWordTwice(std::string_view text) {
  std::string_view before;
  for (const std::string_view word : WordsOf(text)) {
    EXPECT_FALSE(word == before && word.data() == before.data() + before.size() + 1) << word;
    before = word;
  }
}

// Rules that a text must keep whatever its story.
void ExpectReadsAsEnglish(const std::string& text) {
  SCOPED_TRACE(text);
  // After a number stands what is counted, in the plural, or a word that may stand there.
  static const std::set<std::string> kWords = {
      "of", "more",  "old", "new",   "fewer", "people", "children",
      "in", "green", "are", "equal", "paper", "toy",    "trading",
      "at", "and",   "to",  "from",  "for",   "less",   "get"};
  EXPECT_TRUE(std::isupper(static_cast<unsigned char>(text.front())));
  EXPECT_EQ(text.find('?'), text.size() - 1);
  EXPECT_TRUE(Matches(text, BadEnglish()).empty());
  ExpectNoWordTwice(text);
  for (const TextSpan& span : Matches(text, Counted())) {
    const std::string counted = text.substr(span.begin, span.end - span.begin);
    const size_t space = counted.find(' ');
    const std::string word = space == std::string::npos ? "" : counted.substr(space + 1);
    EXPECT_TRUE(word.empty() || word.back() == 's' || kWords.contains(word)) << counted;
    // Nor does a sentence begin with a number.
    EXPECT_TRUE(span.begin > 1 && text[span.begin - 2] != '.') << counted;
  }
}

TEST(WordProblemsTest, TextsReadAsEnglishAndAreShort) {
  for (uint64_t index = 0; index < 6000; ++index) {
    const WordProblem problem = Tell(Options(), 1 + static_cast<int64_t>(index % 3), index);
    ExpectReadsAsEnglish(problem.text);
    ASSERT_GE(problem.text.size(), 30U);
    ASSERT_LE(problem.text.size(), 300U) << problem.text;
  }
}

TEST(WordProblemsTest, PeopleOfAStoryAreDifferentAndKeepTheirPronoun) {
  std::set<std::string> seen;
  for (uint64_t index = 0; index < 3000; ++index) {
    const std::string text = Tell(Options(), 1 + static_cast<int64_t>(index % 3), index).text;
    const std::vector<std::string_view> all = WordsOf(text);
    const std::set<std::string_view> words(all.begin(), all.end());
    std::vector<WordPerson> named;
    for (const WordPerson& person : WordPeople()) {
      if (words.contains(person.name)) {
        named.push_back(person);
        seen.insert(std::string(person.name));
      }
    }
    ASSERT_LE(named.size(), 3U) << text;
    const auto has = [&](std::string_view word) { return words.contains(word); };
    const bool she = has("she") || has("She") || has("her") || has("Her");
    const bool he = has("he") || has("He") || has("his") || has("His") || has("him") || has("Him");
    ASSERT_FALSE(she && he) << text;
    const auto is_female = [](const WordPerson& person) { return person.female; };
    ASSERT_TRUE(!she || std::any_of(named.begin(), named.end(), is_female)) << text;
    ASSERT_TRUE(!he || !std::all_of(named.begin(), named.end(), is_female)) << text;
  }
  EXPECT_EQ(seen.size(), WordPeople().size());
}

// ---- the stories themselves ----

std::set<char> LettersOf(std::string_view text) {
  std::set<char> letters;
  for (size_t at = 0; at + 2 < text.size(); ++at) {
    const bool blank = text[at] == '{' && text[at + 2] == '}';
    if (blank && std::islower(static_cast<unsigned char>(text[at + 1])))
      letters.insert(text[at + 1]);
  }
  return letters;
}

// How many values the code leaves of so many.
int64_t ValuesLeft(std::string_view code, int64_t num_values) {
  for (const char c : code) {
    num_values += kOperators.find(c) == std::string_view::npos ? 1 : -1;
    EXPECT_GE(num_values, 1) << code;
  }
  return num_values;
}

void ExpectSound(std::string_view text, std::string_view code, int64_t num_values) {
  SCOPED_TRACE(text);
  EXPECT_EQ(ValuesLeft(code, num_values), 1);
  std::set<char> used;
  for (const char c : code) {
    if (kOperators.find(c) == std::string_view::npos) used.insert(c);
  }
  EXPECT_EQ(LettersOf(text), used);
}

TEST(WordStoriesTest, EverySentenceNamesTheNumbersThatItsCodeUses) {
  EXPECT_GE(WordStories().size(), 15U);
  for (const WordStory& story : WordStories()) {
    for (const auto& [text, code] : story.openings) ExpectSound(text, code, 0);
    for (const auto& [text, code] : story.events) ExpectSound(text, code, 1);
    for (const auto& ending : story.endings) ExpectSound(ending.text, ending.code, 1);
  }
}

// Whether the text holds what stands between the blanks, in that order.
bool Holds(const std::string& text, std::string_view sentence) {
  size_t at = 0;
  while (!sentence.empty()) {
    const size_t open = std::min(sentence.find('{'), sentence.size());
    at = text.find(sentence.substr(0, open), at);
    if (at == std::string::npos) return false;
    at += open;
    sentence.remove_prefix(open < sentence.size() ? sentence.find('}') + 1 : open);
  }
  return true;
}

TEST(WordStoriesTest, EverySentenceIsTold) {
  std::vector<std::string> texts;
  for (uint64_t index = 0; index < 6000; ++index) {
    texts.push_back(Tell(Options(), 1 + static_cast<int64_t>(index % 3), index).text);
  }
  const auto expect_told = [&](std::string_view sentence) {
    EXPECT_TRUE(std::any_of(texts.begin(), texts.end(), [&](const std::string& text) {
      return Holds(text, sentence);
    })) << sentence;
  };
  for (const WordStory& story : WordStories()) {
    for (const auto& sentence : story.openings) expect_told(sentence.text);
    for (const auto& sentence : story.events) expect_told(sentence.text);
    for (const auto& sentence : story.endings) expect_told(sentence.text);
  }
}

// ---- as a task ----

TEST(WordProblemsTest, AProblemIsAPureFunctionOfSeedAndIndex) {
  const auto task = MakeProblems(Options());
  const auto again = MakeProblems(Options());
  std::unordered_set<std::string> prompts;
  for (const Purpose purpose : {Purpose::kTraining, Purpose::kSupervised, Purpose::kHeldOut}) {
    for (const uint64_t seed : {1U, 2U}) {
      for (uint64_t index = 300; index-- > 0;) {
        const Exercise exercise = task->At(purpose, seed, index);
        ASSERT_EQ(exercise.prompt, again->At(purpose, seed, index).prompt);
        prompts.insert(exercise.prompt);
      }
    }
  }
  EXPECT_GT(prompts.size(), 1780U);
}

TEST(WordProblemsTest, HeldOutProblemsAreNeverTrainedOn) {
  for (const int64_t largest : {20, 100}) {
    const auto task = MakeProblems(Options(1, 2, largest));
    std::unordered_set<std::string> keys, prompts;
    for (uint64_t index = 0; index < 20000; ++index) {
      const Purpose purpose = index % 2 == 0 ? Purpose::kTraining : Purpose::kSupervised;
      const Exercise exercise = task->At(purpose, index % 5, index);
      keys.insert(exercise.key);
      prompts.insert(exercise.prompt);
    }
    for (uint64_t index = 0; index < 2000; ++index) {
      const Exercise exercise = task->At(Purpose::kHeldOut, index % 3, index);
      ASSERT_FALSE(keys.contains(exercise.key)) << exercise.prompt;
      ASSERT_FALSE(prompts.contains(exercise.prompt)) << exercise.prompt;
    }
  }
}

TEST(WordProblemsTest, StepsAreUniformBetweenTheBounds) {
  const auto task = MakeProblems(Options(2, 3));
  std::map<int64_t, int64_t> counts;
  constexpr int64_t kDraws = 3000;
  for (uint64_t index = 0; index < kDraws; ++index) {
    const std::string steps = task->At(Purpose::kHeldOut, 1, index).steps;
    ++counts[std::count(steps.begin(), steps.end(), '\n')];
  }
  EXPECT_EQ(counts.size(), 2U);
  EXPECT_NEAR(static_cast<double>(counts[2]) / kDraws, 0.5, 0.06);
}

// The numbers of a one-step problem within the smallest bound are few.
TEST(WordProblemsTest, AnEvaluationSetIsDrawnAsTrainingProblemsAre) {
  const auto task = MakeProblems(Options(1, 2, 20));
  const auto benchmark = HeldOutBenchmark(*task, 1000, 1);
  ASSERT_TRUE(benchmark.ok()) << benchmark.status().message();
  std::set<std::string> texts;
  for (const Problem& problem : benchmark->problems) {
    texts.insert(std::get<std::string>(problem.prompt));
  }
  EXPECT_EQ(texts.size(), 1000U);
  uint64_t num_drawn = 0;
  for (uint64_t index = 0; index < 1000; ++index) {
    num_drawn += texts.contains(task->At(Purpose::kHeldOut, 1, index).prompt) ? 1 : 0;
  }
  EXPECT_EQ(num_drawn, 1000U);
}

TEST(WordProblemsTest, EveryNumberOfStepsHasStoriesWithinTheSmallestBound) {
  for (int64_t steps = 1; steps <= 3; ++steps) {
    const auto task = MakeProblems(Options(steps, steps, 20));
    EXPECT_TRUE(HeldOutBenchmark(*task, 20, 1).ok());
  }
}

// What a seed means must not change: runs are compared on the same problems.
TEST(WordProblemsTest, TheProblemsArePinned) {
  const auto task = MakeProblems(Options());
  EXPECT_EQ(task->At(Purpose::kTraining, 1, 0).prompt,
            "Lena picks 21 strawberries. Grace picks 44 more than Lena. They give 57 of them away. "
            "How many strawberries do they have now?");
  EXPECT_EQ(task->At(Purpose::kHeldOut, 1, 0).Worked(), "41 + 24 = 65\n#### 65");
}

TEST(WordProblemsTest, PromptsGoThroughBothTemplates) {
  TaskOptions options = Options();
  options.prompt_template = "Solve: {problem}\nSay #### and the number.";
  options.held_out_problems = 3;
  const auto renderer =
      PromptRenderer::Create(*Tokenizer::Parse(ToolTokenizerJson()),
                             *ChatTemplate::Parse(kToolChatTemplate), PromptOptions{});
  ASSERT_TRUE(renderer.ok()) << renderer.status().message();
  const auto problems = MakeTrainingProblems(options, *renderer, 1);
  ASSERT_TRUE(problems.ok()) << problems.status().message();
  const Problem problem = problems->source->At(PromptIndex(0));
  EXPECT_EQ(problem.id, "word_problems/0");
  EXPECT_EQ(problem.verifier, VerifierMode::kGsm8k);
  const std::string asked = "Solve: " + MakeProblems(options)->At(Purpose::kTraining, 1, 0).prompt +
                            "\nSay #### and the number.";
  EXPECT_EQ(std::get<std::string>(problem.prompt), asked);
  const Result<std::string> text = renderer->Text(problem.prompt);
  ASSERT_TRUE(text.ok());
  EXPECT_NE(text->find("<|im_start|>user\n" + asked + "<|im_end|>"), std::string::npos) << *text;

  const auto benchmarks = LoadBenchmarks(options);
  ASSERT_TRUE(benchmarks.ok()) << benchmarks.status().message();
  const auto& held_out = benchmarks->at(0).problems;
  ASSERT_EQ(held_out.size(), 3U);
  EXPECT_TRUE(std::get<std::string>(held_out[2].prompt).starts_with("Solve: "));
  const Prompt prompt = MakeSftSource(options, 1)->At(0).prompt;
  EXPECT_TRUE(std::get<std::string>(prompt).ends_with("the number."));
}

}  // namespace
}  // namespace pace
