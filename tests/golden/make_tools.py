"""Hermes tool calls and cut tool responses, by the rules that src/text/hermes.h and src/text/truncation.h name, in Python."""

import json
import random
import re

import golden_files

OPEN, CLOSE = "<tool_call>", "</tool_call>"


def parse_hermes(text):
    """Content and calls: tags in pairs, what does not read as a call is dropped."""
    if OPEN not in text or CLOSE not in text:
        return text, []
    calls = []
    for body in re.findall(f"{OPEN}(.*?){CLOSE}", text, re.DOTALL):
        try:
            call = json.loads(body)
            name, arguments = call["name"], call["arguments"]
        except (ValueError, TypeError, KeyError, RecursionError):
            continue
        if isinstance(name, str):
            calls.append({"name": name, "arguments": json.dumps(arguments, ensure_ascii=False)})
    return re.sub(f"{OPEN}(.*?){CLOSE}", "", text, flags=re.DOTALL), calls


def tagged(body):
    return f"{OPEN}\n{body}\n{CLOSE}"


GOOD = '{"name": "run", "arguments": {"code": "print(1)"}}'
HERMES = {
    "no_call": "Nine loaves minus six.",
    "empty": "",
    "one": tagged(GOOD),
    "words_around": f"First I run it.\n{tagged(GOOD)}\nThen I wait.",
    "two": tagged(GOOD) + "\n" + tagged('{"name": "stop", "arguments": {}}'),
    "on_one_line": OPEN + GOOD + CLOSE,
    "spaces": f"{OPEN}  \t\r\n {GOOD} \n\n{CLOSE}",
    "arguments_first": tagged('{"arguments": {"b": 1, "a": 2}, "name": "order"}'),
    "further_keys": tagged('{"id": 7, "name": "run", "arguments": {"x": 1}, "note": null}'),
    "name_twice": tagged('{"name": "first", "name": "second", "arguments": {}}'),
    "no_name": tagged('{"arguments": {}}'),
    "no_arguments": tagged('{"name": "run"}'),
    "name_is_a_number": tagged('{"name": 7, "arguments": {}}'),
    "name_is_null": tagged('{"name": null, "arguments": {}}'),
    "empty_name": tagged('{"name": "", "arguments": {}}'),
    "arguments_text": tagged('{"name": "run", "arguments": "print(1)"}'),
    "arguments_list": tagged('{"name": "run", "arguments": [1, "two", null, true]}'),
    "arguments_null": tagged('{"name": "run", "arguments": null}'),
    "arguments_number": tagged('{"name": "run", "arguments": 3.50}'),
    "arguments_text_of_json": tagged('{"name": "run", "arguments": "{\\"a\\": 1}"}'),
    "a_list": tagged('[{"name": "run", "arguments": {}}]'),
    "a_text": tagged('"run"'),
    "nothing_inside": OPEN + CLOSE,
    "single_quotes": tagged("{'name': 'run', 'arguments': {}}"),
    "trailing_comma": tagged('{"name": "run", "arguments": {},}'),
    "two_objects": tagged('{"name": "run", "arguments": {}} {"name": "b", "arguments": {}}'),
    "comment": tagged('{"name": "run", /* note */ "arguments": {}}'),
    "bad_then_good": tagged("{oops}") + tagged(GOOD),
    "good_then_bad": tagged(GOOD) + " and " + tagged('{"name": "run", '),
    "unclosed": "Wait: " + OPEN + GOOD,
    "unopened": GOOD + CLOSE,
    "closed_before_open": f"{CLOSE} then {OPEN}{GOOD}",
    "second_unclosed": tagged(GOOD) + OPEN + '{"name": "late"',
    "open_twice": f"{OPEN}{OPEN}{GOOD}{CLOSE}",
    "close_twice": f"{OPEN}{GOOD}{CLOSE}{CLOSE}",
    "nested": f"{OPEN}{OPEN}{GOOD}{CLOSE}{CLOSE}",
    "close_tag_in_a_text": tagged('{"name": "run", "arguments": {"code": "</tool_call>"}}'),
    "open_tag_in_a_text": tagged('{"name": "run", "arguments": {"code": "<tool_call>"}}'),
    "escaped_close_tag": tagged('{"name": "run", "arguments": {"code": "<\\/tool_call>"}}'),
    "upper_case_tags": "<TOOL_CALL>" + GOOD + "</TOOL_CALL>",
    "tag_with_space": "<tool_call >" + GOOD + "</tool_call>",
    "raw_line_break_in_a_text": tagged('{"name": "run", "arguments": {"code": "a\nb"}}'),
    "escaped_line_break": tagged('{"name": "run", "arguments": {"code": "a\\nb\\tc\\u0007"}}'),
    "letters": tagged('{"name": "\u00fcben", "arguments": {"\u6570": "\u00e9\U0001F35E", "e": "\\u00e9\\ud83c\\udf5e"}}'),
    "slash_and_quotes": tagged('{"name": "a\\"b", "arguments": {"p": "c:\\\\d\\/e"}}'),
    "numbers": tagged('{"name": "n", "arguments": [0, -0, -0.0, 1e5, 1E-7, 2.50, 1e16, 123456789012345678901234567890, 0.1]}'),
    "not_numbers": tagged('{"name": "n", "arguments": [NaN, Infinity, -Infinity]}'),
    "leading_zero": tagged('{"name": "n", "arguments": [01]}'),
    "plus_sign": tagged('{"name": "n", "arguments": [+1]}'),
    "half_a_pair": tagged('{"name": "n", "arguments": ["x\\ud83dy"]}'),
    "empty_containers": tagged('{"name": "n", "arguments": {"a": {}, "b": [], "c": ""}}'),
    "deep": tagged('{"name": "n", "arguments": ' + "[" * 30 + "]" * 30 + "}"),
    "key_twice": tagged('{"name": "n", "arguments": {"a": 1, "b": 2, "a": 3}}'),
    "tabs_between": tagged('{\t"name"\t:\t"n"\t,\t"arguments"\t:\t{\t}\t}'),
    "other_space": tagged('{"name": "n",\u00a0"arguments": {}}'),
    "thought_and_call": f"<think>\nShall I?\n</think>\n\n{tagged(GOOD)}<|im_end|>",
}

TEXTS = ["", "x", "ab", "a tool said this", "l\u00e9g\u00e8re p\u00e2te", "\u6570\u5b57\u5f88\u591a\u5462",
         "e\u0301e\u0301e\u0301", "\U0001F35E\U0001F956\U0001F950\U0001F968", "line one\nline two\n",
         "a\x00b\x00c", "...(truncated)..."]


def cut(text, length, side):
    """A text longer than the bound, with a marker where characters are missing."""
    if len(text) <= length:
        return text
    if side == "left":
        return "(truncated)..." + text[-length:]
    if side == "right":
        return text[:length] + "...(truncated)"
    half = length // 2
    return text[:half] + "...(truncated)..." + text[-half:]


def truncation_cases():
    for side in ("left", "right", "middle"):
        for text in TEXTS:
            for length in sorted({1, 2, 5, max(len(text) - 1, 1), max(len(text), 1)}):
                yield text, length, side
    rng = random.Random(3)
    for _ in range(20):
        text = "".join(rng.choice("ab \n\u00e9\u6570\U0001F35E") for _ in range(rng.randrange(60)))
        yield text, rng.randrange(2, 50), rng.choice(("left", "right", "middle"))
    yield "x" * 300, 256, "middle"
    # Python's slice of -0: the whole text stays after the marker.
    yield "abc", 1, "middle"
    yield "abc", 0, "left"
    yield "abc", 0, "middle"
    yield "abc", 0, "right"


def write(folder):
    cases = []
    for name, text in HERMES.items():
        content, calls = parse_hermes(text)
        cases.append({"name": name, "text": text, "content": content, "calls": calls})
    golden_files.write_cases(
        folder / "tools" / "hermes_cases.json",
        "content = the text without its calls, calls = what the tags hold; arguments as json.dumps "
        "writes them.", [], cases=cases)
    cases = [{"text": text, "max_length": length, "side": side, "result": cut(text, length, side)}
             for text, length, side in truncation_cases()]
    golden_files.write_cases(
        folder / "tools" / "truncation_cases.json",
        "result = the text cut to max_length code points; the marker is not counted.", [],
        cases=cases)
