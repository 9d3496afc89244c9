#include "reward/equivalence/measures.h"

#include <algorithm>
#include <map>

#include "reward/python_characters.h"

namespace pace::equiv {
namespace {

constexpr size_t kNone = std::string_view::npos;
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

bool IsLetter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool IsDigit(char c) {
  return c >= '0' && c <= '9';
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
    return rest == kNone;
  }

 private:
  bool TakeSign(char sign) {
    const size_t next = text_.find_first_not_of(' ', at_);
    if (next == kNone || text_[next] != sign) return false;
    at_ = next + 1;
    return true;
  }

  // The next word in lower case; "" where something else is next.
  std::string Word() {
    const size_t begin = text_.find_first_not_of(' ', at_);
    if (begin == kNone) return "";
    size_t end = begin;
    while (end < text_.size() && IsLetter(text_[end])) ++end;
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
  return kNone;
}

}  // namespace

std::string MeasureAtEnd(std::string_view answer) {
  answer = StripSpace(answer);
  const bool is_money = answer.starts_with("\\$") || answer.starts_with("$\\$");
  if (answer.size() > kMaxBytes) answer.remove_prefix(answer.size() - kMaxBytes);
  const std::string plain = Plain(answer);
  size_t begin = BehindLastNumber(plain);
  if (begin == kNone) return "";
  // Between a number and its unit, \pi and letters may stand.
  std::string out;
  for (; begin < plain.size() && out.empty(); ++begin) {
    if (begin > 0 && IsLetter(plain[begin]) && IsLetter(plain[begin - 1])) continue;
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
