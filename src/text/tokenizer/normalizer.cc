#include "text/tokenizer/normalizer.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "core/printable.h"

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

Result<Normalizer> Normalizer::Build(const TokenizerComponent& component) {
  Normalizer built;
  PACE_RETURN_IF_ERROR(built.Add(component));
  return built;
}

Status Normalizer::Add(const TokenizerComponent& component) {
  constexpr std::pair<std::string_view, NormalForm> kForms[] = {
      {"NFC", NormalForm::kNfc},
      {"NFD", NormalForm::kNfd},
      {"NFKC", NormalForm::kNfkc},
      {"NFKD", NormalForm::kNfkd},
  };
  if (component.type == "Sequence") {
    for (const TokenizerComponent& part : component.parts) PACE_RETURN_IF_ERROR(Add(part));
    return Status::Ok();
  }
  if (component.type == "Prepend") {
    steps_.emplace_back(Prefix{component.prepend});
    return Status::Ok();
  }
  if (component.type == "Replace") {
    PACE_ASSIGN_OR_RETURN(TextReplacement replacement, TextReplacement::Build(component));
    steps_.emplace_back(std::move(replacement));
    return Status::Ok();
  }
  const auto* form = std::find_if(std::begin(kForms), std::end(kForms),
                                  [&](const auto& entry) { return entry.first == component.type; });
  if (form == std::end(kForms)) {
    return InvalidArgument(component.where, ".type = ", Printable(component.type),
                           ": is not supported as a normaliser");
  }
  steps_.emplace_back(form->second);
  return Status::Ok();
}

bool Normalizer::Keeps(std::string_view text) const {
  return std::all_of(steps_.begin(), steps_.end(), [text](const Step& step) {
    const auto* form = std::get_if<NormalForm>(&step);
    return form != nullptr && *form == NormalForm::kNfc && IsPlainlyNfc(text);
  });
}

Result<std::string> Normalizer::Apply(std::string_view text) const {
  std::string out(text);
  for (const Step& step : steps_) {
    if (const auto* form = std::get_if<NormalForm>(&step)) {
      out = Normalize(out, *form);
    } else if (const auto* prefix = std::get_if<Prefix>(&step)) {
      if (!out.empty()) out.insert(0, prefix->text);
    } else {
      PACE_ASSIGN_OR_RETURN(out, std::get<TextReplacement>(step).Apply(out));
    }
  }
  return out;
}

}  // namespace pace
