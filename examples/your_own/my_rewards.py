# my_rewards.py
import re


def score(response, answer, extra_info):
    """1 for the sum, less for a response that only has something of a number."""
    numbers = re.findall(r"\d+", response)
    correct = bool(numbers) and numbers[-1] == answer
    digits = sum(letter.isdigit() for letter in response)
    form = 0.5 * digits / max(1, len(response))
    return {"score": 1.0 if correct else form, "correct": correct, "form": form,
            "largest": extra_info["largest"]}
