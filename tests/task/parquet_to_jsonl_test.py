"""scripts/parquet_to_jsonl.py: rows come out as lines that a dataset is read from.

Its own logic is tested on rows made here; the way through pyarrow where Python has it.
"""

import datetime
import importlib.util
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import types
import unittest

SOURCE = pathlib.Path(os.environ.get("PACE_SOURCE_DIR", pathlib.Path(__file__).parents[2]))
SCRIPT = SOURCE / "scripts" / "parquet_to_jsonl.py"

_spec = importlib.util.spec_from_file_location("parquet_to_jsonl", SCRIPT)
converter = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(converter)

VERL = {"data_source": "math_dapo",
        "prompt": [{"role": "user", "content": "Straße: 7+5?\nAnswer:"}],
        "ability": "MATH",
        "reward_model": {"style": "rule-lighteval/MATH_v2", "ground_truth": "12"},
        "extra_info": {"index": "9a9b"}}


def fake_parquet(rows):
    """As much of pyarrow.parquet as the script uses."""
    class ParquetFile:
        def __init__(self, path):
            self.schema_arrow = types.SimpleNamespace(names=list(rows[0]))

        def iter_batches(self, batch_size, columns):
            for row in rows:
                kept = {key: row[key] for key in columns or row}
                yield types.SimpleNamespace(to_pylist=lambda kept=kept: [kept])
    return types.SimpleNamespace(ParquetFile=ParquetFile)


def convert(rows, columns=None, unique=False):
    out = io.StringIO()
    counts = converter.convert(fake_parquet(rows), ["x"], columns, unique, out)
    return counts, [json.loads(line) for line in out.getvalue().splitlines()]


class ConvertTest(unittest.TestCase):
    def test_rows_come_out_as_they_are(self):
        self.assertEqual(convert([VERL, VERL]), ((2, 0), [VERL, VERL]))

    def test_only_the_columns_asked_for(self):
        self.assertEqual(convert([VERL], columns=["ability"])[1], [{"ability": "MATH"}])
        with self.assertRaisesRegex(ValueError, "no column abilty"):
            convert([VERL], columns=["abilty"])

    def test_repeated_problems_are_left_out_whatever_their_id(self):
        other_id = {**VERL, "extra_info": {"index": "other"}}
        other_answer = {**VERL, "reward_model": {"ground_truth": "13"}}
        counts, rows = convert([VERL, other_id, other_answer], unique=True)
        self.assertEqual(counts, (2, 1))
        self.assertEqual(rows, [VERL, other_answer])

    def test_what_json_cannot_hold_is_rewritten(self):
        row = {"a": float("nan"), "b": b"\xff", "c": datetime.date(2025, 1, 2), "d": (1, None)}
        self.assertEqual(convert([row])[1], [{"a": None, "b": "/w==", "c": "2025-01-02",
                                              "d": [1, None]}])


class CommandTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def run_script(self, *arguments, path=""):
        return subprocess.run([sys.executable, "-B", SCRIPT, *map(str, arguments)],
                              capture_output=True, encoding="utf-8", check=False,
                              env={**os.environ, "PYTHONPATH": str(path)})

    def test_without_pyarrow_it_says_what_to_install(self):
        (self.folder / "pyarrow").mkdir()
        (self.folder / "pyarrow" / "__init__.py").write_text("raise ImportError('absent')\n")
        done = self.run_script("x.parquet", path=self.folder)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertEqual(done.stderr,
                         "parquet_to_jsonl.py: needs pyarrow (pip install pyarrow)\n")

    def test_a_real_file_comes_out_row_by_row(self):
        try:
            import pyarrow
            import pyarrow.parquet
        except ImportError:
            self.skipTest("NOT CHECKED: Python cannot import pyarrow")
        rows = [{**VERL, "extra_info": {"index": str(i)}} for i in range(3000)]
        path = self.folder / "train.parquet"
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path, row_group_size=700)
        done = self.run_script(path)
        self.assertEqual((done.returncode, done.stderr), (0, "3000 rows\n"))
        self.assertEqual([json.loads(line) for line in done.stdout.splitlines()], rows)
        self.assertEqual(self.run_script("--unique", path).stderr, "1 rows, 2999 repeated\n")

    def test_a_file_that_is_none_is_an_error(self):
        if importlib.util.find_spec("pyarrow") is None:
            self.skipTest("NOT CHECKED: Python cannot import pyarrow")
        done = self.run_script(SCRIPT)
        self.assertEqual(done.returncode, 1)
        self.assertIn("parquet_to_jsonl.py: ", done.stderr)
        self.assertNotIn("Traceback", done.stderr)


if __name__ == "__main__":
    unittest.main()
