#include "text/tokenizer/pre_tokenizer.h"

#include <algorithm>
#include <utility>

#include "core/printable.h"

namespace pace {
namespace {

// ByteLevel's own pattern, that of GPT-2.
constexpr std::string_view kByteLevelPattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

}  // namespace

Result<PreTokenizer> PreTokenizer::Build(const TokenizerComponent& component) {
  PreTokenizer built;
  PACE_RETURN_IF_ERROR(built.Add(component));
  return built;
}

Status PreTokenizer::Add(const TokenizerComponent& component) {
  if (byte_level_) {
    return InvalidArgument(component.where, ": a step behind ByteLevel is not supported");
  }
  if (component.type == "Sequence") {
    for (const TokenizerComponent& part : component.parts) PACE_RETURN_IF_ERROR(Add(part));
    return Status::Ok();
  }
  if (component.type == "Split") return AddSplit(component);
  if (component.type == "Metaspace") return AddMetaspace(component);
  Step step;
  if (component.type == "Digits") {
    step.behavior = component.individual_digits ? Behavior::kIsolated : Behavior::kContiguous;
    step.regex = *Regex::Compile("\\p{N}");
  } else if (component.type == "ByteLevel") {
    byte_level_ = true;
    step.prefix = component.add_prefix_space ? Prefix::kAlways : Prefix::kNever;
    if (component.use_regex) step.regex = *Regex::Compile(kByteLevelPattern);
    if (!component.use_regex && !component.add_prefix_space) return Status::Ok();
  } else {
    return InvalidArgument(component.where, ".type = ", Printable(component.type),
                           ": is not supported as a pre-tokenizer");
  }
  steps_.push_back(std::move(step));
  return Status::Ok();
}

Status PreTokenizer::AddSplit(const TokenizerComponent& component) {
  constexpr std::pair<std::string_view, Behavior> kBehaviors[] = {
      {"Isolated", Behavior::kIsolated},
      {"Removed", Behavior::kRemoved},
      {"MergedWithPrevious", Behavior::kMergedWithPrevious},
      {"MergedWithNext", Behavior::kMergedWithNext},
      {"Contiguous", Behavior::kContiguous},
  };
  Step step;
  const auto* behavior =
      std::find_if(std::begin(kBehaviors), std::end(kBehaviors),
                   [&](const auto& entry) { return entry.first == component.behavior; });
  if (behavior == std::end(kBehaviors)) {
    return InvalidArgument(component.where, ".behavior = ", Printable(component.behavior),
                           ": is not supported");
  }
  step.behavior = behavior->second;
  step.invert = component.invert;
  step.literal = component.literal;
  if (component.regex.has_value()) {
    Result<Regex> regex = Regex::Compile(*component.regex);
    if (!regex.ok()) return regex.status().At(component.where);
    step.regex = std::move(regex).value();
  } else if (!component.literal.has_value()) {
    return InvalidArgument(component.where, ": needs 'pattern'");
  }
  steps_.push_back(std::move(step));
  return Status::Ok();
}

Status PreTokenizer::AddMetaspace(const TokenizerComponent& component) {
  Step step;
  step.space = component.replacement;
  if (component.prepend_scheme == "always") step.prefix = Prefix::kAlways;
  if (component.prepend_scheme == "first") {
    // After a cut, which piece begins the input depends on what the normaliser
    // put in.
    if (!steps_.empty()) {
      return InvalidArgument(component.where, ".prepend_scheme = first: is not supported behind ",
                             "another step");
    }
    step.prefix = Prefix::kAtStart;
  }
  if (component.split) {
    step.literal = component.replacement;
    step.behavior = Behavior::kMergedWithNext;
  }
  steps_.push_back(std::move(step));
  return Status::Ok();
}

// Cuts a piece into matches and what lies between them.
Status PreTokenizer::FindParts(const Step& step, std::string_view piece, std::vector<Part>& out) {
  std::vector<TextSpan> matches;
  matches.reserve(piece.size() / 4 + 1);
  if (step.regex.has_value()) {
    PACE_RETURN_IF_ERROR(step.regex->FindAll(piece, matches));
  } else if (step.literal.has_value() && !step.literal->empty()) {
    const std::string& word = *step.literal;
    for (size_t at = piece.find(word); at != std::string_view::npos;
         at = piece.find(word, at + word.size())) {
      matches.push_back({at, at + word.size()});
    }
  }
  size_t end = 0;
  out.reserve(matches.size() + 1);
  for (const TextSpan& match : matches) {
    if (end < match.begin) out.push_back({{end, match.begin}, step.invert});
    out.push_back({match, !step.invert});
    end = match.end;
  }
  if (end < piece.size()) out.push_back({{end, piece.size()}, step.invert});
  return Status::Ok();
}

void PreTokenizer::Arrange(const Step& step, std::vector<Part>& parts) {
  switch (step.behavior) {
    case Behavior::kIsolated:
      return;
    case Behavior::kRemoved:
      std::erase_if(parts, [](const Part& part) { return part.is_match; });
      return;
    case Behavior::kContiguous:
    case Behavior::kMergedWithPrevious:
    case Behavior::kMergedWithNext:
      break;
  }
  const bool backwards = step.behavior == Behavior::kMergedWithNext;
  if (backwards) std::reverse(parts.begin(), parts.end());
  std::vector<Part> merged;
  bool last_was_match = false;
  for (const Part& part : parts) {
    const bool joins = step.behavior == Behavior::kContiguous ? part.is_match == last_was_match
                                                              : part.is_match && !last_was_match;
    if (joins && !merged.empty()) {
      TextSpan& span = merged.back().span;
      span = {std::min(span.begin, part.span.begin), std::max(span.end, part.span.end)};
    } else {
      merged.push_back(part);
    }
    last_was_match = part.is_match;
  }
  if (backwards) std::reverse(merged.begin(), merged.end());
  parts = std::move(merged);
}

std::string_view PreTokenizer::Respace(const Step& step, std::string_view piece, bool at_start,
                                       TextPieces& out) {
  const std::string space = step.space.value_or(" ");
  if (step.space.has_value() && piece.find(' ') != std::string_view::npos) {
    std::string& changed = out.owned.emplace_back();
    for (const char c : piece) c == ' ' ? changed.append(space) : changed.append(1, c);
    piece = changed;
  }
  const bool wants_prefix =
      step.prefix == Prefix::kAlways || (step.prefix == Prefix::kAtStart && at_start);
  if (!wants_prefix || piece.starts_with(space)) return piece;
  return out.owned.emplace_back(Concat(space, piece));
}

Status PreTokenizer::Apply(const Step& step, std::string_view piece, bool at_start,
                           TextPieces& out) {
  piece = Respace(step, piece, at_start, out);
  if (!step.regex.has_value() && !step.literal.has_value()) {
    out.views.push_back(piece);
    return Status::Ok();
  }
  std::vector<Part> parts;
  PACE_RETURN_IF_ERROR(FindParts(step, piece, parts));
  Arrange(step, parts);
  for (const Part& part : parts) {
    if (part.span.begin == part.span.end) continue;
    out.views.push_back(piece.substr(part.span.begin, part.span.end - part.span.begin));
  }
  return Status::Ok();
}

Status PreTokenizer::Split(std::string_view text, bool at_start, TextPieces& out) const {
  out.views.clear();
  if (text.empty()) return Status::Ok();
  out.views.push_back(text);
  for (const Step& step : steps_) {
    const std::vector<std::string_view> pieces = std::exchange(out.views, {});
    for (const std::string_view piece : pieces) {
      PACE_RETURN_IF_ERROR(Apply(step, piece, at_start, out));
    }
  }
  return Status::Ok();
}

}  // namespace pace
