"""Tokenizers, chat templates, tool calls and truncation against reference files."""

import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ.get("PACE_SOURCE_DIR", pathlib.Path(__file__).parents[2]))
BUILD = pathlib.Path(os.environ.get("PACE_BINARY_DIR", SOURCE / "build"))
sys.path.append(str(pathlib.Path(__file__).parents[1]))

import shared_data  # noqa: E402

FOLDER = shared_data.FOLDER / "tokenizers"
CONFORMANCE = BUILD / "pace-conformance"

# The tool-use prompt of the paper's recipe; its rendering is pinned by a hash.
TOOL = {"type": "function", "function": {
    "name": "code_interpreter",
    "description": (
        "Execute a self-contained Python 3 program for mathematical calculation and verification. "
        "The code value must contain raw executable Python source only: do not include Markdown "
        "fences, backticks, XML, JSON wrappers, shell commands, or explanatory prose. Explicitly "
        "print every result needed in the response. Each call is stateless, so repeat all required "
        "imports and definitions. If execution returns an error, correct the code before retrying."),
    "parameters": {"type": "object", "properties": {"code": {
        "type": "string",
        "description": ("Raw, self-contained Python 3 source with no Markdown fencing; use "
                        "print(...) to return results.")}},
        "required": ["code"]}}}
PROMPT = ("What is 7+5?\n"
          "The answer format must be: \\boxed{'The final answer goes here.'}")
NUM_BYTES, NUM_TOKENS = 1267, 271
DIGEST = "d7b40b010111f9e340e9c315eb333cd82bce01b3e8af0574fd2b7144af9e78ea"


def run(*arguments):
    return subprocess.run([str(CONFORMANCE), *map(str, arguments)], capture_output=True, text=True,
                          errors="replace", timeout=300, stdin=subprocess.DEVNULL)


def rendered_prompt():
    """The prompt, written out by hand."""
    return (
        "<|im_start|>system\n# Tools\n\n"
        "You may call one or more functions to assist with the user query.\n\n"
        "You are provided with function signatures within <tools></tools> XML tags:\n<tools>\n"
        + json.dumps(TOOL) +
        "\n</tools>\n\nFor each function call, return a json object with function name and "
        "arguments within <tool_call></tool_call> XML tags:\n<tool_call>\n"
        '{"name": <function-name>, "arguments": <args-json-object>}\n</tool_call><|im_end|>\n'
        "<|im_start|>user\n" + PROMPT + "<|im_end|>\n<|im_start|>assistant\n")


class ConformanceTest(unittest.TestCase):
    def check(self, *arguments):
        done = run(*arguments)
        self.assertEqual(done.returncode, 0, done.stdout[-3000:] + done.stderr)
        last = done.stdout.splitlines()[-1]
        print(*arguments[:1], *(pathlib.Path(a).name for a in arguments[1:]), last)
        passed = int(re.fullmatch(r"(\d+) passed, 0 failed, \d+ skipped", last).group(1))
        self.assertGreater(passed, 0)


class ReferenceTest(ConformanceTest):
    @shared_data.needs(FOLDER, 1212)
    def test_tokenizers(self):
        for path in sorted(FOLDER.glob("*/cases.json")):
            with self.subTest(path=path):
                self.check("tokenizers", path)

    @shared_data.needs(FOLDER, 244)
    def test_chat(self):
        for path in sorted(FOLDER.glob("*/chat_cases.json")):
            own = (path.parent / "tokenizer.json").exists()
            with self.subTest(path=path):
                self.check("chat", path, *([] if own else ["--tokenizer", FOLDER / "qwen3"]))

    @shared_data.needs(FOLDER, 185)
    def test_tool_text(self):
        self.check("hermes", FOLDER / "hermes_cases.json")
        self.check("truncation", FOLDER / "truncation_cases.json")

    @shared_data.needs(FOLDER, 1)
    def test_tool_prompt(self):
        text = rendered_prompt()
        self.assertEqual(len(text.encode()), NUM_BYTES)
        self.assertEqual(hashlib.sha256(text.encode()).hexdigest(), DIGEST)
        done = subprocess.run(
            [str(BUILD / "pace"), "tokenize", "--tokenizer", str(FOLDER / "qwen3")],
            input=json.dumps({"text": text}) + "\n", capture_output=True, text=True, timeout=300,
            check=True)
        ids = json.loads(done.stdout)["ids"]
        self.assertEqual(len(ids), NUM_TOKENS)
        case = {"name": "tool_prompt", "messages": [{"role": "user", "content": PROMPT}],
                "tools": [TOOL], "add_generation_prompt": True, "rendered": text, "ids": ids}
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "chat_cases.json"
            path.write_text(json.dumps({"cases": [case]}))
            self.check("chat", path, "--tokenizer", FOLDER / "qwen3",
                       "--template", FOLDER / "qwen3_instruct_2507" / "chat_template.jinja")


class CanFailTest(ConformanceTest):
    def test_a_wrong_case_fails(self):
        cases = {"cases": [{"text": "abc", "max_length": 2, "side": "left", "result": "abc"}]}
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "cases.json"
            path.write_text(json.dumps(cases))
            done = run("truncation", path)
            self.assertEqual(done.returncode, 1)
            self.assertEqual(done.stdout.splitlines()[-1], "0 passed, 1 failed, 0 skipped")


class UsageTest(unittest.TestCase):
    def test_what_cannot_be_read_is_exit_code_2(self):
        for arguments in (["hermes", "no/such/file"], ["hermes"], ["colours", "x"], []):
            with self.subTest(arguments=arguments):
                self.assertEqual(run(*arguments).returncode, 2)

    def test_help_has_an_example(self):
        for arguments in (["--help"], ["tokenizers", "--help"]):
            done = run(*arguments)
            self.assertEqual(done.returncode, 0)
            self.assertIn("Example", done.stdout)


if __name__ == "__main__":
    unittest.main(verbosity=2)
