#include "reward/equivalence/math_lexer.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/utf8.h"
#include "reward/boxed.h"
#include "reward/python_characters.h"

namespace pace::equiv {
namespace {

bool IsSpace(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

constexpr std::string_view kTextCommands[] = {
    "text",   "textbf", "textit", "textrm", "textnormal", "textsf",     "texttt",       "textup",
    "mathrm", "mathbf", "mathit", "mathsf", "mathtt",     "mathcal",    "mathfrak",     "mathscr",
    "mbox",   "hbox",   "emph",   "bm",     "boldsymbol", "mathnormal", "operatorname",
};

constexpr std::string_view kAccentCommands[] = {
    "vec",  "bar",   "overline",       "hat",       "widehat",   "tilde", "dot",
    "ddot", "acute", "overrightarrow", "underline", "widetilde", "check", "mathring",
};

template <size_t kSize>
bool IsOneOf(const std::string_view (&names)[kSize], std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

std::string WithoutSpace(std::string_view text) {
  std::string out;
  std::copy_if(text.begin(), text.end(), std::back_inserter(out),
               [](char c) { return !IsSpace(c); });
  return out;
}

class Lexer {
 public:
  Lexer(std::string_view text, size_t max_words) : text_(text), max_words_(max_words) {}

  std::optional<std::vector<MathWord>> Run() {
    while (at_ < text_.size()) {
      if (IsSpace(text_[at_]) || text_[at_] == '~') {
        if (text_.substr(at_, 2) == "~=") {
          Push(MathToken::kApproximate, "", 2);
          continue;
        }
        space_ = true;
        ++at_;
        continue;
      }
      if (!ReadOne() || words_.size() > max_words_) return std::nullopt;
    }
    Push(MathToken::kEnd, "", 0);
    return std::move(words_);
  }

 private:
  char Peek(size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }

  bool Push(MathToken token, std::string text, size_t num_bytes) {
    words_.push_back({token, std::move(text), space_});
    space_ = false;
    at_ += num_bytes;
    return true;
  }

  bool ReadOne() {
    const char c = Peek();
    if (IsDigit(c) || (c == '.' && IsDigit(Peek(1)))) return ReadNumber();
    if (c == '.') return SkipFullStop();
    if (IsAsciiLetter(c)) return ReadLetters();
    if (c == '\\') return ReadCommand();
    if (static_cast<unsigned char>(c) >= 0x80) return ReadCharacter();
    return ReadSign();
  }

  // A point ends a sentence or belongs to \left. and \right.
  bool SkipFullStop() {
    const size_t next = text_.find_first_not_of(" \t\r\n", at_ + 1);
    const bool sized = at_ >= 5 && (text_.substr(at_ - 5, 5) == "\\left" ||
                                    (at_ >= 6 && text_.substr(at_ - 6, 6) == "\\right"));
    if (next != kNowhere && !sized) return false;
    ++at_;
    return true;
  }

  bool ReadNumber() {
    size_t end = at_;
    while (end < text_.size() && IsDigit(text_[end])) ++end;
    const size_t point = end;
    if (end < text_.size() && text_[end] == '.') {
      ++end;
      while (end < text_.size() && IsDigit(text_[end])) ++end;
    }
    if (ReadRepeating(end)) return true;
    if (end == point + 1) end = point;
    if (end + 1 < text_.size() && (text_[end] == 'E' || text_[end] == 'e') && ReadScientific(end)) {
      return true;
    }
    return Push(MathToken::kNumber, std::string(text_.substr(at_, end - at_)), end - at_);
  }

  // 0.1\overline{6}, written "0.1(6)" in the word.
  bool ReadRepeating(size_t end) {
    constexpr std::string_view kOverline = "\\overline{";
    if (text_.substr(at_, end - at_).find('.') == kNowhere) return false;
    if (text_.substr(end, kOverline.size()) != kOverline) return false;
    const size_t begin = end + kOverline.size();
    const size_t close = text_.find('}', begin);
    if (close == kNowhere || close == begin) return false;
    const std::string_view digits = text_.substr(begin, close - begin);
    if (!std::all_of(digits.begin(), digits.end(), IsDigit)) return false;
    std::string word(text_.substr(at_, end - at_));
    word += '(';
    word += digits;
    word += ')';
    return Push(MathToken::kNumber, std::move(word), close + 1 - at_);
  }

  // 1.5E-3 and 1e5 become a product with a power of ten; "2e-3" stays a
  // difference with Euler's number.
  bool ReadScientific(size_t mark) {
    size_t digits = mark + 1;
    const bool has_sign = text_[digits] == '-' || text_[digits] == '+';
    if (has_sign && text_[mark] == 'e') return false;
    const bool negative = text_[digits] == '-';
    if (has_sign) ++digits;
    size_t end = digits;
    while (end < text_.size() && IsDigit(text_[end])) ++end;
    if (end == digits) return false;
    const std::string exponent(text_.substr(digits, end - digits));
    Push(MathToken::kNumber, std::string(text_.substr(at_, mark - at_)), 0);
    Push(MathToken::kTimes, "", 0);
    Push(MathToken::kNumber, "10", 0);
    Push(MathToken::kCaret, "", 0);
    if (negative) Push(MathToken::kMinus, "", 0);
    Push(MathToken::kNumber, exponent, 0);
    at_ = end;
    return true;
  }

  // A known word, or else the letters one by one; the end of the run of letters
  // is remembered until it is passed.
  bool ReadLetters() {
    if (letters_end_ <= at_) {
      letters_end_ = at_;
      while (letters_end_ < text_.size() && IsAsciiLetter(text_[letters_end_])) ++letters_end_;
    }
    const KnownWord* known = FindBareWord(text_.substr(at_, letters_end_ - at_));
    if (known != nullptr) return Push(known->token, std::string(known->text), letters_end_ - at_);
    return Push(MathToken::kLetter, std::string(1, Peek()), 1);
  }

  bool ReadCharacter() {
    const size_t num_bytes = CharacterBytes(text_, at_);
    const std::string_view character = text_.substr(at_, num_bytes);
    const KnownWord* known = FindCharacter(character);
    if (known != nullptr) {
      if (known->skipped) {
        at_ += num_bytes;
        space_ = true;
        return true;
      }
      return Push(known->token, std::string(known->text), num_bytes);
    }
    return ReadRaised(ReadCodePoint(text_, at_).code, num_bytes);
  }

  // Superscript digits.
  bool ReadRaised(uint32_t code, size_t num_bytes) {
    const int digit = code == 0xB9                       ? 1
                      : code == 0xB2 || code == 0xB3     ? static_cast<int>(code - 0xB0)
                      : code >= 0x2074 && code <= 0x2079 ? static_cast<int>(code - 0x2070)
                                                         : -1;
    if (digit < 0) return false;
    Push(MathToken::kCaret, "", 0);
    return Push(MathToken::kNumber, std::string(1, static_cast<char>('0' + digit)), num_bytes);
  }

  bool ReadSign() {
    static constexpr std::pair<std::string_view, MathToken> kSigns[] = {
        {"!==", MathToken::kUnequal},     {"<=", MathToken::kLessEqual},
        {">=", MathToken::kGreaterEqual}, {"!=", MathToken::kUnequal},
        {"==", MathToken::kEqual},        {":=", MathToken::kEqual},
        {"+", MathToken::kPlus},          {"-", MathToken::kMinus},
        {"*", MathToken::kTimes},         {"/", MathToken::kSlash},
        {":", MathToken::kColon},         {"^", MathToken::kCaret},
        {"_", MathToken::kUnderscore},    {"!", MathToken::kBang},
        {"%", MathToken::kPercent},       {"|", MathToken::kBar},
        {",", MathToken::kComma},         {";", MathToken::kSemicolon},
        {"=", MathToken::kEqual},         {"<", MathToken::kLess},
        {">", MathToken::kGreater},       {"&", MathToken::kColumn},
        {"'", MathToken::kPrime},
    };
    const char c = Peek();
    if (c == '(' && ReadParenthesizedModulus()) return true;
    if (c == '(' || c == '[' || c == '{') return Push(MathToken::kOpen, std::string(1, c), 1);
    if (c == ')' || c == ']' || c == '}') return Push(MathToken::kClose, std::string(1, c), 1);
    for (const auto& [sign, token] : kSigns) {
      if (text_.substr(at_, sign.size()) == sign) return Push(token, "", sign.size());
    }
    return false;
  }

  bool ReadCommand() {
    if (Peek(1) == '\\') return Push(MathToken::kRow, "", 2);
    size_t end = at_ + 1;
    while (end < text_.size() && IsAsciiLetter(text_[end])) ++end;
    const std::string_view letters = text_.substr(at_ + 1, end - at_ - 1);
    if (letters.empty()) {
      const KnownWord* known = FindCommand(text_.substr(at_ + 1, 1));
      return known != nullptr && Apply(*known, 2);
    }
    if (letters == "begin" || letters == "end") return ReadEnvironment(letters == "begin", end);
    if (letters == "pmod") return ReadModulus(end);
    if (letters == "mathbb" || letters == "Bbb") return ReadNamedSet(end);
    if (IsOneOf(kTextCommands, letters)) return ReadText(letters, end);
    if (IsOneOf(kAccentCommands, letters)) return ReadAccent(letters, end);
    const KnownWord* known = FindCommand(letters);
    return known != nullptr && Apply(*known, known->name.size() + 1);
  }

  bool Apply(const KnownWord& known, size_t num_bytes) {
    if (known.token == MathToken::kEnd) {
      at_ += num_bytes;
      space_ = true;
      return known.skipped;
    }
    return Push(known.token, std::string(known.text), num_bytes);
  }

  // What stands in the braces after a command that ends at `end`; at_ moves
  // after them.
  std::optional<std::string_view> Braced(size_t end) {
    const size_t open = text_.find_first_not_of(" \t", end);
    if (open == kNowhere || text_[open] != '{') return std::nullopt;
    const size_t close = ClosingBrace(text_, open);
    if (close == kNowhere) return std::nullopt;
    at_ = close + 1;
    return text_.substr(open + 1, close - open - 1);
  }

  bool ReadEnvironment(bool begin, size_t end) {
    const std::optional<std::string_view> name = Braced(end);
    if (!name.has_value()) return false;
    const bool is_matrix = name->ends_with("matrix");
    if (!is_matrix && *name != "array") return false;
    if (begin && *name == "array" && Peek() == '{') {
      const size_t close = ClosingBrace(text_, at_);
      if (close == kNowhere) return false;
      at_ = close + 1;
    }
    return Push(begin ? MathToken::kMatrixBegin : MathToken::kMatrixEnd, std::string(*name), 0);
  }

  // \pmod{11}, \pmod 11, \pmod n
  bool ReadModulus(size_t end) {
    const std::optional<std::string_view> inside = Braced(end);
    if (inside.has_value()) return Push(MathToken::kModulus, WithoutSpace(*inside), 0);
    const size_t begin = std::min(text_.find_first_not_of(" \t\r\n", end), text_.size());
    if (begin < text_.size() && text_[begin] == '{') return false;
    size_t behind = begin;
    while (behind < text_.size() && IsDigit(text_[behind])) ++behind;
    if (behind == begin && begin < text_.size() && IsAsciiLetter(text_[begin])) ++behind;
    at_ = behind;
    return Push(MathToken::kModulus, std::string(text_.substr(begin, behind - begin)), 0);
  }

  // (mod 11), as it is written by hand.
  bool ReadParenthesizedModulus() {
    for (const std::string_view word :
         {"(mod ", "(\\mod ", "(\\bmod ", "(\\text{mod }", "(\\mod{"}) {
      if (text_.substr(at_, word.size()) != word) continue;
      const size_t close = text_.find(')', at_);
      if (close == kNowhere) return false;
      std::string inside = WithoutSpace(text_.substr(at_ + word.size(), close - at_ - word.size()));
      if (word.ends_with("{") && inside.ends_with("}")) inside.pop_back();
      return Push(MathToken::kModulus, std::move(inside), close + 1 - at_);
    }
    return false;
  }

  bool ReadNamedSet(size_t end) {
    const std::optional<std::string_view> name = Braced(end);
    if (!name.has_value() || name->size() != 1 ||
        std::string_view("RNZQC").find(*name) == kNowhere) {
      return false;
    }
    return Push(MathToken::kNamedSet, std::string(*name), 0);
  }

  bool ReadText(std::string_view command, size_t end) {
    const std::optional<std::string_view> inside = Braced(end);
    if (!inside.has_value()) return false;
    std::string word = WithoutSpace(*inside);
    const bool is_math = command.substr(0, 4) != "text" && command != "mbox" && command != "hbox";
    if (word.empty()) {
      space_ = true;
      return true;
    }
    if (word.size() == 1 && IsAsciiLetter(word[0]) && (is_math || word != "e")) {
      return Push(MathToken::kLetter, std::move(word), 0);
    }
    const KnownWord* known = FindBareWord(word);
    if (known != nullptr && is_math) return Push(known->token, std::string(known->text), 0);
    const bool has_letters = std::any_of(word.begin(), word.end(), IsAsciiLetter);
    if (has_letters) return Push(MathToken::kText, std::move(word), 0);
    // Digits and signs in another font.
    const std::optional<std::vector<MathWord>> words = SplitIntoWords(*inside, max_words_);
    if (!words.has_value()) return Push(MathToken::kText, std::move(word), 0);
    words_.insert(words_.end(), words->begin(), words->end() - 1);
    return true;
  }

  bool ReadAccent(std::string_view command, size_t end) {
    if (command == "overline") command = "bar";
    if (command == "overrightarrow") command = "vec";
    if (command == "widetilde") command = "tilde";
    if (command == "widehat") command = "hat";
    const std::optional<std::string_view> inside = Braced(end);
    if (inside.has_value()) {
      return Push(MathToken::kAccent, std::string(command) + ":" + WithoutSpace(*inside), 0);
    }
    const size_t letter = text_.find_first_not_of(' ', end);
    if (letter == kNowhere || !IsAsciiLetter(text_[letter])) return false;
    at_ = letter;
    return Push(MathToken::kAccent, std::string(command) + ":" + text_[letter], 1);
  }

  std::string_view text_;
  size_t max_words_;
  size_t at_ = 0;
  size_t letters_end_ = 0;
  bool space_ = false;
  std::vector<MathWord> words_;
};

}  // namespace

std::optional<std::vector<MathWord>> SplitIntoWords(std::string_view text, size_t max_words) {
  return Lexer(text, max_words).Run();
}

}  // namespace pace::equiv
