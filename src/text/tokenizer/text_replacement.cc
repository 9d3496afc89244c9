#include "text/tokenizer/text_replacement.h"

#include <utility>
#include <vector>

namespace pace {

Result<TextReplacement> TextReplacement::Build(const TokenizerComponent& component) {
  TextReplacement built;
  if (!component.content.has_value()) {
    return InvalidArgument(component.where, ": needs 'content'");
  }
  built.content_ = *component.content;
  if (component.regex.has_value()) {
    Result<Regex> regex = Regex::Compile(*component.regex);
    if (!regex.ok()) return regex.status().At(component.where);
    built.regex_ = std::move(regex).value();
  } else if (component.literal.has_value()) {
    built.literal_ = *component.literal;
  } else {
    return InvalidArgument(component.where, ": needs 'pattern'");
  }
  return built;
}

Result<std::string> TextReplacement::Apply(std::string_view text) const {
  std::string out;
  size_t done = 0;
  const auto replace = [&](TextSpan match) {
    out.append(text.substr(done, match.begin - done)).append(content_);
    done = match.end;
  };
  if (regex_.has_value()) {
    std::vector<TextSpan> matches;
    PACE_RETURN_IF_ERROR(regex_->FindAll(text, matches));
    for (const TextSpan& match : matches) replace(match);
  } else if (!literal_.empty()) {
    for (size_t at = text.find(literal_); at != std::string_view::npos;
         at = text.find(literal_, done)) {
      replace({at, at + literal_.size()});
    }
  }
  out.append(text.substr(done));
  return out;
}

}  // namespace pace
