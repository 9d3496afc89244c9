// The parser of chat templates.
#ifndef PACE_TEXT_JINJA_PARSER_H_
#define PACE_TEXT_JINJA_PARSER_H_

#include <string>
#include <string_view>
#include <vector>

#include "text/jinja/ast.h"

namespace pace::jinja {

// Throws TemplateError at what is no template, or no part of one that this
// reader knows.
Body Parse(std::string_view source);

class ExpressionParser {
 public:
  explicit ExpressionParser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

 protected:
  using Kind = Expression::Kind;

  [[noreturn]] void Fail(const std::string& what) const;
  const Token& Look(size_t ahead = 0) const;
  bool IsSign(std::string_view sign, size_t ahead = 0) const;
  bool IsName(std::string_view name, size_t ahead = 0) const;
  bool TakeSign(std::string_view sign);
  bool TakeName(std::string_view name);
  void ExpectSign(std::string_view sign);
  std::string ExpectName(std::string_view what);
  Token Take();

  // An expression; followed by a comma, a tuple of them.
  ExpressionPtr ParseTupleOrExpression();
  ExpressionPtr ParseExpression();
  ExpressionPtr ParseOr();
  // |name(arguments), with `input` null in a block.
  ExpressionPtr ParseFilter(ExpressionPtr input);

  // Guards against nesting that would exhaust the stack.
  class Depth {
   public:
    explicit Depth(ExpressionParser& parser);
    ~Depth() { --parser_.depth_; }
    Depth(const Depth&) = delete;
    Depth& operator=(const Depth&) = delete;

   private:
    ExpressionParser& parser_;
  };

 private:
  ExpressionPtr Make(Kind kind);
  ExpressionPtr Join(Kind kind, ExpressionPtr left, ExpressionPtr right, std::string name = "");
  ExpressionPtr ParseAnd();
  ExpressionPtr ParseNot();
  ExpressionPtr ParseCompare();
  bool TakeComparison(std::string& comparison);
  ExpressionPtr ParseSum();
  ExpressionPtr ParseConcat();
  ExpressionPtr ParseProduct();
  ExpressionPtr ParsePower();
  ExpressionPtr ParseUnary(bool with_filter);
  ExpressionPtr ParsePrimary();
  ExpressionPtr ParseNamed();
  ExpressionPtr ParseBracketed();
  ExpressionPtr ParsePostfix(ExpressionPtr node);
  ExpressionPtr ParseFilters(ExpressionPtr node);
  ExpressionPtr ParseSubscript(ExpressionPtr node);
  ExpressionPtr ParseTest(ExpressionPtr node);
  ExpressionPtr ParseCall(ExpressionPtr node);
  CallArguments ParseArguments();

  std::vector<Token> tokens_;
  size_t at_ = 0;
  int depth_ = 0;
  int num_nodes_ = 0;  // of the tag being read
};

}  // namespace pace::jinja

#endif  // PACE_TEXT_JINJA_PARSER_H_
