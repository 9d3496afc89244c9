"""Chat templates of our own and how `transformers` renders them."""

import itertools
import json

import jinja2
import tokenizers
import transformers

import golden_files

TOKENIZER = "nfc"
SPECIAL = {"bos_token": "<|begin|>", "eos_token": "<|stop|>"}

ADD = {"type": "function", "function": {
    "name": "add", "description": "Adds two numbers & returns <sum>; d\u00e9cimal \u6570 too.",
    "parameters": {"type": "object", "properties": {
        "first": {"type": "number"}, "second": {"type": "number", "default": 0.5},
        "note": {"type": ["string", "null"]}}, "required": ["first", "second"]}}}
LOOK = {"type": "function", "function": {
    "name": "look_up", "description": "Finds a \"word\".\nTwo lines.", "parameters": {
        "type": "object", "properties": {"word": {"description": "it's"}}}}}


def said(role, content, **more):
    return {"role": role, "content": content, **more}


def call(name, arguments, wrapped=True):
    inner = {"name": name, "arguments": arguments}
    return {"type": "function", "function": inner} if wrapped else inner


SYSTEM = said("system", "  You bake bread.\n")
QUESTION = said("user", "How many loaves are left at noon?")
ANSWER = said("assistant", "Three loaves.")
THOUGHT = said("assistant", "<think>\nnine minus six\n</think>\n\nThree.")
CALLS = said("assistant", "", tool_calls=[call("add", {"first": 1, "second": -2.5e-7, "note": None})])
TWO_CALLS = said("assistant", "Let me see.", tool_calls=[
    call("look_up", {"word": "p\u00e2te \"lev\u00e9e\" <b>\n\u6570"}), call("add", "{\"first\": 1}", False)])
RESULT = said("tool", "-1.5")
OTHER = said("tool", "line one\nline <two>")

CONVERSATIONS = {
    "question": [QUESTION],
    "system": [SYSTEM, QUESTION],
    "exchange": [QUESTION, ANSWER],
    "long": [SYSTEM, QUESTION, ANSWER, said("user", "  And\tat one? "), ANSWER,
             said("user", "Thanks \U0001F35E!")],
    "two_questions": [QUESTION, QUESTION],
    "answer_first": [ANSWER, QUESTION],
    "late_system": [QUESTION, ANSWER, SYSTEM],
    "unknown_role": [QUESTION, said("judge", "No.")],
    "system_alone": [SYSTEM],
    "empty_question": [said("user", "")],
    "script": [said("user", "{{ 7 * 7 }} {% raw %} <|stop|> \u00e9e\u0301")],
    "thought": [QUESTION, THOUGHT],
    "old_thought": [QUESTION, THOUGHT, said("user", "Again?"), THOUGHT],
    "reasoning": [QUESTION, said("assistant", "Three.", reasoning="\nnine minus six\n")],
    "unfinished_thought": [QUESTION, said("assistant", "<think>nine minus")],
    "call": [QUESTION, CALLS],
    "call_and_result": [QUESTION, CALLS, RESULT],
    "two_results": [SYSTEM, QUESTION, TWO_CALLS, RESULT, OTHER, ANSWER],
    "result_as_question": [QUESTION, said("user", "<answer>7</answer>"), THOUGHT],
    "null_content": [QUESTION, said("assistant", None, tool_calls=[call("add", {})])],
}

PART_VALUES = {
    "a": 7, "b": -2, "word": "abananaZz", "items": [3, 1, 4, 1, 5],
    "rows": [{"n": 1, "ok": True}, {"n": 2, "ok": False, "m": "x"}, {"n": 3, "ok": True}],
    "value": {"b": [1, 2.0, None, True], "a": "\u00e9 <&> ' \" \n \U0001F35E", "n": {"z": {}, "y": []},
              "big": 12345678901234567890, "tiny": 1e-9, "minus": -0.0},
}
PARTS = ["arithmetic", "slices", "methods", "filters", "json", "tests", "loops", "scopes", "space",
         "strings", "raise", "undefined", "types", "other"]
PART_VARIANTS = {
    "arithmetic": [{"a": 2, "b": 0.5}, {"a": -9, "b": 4}, {"a": 0, "b": 1}, {"a": 1, "b": 0}],
    "slices": [{"word": "\u6c60\u8fb9\u7684\u65b0\u56de\u7b54\u6570", "items": ["x", "y", "z"]},
               {"items": [{"k": "v"}, 1, 2]}],
    "methods": [{"word": "\u00e4bnA\u00df \u01c6n"}],
    "filters": [{"items": [2, 2, 8], "word": "o'neill's x-ray"}],
    "json": [{"value": []}, {"value": "\u2028\u007f\u0000\\"}, {"value": [[1, [2, [3]]], {}]},
             {"value": 0.1}, {"value": None}],
    "loops": [{"items": [2]}, {"items": []}],
    "scopes": [{"items": [], "word": "\u00df"}],
}


def conversation_cases():
    for (name, messages), prompt in itertools.product(CONVERSATIONS.items(), (False, True)):
        yield {"name": f"{name}{'_prompt' if prompt else ''}", "messages": messages, "tools": None,
               "add_generation_prompt": prompt}


def tool_cases():
    yield from conversation_cases()
    for name, tools in (("one_tool", [ADD]), ("two_tools", [LOOK, ADD])):
        for conversation in ("question", "system", "call_and_result", "two_results"):
            yield {"name": f"{conversation}_{name}", "messages": CONVERSATIONS[conversation],
                   "tools": tools, "add_generation_prompt": True, "show_calls": True}
    for think in (True, False):
        yield {"name": f"think_{think}", "messages": [QUESTION], "tools": None,
               "add_generation_prompt": True, "think": think}


def part_cases():
    for part in PARTS:
        for i, change in enumerate([{}, *PART_VARIANTS.get(part, [])]):
            yield {"name": f"{part}_{i}", "messages": [QUESTION], "tools": None,
                   "add_generation_prompt": False, "part": part, **PART_VALUES, **change}


TEMPLATES = {"instruct": conversation_cases, "tools": tool_cases, "parts": part_cases}


def finish(case, tokenizer, source):
    variables = {key: value for key, value in case.items() if key != "name"}
    messages = variables.pop("messages")
    tools = variables.pop("tools")
    try:
        rendered = tokenizer.apply_chat_template(
            messages, tools=tools, chat_template=source, tokenize=False, **variables)
    except (jinja2.TemplateError, TypeError, ValueError, ArithmeticError) as error:
        return {**case, "error": f"{type(error).__name__}: {error}"[:200]}
    ids = tokenizer.backend_tokenizer.encode(rendered, add_special_tokens=False).ids
    return {**case, "rendered": rendered, "ids": ids}


def write(folder, here):
    backend = tokenizers.Tokenizer.from_file(
        str(folder / "tokenizers" / TOKENIZER / "tokenizer.json"))
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=backend, **SPECIAL)
    for name, cases in TEMPLATES.items():
        source = (here / "chat" / name / "chat_template.jinja").read_text(encoding="utf-8")
        target = folder / "chat" / name
        golden_files.write_cases(
            target / "chat_cases.json",
            f"rendered = the template applied to the messages and variables, ids = encode(rendered) "
            f"by tokenizers/{TOKENIZER}; error: the template raises.",
            ["transformers", "tokenizers", "jinja2"],
            cases=[finish(case, tokenizer, source) for case in cases()])
        (target / "tokenizer_config.json").write_text(json.dumps(SPECIAL) + "\n")
