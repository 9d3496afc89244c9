#include "convert/same_component.h"

#include <algorithm>
#include <vector>

#include "core/check.h"

namespace pace {
namespace {

void Flatten(const TokenizerComponent& component, std::vector<const TokenizerComponent*>& out) {
  if (component.type != "Sequence") return out.push_back(&component);
  for (const TokenizerComponent& part : component.parts) Flatten(part, out);
}

bool SameStep(const TokenizerComponent* a, const TokenizerComponent* b) {
  return a->type == b->type && a->regex == b->regex && a->literal == b->literal &&
         a->behavior == b->behavior && a->invert == b->invert &&
         a->individual_digits == b->individual_digits &&
         a->add_prefix_space == b->add_prefix_space && a->use_regex == b->use_regex &&
         a->content == b->content && a->prepend == b->prepend && a->replacement == b->replacement &&
         a->prepend_scheme == b->prepend_scheme && a->split == b->split && a->start == b->start &&
         a->stop == b->stop;
}

}  // namespace

bool SameComponent(const std::optional<TokenizerComponent>& a,
                   const std::optional<TokenizerComponent>& b) {
  std::vector<const TokenizerComponent*> left;
  std::vector<const TokenizerComponent*> right;
  if (a.has_value()) Flatten(*a, left);
  if (b.has_value()) Flatten(*b, right);
  return std::equal(left.begin(), left.end(), right.begin(), right.end(), SameStep);
}

TokenizerFile FileOfComponents(std::string_view normalizer, std::string_view pre_tokenizer,
                               std::string_view decoder) {
  const Result<TokenizerFile> file = ParseTokenizerFile(Concat(
      R"({"normalizer": )", normalizer, R"(, "pre_tokenizer": )", pre_tokenizer, R"(, "decoder": )",
      decoder, R"(, "model": {"type": "BPE", "vocab": {}, "merges": []}})"));
  PACE_CHECK(file.ok(), file.status().message());
  return *file;
}

}  // namespace pace
