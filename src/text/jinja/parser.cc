#include "text/jinja/parser.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <initializer_list>

#include "core/concat.h"
#include "core/printable.h"

namespace pace::jinja {
namespace {

class Parser : public ExpressionParser {
 public:
  using ExpressionParser::ExpressionParser;

  Body Run() {
    Body body = ParseBody({});
    if (Look().kind != Token::Kind::kEnd) Fail("text after the end");
    return body;
  }

 private:
  using StatementPtr = std::unique_ptr<Statement>;
  using SKind = Statement::Kind;

  StatementPtr MakeStatement(SKind kind) const {
    auto statement = std::make_unique<Statement>();
    statement->kind = kind;
    statement->position = Look().position;
    return statement;
  }

  void EndBlock() {
    if (Look().kind != Token::Kind::kBlockEnd) {
      Fail(Concat("'", Printable(Look().text), "': expected '%}'"));
    }
    Take();
  }

  // Up to one of the names in `ends`, whose tag is then open, name not taken.
  Body ParseBody(std::initializer_list<std::string_view> ends) {
    const Depth depth(*this);
    Body body;
    while (Look().kind != Token::Kind::kEnd) {
      if (Look().kind == Token::Kind::kData) {
        StatementPtr text = MakeStatement(SKind::kText);
        text->text = Take().text;
        body.push_back(std::move(text));
      } else if (Look().kind == Token::Kind::kVariable) {
        StatementPtr output = MakeStatement(SKind::kOutput);
        Take();
        output->expression = ParseTupleOrExpression();
        if (Look().kind != Token::Kind::kVariableEnd) Fail("expected '}}'");
        Take();
        body.push_back(std::move(output));
      } else {
        for (const std::string_view end : ends) {
          if (!IsName(end, 1)) continue;
          Take();
          return body;
        }
        body.push_back(ParseStatement());
      }
    }
    if (ends.size() > 0) Fail(Concat("a block without its ", *(ends.end() - 1)));
    return body;
  }

  StatementPtr ParseStatement() {
    StatementPtr out = MakeStatement(SKind::kScope);
    Take();
    if (TakeName("if")) return ParseIf(std::move(out));
    if (TakeName("for")) return ParseFor(std::move(out));
    if (TakeName("set")) return ParseSet(std::move(out));
    if (TakeName("macro")) return ParseMacro(std::move(out));
    if (TakeName("generation")) {
      EndBlock();
      out->body = ParseBody({"endgeneration"});
      Take();
    } else if (TakeName("filter")) {
      out->kind = SKind::kFilterBlock;
      out->expression = ParseFilter(nullptr);
      EndBlock();
      out->body = ParseBody({"endfilter"});
      Take();
    } else if (TakeName("break")) {
      if (loop_depth_ == 0) Fail("break outside a loop");
      out->kind = SKind::kBreak;
    } else if (TakeName("continue")) {
      if (loop_depth_ == 0) Fail("continue outside a loop");
      out->kind = SKind::kContinue;
    } else {
      Fail(Concat("the statement '", Printable(Look().text), "' is not supported"));
    }
    EndBlock();
    return out;
  }

  StatementPtr ParseIf(StatementPtr out) {
    out->kind = SKind::kIf;
    while (true) {
      ExpressionPtr condition = ParseTupleOrExpression();
      EndBlock();
      Body body = ParseBody({"elif", "else", "endif"});
      out->branches.emplace_back(std::move(condition), std::move(body));
      if (TakeName("elif")) continue;
      if (TakeName("else")) {
        EndBlock();
        out->otherwise = ParseBody({"endif"});
      }
      Take();
      EndBlock();
      return out;
    }
  }

  std::vector<std::string> ParseTargets() {
    std::vector<std::string> targets;
    const bool bracketed = TakeSign("(");
    do {
      targets.push_back(ExpectName("the name of a variable"));
    } while (TakeSign(","));
    if (bracketed) ExpectSign(")");
    return targets;
  }

  StatementPtr ParseFor(StatementPtr out) {
    out->kind = SKind::kFor;
    out->targets = ParseTargets();
    if (!TakeName("in")) Fail("expected 'in'");
    // No inline `if` here: it filters the loop.
    out->expression = ParseOr();
    if (TakeName("if")) out->condition = ParseExpression();
    if (IsName("recursive")) Fail("a recursive loop is not supported");
    EndBlock();
    ++loop_depth_;
    out->body = ParseBody({"else", "endfor"});
    --loop_depth_;
    if (TakeName("else")) {
      EndBlock();
      out->otherwise = ParseBody({"endfor"});
    }
    Take();
    EndBlock();
    return out;
  }

  StatementPtr ParseSet(StatementPtr out) {
    out->kind = SKind::kSet;
    out->targets = ParseTargets();
    if (out->targets.size() == 1 && TakeSign(".")) {
      out->kind = SKind::kSetMember;
      out->targets.push_back(ExpectName("the name of a member"));
    }
    if (TakeSign("=")) {
      out->expression = ParseTupleOrExpression();
      EndBlock();
      return out;
    }
    if (out->kind == SKind::kSetMember || out->targets.size() != 1) Fail("expected '='");
    out->kind = SKind::kSetBlock;
    if (TakeSign("|")) out->expression = ParseFilter(nullptr);
    EndBlock();
    out->body = ParseBody({"endset"});
    Take();
    EndBlock();
    return out;
  }

  StatementPtr ParseMacro(StatementPtr out) {
    out->kind = SKind::kMacro;
    out->text = ExpectName("the name of the macro");
    ExpectSign("(");
    while (!TakeSign(")")) {
      if (!out->targets.empty()) ExpectSign(",");
      out->targets.push_back(ExpectName("the name of a parameter"));
      out->defaults.push_back(TakeSign("=") ? ParseExpression() : nullptr);
    }
    EndBlock();
    const int loops = std::exchange(loop_depth_, 0);
    out->body = ParseBody({"endmacro"});
    loop_depth_ = loops;
    Take();
    EndBlock();
    return out;
  }

  int loop_depth_ = 0;
};

constexpr int kMaxNesting = 100;
// Chains such as a + b + c nest in the tree without nesting in the source.
constexpr int kMaxNodesPerTag = 2000;

}  // namespace

Body Parse(std::string_view source) {
  return Parser(Lex(source)).Run();
}

ExpressionParser::Depth::Depth(ExpressionParser& parser) : parser_(parser) {
  if (++parser_.depth_ > kMaxNesting) {
    --parser_.depth_;
    parser_.Fail("nested too deeply");
  }
}

void ExpressionParser::Fail(const std::string& what) const {
  throw TemplateError(Look().position, what);
}

const Token& ExpressionParser::Look(size_t ahead) const {
  return tokens_[std::min(at_ + ahead, tokens_.size() - 1)];
}

bool ExpressionParser::IsSign(std::string_view sign, size_t ahead) const {
  return Look(ahead).kind == Token::Kind::kSign && Look(ahead).text == sign;
}
bool ExpressionParser::IsName(std::string_view name, size_t ahead) const {
  return Look(ahead).kind == Token::Kind::kName && Look(ahead).text == name;
}

Token ExpressionParser::Take() {
  Token token = Look();
  if (at_ + 1 < tokens_.size()) ++at_;
  if (token.kind == Token::Kind::kBlock || token.kind == Token::Kind::kVariable) num_nodes_ = 0;
  return token;
}

bool ExpressionParser::TakeSign(std::string_view sign) {
  if (!IsSign(sign)) return false;
  ++at_;
  return true;
}
bool ExpressionParser::TakeName(std::string_view name) {
  if (!IsName(name)) return false;
  ++at_;
  return true;
}
void ExpressionParser::ExpectSign(std::string_view sign) {
  if (!TakeSign(sign)) Fail(Concat("expected '", sign, "'"));
}
std::string ExpressionParser::ExpectName(std::string_view what) {
  if (Look().kind != Token::Kind::kName) Fail(Concat("expected ", what));
  return Take().text;
}

ExpressionPtr ExpressionParser::Make(Kind kind) {
  if (++num_nodes_ > kMaxNodesPerTag) Fail("too long for one tag");
  auto node = std::make_unique<Expression>();
  node->kind = kind;
  node->position = Look().position;
  return node;
}

ExpressionPtr ExpressionParser::Join(Kind kind, ExpressionPtr left, ExpressionPtr right,
                                     std::string name) {
  ExpressionPtr node = Make(kind);
  node->position = left->position;
  node->name = std::move(name);
  node->parts.push_back(std::move(left));
  if (right != nullptr) node->parts.push_back(std::move(right));
  return node;
}

ExpressionPtr ExpressionParser::ParseTupleOrExpression() {
  ExpressionPtr first = ParseExpression();
  if (!IsSign(",")) return first;
  ExpressionPtr tuple = Make(Kind::kTuple);
  tuple->parts.push_back(std::move(first));
  while (TakeSign(",")) {
    const Token::Kind next = Look().kind;
    if (next == Token::Kind::kBlockEnd || next == Token::Kind::kVariableEnd || IsSign(")")) break;
    tuple->parts.push_back(ParseExpression());
  }
  return tuple;
}

ExpressionPtr ExpressionParser::ParseExpression() {
  const Depth depth(*this);
  ExpressionPtr node = ParseOr();
  while (IsName("if")) {
    Take();
    node = Join(Kind::kCondition, std::move(node), ParseOr());
    node->parts.push_back(TakeName("else") ? ParseExpression() : nullptr);
  }
  return node;
}

ExpressionPtr ExpressionParser::ParseOr() {
  ExpressionPtr node = ParseAnd();
  while (TakeName("or")) {
    node = Join(Kind::kOr, std::move(node), ParseAnd());
  }
  return node;
}

ExpressionPtr ExpressionParser::ParseAnd() {
  ExpressionPtr node = ParseNot();
  while (TakeName("and")) {
    node = Join(Kind::kAnd, std::move(node), ParseNot());
  }
  return node;
}

ExpressionPtr ExpressionParser::ParseNot() {
  const Depth depth(*this);
  if (!IsName("not")) return ParseCompare();
  ExpressionPtr node = Make(Kind::kNot);
  Take();
  node->parts.push_back(ParseNot());
  return node;
}

bool ExpressionParser::TakeComparison(std::string& comparison) {
  for (const std::string_view sign : {"==", "!=", "<=", ">=", "<", ">"}) {
    if (!TakeSign(sign)) continue;
    comparison = sign;
    return true;
  }
  if (TakeName("in")) {
    comparison = "in";
    return true;
  }
  if (!IsName("not") || !IsName("in", 1)) return false;
  Take();
  Take();
  comparison = "not in";
  return true;
}

ExpressionPtr ExpressionParser::ParseCompare() {
  ExpressionPtr first = ParseSum();
  std::string comparison;
  if (!TakeComparison(comparison)) return first;
  ExpressionPtr node = Join(Kind::kCompare, std::move(first), nullptr);
  do {
    node->operators.push_back(comparison);
    node->parts.push_back(ParseSum());
  } while (TakeComparison(comparison));
  return node;
}

ExpressionPtr ExpressionParser::ParseSum() {
  ExpressionPtr node = ParseConcat();
  while (IsSign("+") || IsSign("-")) {
    std::string sign = Take().text;
    node = Join(Kind::kArithmetic, std::move(node), ParseConcat(), std::move(sign));
  }
  return node;
}

ExpressionPtr ExpressionParser::ParseConcat() {
  ExpressionPtr node = ParseProduct();
  while (TakeSign("~")) {
    node = Join(Kind::kArithmetic, std::move(node), ParseProduct(), "~");
  }
  return node;
}

ExpressionPtr ExpressionParser::ParseProduct() {
  ExpressionPtr node = ParsePower();
  while (IsSign("*") || IsSign("/") || IsSign("//") || IsSign("%")) {
    std::string sign = Take().text;
    node = Join(Kind::kArithmetic, std::move(node), ParsePower(), std::move(sign));
  }
  return node;
}

ExpressionPtr ExpressionParser::ParsePower() {
  ExpressionPtr node = ParseUnary(true);
  while (TakeSign("**")) {
    node = Join(Kind::kArithmetic, std::move(node), ParseUnary(true), "**");
  }
  return node;
}

ExpressionPtr ExpressionParser::ParseUnary(bool with_filter) {
  const Depth depth(*this);
  ExpressionPtr node;
  if (IsSign("-") || IsSign("+")) {
    node = Make(IsSign("-") ? Kind::kNegative : Kind::kPositive);
    Take();
    node->parts.push_back(ParseUnary(false));
  } else {
    node = ParsePrimary();
  }
  node = ParsePostfix(std::move(node));
  return with_filter ? ParseFilters(std::move(node)) : std::move(node);
}

ExpressionPtr ExpressionParser::ParsePrimary() {
  ExpressionPtr node = Make(Kind::kConstant);
  switch (Look().kind) {
    case Token::Kind::kName:
      return ParseNamed();
    case Token::Kind::kText: {
      std::string text;
      while (Look().kind == Token::Kind::kText) text += Take().text;
      node->constant = Value(std::move(text));
      return node;
    }
    case Token::Kind::kInteger: {
      int64_t number = 0;
      const std::string& digits = Look().text;
      const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), number);
      if (result.ec != std::errc()) Fail("an integer beyond 64 bits is not supported");
      Take();
      node->constant = Value(number);
      return node;
    }
    case Token::Kind::kReal:
      node->constant = Value(std::strtod(Take().text.c_str(), nullptr));
      return node;
    default:
      return ParseBracketed();
  }
}

ExpressionPtr ExpressionParser::ParseNamed() {
  ExpressionPtr node = Make(Kind::kConstant);
  node->name = Take().text;
  const std::string_view name = node->name;
  if (name == "true" || name == "True") {
    node->constant = Value(true);
  } else if (name == "false" || name == "False") {
    node->constant = Value(false);
  } else if (name == "none" || name == "None") {
    node->constant = Value::MakeNone();
  } else {
    node->kind = Kind::kName;
  }
  return node;
}

ExpressionPtr ExpressionParser::ParseBracketed() {
  ExpressionPtr node = Make(Kind::kList);
  if (TakeSign("(")) {
    if (!IsSign(")")) {
      ExpressionPtr inner = ParseTupleOrExpression();
      ExpectSign(")");
      return inner;
    }
    Take();
    node->kind = Kind::kTuple;
  } else if (TakeSign("[")) {
    while (!TakeSign("]")) {
      if (!node->parts.empty()) ExpectSign(",");
      if (TakeSign("]")) break;
      node->parts.push_back(ParseExpression());
    }
  } else if (TakeSign("{")) {
    node->kind = Kind::kDict;
    while (!TakeSign("}")) {
      if (!node->parts.empty()) ExpectSign(",");
      if (TakeSign("}")) break;
      node->parts.push_back(ParseExpression());
      ExpectSign(":");
      node->parts.push_back(ParseExpression());
    }
  } else {
    Fail("expected an expression");
  }
  return node;
}

ExpressionPtr ExpressionParser::ParsePostfix(ExpressionPtr node) {
  while (true) {
    if (IsSign(".") || IsSign("[")) {
      node = ParseSubscript(std::move(node));
    } else if (IsSign("(")) {
      node = ParseCall(std::move(node));
    } else {
      return node;
    }
  }
}

ExpressionPtr ExpressionParser::ParseFilters(ExpressionPtr node) {
  while (true) {
    if (TakeSign("|")) {
      node = ParseFilter(std::move(node));
    } else if (TakeName("is")) {
      node = ParseTest(std::move(node));
    } else if (IsSign("(")) {
      node = ParseCall(std::move(node));
    } else {
      return node;
    }
  }
}

ExpressionPtr ExpressionParser::ParseSubscript(ExpressionPtr node) {
  ExpressionPtr out = Make(Kind::kAttribute);
  if (TakeSign(".")) {
    if (Look().kind == Token::Kind::kInteger) {
      out->kind = Kind::kItem;
      out->parts.push_back(std::move(node));
      out->parts.push_back(ParsePrimary());
      return out;
    }
    out->name = ExpectName("the name of an attribute");
    out->parts.push_back(std::move(node));
    return out;
  }
  Take();
  out->kind = Kind::kItem;
  out->parts.push_back(std::move(node));
  out->parts.push_back(IsSign(":") ? nullptr : ParseExpression());
  if (IsSign(":")) {
    out->kind = Kind::kSlice;
    while (TakeSign(":")) {
      if (out->parts.size() > 3) Fail("a slice has at most three parts");
      out->parts.push_back(IsSign(":") || IsSign("]") ? nullptr : ParseExpression());
    }
    out->parts.resize(4);
  }
  ExpectSign("]");
  return out;
}

ExpressionPtr ExpressionParser::ParseFilter(ExpressionPtr input) {
  ExpressionPtr node = Make(Kind::kFilter);
  node->name = ExpectName("the name of a filter");
  node->parts.push_back(std::move(input));
  if (IsSign("(")) node->arguments = ParseArguments();
  return node;
}

ExpressionPtr ExpressionParser::ParseTest(ExpressionPtr input) {
  ExpressionPtr node = Make(Kind::kTest);
  const bool negated = TakeName("not");
  node->name = ExpectName("the name of a test");
  node->parts.push_back(std::move(input));
  if (IsSign("(")) {
    node->arguments = ParseArguments();
  } else {
    const Token::Kind next = Look().kind;
    bool has_argument = next == Token::Kind::kText || next == Token::Kind::kInteger ||
                        next == Token::Kind::kReal || IsSign("[") || IsSign("{");
    if (next == Token::Kind::kName) {
      has_argument = true;
      for (const std::string_view word : {"else", "or", "and", "if", "in", "not", "is"}) {
        if (IsName(word)) has_argument = false;
      }
    }
    if (has_argument) node->arguments.positional.push_back(ParsePostfix(ParsePrimary()));
  }
  if (!negated) return node;
  return Join(Kind::kNot, std::move(node), nullptr);
}

ExpressionPtr ExpressionParser::ParseCall(ExpressionPtr node) {
  ExpressionPtr out = Make(Kind::kCall);
  out->position = node->position;
  out->parts.push_back(std::move(node));
  out->arguments = ParseArguments();
  return out;
}

CallArguments ExpressionParser::ParseArguments() {
  CallArguments arguments;
  ExpectSign("(");
  bool first = true;
  while (!TakeSign(")")) {
    if (!first) ExpectSign(",");
    first = false;
    if (TakeSign(")")) break;
    if (IsSign("*") || IsSign("**")) Fail("unpacked arguments are not supported");
    if (Look().kind == Token::Kind::kName && IsSign("=", 1)) {
      std::string name = Take().text;
      Take();
      arguments.named.emplace_back(std::move(name), ParseExpression());
    } else {
      if (!arguments.named.empty()) Fail("a positional argument behind a named one");
      arguments.positional.push_back(ParseExpression());
    }
  }
  return arguments;
}

}  // namespace pace::jinja
