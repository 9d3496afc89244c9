"""Environments for `tools.use=python:retool.py:CLASS`.

    pace train tiny-retool tools.use=python:examples/python_environment/retool.py:CodeInterpreter

CodeInterpreter is the built-in tool of `tools.use=code_interpreter` written as an environment: same
prompts, same replies, same rewards. Calculator has two small tools and keeps a number between
turns.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import urllib.request

SCHEMA = {"type": "function", "function": {"name": "code_interpreter", "description": (
    "Execute a self-contained Python 3 program for mathematical calculation and verification. The "
    "code value must contain raw executable Python source only: do not include Markdown fences, "
    "backticks, XML, JSON wrappers, shell commands, or explanatory prose. Explicitly print every "
    "result needed in the response. Each call is stateless, so repeat all required imports and "
    "definitions. If execution returns an error, correct the code before retrying."),
    "parameters": {"type": "object", "properties": {"code": {"type": "string", "description": (
        "Raw, self-contained Python 3 source with no Markdown fencing; use print(...) to return "
        "results.")}}, "required": ["code"]}}}


def run_on_server(url, code):
    """A program on `pace sandbox serve`: what it printed, and whether it ended well."""
    body = json.dumps({"code": code, "language": "python", "run_timeout": 30}).encode()
    request = urllib.request.Request(url + "/run_code", body,
                                     {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        result = json.load(answer)["run_result"]
    if result["status"] != "Finished":
        return "no stdout here", False
    return result["stdout"] + result["stderr"], result["return_code"] == 0


def run_here(code):
    """The same in a process of this machine: for models whose programs you trust."""
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "main.py"), "w") as file:
            file.write(code)
        try:
            done = subprocess.run([sys.executable, "main.py"], cwd=folder, capture_output=True,
                                  text=True, timeout=30, stdin=subprocess.DEVNULL, check=False)
        except subprocess.TimeoutExpired:
            return "no stdout here", False
    return done.stdout + done.stderr, done.returncode == 0


class CodeInterpreter:
    tools = [SCHEMA]

    def reset(self, problem):
        self.answer = problem["answer"]

    def run(self, code):
        url = os.environ.get("SANDBOX_URL")
        return run_on_server(url, code) if url else run_here(code)

    def call(self, call):
        """The reply to a call, and whether it succeeded."""
        try:
            if call["name"] != "code_interpreter":
                raise KeyError(call["name"])
            code = json.loads(call["arguments"]).get("code", "")
            return self.run(code if isinstance(code, str) else repr(code))
        except (AttributeError, KeyError, ValueError) as error:
            return f"Error when executing tool: {error}", False

    def step(self, turn):
        if turn["calls"] and not turn["last"]:
            text, succeeded = self.call(turn["calls"][0])
            return text, None, False, {"failed": not succeeded}
        # The question, the turns so far, and the replies between them.
        num_turns = 2 * (turn["index"] + 1)
        boxed = re.findall(r"\\boxed\{([^{}]*)\}", turn["text"][-100:])
        correct = bool(boxed) and boxed[-1] == self.answer
        return None, 1.0 if correct else min(-0.6, -1 + 0.05 * (num_turns - 2)), True


def tool(name, description, **parameters):
    return {"type": "function", "function": {
        "name": name, "description": description,
        "parameters": {"type": "object", "required": list(parameters),
                       "properties": {key: {"type": kind} for key, kind in parameters.items()}}}}


class Calculator:
    """Two tools, and a number that lives between turns: saved by state, put back by restore."""

    tools = [tool("multiply", "Multiply the number that is held.", by="integer"),
             tool("clear", "Hold 1 again.")]

    def reset(self, problem):
        self.held, self.answer = 1, problem["answer"]

    def state(self):
        return {"held": self.held}

    def restore(self, problem, state):
        self.held, self.answer = state["held"], problem["answer"]

    def step(self, turn):
        if not turn["calls"] or turn["last"]:
            correct = self.answer in turn["text"]
            return None, float(correct), True, {"correct": correct, "held": self.held}
        for call in turn["calls"]:
            arguments = json.loads(call["arguments"])
            if call["name"] == "multiply" and isinstance(arguments.get("by"), int):
                self.held *= arguments["by"]
            else:
                self.held = 1
        return [{"role": "tool", "content": str(self.held)}], None, False
