#!/usr/bin/env python3
"""Writes the rows of parquet files as JSON Lines, for `task.file` and `task.benchmarks`.

    scripts/parquet_to_jsonl.py train.parquet > train.jsonl

Rows stream through, a batch at a time. Needs pyarrow (pip install pyarrow).
"""

import argparse
import base64
import hashlib
import json
import math
import sys


def plain(value):
    """The value as JSON can hold it."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, (bytes, bytearray)):
        return base64.b64encode(value).decode("ascii")
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return str(value)  # dates, decimals


def rows_of(parquet, path, columns):
    file = parquet.ParquetFile(path)
    if columns:
        missing = [name for name in columns if name not in file.schema_arrow.names]
        if missing:
            raise ValueError(f"no column {missing[0]} (there are: "
                             f"{', '.join(file.schema_arrow.names)})")
    for batch in file.iter_batches(batch_size=1024, columns=columns):
        yield from batch.to_pylist()


def question_of(row):
    """A digest of what makes two rows the same problem, whatever their ids."""
    named = [row.get(key) for key in ("prompt", "problem", "question", "reward_model", "answer")]
    return hashlib.blake2b(json.dumps(named, sort_keys=True).encode(), digest_size=16).digest()


def convert(parquet, paths, columns, unique, out):
    """Returns how many rows were written and how many repeated an earlier one."""
    written, repeated, seen = 0, 0, set()
    for path in paths:
        for row in rows_of(parquet, path, columns):
            row = plain(row)
            if unique:
                question = question_of(row)
                if question in seen:
                    repeated += 1
                    continue
                seen.add(question)
            out.write(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n")
            written += 1
    return written, repeated


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", metavar="FILE.parquet")
    parser.add_argument("--columns", help="only these, separated by commas")
    parser.add_argument("--unique", action="store_true",
                        help="leave out rows that repeat a prompt with its answer")
    options = parser.parse_args(arguments)
    try:
        import pyarrow.parquet as parquet
    except ImportError:
        print("parquet_to_jsonl.py: needs pyarrow (pip install pyarrow)", file=sys.stderr)
        return 2
    sys.stdout.reconfigure(encoding="utf-8", newline="\n")
    columns = options.columns.split(",") if options.columns else None
    try:
        written, repeated = convert(parquet, options.files, columns, options.unique, sys.stdout)
        sys.stdout.flush()
    except (OSError, ValueError) as error:  # pyarrow's errors are ValueErrors
        print(f"parquet_to_jsonl.py: {error}", file=sys.stderr)
        return 1
    print(f"{written} rows" + (f", {repeated} repeated" if options.unique else ""), file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
