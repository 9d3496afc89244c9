#include "text/jinja/parser.h"

#include <initializer_list>

#include "core/concat.h"
#include "core/printable.h"
#include "text/jinja/expressions.h"

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

}  // namespace

Body Parse(std::string_view source) {
  return Parser(Lex(source)).Run();
}

}  // namespace pace::jinja
