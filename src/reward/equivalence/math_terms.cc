// Arithmetic of MathGrammar: sums, products, powers.
#include <algorithm>
#include <utility>

#include "reward/equivalence/math_grammar.h"
#include "reward/equivalence/units.h"

namespace pace::equiv {
namespace {

bool IsDigits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

bool IsIntegerNumber(const MathNode& node) {
  return node.kind == MathKind::kNumber && node.number.IsInteger() && node.num_places == 0;
}

// \frac{1}{3}: one whole number above another.
bool IsPlainFraction(const MathNode& node) {
  return node.kind == MathKind::kDivide && IsIntegerNumber(*node.args[0]) &&
         IsIntegerNumber(*node.args[1]);
}

MathNodePtr Transposed(const MathNode& matrix) {
  auto out = std::make_shared<MathNode>(matrix);
  const size_t num_columns = matrix.num_columns;
  const size_t num_rows = matrix.args.size() / num_columns;
  for (size_t row = 0; row < num_rows; ++row) {
    for (size_t column = 0; column < num_columns; ++column) {
      out->args[column * num_rows + row] = matrix.args[row * num_columns + column];
    }
  }
  out->num_columns = num_rows;
  return out;
}

// 1:2:3 is no number, but it is 2:4:6: what the others are to the first.
MathNodePtr RatioOf(const std::vector<MathNodePtr>& parts) {
  if (parts.size() == 2) return MakeQuotient(parts[0], parts[1]);
  const auto is_collection = [](const MathNodePtr& part) { return IsCollection(*part); };
  if (std::any_of(parts.begin(), parts.end(), is_collection)) return nullptr;
  std::vector<MathNodePtr> quotients = {MakeSymbol(":")};
  for (size_t i = 1; i < parts.size(); ++i) {
    quotients.push_back(MakeQuotient(parts[i], parts[0]));
  }
  return MakeNode(MathKind::kTuple, std::move(quotients));
}

}  // namespace

MathNodePtr MathGrammar::ParseSum() {
  const MathDepth depth(*this);
  if (depth.TooDeep()) return nullptr;
  std::vector<MathNodePtr> terms;
  const auto is_sign = [](MathToken token) {
    return token == MathToken::kPlusMinus || token == MathToken::kMinusPlus;
  };
  if (is_sign(token())) {
    terms.push_back(MakeInteger(0));
  } else {
    terms.push_back(ParseTerm());
    if (terms.back() == nullptr) return nullptr;
  }
  while (true) {
    const MathToken sign = token();
    if (sign != MathToken::kPlus && sign != MathToken::kMinus && !is_sign(sign)) break;
    ++at_;
    MathNodePtr term = ParseTerm();
    if (term == nullptr) return nullptr;
    if (is_sign(sign)) {
      auto both = std::make_shared<MathNode>();
      both->kind = MathKind::kPlusMinus;
      both->flipped = sign == MathToken::kMinusPlus;
      both->args = {MakeSum(std::move(terms)), std::move(term)};
      terms = {std::move(both)};
    } else {
      terms.push_back(sign == MathToken::kPlus ? std::move(term) : MakeNegation(term));
    }
  }
  MathNodePtr sum = MakeSum(std::move(terms));
  if (token() != MathToken::kOver && token() != MathToken::kChoose) return sum;
  const bool over = Take(MathToken::kOver);
  if (!over) ++at_;
  MathNodePtr below = ParseSum();
  if (below == nullptr) return nullptr;
  return over ? MakeQuotient(sum, below) : MakeFunction("binomial", {sum, below});
}

MathNodePtr MathGrammar::ParseTerm() {
  MathNodePtr left = ParseSigned();
  while (left != nullptr) {
    const MathToken sign = token();
    if (sign != MathToken::kTimes && sign != MathToken::kSlash && sign != MathToken::kColon &&
        sign != MathToken::kModulo) {
      break;
    }
    if (sign == MathToken::kColon) {
      std::vector<MathNodePtr> parts = {std::move(left)};
      while (Take(MathToken::kColon)) {
        parts.push_back(ParseSigned());
        if (parts.back() == nullptr) return nullptr;
      }
      const bool is_number = parts.size() == 2;
      left = RatioOf(parts);
      if (is_number) continue;
      // Nothing is done with longer ones.
      return token() == MathToken::kTimes || token() == MathToken::kSlash ? nullptr : left;
    }
    ++at_;
    MathNodePtr right = ParseSigned();
    if (right == nullptr) return nullptr;
    if (sign == MathToken::kTimes) {
      left = MakeProduct({left, std::move(right)});
    } else if (sign == MathToken::kModulo) {
      left = MakeFunction("mod", {left, std::move(right)});
    } else {
      left = MakeQuotient(left, right);
    }
  }
  return left;
}

MathNodePtr MathGrammar::ParseSigned() {
  bool negative = false;
  while (token() == MathToken::kPlus || token() == MathToken::kMinus) {
    negative ^= token() == MathToken::kMinus;
    ++at_;
  }
  MathNodePtr value = ParseProduct(false);
  return value != nullptr && negative ? MakeNegation(value) : value;
}

bool MathGrammar::BeginsFactor() const {
  switch (token()) {
    case MathToken::kNumber:
    case MathToken::kLetter:
    case MathToken::kSymbol:
    case MathToken::kText:
    case MathToken::kAccent:
    case MathToken::kFunction:
    case MathToken::kPi:
    case MathToken::kInfinity:
    case MathToken::kFraction:
    case MathToken::kRoot:
    case MathToken::kBinomial:
    case MathToken::kSum:
    case MathToken::kProduct:
    case MathToken::kOpen:
    case MathToken::kFloorOpen:
    case MathToken::kCeilOpen:
    case MathToken::kNamedSet:
    case MathToken::kEmptySet:
    case MathToken::kMatrixBegin:
      return true;
    default:
      return false;
  }
}

MathNodePtr MathGrammar::ParseProduct(bool no_functions) {
  const MathDepth depth(*this);
  if (depth.TooDeep()) return nullptr;
  std::vector<MathNodePtr> factors;
  bool behind_number = false;
  while (true) {
    // Where an operand is due a bar opens; elsewhere it closes what it can.
    const bool opens_bar = token() == MathToken::kBar && (factors.empty() || !in_bars_);
    if (!BeginsFactor() && !opens_bar) break;
    if (no_functions && !factors.empty() && token() == MathToken::kFunction) break;
    const bool is_number = token() == MathToken::kNumber;
    // "3 4" is no product.
    if (is_number && behind_number) return nullptr;
    MathNodePtr factor = is_number ? ParseMixed() : ParseFactor();
    if (factor == nullptr) return nullptr;
    factors.push_back(std::move(factor));
    behind_number = is_number && words_[at_ - 1].token == MathToken::kNumber;
    if (is_number) TakeUnit();
  }
  if (factors.empty()) return nullptr;
  return MakeProduct(std::move(factors));
}

bool MathGrammar::TakeUnit() {
  if (token() != MathToken::kText || !IsUnitWord(word().text)) return false;
  ++at_;
  if (token() == MathToken::kCaret && token(1) == MathToken::kNumber) at_ += 2;
  return true;
}

MathNodePtr MathGrammar::ParseMixed() {
  const bool is_whole = IsDigits(word().text);
  // 12 345 678: groups of three after spaces.
  while (is_whole && token(1) == MathToken::kNumber && word(1).space_before &&
         word(1).text.size() == 3 && IsDigits(word(1).text) && token(2) != MathToken::kSlash) {
    words_[at_ + 1].text = word().text + word(1).text;
    ++at_;
  }
  if (is_whole && token(1) == MathToken::kNumber && word(1).space_before &&
      IsDigits(word(1).text) && token(2) == MathToken::kSlash && token(3) == MathToken::kNumber &&
      IsDigits(word(3).text)) {
    MathNodePtr whole = ParseNumber();
    MathNodePtr top = ParseNumber();
    ++at_;
    MathNodePtr bottom = ParseNumber();
    if (whole == nullptr || top == nullptr || bottom == nullptr) return nullptr;
    return MakeSum({whole, MakeQuotient(top, bottom)});
  }
  MathNodePtr number = ParseFactor();
  if (number == nullptr || !is_whole || number->kind != MathKind::kNumber ||
      token() != MathToken::kFraction) {
    return number;
  }
  MathNodePtr fraction = ParseAtom();
  if (fraction == nullptr) return nullptr;
  const bool is_scaled = token() == MathToken::kPercent || token() == MathToken::kDegree;
  if (IsPlainFraction(*fraction) && is_scaled) return ParsePowers(MakeSum({number, fraction}));
  fraction = ParsePowers(std::move(fraction));
  if (fraction == nullptr) return nullptr;
  return IsPlainFraction(*fraction) ? MakeSum({number, fraction}) : MakeProduct({number, fraction});
}

MathNodePtr MathGrammar::ParseMinutes(const MathNodePtr& degrees) {
  std::vector<MathNodePtr> terms = {degrees};
  for (int64_t parts = 60; parts <= 3600 && token() == MathToken::kNumber; parts *= 60) {
    MathNodePtr count = ParseNumber();
    if (count == nullptr) return nullptr;
    const int num_primes = parts == 60 ? 1 : 2;
    if (Take(MathToken::kCaret)) return nullptr;
    for (int i = 0; i < num_primes; ++i) {
      if (!Take(MathToken::kPrime)) return nullptr;
    }
    terms.push_back(MakeQuotient(count, MakeInteger(parts)));
  }
  return MakeSum(std::move(terms));
}

MathNodePtr MathGrammar::ParseFactor() {
  MathNodePtr atom = ParseAtom();
  return atom == nullptr ? nullptr : ParsePowers(std::move(atom));
}

MathNodePtr MathGrammar::ParsePowers(MathNodePtr base) {
  while (true) {
    if (Take(MathToken::kBang)) {
      base = MakeFunction("factorial", {base});
    } else if (Take(MathToken::kPercent)) {
      base = MakeNode(MathKind::kPercent, {base});
    } else if (Take(MathToken::kDegree)) {
      if (token() == MathToken::kNumber) return ParseMinutes(base);
      // f \circ g is no product.
      if (base->kind == MathKind::kSymbol && BeginsFactor()) return nullptr;
    } else if (Take(MathToken::kPrime)) {
      continue;
    } else if (token() == MathToken::kUnderscore) {
      if (!ParseSubscript().has_value()) return nullptr;
    } else if (token() == MathToken::kCaret) {
      const bool braced = Is(MathToken::kOpen, "{", 1);
      const size_t inner = braced ? 2 : 1;
      const bool closed = !braced || Is(MathToken::kClose, "}", inner + 1);
      if (closed && (token(inner) == MathToken::kDegree || token(inner) == MathToken::kPrime)) {
        const bool is_degree = token(inner) == MathToken::kDegree;
        at_ += braced ? 4 : 2;
        if (is_degree && token() == MathToken::kNumber) return ParseMinutes(base);
        continue;
      }
      if (closed && base->kind == MathKind::kMatrix && Is(MathToken::kLetter, "T", inner)) {
        at_ += braced ? 4 : 2;
        base = Transposed(*base);
        continue;
      }
      ++at_;
      MathNodePtr exponent = ParseExponent();
      if (exponent == nullptr || IsCollection(*exponent)) return nullptr;
      base = MakeNode(MathKind::kPower, {base, std::move(exponent)});
    } else {
      return base;
    }
  }
}

MathNodePtr MathGrammar::ParseExponent() {
  bool negative = false;
  while (token() == MathToken::kPlus || token() == MathToken::kMinus) {
    negative ^= token() == MathToken::kMinus;
    ++at_;
  }
  MathNodePtr value = ParseArgument(true);
  return value != nullptr && negative ? MakeNegation(value) : value;
}

}  // namespace pace::equiv
