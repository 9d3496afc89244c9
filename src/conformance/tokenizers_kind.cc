// `tokenizers`: encode, decode and stream decode against cases.json.
#include "conformance/case_file.h"
#include "text/tokenizer/tokenizer.h"

namespace pace {
namespace {

class CasesCheck {
 public:
  CasesCheck(const Tokenizer& tokenizer, std::string path, Tally& tally)
      : tokenizer_(tokenizer), path_(std::move(path)), tally_(tally) {}

  Status Run(const Value& file) {
    PACE_RETURN_IF_ERROR(ListField(file, "cases", path_).status());
    PACE_RETURN_IF_ERROR(Each(file, "cases", &CasesCheck::Encode));
    PACE_RETURN_IF_ERROR(Each(file, "decode_cases", &CasesCheck::Decode));
    return Each(file, "stream_cases", &CasesCheck::Stream);
  }

 private:
  using Check = Status (CasesCheck::*)(const Value&, const std::string&);

  // The lists beside `cases` may be absent.
  Status Each(const Value& file, std::string_view name, Check check) {
    if (FieldOf(file, name).is_undefined()) return Status::Ok();
    PACE_ASSIGN_OR_RETURN(const ValueList list, ListField(file, name, path_));
    for (size_t i = 0; i < list.size(); ++i) {
      PACE_RETURN_IF_ERROR((this->*check)(list[i], Concat(path_, ": ", name, "[", i, "]")));
    }
    return Status::Ok();
  }

  Status Encode(const Value& entry, const std::string& where) {
    PACE_ASSIGN_OR_RETURN(const std::string text, TextField(entry, "text", where));
    PACE_ASSIGN_OR_RETURN(const std::vector<TokenId> expected, IdsField(entry, "ids", where));
    const Result<std::vector<TokenId>> ids = tokenizer_.Encode(text);
    // Characters newer than our tables may be cut differently.
    const bool newer = FieldOf(entry, "unassigned_in_unicode_14").Truthy();
    if (!ids.ok()) {
      tally_.Fail(Concat(where, ": encode: ", ids.status().message()));
    } else if (*ids != expected && newer) {
      tally_.Skip();
    } else {
      CompareText(tally_, where, "ids", JoinIds(*ids), JoinIds(expected));
    }
    return Decode(entry, where);
  }

  Status Decode(const Value& entry, const std::string& where) {
    PACE_ASSIGN_OR_RETURN(const std::vector<TokenId> ids, IdsField(entry, "ids", where));
    for (const bool skip : {false, true}) {
      const std::string_view name = skip ? "decoded_skip_special" : "decoded";
      PACE_ASSIGN_OR_RETURN(const std::string expected, TextField(entry, name, where));
      CompareText(tally_, where, name, tokenizer_.Decode(ids, skip), expected);
    }
    return Status::Ok();
  }

  Status Stream(const Value& entry, const std::string& where) {
    PACE_ASSIGN_OR_RETURN(const std::vector<TokenId> ids, IdsField(entry, "ids", where));
    PACE_RETURN_IF_ERROR(StreamOne(ids, FieldOf(entry, "keep_special"), false, where));
    return StreamOne(ids, FieldOf(entry, "skip_special"), true, where);
  }

  Status StreamOne(const std::vector<TokenId>& ids, const Value& expected, bool skip,
                   const std::string& where) {
    PACE_ASSIGN_OR_RETURN(const ValueList chunks, ListField(expected, "chunks", where));
    if (chunks.size() != ids.size()) return InvalidArgument(where, ": needs a chunk for each id");
    StreamDecoder stream(tokenizer_, skip);
    std::string all;
    for (size_t i = 0; i < ids.size(); ++i) {
      const std::optional<std::string> text = stream.Feed(ids[i]);
      all += text.value_or("");
      const Value& chunk = chunks[i];
      if (text.has_value() == chunk.is_text() && (!text.has_value() || *text == chunk.text())) {
        continue;
      }
      tally_.Fail(Difference(where, Concat(skip ? "skip_special" : "keep_special", ": chunk ", i),
                             text.value_or("(nothing)"),
                             chunk.is_text() ? chunk.text() : "(nothing)"));
      return Status::Ok();
    }
    const std::string rest = stream.Finish();
    const Value remainder = FieldOf(expected, "remainder");
    const Value full = FieldOf(expected, "full");
    if (remainder.is_text() && remainder.text() != rest) {
      tally_.Fail(Difference(where, "remainder", rest, remainder.text()));
      return Status::Ok();
    }
    CompareText(tally_, where, "full", all + rest, full.is_text() ? full.text() : all + rest);
    return Status::Ok();
  }

  const Tokenizer& tokenizer_;
  std::string path_;
  Tally& tally_;
};

}  // namespace

Status CheckTokenizers(const KindArguments& arguments, Tally& tally) {
  for (const std::string& path : arguments.paths) {
    PACE_ASSIGN_OR_RETURN(const Value file, ReadCaseFile(path));
    PACE_ASSIGN_OR_RETURN(const Tokenizer tokenizer,
                          Tokenizer::Load(TokenizerFolder(arguments, path)));
    PACE_RETURN_IF_ERROR(CasesCheck(tokenizer, path, tally).Run(file));
  }
  return Status::Ok();
}

}  // namespace pace
