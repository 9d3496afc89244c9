"""The process that computes rewards for `task.verifier=python:FILE:FUNCTION`.

    python3 reward_worker.py SOCKET FILE FUNCTION BATCH

Messages are a length of four bytes, little endian, and JSON. First it says whether it could load
the function; then it answers batches until the socket closes.
"""

import importlib.util
import inspect
import json
import math
import os
import socket
import struct
import sys
import time
import traceback

_MAX_BYTES = 4 << 20
_MAX_MESSAGE = 400
_FOLDER = os.getcwd()  # in which every call begins
# Seconds after which the responses of a message that are left are given back.
_TIME_SLICE = 0.05


def read_exactly(connection, size):
    parts = []
    while size > 0:
        part = connection.recv(min(size, 1 << 16))
        if not part:
            raise SystemExit(0)  # pace has ended
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def receive(connection):
    (size,) = struct.unpack("<I", read_exactly(connection, 4))
    # A response may hold bytes that are no characters.
    return json.loads(read_exactly(connection, size).decode("utf-8", "replace"))


def send(connection, message):
    data = json.dumps(message, allow_nan=False).encode()
    connection.sendall(struct.pack("<I", len(data)) + data)


def describe(error, path):
    """ValueError: what (my_rewards.py:12): the innermost line of the user's file."""
    try:
        message = str(error)
    except BaseException:
        message = "?"
    text = f"{type(error).__name__}: {message[:_MAX_MESSAGE]}"
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__)
             if os.path.basename(frame.filename) == os.path.basename(path)]
    if isinstance(error, SyntaxError) and error.lineno:
        lines = [error.lineno]
    return f"{text} ({os.path.basename(path)}:{lines[-1]})" if lines else text


def load(path, name):
    path = os.path.abspath(path)
    if not os.path.isfile(path):
        raise FileNotFoundError("no such file")
    sys.path.insert(0, os.path.dirname(path))
    spec = importlib.util.spec_from_file_location("pace_reward", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["pace_reward"] = module
    spec.loader.exec_module(module)
    function = getattr(module, name, None)
    if not callable(function):
        raise AttributeError(f"no function {name}")
    return function


def parameters_of(function):
    """The names that the function takes; None = all of them."""
    parameters = inspect.signature(function).parameters.values()
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return None
    return [p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]


def arguments(items, names, batched):
    """Keyword arguments of a call; lists of them in a batch."""
    names = list(items[0]) if names is None else [name for name in names if name in items[0]]
    if batched:
        return {name: [item[name] for item in items] for name in names}
    return {name: items[0][name] for name in names}


def result_of(value):
    """A number or a dictionary, in the form that pace reads."""
    fields = {}
    if isinstance(value, dict):
        fields = dict(value)
        if "score" not in fields:
            return {"invalid": "gave a dictionary without 'score'"}
        value = fields.pop("score")
    try:
        # A text is no number, even where it reads like one.
        score = float(None if isinstance(value, (str, bytes, bytearray)) else value)
    except (TypeError, ValueError, OverflowError):
        return {"invalid": f"gave {type(value).__name__} instead of a number or a dictionary"}
    if not math.isfinite(score):
        return {"invalid": f"gave {score} as score"}
    result = {"score": score}
    if "correct" in fields:
        result["correct"] = bool(fields.pop("correct"))
    extracted = fields.pop("extracted", None)
    if extracted is not None:
        result["extracted"] = str(extracted)[:4096]
    if fields:
        try:
            detail = json.dumps(fields, allow_nan=False, default=float)
        except (TypeError, ValueError) as error:
            return {"invalid": f"gave a dictionary that is no JSON: {error}"[:_MAX_MESSAGE]}
        if len(detail) > 4096:
            return {"invalid": f"gave {len(detail)} bytes beside the score; at most 4096 are "
                               "recorded"}
        result["detail"] = detail
    return result


def answer_each(function, items, names, path):
    """One call for each response, as many as fit into the time slice, but at least one."""
    results, end = [], time.monotonic() + _TIME_SLICE
    for item in items:
        if results and time.monotonic() > end:
            results.append({"later": True})
        else:
            results += answer(function, [item], names, False, path)
    return results


def answer(function, items, names, batched, path):
    try:
        os.chdir(_FOLDER)
        values = function(**arguments(items, names, batched))
        if not batched:
            return [result_of(values)]
        values = list(values)
    except (SystemExit, KeyboardInterrupt):
        raise
    except BaseException as error:
        return [{"error": describe(error, path)}] * len(items)
    if len(values) != len(items):
        return [{"invalid": f"gave {len(values)} values for {len(items)} responses"}] * len(items)
    return [result_of(value) for value in values]


def main():
    connection = socket.socket(fileno=int(sys.argv[1]))
    path, name, batch = sys.argv[2], sys.argv[3], int(sys.argv[4])
    process = os.getpid()
    sys.argv = [path]
    try:
        function = load(path, name)
        names = parameters_of(function)
    except BaseException as error:
        send(connection, {"ready": False, "error": f"{path}: {describe(error, path)}"})
        return
    send(connection, {"ready": True})
    while True:
        message = receive(connection)
        items = message["items"]
        for item in items:
            item["prompt"] = json.loads(item["prompt"]) if item["prompt"] else ""
        if batch > 1:
            results = answer(function, items, names, True, path)
        else:
            results = answer_each(function, items, names, path)
        if os.getpid() != process:
            os._exit(0)  # a fork of the function's; its parent answers
        send(connection, {"batch": message["batch"], "results": results})


main()
