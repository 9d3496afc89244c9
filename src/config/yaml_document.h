// Reading YAML strictly: one document, no key twice in a block, one line per
// error. Include it in sources only; yaml-cpp stays out of headers.
//
// Thread-safety: functions of their arguments. They may throw YAML::Exception
// where a text is no YAML; YamlError makes a Status of it.
#ifndef PACE_CONFIG_YAML_DOCUMENT_H_
#define PACE_CONFIG_YAML_DOCUMENT_H_

#include <yaml-cpp/yaml.h>

#include <string>
#include <string_view>

#include "core/status.h"

namespace pace {

// "NAME:LINE", for the place of an error.
std::string YamlPlace(const std::string& name, const YAML::Node& node);

// The one document of a text; null for an empty one.
Result<YAML::Node> LoadYamlDocument(std::string_view text, const std::string& name);

// An error where a block has a key twice; yaml-cpp would drop one of them.
Status CheckKeysOnce(const YAML::Node& block, const std::string& name);

Status YamlError(const YAML::Exception& error, const std::string& name);

}  // namespace pace

#endif  // PACE_CONFIG_YAML_DOCUMENT_H_
