// The lexer of chat templates: text, {{ expressions }} and {% statements %},
// with Jinja's rules for white space as `transformers` sets them (trim_blocks
// and lstrip_blocks on, a last newline dropped).
#ifndef PACE_TEXT_JINJA_LEXER_H_
#define PACE_TEXT_JINJA_LEXER_H_

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace pace::jinja {

// Counted from 1; columns in bytes.
struct Position {
  int line = 1;
  int column = 1;
};

// How lexer, parser and evaluator give up; it does not leave the folder.
struct TemplateError : std::runtime_error {
  TemplateError(Position at, const std::string& what) : std::runtime_error(what), position(at) {}
  Position position;
};

struct Token {
  enum class Kind {
    kData,      // text outside tags
    kVariable,  // {{
    kVariableEnd,
    kBlock,  // {%
    kBlockEnd,
    kName,
    kText,  // a string literal, unescaped
    kInteger,
    kReal,
    kSign,  // an operator or bracket
    kEnd,
  };
  Kind kind = Kind::kEnd;
  std::string text;
  Position position;
};

// Throws TemplateError. The last token is kEnd.
std::vector<Token> Lex(std::string_view source);

}  // namespace pace::jinja

#endif  // PACE_TEXT_JINJA_LEXER_H_
