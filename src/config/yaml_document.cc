#include "config/yaml_document.h"

#include <yaml-cpp/anchor.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/mark.h>

#include <set>
#include <sstream>
#include <vector>

#include "core/printable.h"

namespace pace {
namespace {

Result<std::string> ScalarOf(const YAML::Node& node, std::string_view key, std::string_view rule,
                             const std::string& name) {
  if (node.IsScalar()) return node.Scalar();
  return InvalidArgument(Printable(key), ": ", rule).At(YamlPlace(name, node));
}

// Notes where a document begins.
class DocumentStart : public YAML::EventHandler {
 public:
  const YAML::Mark& mark() const { return mark_; }

  void OnDocumentStart(const YAML::Mark& mark) override { mark_ = mark; }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t,
                const std::string&) override {}
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {}
  void OnMapEnd() override {}

 private:
  YAML::Mark mark_;
};

}  // namespace

std::string YamlPlace(const std::string& name, const YAML::Node& node) {
  return Concat(name, ":", node.Mark().line + 1);
}

Result<YAML::Node> LoadYamlDocument(std::string_view text, const std::string& name) {
  // Not YAML::LoadAll: where no value can begin, it finds empty documents without end.
  std::istringstream stream{std::string(text)};
  YAML::Parser parser(stream);
  DocumentStart first;
  if (!parser.HandleNextDocument(first)) return YAML::Node();
  if (DocumentStart second; parser.HandleNextDocument(second)) {
    const bool advanced = second.mark().pos > first.mark().pos;
    return InvalidArgument(advanced ? "a second document begins here: must be one"
                                    : "no YAML value can begin like this line")
        .At(Concat(name, ":", second.mark().line + 1));
  }
  return YAML::Load(std::string(text));
}

Status CheckKeysOnce(const YAML::Node& block, const std::string& name) {
  std::set<std::string> keys;
  for (const auto& entry : block) {
    if (!entry.first.IsScalar() || keys.insert(entry.first.Scalar()).second) continue;
    return InvalidArgument(Printable(entry.first.Scalar()), ": is there twice (keep one of them)")
        .At(YamlPlace(name, entry.first));
  }
  return Status::Ok();
}

Result<FieldValue> YamlValue(const YAML::Node& node, const std::string& key, bool may_be_block,
                             const std::string& name) {
  if (node.IsScalar()) return FieldValue(PlainText{node.Scalar()});
  if (node.IsNull()) return FieldValue(nullptr);
  if (node.IsSequence()) {
    std::vector<std::string> items;
    for (const YAML::Node& item : node) {
      PACE_ASSIGN_OR_RETURN(std::string text, ScalarOf(item, key, "a list holds words only", name));
      items.push_back(std::move(text));
    }
    return FieldValue(std::move(items));
  }
  if (!may_be_block) {
    return InvalidArgument(Printable(key), ": must be one value, not a block")
        .At(YamlPlace(name, node));
  }
  PACE_RETURN_IF_ERROR(CheckKeysOnce(node, name));
  NamedSettings settings;
  for (const auto& entry : node) {
    constexpr char kRule[] = "must hold name and options, each with one value";
    PACE_ASSIGN_OR_RETURN(std::string option, ScalarOf(entry.first, key, kRule, name));
    PACE_ASSIGN_OR_RETURN(std::string text, ScalarOf(entry.second, key, kRule, name));
    settings.push_back({std::move(option), std::move(text)});
  }
  return FieldValue(std::move(settings));
}

Status SetFromYaml(const std::vector<Field>& fields, const YAML::Node& key, const YAML::Node& value,
                   const std::string& owner, const std::string& name) {
  PACE_ASSIGN_OR_RETURN(const std::string word, ScalarOf(key, owner, "a key must be a word", name));
  const Result<const Field*> field =
      FindField(fields, word, owner, owner.empty() ? "the file" : owner);
  if (!field.ok()) return field.status().At(YamlPlace(name, key));
  const std::string full_key = owner.empty() ? word : Concat(owner, ".", word);
  PACE_ASSIGN_OR_RETURN(const FieldValue given, YamlValue(value, full_key, false, name));
  return (*field)->Set(given, full_key).At(YamlPlace(name, key));
}

Status YamlError(const YAML::Exception& error, const std::string& name) {
  return InvalidArgument(name, ":", error.mark.line + 1, ": not YAML: ", Printable(error.msg));
}

}  // namespace pace
