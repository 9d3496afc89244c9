"""Where tests find the reference data, which is no part of the repository.

    @shared_data.needs(shared_data.FOLDER / "verify", 700)
    def test_dapo_is_that_of_verl_to_the_bit(self): ...

A test that cannot run says how many cases it did not check.
"""

import os
import pathlib
import unittest

_SOURCE = pathlib.Path(os.environ.get("PACE_SOURCE_DIR", pathlib.Path(__file__).parents[1]))
FOLDER = pathlib.Path(os.environ.get("PACE_SHARED_DATA", _SOURCE / ".." / "shared" / "data"))


def missing(num_cases, *paths):
    """Why tests of so many cases cannot run, or nothing."""
    absent = [str(path) for path in paths if not path.exists()]
    if not absent:
        return ""
    cases = "1 case" if num_cases == 1 else f"{num_cases} cases"
    return f"NOT CHECKED: {cases}: no {' and '.join(absent)} (set PACE_SHARED_DATA)"


def needs(path, num_cases):
    """Skips a class or a test where the path is absent."""
    reason = missing(num_cases, path)
    return unittest.skipIf(reason, reason)
