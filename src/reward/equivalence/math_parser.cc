#include "reward/equivalence/math_parser.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "reward/equivalence/math_grammar.h"

namespace pace::equiv {
namespace {

constexpr size_t kMaxWords = 1500;

std::optional<MathRelation> RelationOf(MathToken token) {
  switch (token) {
    case MathToken::kEqual:
    case MathToken::kIn:
      return MathRelation::kEqual;
    case MathToken::kUnequal:
    case MathToken::kNotIn:
      return MathRelation::kUnequal;
    case MathToken::kLess:
      return MathRelation::kLess;
    case MathToken::kLessEqual:
      return MathRelation::kLessEqual;
    case MathToken::kGreater:
      return MathRelation::kGreater;
    case MathToken::kGreaterEqual:
      return MathRelation::kGreaterEqual;
    default:
      return std::nullopt;
  }
}

bool IsName(const MathNode& node) {
  return node.kind == MathKind::kSymbol ||
         (node.kind == MathKind::kTuple &&
          std::all_of(node.args.begin(), node.args.end(),
                      [](const MathNodePtr& arg) { return arg->kind == MathKind::kSymbol; }));
}

// x = 1, 2, 3 says that x is one of these; x = 1, y = 2 is a list of relations.
bool IsAssignmentOfList(const std::vector<std::vector<MathNodePtr>>& groups) {
  size_t num_members = 0;
  for (const auto& group : groups) {
    for (const MathNodePtr& member : group) {
      const bool is_relation = member->kind == MathKind::kRelation;
      if (is_relation != (num_members == 0)) return false;
      ++num_members;
    }
  }
  if (num_members < 2) return false;
  const MathNode& first = *groups[0][0];
  return first.relations.size() == 1 && first.relations[0] == MathRelation::kEqual &&
         IsName(*first.args[0]);
}

bool IsThreeDigits(const MathWord& word) {
  return word.token == MathToken::kNumber &&
         word.text.find_first_not_of("0123456789") == std::string::npos && word.text.size() == 3 &&
         !word.space_before;
}

// Whether a number may begin after this word.
bool MayPrecedeNumber(MathToken token) {
  return RelationOf(token).has_value() || token == MathToken::kPlus || token == MathToken::kMinus ||
         token == MathToken::kTimes || token == MathToken::kSlash;
}

// Joins "12 , 345 , 678" where it can only be one number: nothing else in the
// text is parted by commas, and no bracket holds it alone.
void MergeThousands(std::vector<MathWord>& words) {
  const auto comma = std::find_if(words.begin(), words.end(), [](const MathWord& word) {
    return word.token == MathToken::kComma;
  });
  if (comma == words.end() || comma == words.begin()) return;
  const auto first = comma - 1;
  if (first->token != MathToken::kNumber || first->text.size() > 3 || comma->space_before ||
      first->text.find_first_not_of("0123456789") != std::string::npos) {
    return;
  }
  if (first != words.begin() && !MayPrecedeNumber((first - 1)->token)) {
    const bool in_braces = (first - 1)->token == MathToken::kOpen && (first - 1)->text == "{" &&
                           first - 1 != words.begin();
    if (!in_braces) return;
    const MathToken before = (first - 2)->token;
    const bool is_argument = before == MathToken::kFraction || before == MathToken::kRoot ||
                             before == MathToken::kCaret ||
                             (before == MathToken::kClose && (first - 2)->text == "}");
    if (!is_argument) return;
  }
  std::string digits = first->text;
  auto at = comma;
  for (; at->token == MathToken::kComma; at += 2) {
    const bool last = (at + 1)->token == MathToken::kNumber && (at + 1)->text.size() > 4 &&
                      (at + 1)->text[3] == '.' && !(at + 1)->space_before;
    if (!IsThreeDigits(*(at + 1)) && !last) return;
    digits += (at + 1)->text;
  }
  const bool more_commas = std::any_of(
      at, words.end(), [](const MathWord& word) { return word.token == MathToken::kComma; });
  const bool closes_list = at->token == MathToken::kClose && at->text != "}";
  if (more_commas || closes_list || at->token == MathToken::kSemicolon) return;
  // 0,111 can only be a decimal comma.
  first->text = first->text == "0" ? "0." + digits.substr(1) : digits;
  words.erase(comma, at);
}

}  // namespace

const MathWord& MathGrammar::word(size_t ahead) const {
  return words_[std::min(at_ + ahead, words_.size() - 1)];
}

bool MathGrammar::Is(MathToken token, std::string_view text, size_t ahead) const {
  return word(ahead).token == token && word(ahead).text == text;
}

bool MathGrammar::Take(MathToken wanted) {
  if (token() != wanted || wanted == MathToken::kEnd) return false;
  ++at_;
  return true;
}

bool MathGrammar::TakeClose(std::string_view texts) {
  if (token() != MathToken::kClose || texts.find(word().text) == std::string_view::npos) {
    return false;
  }
  ++at_;
  return true;
}

bool MathDepth::TooDeep() const {
  return grammar_.depth_ > kMaxMathDepth;
}

std::optional<MathGrammar::Groups> MathGrammar::ParseGroups() {
  Groups groups(1);
  while (true) {
    MathNodePtr element = ParseElement();
    if (element == nullptr) return std::nullopt;
    groups.back().push_back(std::move(element));
    if (Take(MathToken::kSemicolon)) {
      groups.emplace_back();
    } else if (!Take(MathToken::kComma)) {
      return groups;
    }
  }
}

MathNodePtr MathGrammar::ParseElement() {
  const MathDepth depth(*this);
  if (depth.TooDeep()) return nullptr;
  std::vector<MathNodePtr> operands = {ParseDifference()};
  std::vector<MathRelation> relations;
  while (operands.back() != nullptr) {
    if (Take(MathToken::kApproximate)) {
      // The exact side is the answer; a name alone is none.
      MathNodePtr right = ParseDifference();
      if (right == nullptr) return nullptr;
      if (relations.empty() && IsNamesOnly(*operands[0])) operands[0] = std::move(right);
      continue;
    }
    const std::optional<MathRelation> relation = RelationOf(token());
    if (!relation.has_value()) break;
    ++at_;
    relations.push_back(*relation);
    operands.push_back(ParseDifference());
  }
  if (operands.back() == nullptr) return nullptr;
  MathNodePtr element = operands[0];
  if (!relations.empty()) {
    auto relation = std::make_shared<MathNode>();
    relation->kind = MathKind::kRelation;
    relation->args = std::move(operands);
    relation->relations = std::move(relations);
    element = std::move(relation);
  }
  if (token() != MathToken::kModulus) return element;
  auto congruence = std::make_shared<MathNode>();
  congruence->kind = MathKind::kCongruence;
  congruence->name = word().text;
  congruence->args = {std::move(element)};
  ++at_;
  return congruence;
}

MathNodePtr MathGrammar::ParseDifference() {
  MathNodePtr left = ParseUnion();
  while (left != nullptr && Take(MathToken::kSetMinus)) {
    MathNodePtr right = ParseUnion();
    if (right == nullptr) return nullptr;
    left = MakeNode(MathKind::kDifference, {left, std::move(right)});
  }
  return left;
}

MathNodePtr MathGrammar::ParseUnion() {
  std::vector<MathNodePtr> parts = {ParseIntersection()};
  while (parts.back() != nullptr && Take(MathToken::kUnion)) parts.push_back(ParseIntersection());
  if (parts.back() == nullptr || parts.size() == 1) return parts.back();
  return MakeNode(MathKind::kUnion, std::move(parts));
}

MathNodePtr MathGrammar::ParseIntersection() {
  std::vector<MathNodePtr> parts = {ParseSum()};
  while (parts.back() != nullptr && Take(MathToken::kIntersection)) parts.push_back(ParseSum());
  if (parts.back() == nullptr || parts.size() == 1) return parts.back();
  return MakeNode(MathKind::kIntersection, std::move(parts));
}

MathNodePtr MathGrammar::ParseWhole() {
  std::optional<Groups> groups = ParseGroups();
  if (!groups.has_value() || token() != MathToken::kEnd) return nullptr;
  if (!IsAssignmentOfList(*groups)) {
    for (auto& group : *groups) group = ExpandSigns(group);
    return CombineGroups(*std::move(groups));
  }
  auto relation = std::make_shared<MathNode>(*(*groups)[0][0]);
  (*groups)[0][0] = relation->args[1];
  for (auto& group : *groups) group = ExpandSigns(group);
  relation->args[1] = CombineGroups(*std::move(groups));
  return relation;
}

std::vector<MathNodePtr> ExpandSigns(const std::vector<MathNodePtr>& members) {
  constexpr size_t kMaxMembersApart = 16;
  std::vector<MathNodePtr> out;
  for (const MathNodePtr& member : members) {
    std::vector<MathNodePtr> chosen = ChooseSigns(member, members.size() <= kMaxMembersApart);
    std::move(chosen.begin(), chosen.end(), std::back_inserter(out));
  }
  return out;
}

MathNodePtr CombineGroups(std::vector<std::vector<MathNodePtr>> groups) {
  if (groups.size() == 1) {
    if (groups[0].size() == 1) return groups[0][0];
    return MakeNode(MathKind::kSet, std::move(groups[0]));
  }
  const bool all_single = std::all_of(groups.begin(), groups.end(),
                                      [](const auto& group) { return group.size() == 1; });
  std::vector<MathNodePtr> members;
  for (auto& group : groups) {
    members.push_back(all_single ? group[0] : MakeNode(MathKind::kTuple, std::move(group)));
  }
  return MakeNode(MathKind::kSet, std::move(members));
}

MathNodePtr ParseMath(std::string_view text) {
  if (text.size() > kMaxMathBytes) return nullptr;
  std::optional<std::vector<MathWord>> words = SplitIntoWords(text, kMaxWords);
  if (!words.has_value()) return nullptr;
  // A separator at the very end separates nothing.
  while (words->size() > 2) {
    const MathToken last = (*words)[words->size() - 2].token;
    if (last != MathToken::kComma && last != MathToken::kSemicolon) break;
    words->erase(words->end() - 2);
  }
  MergeThousands(*words);
  return MathGrammar(*std::move(words)).ParseWhole();
}

}  // namespace pace::equiv
