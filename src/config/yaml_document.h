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
#include <vector>

#include "config/field.h"
#include "core/status.h"

namespace pace {

// "NAME:LINE", for the place of an error.
std::string YamlPlace(const std::string& name, const YAML::Node& node);

// The one document of a text; null for an empty one.
Result<YAML::Node> LoadYamlDocument(std::string_view text, const std::string& name);

// An error where a block has a key twice; yaml-cpp would drop one of them.
Status CheckKeysOnce(const YAML::Node& block, const std::string& name);

// The value of `key` for a Field: one value, a list of words, or, where a block may
// stand, its entries.
Result<FieldValue> YamlValue(const YAML::Node& node, const std::string& key, bool may_be_block,
                             const std::string& name);

// Sets the field of one entry, OWNER.KEY; another key is an error that names the nearest.
Status SetFromYaml(const std::vector<Field>& fields, const YAML::Node& key, const YAML::Node& value,
                   const std::string& owner, const std::string& name);

Status YamlError(const YAML::Exception& error, const std::string& name);

}  // namespace pace

#endif  // PACE_CONFIG_YAML_DOCUMENT_H_
