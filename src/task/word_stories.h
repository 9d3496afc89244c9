// What word problems are about: sentences with blanks, and what they compute.
//
// A story is one opening, some events and one ending; any of each go together.
// Blanks of a sentence are:
//
//   {A} {B} {C}            people, all different; {he} {He} {him} {his} {His} are A's
//   {0} {1} {2} {3}        the parts of the story's variant, "miles|runs|run"
//   {x} {y} {z}            numbers from 2 on
//   {p} {q}                the same, small: what one multiplies or divides by
//
// The code of a sentence says what it does to the quantity that the story tells of:
// letters stand for the sentence's numbers, operators take the two values before
// them, and a ~ b is b - a. An opening leaves one value, all others change it:
//
//   "{A} has {p} boxes with {x} {0} in each."   "px*"
//   "{He} gives {x} of them to {B}."            "x-"
//   "{He} pays with {x} dollars. ..."           "x~"
//
// No number of a text is 1, so that whatever is counted stands in the plural.
// Thread-safety: constant data.
#ifndef PACE_TASK_WORD_STORIES_H_
#define PACE_TASK_WORD_STORIES_H_

#include <cstdint>
#include <span>
#include <string_view>

namespace pace {

struct WordSentence {
  std::string_view text;
  std::string_view code;
};

// Where an ending fits.
enum class WordTiming { kAlways, kAtOnce, kAfterEvents };

struct WordEnding {
  std::string_view text;  // ends in the question
  std::string_view code;
  WordTiming timing = WordTiming::kAlways;
};

struct WordStory {
  std::span<const std::string_view> variants;  // parts separated by '|'
  std::span<const WordSentence> openings;
  std::span<const WordSentence> events;
  std::span<const WordEnding> endings;
  int64_t largest;  // number that makes sense
};

std::span<const WordStory> WordStories();

struct WordPerson {
  std::string_view name;
  bool female;
};

std::span<const WordPerson> WordPeople();

}  // namespace pace

#endif  // PACE_TASK_WORD_STORIES_H_
