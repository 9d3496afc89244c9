// The tree of a chat template.
#ifndef PACE_TEXT_JINJA_AST_H_
#define PACE_TEXT_JINJA_AST_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "text/jinja/lexer.h"
#include "text/value.h"

namespace pace::jinja {

struct Expression;
using ExpressionPtr = std::unique_ptr<Expression>;

// What is called, filtered with or tested for: name and arguments.
struct CallArguments {
  std::vector<ExpressionPtr> positional;
  std::vector<std::pair<std::string, ExpressionPtr>> named;
};

struct Expression {
  enum class Kind {
    kConstant,   // constant
    kName,       // name
    kList,       // parts
    kTuple,      // parts
    kDict,       // parts: key, value, key, value
    kAttribute,  // parts[0] . name
    kItem,       // parts[0] [ parts[1] ]
    kSlice,      // parts[0] [ parts[1] : parts[2] : parts[3] ], absent ones null
    kCall,       // parts[0] ( arguments )
    kFilter,     // parts[0] | name(arguments); parts[0] null in a block
    kTest,       // parts[0] is name(arguments)
    kNot,
    kNegative,
    kPositive,
    kAnd,
    kOr,
    kCondition,   // parts[0] if parts[1] else parts[2] (null: undefined)
    kCompare,     // parts[0] operators[0] parts[1] operators[1] parts[2] ...
    kArithmetic,  // parts[0] name parts[1]
  };
  Kind kind;
  Position position;
  Value constant;
  std::string name;
  std::vector<ExpressionPtr> parts;
  std::vector<std::string> operators;
  CallArguments arguments;
};

struct Statement;
using Body = std::vector<std::unique_ptr<Statement>>;

struct Statement {
  enum class Kind {
    kText,         // text
    kOutput,       // expression
    kIf,           // branches, otherwise
    kFor,          // targets in expression [if condition] body, otherwise
    kSet,          // targets = expression
    kSetMember,    // targets[0].targets[1] = expression
    kSetBlock,     // targets[0] = body, through `expression` if there is one
    kMacro,        // name, targets with defaults, body
    kFilterBlock,  // expression over body
    kScope,        // body as it is (generation)
    kBreak,
    kContinue,
  };
  Kind kind;
  Position position;
  std::string text;
  std::vector<std::string> targets;
  ExpressionPtr expression;
  ExpressionPtr condition;
  std::vector<ExpressionPtr> defaults;  // of a macro, one per target, null: none
  std::vector<std::pair<ExpressionPtr, Body>> branches;
  Body body;
  Body otherwise;
};

}  // namespace pace::jinja

#endif  // PACE_TEXT_JINJA_AST_H_
