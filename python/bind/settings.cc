// Settings, methods and presets.
#include "config/settings.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdlib>

#include "bind/convert.h"
#include "config/methods.h"
#include "config/presets.h"

namespace pace::python {
namespace {

using namespace nb::literals;

// Numbers as such, where the field holds one; `auto` and names as text.
nb::object ValueOf(const Field& field) {
  const std::string text = field.Get();
  const nb::str value(text.c_str(), text.size());
  if (text == "true" || text == "false") return nb::bool_(text == "true");
  if (field.type() == "text" || field.type().starts_with("list")) return value;
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0') return value;
  if (text.find_first_not_of("-0123456789") == std::string::npos) {
    return nb::int_(std::strtoll(text.c_str(), nullptr, 10));
  }
  return nb::float_(number);
}

nb::object Get(Settings& settings, const std::string& key) {
  std::vector<std::string> keys;
  for (const Section& section : settings.Sections()) {
    for (const Field& field : section.fields) {
      if (section.name + "." + field.key() == key) return ValueOf(field);
      keys.push_back(section.name + "." + field.key());
    }
  }
  Refuse(key, ": no such setting (nearest: ", Nearest(key, keys), ")");
}

// True and 1.5 as YAML writes them.
std::string TextOf(const nb::handle& value) {
  if (nb::isinstance<nb::bool_>(value)) return nb::cast<bool>(value) ? "true" : "false";
  return nb::cast<std::string>(nb::str(value));
}

Settings Load(const std::string& preset, const nb::args& overrides,
              const std::optional<std::string>& method, const std::optional<nb::dict>& set) {
  std::vector<std::string> assignments;
  for (const nb::handle assignment : overrides) {
    assignments.push_back(nb::cast<std::string>(assignment));
  }
  if (set.has_value()) {
    for (const auto& [key, value] : *set) {
      assignments.push_back(nb::cast<std::string>(nb::str(key)) + "=" + TextOf(value));
    }
  }
  Settings settings = Take(LoadSettings(preset, assignments));
  if (method.has_value()) settings = Take(ApplyMethod(settings, *method));
  return settings;
}

}  // namespace

void BindSettings(nb::module_& module) {
  nb::class_<Settings>(module, "Settings", R"(Everything a run can be told, by key.

Settings(preset, *overrides, method=None, set=None): a preset's name or the path of a YAML file,
then "key=value" texts or a dictionary, then a method (docs/policies.md).

>>> import pace
>>> s = pace.Settings("math-4b", "supply.threshold=4", set={"run.num_steps": 20})
>>> s["supply.threshold"], s["run.num_steps"], s["admission.policy"]
(4, 20, 'pace')
>>> s["supply.threshold"] = -1
Traceback (most recent call last):
...
pace.InvalidArgument: supply.threshold = -1: must be >= 0 (0 = on-policy)
)")
      .def(
          "__init__",
          [](Settings* self, const std::string& preset, const nb::args& overrides,
             const std::optional<std::string>& method, const std::optional<nb::dict>& set) {
            new (self) Settings(Load(preset, overrides, method, set));
          },
          "preset"_a, "overrides"_a, nb::kw_only(), "method"_a = nb::none(), "set"_a = nb::none())
      .def("__getitem__", &Get, "key"_a)
      .def(
          "__setitem__",
          [](Settings& self, const std::string& key, const nb::object& value) {
            Check(ApplyOverride(self, key + "=" + TextOf(value)));
          },
          "key"_a, "value"_a)
      .def(
          "validate", [](const Settings& self) { Check(self.Validate()); },
          "Checks the rules that involve several keys.")
      .def(
          "with_method",
          [](const Settings& self, const std::string& method) {
            return Take(ApplyMethod(self, method));
          },
          "method"_a, "The same settings under another method.")
      .def(
          "to_yaml", [](const Settings& self) { return ToYaml(self); },
          "The resolved settings, as config.yaml of a run holds them.")
      .def("copy", [](const Settings& self) { return Settings(self); });

  module.def(
      "methods",
      [] {
        nb::list out;
        for (const Method& method : Methods()) {
          out.append(nb::make_tuple(std::string(method.name), std::string(method.doc)));
        }
        return out;
      },
      "Names of the methods with one line on each.");
}

}  // namespace pace::python
