// The evaluator of chat templates.
//
// Time and memory are bounded: evaluation steps, bytes written and bytes made
// in between, the depth of calls. A template that asks for more is refused.
#ifndef PACE_TEXT_JINJA_EVALUATOR_H_
#define PACE_TEXT_JINJA_EVALUATOR_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "text/jinja/ast.h"
#include "text/value.h"

namespace pace::jinja {

struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;

  // The argument at `index`, or by `name`; none if it was not given.
  const Value* Find(size_t index, std::string_view name) const;
};

struct Namespace : ValueObject {
  ValueDict members;
};
struct Macro : ValueObject {
  const Statement* definition = nullptr;
};
struct Builtin : ValueObject {
  std::string name;
};
struct Method : ValueObject {
  Value self;
  std::string name;
};
struct Loop : ValueObject {
  const ValueList* items = nullptr;
  int64_t index = 0;
  int64_t depth = 0;
};

class Evaluator {
 public:
  Evaluator(ValueDict globals, std::optional<std::chrono::sys_seconds> now);

  // Throws TemplateError.
  std::string Run(const Body& body);

  [[noreturn]] void Fail(const std::string& what) const { throw TemplateError(position_, what); }
  // Counts work done; refuses when there is too much of it.
  void Charge(size_t cost);
  // The worst case of looking for `what` in `text`.
  void ChargeSearch(const std::string& text, const std::string& what) {
    constexpr size_t kBytesPerStep = 16;  // that a comparison of memory takes at once
    Charge(text.size() + text.size() / kBytesPerStep * what.size());
  }
  // str(value), as Jinja prints it.
  std::string TextOf(const Value& value);
  Value MakeList(ValueList items, bool is_tuple = false);
  Value MakeDict(ValueDict items);
  // What a loop over the value would visit.
  ValueList ItemsOf(const Value& value);
  bool Equal(const Value& left, const Value& right);
  bool Less(const Value& left, const Value& right);
  bool Contains(const Value& container, const Value& item);
  Value AttributeOf(const Value& value, const std::string& name);
  Value ItemOf(const Value& value, const Value& key);
  Value ApplyFilter(const std::string& name, const Value& input, const Arguments& arguments);
  bool ApplyTest(const std::string& name, const Value& input, const Arguments& arguments);
  std::optional<std::chrono::sys_seconds> now() const { return now_; }

 private:
  enum class Flow { kNext, kBreak, kContinue };
  using Scope = std::unordered_map<std::string, Value>;

  Flow RunBody(const Body& body);
  Flow RunStatement(const Statement& statement);
  Flow RunFor(const Statement& statement);
  void RunSet(const Statement& statement);
  std::string Capture(const Body& body);
  void Write(const std::string& text);
  void Assign(const std::vector<std::string>& targets, const Value& value);
  Value Lookup(const std::string& name) const;

  Value Evaluate(const Expression& node);
  Value EvaluateInner(const Expression& node);
  Value EvaluateCompare(const Expression& node);
  Value EvaluateDict(const Expression& node);
  Value EvaluateSlice(const Expression& node);
  Value EvaluateCall(const Expression& node);
  Arguments EvaluateArguments(const CallArguments& arguments);
  Value CallMacro(const Macro& macro, const Arguments& arguments);
  Value CallBuiltin(const std::string& name, const Arguments& arguments);

  std::vector<Scope> scopes_;
  std::string out_;
  Position position_;
  std::optional<std::chrono::sys_seconds> now_;
  int64_t work_ = 0;
  int depth_ = 0;
  int64_t loop_depth_ = 0;
};

// str and dict methods, in methods.cc. Unknown names fail.
bool HasMethod(const Value& self, const std::string& name);
Value CallMethod(Evaluator& evaluator, const Value& self, const std::string& name,
                 const Arguments& arguments);
// + - * / // % ** ~, in arithmetic.cc.
Value Arithmetic(Evaluator& evaluator, const std::string& sign, const Value& left,
                 const Value& right);

}  // namespace pace::jinja

#endif  // PACE_TEXT_JINJA_EVALUATOR_H_
