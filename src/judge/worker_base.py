"""What processes of rewards, environments and policies share: messages to pace, loading a file.

Messages are a length of four bytes, little endian, and JSON.
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

_MAX_MESSAGE = 400
_FOLDER = os.getcwd()  # in which every call begins


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


def read_fields(problem):
    """Fields of a problem that are JSON in themselves."""
    problem["prompt"] = json.loads(problem["prompt"] or '""')
    problem["extra_info"] = json.loads(problem["extra_info"] or "null")


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


def load(path, name, kind):
    path = os.path.abspath(path)
    if not os.path.isfile(path):
        raise FileNotFoundError("no such file")
    sys.path.insert(0, os.path.dirname(path))
    spec = importlib.util.spec_from_file_location("pace_reward", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["pace_reward"] = module
    spec.loader.exec_module(module)
    found = getattr(module, name, None)
    if not callable(found):
        raise AttributeError(f"no {kind} {name}")
    return found


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
