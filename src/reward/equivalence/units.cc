#include "reward/equivalence/units.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "reward/python_characters.h"

namespace pace::equiv {
namespace {

const std::set<std::string_view>& Units() {
  static const std::set<std::string_view> units = {
      // one letter each: metres, seconds, hours, grams, litres, ...
      "m", "s", "h", "g", "l", "t", "d", "c", "o",
      // length, area, volume
      "mm", "cm", "dm", "km", "mt", "mtr", "metre", "meter", "centimeter", "centimetre",
      "kilometer", "kilometre", "millimeter", "inch", "ft", "foot", "feet", "yard", "mile", "sq",
      "square", "cubic", "cube", "cu", "cc", "acre", "hectare", "are", "gal", "gallon", "liter",
      "litre", "lt", "surface", "unit",
      // time
      "sec", "second", "min", "minute", "hr", "hour", "day", "week", "month", "year", "yr", "am",
      "pm", "noon",
      // weight, speed, angle, electricity
      "kg", "gm", "gram", "kilogram", "lb", "pound", "ounce", "oz", "ton", "mph", "kmph", "kmh",
      "deg", "degree", "radian", "rad", "ohm", "th", "st", "rd", "nd",
      // money
      "cent", "dollar", "rupee", "rs", "euro", "yuan", "usd", "buck",
      // things
      "point", "digit", "meal", "edge", "student", "ticket", "multiple", "integer", "way", "tile",
      "toy", "coin", "apple", "monkey", "soldier", "man", "men", "woman", "women", "child",
      "children", "people", "person", "mark", "number", "pie", "prime", "round", "ratio", "piece",
      "book", "pen", "box", "boxe", "car", "ball", "marble", "page", "time", "step", "profit",
      "loss", "gain", "increase", "decrease", "more", "less", "rise", "excess", "pure", "east",
      "west", "north", "south", "per", "by"};
  return units;
}

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
  }
  return lower;
}

bool IsNumber(std::string_view text) {
  return text.find_first_not_of("+-0123456789.,") == kNowhere;
}

// Drops "^2", "^{2}" or a superscript digit from the end.
std::string_view WithoutPower(std::string_view text) {
  for (const std::string_view power : {"^2", "^3", "^{2}", "^{3}", "\u00b2", "\u00b3"}) {
    if (text.ends_with(power)) return text.substr(0, text.size() - power.size());
  }
  return text;
}

// A number may stand before a unit; an operator or an open bracket wants more.
bool MayEndHere(std::string_view text) {
  if (text.empty()) return false;
  const char last = text.back();
  if (std::string_view("+-*/=^_({[,;:<>&|\\").find(last) != kNowhere) return false;
  size_t begin = text.size();
  while (begin > 0 && IsAsciiLetter(text[begin - 1])) --begin;
  if (begin == 0 || text[begin - 1] != '\\') return true;
  const std::string_view command = text.substr(begin);
  return command != "cdot" && command != "times" && command != "div" && command != "pm" &&
         command != "cup" && command != "cap" && command != "in" && command != "le" &&
         command != "leq" && command != "ge" && command != "geq" && command != "neq" &&
         command != "frac" && command != "sqrt";
}

// Whether the words in a \text{...} say more than what is counted: "or more".
bool SayMore(std::string_view words) {
  static constexpr std::string_view kMore[] = {
      "or", "than", "least", "most", "not",       "no", "mod",    "base",
      "if", "when", "for",   "and",  "remainder", "r",  "matrix", "matrices"};
  for (size_t at = 0; at < words.size();) {
    size_t end = at;
    while (end < words.size() && IsAsciiLetter(words[end])) ++end;
    const std::string word = Lower(words.substr(at, end - at));
    if (std::find(std::begin(kMore), std::end(kMore), word) != std::end(kMore)) return true;
    at = end + 1;
  }
  return false;
}

// The text before a \text{...} or \mbox{...} that ends it; all of it where none
// does.
std::string_view WithoutTextUnit(std::string_view text) {
  const std::string_view unpowered = WithoutPower(text);
  if (unpowered.empty() || unpowered.back() != '}') return text;
  int depth = 0;
  for (size_t at = unpowered.size(); at-- > 0;) {
    if (unpowered[at] == '}') ++depth;
    if (unpowered[at] != '{' || --depth > 0) continue;
    for (const std::string_view command : {"\\text", "\\mbox", "\\textbf", "\\mathrm", "\\textrm",
                                           "\\mathbf", "\\textit", "\\mathit", "\\textnormal"}) {
      const std::string_view before = StripSpace(unpowered.substr(0, at));
      if (!before.ends_with(command)) continue;
      const std::string_view kept = StripSpace(before.substr(0, before.size() - command.size()));
      return MayEndHere(kept) && !SayMore(unpowered.substr(at)) ? kept : text;
    }
    return text;
  }
  return text;
}

// The text before "km/h", of which the slash is at `slash`; all of it where what stands
// before that is no unit.
std::string_view WithoutRate(std::string_view text, size_t slash) {
  size_t begin = slash;
  while (begin > 0 && IsAsciiLetter(text[begin - 1])) --begin;
  const std::string_view kept = StripSpace(text.substr(0, begin));
  const bool is_unit = begin > 0 && text[begin - 1] == ' ' && !kept.empty() &&
                       IsDigit(kept.back()) && IsUnitWord(text.substr(begin, slash - begin));
  return is_unit ? kept : text;
}

// The text before a unit word that ends it.
std::string_view WithoutUnitWord(std::string_view text) {
  const std::string_view unpowered = WithoutPower(text);
  size_t begin = unpowered.size();
  while (begin > 0 && IsAsciiLetter(unpowered[begin - 1])) --begin;
  const std::string_view word = unpowered.substr(begin);
  if (word.empty() || begin == 0 || !IsUnitWord(word)) return text;
  // A power belongs to the unit only where it cannot be a variable's.
  if (unpowered.size() != text.size() && word.size() < 2 && word != "m") return text;
  const char before = unpowered[begin - 1];
  if (before == '/') return WithoutRate(text, begin - 1);
  const std::string_view kept = StripSpace(unpowered.substr(0, begin));
  if (!MayEndHere(kept)) return text;
  // "3t" is a product and "3 t" a weight.
  if (word.size() == 1) return before == ' ' && IsNumber(kept) ? kept : text;
  const bool behind_number = IsDigit(kept.back()) || kept.back() == '}';
  return behind_number || before == ' ' ? kept : text;
}

// The last word in lower case, without points: "10\\text{ a.m.}" ends in "am".
std::string LastWord(std::string_view text) {
  constexpr std::string_view kAround = " \t\r\n.,;!$})]*";
  const size_t last = text.find_last_not_of(kAround);
  if (last == kNowhere) return "";
  size_t begin = last + 1;
  while (begin > 0 && (IsAsciiLetter(text[begin - 1]) || text[begin - 1] == '.')) --begin;
  std::string word = Lower(text.substr(begin, last + 1 - begin));
  std::erase(word, '.');
  return word;
}

// What is longer names more than a measure.
constexpr size_t kMaxBytes = 100;

// By the names in the singular.
const std::map<std::string_view, std::string_view>& Measures() {
  static const std::map<std::string_view, std::string_view> measures = {
      {"mm", "mm"},
      {"millimeter", "mm"},
      {"millimetre", "mm"},
      {"cm", "cm"},
      {"centimeter", "cm"},
      {"centimetre", "cm"},
      {"dm", "dm"},
      {"m", "m"},
      {"meter", "m"},
      {"metre", "m"},
      {"km", "km"},
      {"kilometer", "km"},
      {"kilometre", "km"},
      {"inch", "in"},
      {"ft", "ft"},
      {"foot", "ft"},
      {"feet", "ft"},
      {"yard", "yd"},
      {"yd", "yd"},
      {"mile", "mi"},
      {"mi", "mi"},
      {"s", "s"},
      {"sec", "s"},
      {"second", "s"},
      {"min", "min"},
      {"minute", "min"},
      {"h", "h"},
      {"hr", "h"},
      {"hour", "h"},
      {"day", "day"},
      {"week", "week"},
      {"month", "month"},
      {"year", "year"},
      {"yr", "year"},
      {"mg", "mg"},
      {"milligram", "mg"},
      {"g", "g"},
      {"gm", "g"},
      {"gram", "g"},
      {"kg", "kg"},
      {"kilogram", "kg"},
      {"ounce", "oz"},
      {"oz", "oz"},
      {"lb", "lb"},
      {"ml", "ml"},
      {"milliliter", "ml"},
      {"millilitre", "ml"},
      {"l", "l"},
      {"liter", "l"},
      {"litre", "l"},
      {"gallon", "gal"},
      {"gal", "gal"},
      {"mph", "mi/h"},
      {"kmph", "km/h"},
      {"kmh", "km/h"},
      {"kph", "km/h"},
      {"dollar", "dollar"},
      {"usd", "dollar"},
      {"buck", "dollar"},
      {"cent", "cent"},
      {"euro", "euro"},
      {"rupee", "rupee"},
      {"yuan", "yuan"},
      {"degree", "degree"},
      {"deg", "degree"},
      {"radian", "rad"},
      {"rad", "rad"},
      {"celsius", "celsius"},
      {"fahrenheit", "fahrenheit"},
      {"percent", "percent"}};
  return measures;
}

// "\\text{ cm}^{2}" as " cm^2": without commands of style, braces and thin spaces.
std::string Plain(std::string_view text) {
  std::string out(text);
  for (const std::string_view command :
       {"\\textbf", "\\textit", "\\textrm", "\\textnormal", "\\text", "\\mbox", "\\mathrm",
        "\\mathbf", "\\mathit", "\\!", "{", "}"}) {
    out = ReplaceAll(out, command, "");
  }
  for (const std::string_view space : {"\\,", "\\;", "\\:", "\\ ", "~", "$", "\n", "\t"}) {
    out = ReplaceAll(out, space, " ");
  }
  out = ReplaceAll(ReplaceAll(out, "^\\circ", "\\circ"), "\u00b0", "\\circ");
  out = ReplaceAll(ReplaceAll(out, "\\circ", " degree "), "\\%", "%");
  out = ReplaceAll(ReplaceAll(out, "%", " percent "), "\u00b2", "^2");
  return ReplaceAll(out, "\u00b3", "^3");
}

// Reads "square cm", "cm^2", "miles per hour" word by word.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  std::string Measure() {
    std::string out = Part();
    if (out.empty()) return "";
    if (out == "degree") {
      const size_t before = at_;
      const std::string scale = Word();
      if (scale == "c" || scale == "celsius") return "celsius";
      if (scale == "f" || scale == "fahrenheit") return "fahrenheit";
      at_ = before;
    }
    const size_t before = at_;
    const bool is_rate = TakeSign('/') || Word() == "per";
    const std::string below = is_rate ? Part() : "";
    if (below.empty()) {
      at_ = before;
      // "5 m/x" is not in metres.
      return is_rate ? "" : out;
    }
    return out + "/" + below;
  }

  bool AtEnd() {
    const size_t rest = text_.find_first_not_of(" .,;:", at_);
    return rest == kNowhere;
  }

 private:
  bool TakeSign(char sign) {
    const size_t next = text_.find_first_not_of(' ', at_);
    if (next == kNowhere || text_[next] != sign) return false;
    at_ = next + 1;
    return true;
  }

  // The next word in lower case; "" where something else is next.
  std::string Word() {
    const size_t begin = text_.find_first_not_of(' ', at_);
    if (begin == kNowhere) return "";
    size_t end = begin;
    while (end < text_.size() && IsAsciiLetter(text_[end])) ++end;
    std::string word(text_.substr(begin, end - begin));
    for (char& c : word) c = static_cast<char>(c | 32);
    at_ = end;
    return word;
  }

  static std::string_view Find(const std::string& word) {
    for (const size_t ending : {size_t{0}, size_t{1}, size_t{2}}) {
      if (ending >= word.size()) break;
      if (ending == 1 && (!word.ends_with("s") || word.size() < 3)) continue;
      if (ending == 2 && !word.ends_with("es")) continue;
      const auto found = Measures().find(std::string_view(word).substr(0, word.size() - ending));
      if (found != Measures().end()) return found->second;
    }
    return "";
  }

  std::string Part() {
    std::string word = Word();
    const bool squared = word == "square" || word == "sq";
    const bool cubed = word == "cubic" || word == "cu";
    if ((squared || cubed) && at_ < text_.size() && text_[at_] == '.') ++at_;
    if (squared || cubed) word = Word();
    std::string out(Find(word));
    if (out.empty()) return "";
    if (squared) return out + "^2";
    if (cubed) return out + "^3";
    const size_t before = at_;
    if (TakeSign('^') && at_ < text_.size() && (text_[at_] == '2' || text_[at_] == '3')) {
      out += '^';
      out += text_[at_++];
      return out;
    }
    at_ = before;
    return out;
  }

  std::string_view text_;
  size_t at_ = 0;
};

// Where what follows the last number begins; a power's exponent is none.
size_t BehindLastNumber(std::string_view text) {
  for (size_t at = text.size(); at-- > 0;) {
    if (IsDigit(text[at]) && (at == 0 || text[at - 1] != '^')) return at + 1;
  }
  return kNowhere;
}

}  // namespace

bool EndInOpposites(std::string_view one, std::string_view other) {
  static constexpr std::pair<std::string_view, std::string_view> kOpposites[] = {
      {"am", "pm"},           {"profit", "loss"}, {"gain", "loss"},  {"increase", "decrease"},
      {"rise", "fall"},       {"more", "less"},   {"east", "west"},  {"north", "south"},
      {"above", "below"},     {"up", "down"},     {"left", "right"}, {"positive", "negative"},
      {"maximum", "minimum"},
  };
  const std::string word = LastWord(one);
  const std::string against = LastWord(other);
  return std::any_of(std::begin(kOpposites), std::end(kOpposites), [&](const auto& pair) {
    return (pair.first == word && pair.second == against) ||
           (pair.second == word && pair.first == against);
  });
}

bool IsUnitWord(std::string_view word) {
  const std::string lower = Lower(word);
  const auto known = [](std::string_view text) { return Units().contains(text); };
  if (known(lower)) return true;
  if (lower.size() > 2 && lower.ends_with("s") && known(lower.substr(0, lower.size() - 1))) {
    return true;
  }
  return lower.size() > 3 && lower.ends_with("es") && known(lower.substr(0, lower.size() - 2));
}

std::string WithoutUnits(std::string_view text) {
  constexpr int kMaxWords = 3;
  text = WithoutTextUnit(StripSpace(text));
  for (int i = 0; i < kMaxWords; ++i) text = WithoutUnitWord(StripSpace(text));
  return std::string(StripSpace(text));
}

std::string MeasureAtEnd(std::string_view answer) {
  answer = StripSpace(answer);
  const bool is_money = answer.starts_with("\\$") || answer.starts_with("$\\$");
  if (answer.size() > kMaxBytes) answer.remove_prefix(answer.size() - kMaxBytes);
  const std::string plain = Plain(answer);
  size_t begin = BehindLastNumber(plain);
  if (begin == kNowhere) return "";
  // Between a number and its unit, \pi and letters may stand.
  std::string out;
  for (; begin < plain.size() && out.empty(); ++begin) {
    if (begin > 0 && IsAsciiLetter(plain[begin]) && IsAsciiLetter(plain[begin - 1])) continue;
    Scanner scanner(std::string_view(plain).substr(begin));
    out = scanner.Measure();
    if (!scanner.AtEnd()) out.clear();
  }
  return out.empty() && is_money ? "dollar" : out;
}

std::string MeasureAtBegin(std::string_view text) {
  return Scanner(Plain(text.substr(0, kMaxBytes))).Measure();
}

bool AreDifferentMeasures(std::string_view one, std::string_view other) {
  if (one.empty() || other.empty() || one == other) return false;
  const auto is_temperature = [](std::string_view measure) {
    return measure == "celsius" || measure == "fahrenheit";
  };
  const bool vague =
      (one == "degree" && is_temperature(other)) || (other == "degree" && is_temperature(one));
  return !vague;
}

}  // namespace pace::equiv
