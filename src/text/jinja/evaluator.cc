#include "text/jinja/evaluator.h"

#include <algorithm>

#include "core/concat.h"
#include "core/printable.h"
#include "text/characters.h"
#include "text/python_text.h"

namespace pace::jinja {
namespace {

// A template over a long conversation needs some thousands of steps and as many
// bytes as it prints.
constexpr int64_t kMaxWork = 64'000'000;
constexpr int kMaxDepth = 1000;
constexpr int64_t kStepCost = 16;

// Bounds how deep calls nest; 1000 frames fit any stack.
class DepthGuard {
 public:
  explicit DepthGuard(int& depth) : depth_(depth) { ++depth_; }
  ~DepthGuard() { --depth_; }
  DepthGuard(const DepthGuard&) = delete;
  DepthGuard& operator=(const DepthGuard&) = delete;

 private:
  int& depth_;
};

}  // namespace

const Value* Arguments::Find(size_t index, std::string_view name) const {
  if (index < positional.size()) return &positional[index];
  for (const auto& [key, value] : named) {
    if (key == name) return &value;
  }
  return nullptr;
}

Evaluator::Evaluator(ValueDict globals, std::optional<std::chrono::sys_seconds> now) : now_(now) {
  Scope scope;
  for (const char* name : {"range", "namespace", "dict", "raise_exception", "strftime_now"}) {
    if (!now.has_value() && std::string_view(name) == "strftime_now") continue;
    auto builtin = std::make_shared<Builtin>();
    builtin->name = name;
    scope[name] = Value::MakeObject(std::move(builtin));
  }
  for (const auto& [name, value] : globals.entries()) scope[name] = value;
  scopes_.push_back(std::move(scope));
}

void Evaluator::Charge(size_t cost) {
  work_ += static_cast<int64_t>(std::min<size_t>(cost, kMaxWork)) + kStepCost;
  if (work_ > kMaxWork) Fail("the template does too much work");
}

std::string Evaluator::Run(const Body& body) {
  RunBody(body);
  return std::move(out_);
}

void Evaluator::Write(const std::string& text) {
  Charge(text.size());
  out_ += text;
}

std::string Evaluator::TextOf(const Value& value) {
  if (value.is_undefined()) return "";
  if (value.is_text()) return value.text();
  Result<std::string> text = PythonRepr(value, static_cast<size_t>(kMaxWork));
  if (!text.ok()) Fail(text.status().message());
  Charge(text->size());
  return std::move(text).value();
}

Value Evaluator::MakeList(ValueList items, bool is_tuple) {
  Charge(items.size() * sizeof(Value));
  for (const Value& item : items) {
    if (!item.MayNest()) Fail("values nested too deeply");
    if (item.is_object() && dynamic_cast<Namespace*>(item.object()) != nullptr) {
      Fail("a namespace inside a list is not supported");
    }
  }
  return Value::MakeList(std::move(items), is_tuple);
}

Value Evaluator::MakeDict(ValueDict items) {
  Charge(items.entries().size() * sizeof(Value));
  for (const auto& [key, item] : items.entries()) {
    if (!item.MayNest()) Fail("values nested too deeply");
    if (item.is_object()) Fail("an object inside a dict is not supported");
  }
  return Value::MakeDict(std::move(items));
}

Evaluator::Flow Evaluator::RunBody(const Body& body) {
  for (const auto& statement : body) {
    const Flow flow = RunStatement(*statement);
    if (flow != Flow::kNext) return flow;
  }
  return Flow::kNext;
}

Evaluator::Flow Evaluator::RunStatement(const Statement& statement) {
  using Kind = Statement::Kind;
  const DepthGuard guard(depth_);
  position_ = statement.position;
  Charge(0);
  switch (statement.kind) {
    case Kind::kText:
      Write(statement.text);
      return Flow::kNext;
    case Kind::kOutput:
      Write(TextOf(Evaluate(*statement.expression)));
      return Flow::kNext;
    case Kind::kIf:
      for (const auto& [condition, body] : statement.branches) {
        if (Evaluate(*condition).Truthy()) return RunBody(body);
      }
      return RunBody(statement.otherwise);
    case Kind::kFor:
      return RunFor(statement);
    case Kind::kSet:
    case Kind::kSetMember:
    case Kind::kSetBlock:
      RunSet(statement);
      return Flow::kNext;
    case Kind::kMacro: {
      auto macro = std::make_shared<Macro>();
      macro->definition = &statement;
      scopes_.back()[statement.text] = Value::MakeObject(std::move(macro));
      return Flow::kNext;
    }
    case Kind::kFilterBlock: {
      const Value body(Capture(statement.body));
      const Expression& filter = *statement.expression;
      Write(TextOf(ApplyFilter(filter.name, body, EvaluateArguments(filter.arguments))));
      return Flow::kNext;
    }
    case Kind::kScope:
      return RunBody(statement.body);
    case Kind::kBreak:
      return Flow::kBreak;
    case Kind::kContinue:
      return Flow::kContinue;
  }
  return Flow::kNext;
}

std::string Evaluator::Capture(const Body& body) {
  std::string before = std::exchange(out_, {});
  RunBody(body);
  return std::exchange(out_, std::move(before));
}

void Evaluator::RunSet(const Statement& statement) {
  if (statement.kind == Statement::Kind::kSetBlock) {
    Value value(Capture(statement.body));
    if (statement.expression != nullptr) {
      const Expression& filter = *statement.expression;
      value = ApplyFilter(filter.name, value, EvaluateArguments(filter.arguments));
    }
    return Assign(statement.targets, value);
  }
  const Value value = Evaluate(*statement.expression);
  if (statement.kind == Statement::Kind::kSet) return Assign(statement.targets, value);
  const Value target = Lookup(statement.targets[0]);
  auto* space = target.is_object() ? dynamic_cast<Namespace*>(target.object()) : nullptr;
  if (space == nullptr) Fail(Concat("'", statement.targets[0], "' is not a namespace"));
  // A namespace inside itself would never be freed.
  if (value.is_object()) Fail("an object inside a namespace is not supported");
  space->members.Put(statement.targets[1], value);
}

void Evaluator::Assign(const std::vector<std::string>& targets, const Value& value) {
  if (targets.size() == 1) {
    scopes_.back()[targets[0]] = value;
    return;
  }
  const ValueList items = ItemsOf(value);
  if (items.size() != targets.size()) {
    Fail(Concat("cannot unpack ", items.size(), " values into ", targets.size(), " names"));
  }
  for (size_t i = 0; i < targets.size(); ++i) scopes_.back()[targets[i]] = items[i];
}

Value Evaluator::Lookup(const std::string& name) const {
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
    const auto entry = scope->find(name);
    if (entry != scope->end()) return entry->second;
  }
  return Value::MakeUndefined(name);
}

ValueList Evaluator::ItemsOf(const Value& value) {
  ValueList items;
  if (value.is_list()) {
    Charge(value.list().size() * sizeof(Value));
    return value.list();
  }
  if (value.is_dict()) {
    for (const auto& [key, item] : value.dict().entries()) items.emplace_back(key);
  } else if (value.is_text()) {
    const std::string& text = value.text();
    Charge(text.size() * sizeof(Value));
    for (size_t at = 0; at < text.size();) {
      const size_t size = ReadCodePoint(text, at).num_bytes;
      items.emplace_back(text.substr(at, size));
      at += size;
    }
  } else if (!value.is_undefined()) {
    Fail(Concat("'", value.TypeName(), "' is not iterable"));
  }
  Charge(items.size() * sizeof(Value));
  return items;
}

Evaluator::Flow Evaluator::RunFor(const Statement& statement) {
  ValueList items = ItemsOf(Evaluate(*statement.expression));
  if (statement.condition != nullptr) {
    ValueList kept;
    for (const Value& item : items) {
      scopes_.emplace_back();
      Assign(statement.targets, item);
      if (Evaluate(*statement.condition).Truthy()) kept.push_back(item);
      scopes_.pop_back();
    }
    items = std::move(kept);
  }
  if (items.empty()) return RunBody(statement.otherwise);
  auto loop = std::make_shared<Loop>();
  loop->items = &items;
  loop->depth = ++loop_depth_;
  Flow flow = Flow::kNext;
  for (size_t i = 0; i < items.size() && flow != Flow::kBreak; ++i) {
    Charge(sizeof(Scope));
    loop->index = static_cast<int64_t>(i);
    scopes_.emplace_back();
    scopes_.back()["loop"] = Value::MakeObject(loop);
    Assign(statement.targets, items[i]);
    flow = RunBody(statement.body);
    scopes_.pop_back();
  }
  --loop_depth_;
  loop->items = nullptr;  // a copy may outlive the list
  return Flow::kNext;
}

Value Evaluator::Evaluate(const Expression& node) {
  const DepthGuard guard(depth_);
  position_ = node.position;
  if (depth_ > kMaxDepth) Fail("calls nested too deeply");
  Charge(0);
  return EvaluateInner(node);
}

Value Evaluator::EvaluateInner(const Expression& node) {
  using Kind = Expression::Kind;
  const auto part = [&](size_t i) { return Evaluate(*node.parts[i]); };
  switch (node.kind) {
    case Kind::kConstant:
      return node.constant;
    case Kind::kName:
      return Lookup(node.name);
    case Kind::kList:
    case Kind::kTuple: {
      ValueList items;
      for (size_t i = 0; i < node.parts.size(); ++i) items.push_back(part(i));
      return MakeList(std::move(items), node.kind == Kind::kTuple);
    }
    case Kind::kDict:
      return EvaluateDict(node);
    case Kind::kAttribute: {
      const Value object = part(0);
      position_ = node.position;
      return AttributeOf(object, node.name);
    }
    case Kind::kItem: {
      const Value object = part(0);
      const Value key = part(1);
      position_ = node.position;
      return ItemOf(object, key);
    }
    case Kind::kSlice:
      return EvaluateSlice(node);
    case Kind::kCall:
      return EvaluateCall(node);
    case Kind::kFilter:
    case Kind::kTest: {
      const Value input = part(0);
      const Arguments arguments = EvaluateArguments(node.arguments);
      position_ = node.position;
      if (node.kind == Kind::kTest) return Value(ApplyTest(node.name, input, arguments));
      return ApplyFilter(node.name, input, arguments);
    }
    case Kind::kNot:
      return Value(!part(0).Truthy());
    case Kind::kNegative:
      return Arithmetic(*this, "-", Value(int64_t{0}), part(0));
    case Kind::kPositive:
      return Arithmetic(*this, "+", Value(int64_t{0}), part(0));
    case Kind::kAnd: {
      Value left = part(0);
      return left.Truthy() ? part(1) : left;
    }
    case Kind::kOr: {
      Value left = part(0);
      return left.Truthy() ? left : part(1);
    }
    case Kind::kCondition:
      if (part(1).Truthy()) return part(0);
      return node.parts[2] == nullptr ? Value() : part(2);
    case Kind::kCompare:
      return EvaluateCompare(node);
    case Kind::kArithmetic: {
      const Value left = part(0);
      const Value right = part(1);
      position_ = node.position;
      return Arithmetic(*this, node.name, left, right);
    }
  }
  return {};
}

Value Evaluator::EvaluateCompare(const Expression& node) {
  Value left = Evaluate(*node.parts[0]);
  for (size_t i = 0; i < node.operators.size(); ++i) {
    const std::string& sign = node.operators[i];
    Value right = Evaluate(*node.parts[i + 1]);
    position_ = node.position;
    bool holds = false;
    if (sign == "==" || sign == "!=") {
      holds = Equal(left, right) == (sign == "==");
    } else if (sign == "in" || sign == "not in") {
      holds = Contains(right, left) == (sign == "in");
    } else if (sign == "<") {
      holds = Less(left, right);
    } else if (sign == ">") {
      holds = Less(right, left);
    } else if (sign == "<=") {
      holds = Less(left, right) || Equal(left, right);
    } else {
      holds = Less(right, left) || Equal(left, right);
    }
    if (!holds) return Value(false);
    left = std::move(right);
  }
  return Value(true);
}

Value Evaluator::EvaluateDict(const Expression& node) {
  ValueDict dict;
  for (size_t i = 0; i < node.parts.size(); i += 2) {
    const Value key = Evaluate(*node.parts[i]);
    if (!key.is_text()) Fail("a dict key that is not a string is not supported");
    dict.Put(key.text(), Evaluate(*node.parts[i + 1]));
  }
  return MakeDict(std::move(dict));
}

Arguments Evaluator::EvaluateArguments(const CallArguments& arguments) {
  Arguments out;
  for (const auto& argument : arguments.positional) out.positional.push_back(Evaluate(*argument));
  for (const auto& [name, argument] : arguments.named) {
    out.named.emplace_back(name, Evaluate(*argument));
  }
  return out;
}

}  // namespace pace::jinja
