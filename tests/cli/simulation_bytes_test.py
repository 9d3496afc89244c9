"""A simulation of the published set-up has the same bytes on every processor.

The SHA-256 are those of x86_64 and of aarch64. When a change of the records or of the
method is meant, the test prints the new ones; src/sim/same_bytes_test.cc makes the
cross build agree.
"""

import hashlib
import pathlib
import tempfile
import unittest

import pace_process

EXPECTED = {
    "metrics.jsonl": "b58adec1b9dc7756662394d4cec663e6d17470f58e469bbe696a88bfee7d95b8",
    "decisions.jsonl": "0276f431ee3deae2affd43ad912a05c1db2c9881e244c9d5e36d1abc7d6b4cb7",
    "trace.jsonl": "447f5e918012fd96295569a115bd3bdd77ec723246a40d7c1d5abf75021b781e",
}


class SameBytesTest(unittest.TestCase):
    def test_records_of_a_simulation(self):
        with tempfile.TemporaryDirectory() as folder:
            out = pathlib.Path(folder) / "D"
            done = pace_process.run("sim", "math-4b", "--out", out, cwd=folder)
            self.assertEqual(done.returncode, 0, done.stderr)
            found = {}
            for name in EXPECTED:
                paths = sorted(out.rglob(name))
                digest = hashlib.sha256()
                for path in paths:
                    digest.update(path.read_bytes())
                found[name] = digest.hexdigest()
            self.assertEqual(found, EXPECTED)


if __name__ == "__main__":
    unittest.main()
