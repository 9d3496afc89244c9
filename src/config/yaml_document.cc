#include "config/yaml_document.h"

#include <set>
#include <vector>

#include "core/printable.h"

namespace pace {

std::string YamlPlace(const std::string& name, const YAML::Node& node) {
  return Concat(name, ":", node.Mark().line + 1);
}

Result<YAML::Node> LoadYamlDocument(std::string_view text, const std::string& name) {
  const std::vector<YAML::Node> documents = YAML::LoadAll(std::string(text));
  if (documents.empty()) return YAML::Node();
  if (documents.size() > 1) {
    return InvalidArgument("a second document begins here: must be one")
        .At(YamlPlace(name, documents[1]));
  }
  return documents.front();
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

Status YamlError(const YAML::Exception& error, const std::string& name) {
  return InvalidArgument(name, ":", error.mark.line + 1, ": not YAML: ", Printable(error.msg));
}

}  // namespace pace
