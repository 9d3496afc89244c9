// Atoms of MathGrammar: numbers, names, brackets, commands.
#include <algorithm>
#include <iterator>
#include <utility>

#include "reward/equivalence/math_grammar.h"

namespace pace::equiv {
namespace {

std::string Lower(std::string_view text) {
  std::string out;
  std::transform(text.begin(), text.end(), std::back_inserter(out),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return out;
}

// "0.1(6)": 0.1 and then 6 for ever.
MaybeRational RepeatingDecimal(std::string_view text) {
  const size_t open = text.find('(');
  const std::string_view head = text.substr(0, open);
  const std::string_view cycle = text.substr(open + 1, text.size() - open - 2);
  const MaybeRational start = Rational::FromText(head);
  const MaybeRational repeated = Rational::FromText(cycle);
  const size_t num_places = head.size() - head.find('.') - 1;
  const MaybeRational shift = Power(Rational(10), static_cast<int64_t>(num_places));
  const MaybeRational period = Power(Rational(10), static_cast<int64_t>(cycle.size()));
  if (!start || !repeated || !shift || !period) return std::nullopt;
  const MaybeRational nines = Subtract(*period, Rational(1));
  const MaybeRational scale = nines ? Multiply(*nines, *shift) : std::nullopt;
  const MaybeRational tail = scale ? Divide(*repeated, *scale) : std::nullopt;
  return tail ? Add(*start, *tail) : std::nullopt;
}

// The name under which Evaluate knows the inverse.
std::string InverseOf(const std::string& name) {
  return "arc" + name;
}

bool HasInverse(const std::string& name) {
  static constexpr std::string_view kNames[] = {"sin", "cos",  "tan",  "csc", "sec",
                                                "cot", "sinh", "cosh", "tanh"};
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

bool IsMinusOne(const MathNode& node) {
  return node.kind == MathKind::kNumber && node.number == Rational(-1);
}

}  // namespace

MathNodePtr MathGrammar::ParseAtom() {
  const MathDepth depth(*this);
  if (depth.TooDeep()) return nullptr;
  switch (token()) {
    case MathToken::kNumber:
      return ParseNumber();
    case MathToken::kLetter:
    case MathToken::kSymbol:
    case MathToken::kText:
    case MathToken::kAccent:
      return ParseName();
    case MathToken::kPi:
      ++at_;
      return MakeNode(MathKind::kPi, {});
    case MathToken::kInfinity:
      ++at_;
      return MakeNode(MathKind::kInfinity, {});
    case MathToken::kFunction:
      return ParseFunction();
    case MathToken::kFraction:
      return ParseFraction();
    case MathToken::kRoot:
      return ParseRoot();
    case MathToken::kBinomial:
      return ParseBinomial();
    case MathToken::kSum:
    case MathToken::kProduct:
      return ParseRange();
    case MathToken::kOpen:
      return ParseBracket();
    case MathToken::kBar:
      return ParseBetween(MathToken::kBar, "abs");
    case MathToken::kFloorOpen:
      return ParseBetween(MathToken::kFloorClose, "floor");
    case MathToken::kCeilOpen:
      return ParseBetween(MathToken::kCeilClose, "ceil");
    case MathToken::kNamedSet: {
      auto node = std::make_shared<MathNode>();
      node->kind = MathKind::kNamedSet;
      node->name = word().text;
      ++at_;
      return node;
    }
    case MathToken::kEmptySet:
      ++at_;
      return MakeNode(MathKind::kSet, {});
    case MathToken::kMatrixBegin:
      return ParseMatrix();
    default:
      return nullptr;
  }
}

MathNodePtr MathGrammar::ParseNumber() {
  const std::string& text = word().text;
  const bool repeats = text.ends_with(")");
  const MaybeRational value = repeats ? RepeatingDecimal(text) : Rational::FromText(text);
  if (!value.has_value()) return nullptr;
  auto node = std::make_shared<MathNode>();
  node->number = *value;
  const size_t point = text.find('.');
  if (!repeats && point != std::string::npos) node->num_places = text.size() - point - 1;
  ++at_;
  if (token() != MathToken::kUnderscore) return node;
  std::optional<std::string> base = ParseSubscript();
  if (!base.has_value()) return nullptr;
  node->name = *std::move(base);
  return node;
}

MathNodePtr MathGrammar::ParseName() {
  const bool is_letter = token() == MathToken::kLetter;
  if (is_letter && word().text == "e" && token(1) != MathToken::kUnderscore) {
    ++at_;
    return MakeNode(MathKind::kEuler, {});
  }
  std::string name = Lower(word().text);
  if (token() == MathToken::kText) {
    std::erase_if(name, [](char c) { return c == '(' || c == ')'; });
  }
  ++at_;
  while (Take(MathToken::kPrime)) name += '\'';
  if (token() == MathToken::kUnderscore) {
    const std::optional<std::string> subscript = ParseSubscript();
    if (!subscript.has_value()) return nullptr;
    name += "_" + *subscript;
  }
  while (Take(MathToken::kPrime)) name += '\'';
  if (name != "i" && LooksLikeCall()) return ParseCall(name);
  return MakeSymbol(std::move(name));
}

bool MathGrammar::LooksLikeCall() const {
  if (!Is(MathToken::kOpen, "(")) return false;
  size_t num_words = 0;
  int nesting = 0;
  for (size_t ahead = 1; token(ahead) != MathToken::kEnd; ++ahead) {
    if (token(ahead) == MathToken::kOpen) ++nesting;
    if (token(ahead) == MathToken::kClose && --nesting < 0) break;
    if (token(ahead) == MathToken::kComma && nesting == 0) return true;
    ++num_words;
  }
  const MathToken first = token(1);
  const bool is_name = first == MathToken::kLetter || first == MathToken::kSymbol;
  const bool has_subscript = is_name && token(2) == MathToken::kUnderscore &&
                             (num_words == 3 || (num_words == 5 && Is(MathToken::kOpen, "{", 3)));
  return (num_words == 1 && (is_name || first == MathToken::kNumber)) || has_subscript;
}

MathNodePtr MathGrammar::ParseCall(const std::string& name) {
  ++at_;
  std::optional<Groups> groups = ParseGroups();
  if (!groups.has_value() || groups->size() != 1 || !TakeClose(")")) return nullptr;
  auto node = std::make_shared<MathNode>();
  node->kind = MathKind::kCall;
  node->name = name;
  node->args = std::move((*groups)[0]);
  return node;
}

MathNodePtr MathGrammar::ParseBracket() {
  const char open = word().text[0];
  const std::string_view closers = open == '(' || open == '[' ? ")]" : open == '{' ? "}" : "S";
  const bool is_set = open == '{' || open == 'S';
  ++at_;
  if (is_set && TakeClose(closers)) return MakeNode(MathKind::kSet, {});
  const bool outer = std::exchange(in_bars_, false);
  std::optional<Groups> groups = ParseGroups();
  in_bars_ = outer;
  const char close = token() == MathToken::kClose ? word().text[0] : '\0';
  if (!groups.has_value() || !TakeClose(closers)) return nullptr;
  std::vector<MathNodePtr> members;
  for (auto& group : *groups) std::move(group.begin(), group.end(), std::back_inserter(members));
  if (members.size() == 1 && open != 'S') return members[0];
  if (is_set) return MakeNode(MathKind::kSet, ExpandSigns(members));
  auto node = std::make_shared<MathNode>();
  node->kind = MathKind::kTuple;
  node->open = open;
  node->close = close;
  node->args = std::move(members);
  return node;
}

MathNodePtr MathGrammar::ParseBetween(MathToken close, const char* function) {
  ++at_;
  const bool outer = std::exchange(in_bars_, close == MathToken::kBar);
  MathNodePtr inside = ParseSum();
  in_bars_ = outer;
  if (inside == nullptr || !Take(close)) return nullptr;
  return MakeFunction(function, {std::move(inside)});
}

MathNodePtr MathGrammar::ParseArgument(bool whole_number) {
  if (token() != MathToken::kNumber) return ParseAtom();
  MathWord& number = words_[at_];
  if (whole_number || number.text.size() == 1 || number.text.find('.') != std::string::npos) {
    return ParseNumber();
  }
  MathNodePtr digit = MakeInteger(number.text[0] - '0');
  number.text.erase(0, 1);
  return digit;
}

MathNodePtr MathGrammar::ParseFraction() {
  ++at_;
  const bool bare = token() == MathToken::kNumber;
  MathNodePtr top = ParseArgument(false);
  if (top == nullptr || IsCollection(*top)) return nullptr;
  MathNodePtr bottom = ParseArgument(bare);
  if (bottom == nullptr || IsCollection(*bottom)) return nullptr;
  return MakeQuotient(top, bottom);
}

MathNodePtr MathGrammar::ParseRoot() {
  const bool whole_number = word().text == "bare";
  ++at_;
  MathNodePtr degree = MakeInteger(2);
  if (Is(MathToken::kOpen, "[")) degree = ParseBracket();
  if (degree == nullptr || IsCollection(*degree)) return nullptr;
  MathNodePtr inside = ParseArgument(whole_number);
  if (inside == nullptr || IsCollection(*inside)) return nullptr;
  return MakeNode(MathKind::kPower, {std::move(inside), MakeQuotient(MakeInteger(1), degree)});
}

MathNodePtr MathGrammar::ParseBinomial() {
  ++at_;
  MathNodePtr top = ParseArgument(false);
  MathNodePtr bottom = top == nullptr ? nullptr : ParseArgument(false);
  if (bottom == nullptr) return nullptr;
  return MakeFunction("binomial", {std::move(top), std::move(bottom)});
}

MathNodePtr MathGrammar::ParseFunction() {
  std::string name = word().text;
  ++at_;
  MathNodePtr base;
  MathNodePtr power;
  while (token() == MathToken::kUnderscore || token() == MathToken::kCaret) {
    const bool below = token() == MathToken::kUnderscore;
    ++at_;
    MathNodePtr& script = below ? base : power;
    if (script != nullptr) return nullptr;
    script = below ? ParseArgument(false) : ParseExponent();
    if (script == nullptr) return nullptr;
  }
  if (power != nullptr && IsMinusOne(*power) && HasInverse(name)) {
    name = InverseOf(name);
    power = nullptr;
  }
  std::vector<MathNodePtr> args;
  if (Is(MathToken::kOpen, "(") || Is(MathToken::kOpen, "S")) {
    const std::string_view closer = Is(MathToken::kOpen, "(") ? ")" : "S";
    ++at_;
    const bool outer = std::exchange(in_bars_, false);
    std::optional<Groups> groups = ParseGroups();
    in_bars_ = outer;
    if (!groups.has_value() || groups->size() != 1 || !TakeClose(closer)) return nullptr;
    args = std::move((*groups)[0]);
  } else {
    MathNodePtr argument = ParseProduct(true);
    if (argument == nullptr) return nullptr;
    args = {std::move(argument)};
  }
  if (name == "log" || name == "lg" || name == "ln") {
    if (base == nullptr) base = name == "ln" ? MakeNode(MathKind::kEuler, {}) : MakeInteger(10);
    name = "log";
    args.push_back(std::move(base));
  }
  MathNodePtr node = MakeFunction(std::move(name), std::move(args));
  return power == nullptr ? node : MakeNode(MathKind::kPower, {std::move(node), power});
}

MathNodePtr MathGrammar::ParseRange() {
  const char* name = token() == MathToken::kSum ? "sum" : "prod";
  ++at_;
  if (!Take(MathToken::kUnderscore) || !Is(MathToken::kOpen, "{")) return nullptr;
  const MathNodePtr below = ParseBracket();
  if (below == nullptr || below->kind != MathKind::kRelation || below->args.size() != 2 ||
      below->args[0]->kind != MathKind::kSymbol) {
    return nullptr;
  }
  if (!Take(MathToken::kCaret)) return nullptr;
  MathNodePtr above = ParseExponent();
  MathNodePtr body = above == nullptr ? nullptr : ParseTerm();
  if (body == nullptr) return nullptr;
  return MakeFunction(name, {std::move(body), below->args[1], std::move(above), below->args[0]});
}

MathNodePtr MathGrammar::ParseMatrix() {
  const std::string name = word().text;
  ++at_;
  auto matrix = std::make_shared<MathNode>();
  matrix->kind = MathKind::kMatrix;
  const bool outer = std::exchange(in_bars_, false);
  while (token() != MathToken::kMatrixEnd) {
    size_t num_columns = 0;
    do {
      MathNodePtr entry = ParseSum();
      if (entry == nullptr || IsCollection(*entry)) return nullptr;
      matrix->args.push_back(std::move(entry));
      ++num_columns;
    } while (Take(MathToken::kColumn));
    if (matrix->num_columns == 0) matrix->num_columns = num_columns;
    if (num_columns != matrix->num_columns) return nullptr;
    if (!Take(MathToken::kRow) && token() != MathToken::kMatrixEnd) return nullptr;
  }
  in_bars_ = outer;
  ++at_;
  if (matrix->args.empty()) return nullptr;
  if (name == "vmatrix") return MakeFunction("det", {std::move(matrix)});
  return matrix;
}

std::optional<std::string> MathGrammar::ParseSubscript() {
  ++at_;
  if (!Is(MathToken::kOpen, "{")) {
    if (token() == MathToken::kEnd) return std::nullopt;
    std::string text = Lower(word().text);
    ++at_;
    return text;
  }
  ++at_;
  std::string text;
  for (int nesting = 0; !(nesting == 0 && Is(MathToken::kClose, "}")); ++at_) {
    if (token() == MathToken::kEnd) return std::nullopt;
    if (token() == MathToken::kOpen) ++nesting;
    if (token() == MathToken::kClose) --nesting;
    if (!text.empty() && word().text.empty()) text += '.';
    text += Lower(word().text);
  }
  ++at_;
  return text;
}

}  // namespace pace::equiv
