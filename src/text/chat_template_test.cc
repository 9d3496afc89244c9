#include "text/chat_template.h"

#include <gtest/gtest.h>

#include "text/python_text.h"

namespace pace {
namespace {

std::string Render(const std::string& source, const std::string& messages = "[]",
                   const std::string& extra = "{}") {
  const Result<ChatTemplate> chat = ChatTemplate::Parse(source);
  if (!chat.ok()) return chat.status().message();
  ChatInputs inputs;
  inputs.messages = *ParsePythonJson(messages);
  inputs.extra = ParsePythonJson(extra)->dict();
  const Result<std::string> text = chat->Render(inputs);
  return text.ok() ? *text : text.status().message();
}

TEST(ChatTemplateTest, RendersMessagesWithLoopVariables) {
  EXPECT_EQ(Render("{% for m in messages %}{{ loop.index }}:{{ m.role }}={{ m['content'] }}"
                   "{{ '' if loop.last else ', ' }}{% endfor %}",
                   R"([{"role": "user", "content": "hi"}, {"role": "tool", "content": "ok"}])"),
            "1:user=hi, 2:tool=ok");
}

TEST(ChatTemplateTest, WhiteSpaceFollowsTransformers) {
  EXPECT_EQ(Render("a\n  {% if true %}\nb\n  {% endif %}\nc\n"), "a\nb\nc");
  EXPECT_EQ(Render("a  {%- if true -%}  b  {%- endif -%}  c"), "abc");
  EXPECT_EQ(Render("a\n  {%+ if true +%}\nb{% endif %}"), "a\n  \nb");
  EXPECT_EQ(Render("a {# note #}\nb {{- ' c ' -}}  d"), "a b c d");
  EXPECT_EQ(Render("{% raw %}{{ x }}{% endraw %}"), "{{ x }}");
}

TEST(ChatTemplateTest, SetStaysInItsLoopAndNamespacesCarryOut) {
  EXPECT_EQ(
      Render("{% set x = 1 %}{% set ns = namespace(y=1) %}{% for i in range(3) %}"
             "{% set x = x + 1 %}{% set ns.y = ns.y * 2 %}{{ x }}{% endfor %}|{{ x }},{{ ns.y }}"),
      "222|1,8");
}

TEST(ChatTemplateTest, JsonKeepsOrderAndLetters) {
  EXPECT_EQ(Render("{{ x | tojson }}", "[]", R"({"x": {"b": [1, 2.0, null], "a": "é<'\n"}})"),
            "{\"b\": [1, 2.0, null], \"a\": \"é<'\\n\"}");
  EXPECT_EQ(Render("{{ [1, {'a': 2}] | tojson(indent=2) }}"), "[\n  1,\n  {\n    \"a\": 2\n  }\n]");
}

TEST(ChatTemplateTest, ExpressionsFollowPython) {
  EXPECT_EQ(Render("{{ 7 // 2 }},{{ -7 // 2 }},{{ -7 % 3 }},{{ 1 / 2 }},{{ 2 ** 3 }}"),
            "3,-4,2,0.5,8");
  EXPECT_EQ(Render("{{ 'abcdef'[1:4] }},{{ 'abc'[::-1] }},{{ [1,2,3][-1] }}"), "bcd,cba,3");
  EXPECT_EQ(Render("{{ 1 < 2 < 3 }},{{ 'a' in 'cat' }},{{ 'x' not in ['y'] }}"), "True,True,True");
  EXPECT_EQ(Render("{{ none }},{{ [1, 'a', none] }},{{ {'k': true} }}"),
            "None,[1, 'a', None],{'k': True}");
  EXPECT_EQ(Render("{{ '</think>x'.split('</think>')[-1].lstrip('\\n') | trim | upper }}"), "X");
  EXPECT_EQ(Render("{{ x is defined }},{{ x | default('d') }},{{ not x }}"), "False,d,True");
}

TEST(ChatTemplateTest, MacrosAndBlocks) {
  EXPECT_EQ(Render("{% macro f(a, b='-') %}{{ a ~ b }}{% endmacro %}{{ f(1) }}{{ f(2, b=3) }}"),
            "1-23");
  EXPECT_EQ(Render("{% set t %}x{{ 1 }}{% endset %}{{ t }}{% filter upper %}ab{% endfilter %}"),
            "x1AB");
  EXPECT_EQ(Render("{% for i in range(9) if i is odd %}{% if i > 5 %}{% break %}{% endif %}{{ i }}"
                   "{% endfor %}{% for i in [] %}{% else %}none{% endfor %}"),
            "135none");
}

TEST(ChatTemplateTest, ErrorsNameLineAndColumn) {
  EXPECT_EQ(Render("a\n{{ raise_exception('no ' ~ 'way') }}"),
            "chat template: line 2, column 4: no way");
  EXPECT_EQ(Render("\n {% include 'x' %}"),
            "chat template: line 2, column 5: the statement 'include' is not supported");
  EXPECT_EQ(Render("{{ 'a' | pprint }}"),
            "chat template: line 1, column 10: the filter 'pprint' is not supported");
  EXPECT_EQ(Render("{{ x.y }}"), "chat template: line 1, column 5: 'x' is undefined");
  EXPECT_NE(Render("{{ messages.append(1) }}").find("would change"), std::string::npos);
}

TEST(ChatTemplateTest, HostileTemplatesAreRefused) {
  const std::string work = "the template does too much work";
  EXPECT_NE(Render("{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}")
                .find(work),
            std::string::npos);
  EXPECT_NE(Render("{{ 'a' * 999999999999 }}").find(work), std::string::npos);
  EXPECT_NE(Render("{{ range(999999999) }}").find("a range of more than"), std::string::npos);
  EXPECT_NE(Render("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}").find("nested too deeply"),
            std::string::npos);
  EXPECT_NE(Render("{{ " + std::string(5000, '[') + std::string(5000, ']') + " }}")
                .find("nested too deeply"),
            std::string::npos);
  EXPECT_NE(Render("{% set n = namespace(x=1) %}{% for i in range(9999) %}{% set n.x = [n.x] %}"
                   "{% endfor %}")
                .find("nested too deeply"),
            std::string::npos);
}

}  // namespace
}  // namespace pace
