"""Step time of `pace train tiny` with the built-in verifier and with the same reward in Python.

    python3 scripts/reward_bench.py [PAIRS] [STEPS]

Runs alternate. Prints seconds per step of each pair, after the first step, and the median ratio.
"""

import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

_ROOT = pathlib.Path(__file__).resolve().parents[1]
_REWARD = f"task.verifier=python:{_ROOT}/examples/python_reward/rewards.py:gsm8k"


def step_seconds(folder, steps, *settings):
    subprocess.run([_ROOT / "build" / "pace", "train", "tiny", f"run.num_steps={steps}",
                    "run.evaluate_every=0", *settings, "--out", folder],
                   check=True, capture_output=True)
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return statistics.mean(row["time/step"] for row in rows[1:])


def main():
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    steps = int(sys.argv[2]) if len(sys.argv) > 2 else 6
    ratios = []
    with tempfile.TemporaryDirectory() as scratch:
        for pair in range(pairs):
            names = ["built_in", "python"]
            if pair % 2 == 1:
                names.reverse()  # neither is always first
            seconds = {name: step_seconds(pathlib.Path(scratch, f"{name}{pair}"), steps,
                                          *([_REWARD] if name == "python" else []))
                       for name in names}
            ratios.append(seconds["python"] / seconds["built_in"])
            print(f"pair {pair + 1}: built-in {seconds['built_in']:.3f} s, "
                  f"Python {seconds['python']:.3f} s, ratio {ratios[-1]:.3f}", flush=True)
    print(f"median ratio of {pairs} pairs: {statistics.median(ratios):.3f}")


if __name__ == "__main__":
    main()
