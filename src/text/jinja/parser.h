// The parser of chat templates.
#ifndef PACE_TEXT_JINJA_PARSER_H_
#define PACE_TEXT_JINJA_PARSER_H_

#include <string_view>

#include "text/jinja/ast.h"

namespace pace::jinja {

// Throws TemplateError at what is no template, or no part of one that this
// reader knows.
Body Parse(std::string_view source);

}  // namespace pace::jinja

#endif  // PACE_TEXT_JINJA_PARSER_H_
