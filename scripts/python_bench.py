"""Prints what the Python package costs: size of the wheel, import, draw, a policy in Python.

    python scripts/python_bench.py [WHEEL]

Numbers are medians of several rounds on this machine.
"""

import os
import statistics
import subprocess
import sys
import time


def import_ms():
    """`import pace` beyond an empty interpreter, as it measures itself."""
    code = ("import time; t = time.perf_counter(); import pace; "
            "print((time.perf_counter() - t) * 1e3)")
    return statistics.median(float(subprocess.run([sys.executable, "-c", code], text=True,
                                                  capture_output=True, check=True).stdout)
                             for _ in range(11))


def draw_us():
    import pace

    times = []
    for _ in range(7):
        session = pace.AdmissionSession(pace.Settings("math-4b", "batch.num_groups=64"))
        groups = [pace.Group(i, [(i % 5, [(i % 5, 100)], 0.01 * (i % 7))] * 12)
                  for i in range(2000)]
        session.begin_step(5, occupancy=2000, served=0)
        draw = session.draw
        begin = time.perf_counter()
        for group in groups:
            draw(group)
        times.append((time.perf_counter() - begin) / len(groups) * 1e6)
    return statistics.median(times)


def policy_ratio():
    """Seconds of a run under a policy in Python over those under the built-in one."""
    import pace

    sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "examples", "python_policy"))
    from freshest_first import FreshestFirst

    settings = pace.Settings("math-4b", "run.num_steps=300", method="miles-24")

    def seconds(**policy):
        begin = time.perf_counter()
        pace.simulate(settings, **policy)
        return time.perf_counter() - begin

    pairs = [(seconds(), seconds(admission=FreshestFirst())) for _ in range(5)]
    return statistics.median(ours / built_in for built_in, ours in pairs)


def main():
    for wheel in sys.argv[1:]:
        print(f"{os.path.basename(wheel)}: {os.path.getsize(wheel) / 1e6:.2f} MB")
    print(f"import pace: {import_ms():.1f} ms")
    print(f"AdmissionSession.draw: {draw_us():.2f} us")
    print(f"simulation with a policy in Python: {policy_ratio():.2f} x the built-in one's time")


if __name__ == "__main__":
    main()
