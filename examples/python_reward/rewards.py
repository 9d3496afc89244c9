"""Rewards for `pace train`, as functions in Python.

    pace verify --mode python:examples/python_reward/rewards.py:gsm8k < responses.jsonl
    pace train tiny task.verifier=python:examples/python_reward/rewards.py:gsm8k

A function gets the fields that its parameters name: response, answer, id, prompt, data_source,
ability, tokens, num_turns, num_tool_calls. It returns a number or a dictionary with `score`.
"""

import re

# A number as people write it; a minus after a digit or a letter is no sign.
_DIGITS = r"\$?([0-9]+(?:,[0-9]+)*(?:\.[0-9]+)?|\.[0-9]+)"
_MARKED = re.compile(r"####[ \t\r\n]*(-?)" + _DIGITS)
_NUMBER = re.compile(r"((?<![0-9A-Za-z\[-_{-\U0010ffff])-|)" + _DIGITS)


def number_in(text):
    """The number after the last ####, else the last number; None without one."""
    found = _MARKED.findall(text) or _NUMBER.findall(text)
    if not found:
        return None
    sign, digits = found[-1]
    whole, _, fraction = digits.replace(",", "").partition(".")
    whole, fraction = whole.lstrip("0") or "0", fraction.rstrip("0")
    number = f"{whole}.{fraction}" if fraction else whole
    return sign + number if number != "0" else number


def gsm8k(response, answer):
    """1 where the response ends in the right number, else 0: the built-in verifier `gsm8k`."""
    ours = number_in(response)
    return 1.0 if ours is not None and ours == number_in(answer) else 0.0


def brief(response, answer, tokens):
    """The same, with a small bonus for short responses. Everything returned is recorded."""
    right = gsm8k(response, answer)
    bonus = 0.1 * right / (1 + len(tokens) / 100)
    return {"score": right + bonus, "correct": right == 1, "bonus": bonus}


def gsm8k_batch(response, answer):
    """With reward.batch above 1 a function gets lists and returns one."""
    return [gsm8k(one, right) for one, right in zip(response, answer)]
