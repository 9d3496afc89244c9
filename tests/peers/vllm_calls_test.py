"""The calls of tests/cli/serve_test.py answered by vLLM, and by `pace serve` to OpenAI's client."""

import os
import re
import subprocess
import sys
import tempfile
import unittest

import vllm_process

import pace_process

SUITE = pace_process.SOURCE / "tests" / "cli" / "serve_test.py"
MIN_CALLS = 40


class VllmCallsTest(unittest.TestCase):
    def run_suite(self, *arguments, **env):
        done = subprocess.run(
            [sys.executable, "-B", str(SUITE), *arguments], capture_output=True, text=True,
            env={**os.environ, **env}, timeout=pace_process.PATIENCE, check=False)
        self.assertEqual(done.returncode, 0, done.stderr[-8000:])
        ran = int(re.search(r"^Ran (\d+) tests?", done.stderr, re.MULTILINE)[1])
        skipped = re.search(r"skipped=(\d+)", done.stderr)
        return ran - int(skipped[1] if skipped else 0)

    def test_vllm_answers_the_suite(self):
        with tempfile.TemporaryDirectory() as folder:
            server = vllm_process.start_servers(folder, 1)[0]
            try:
                passed = self.run_suite("ServeTest", PACE_SERVE_URL=server.url)
            finally:
                server.end()
        print(f"\n{passed} tests passed against vLLM")
        self.assertGreaterEqual(passed, MIN_CALLS)

    def test_pace_serve_answers_the_suite_and_openais_client(self):
        import openai  # pylint: disable=import-outside-toplevel
        passed = self.run_suite("ServeTest")
        print(f"\n{passed} tests passed against pace serve, with openai {openai.__version__}")
        self.assertGreaterEqual(passed, MIN_CALLS)
        self.run_suite("OwnServeTest.test_a_chat_uses_the_models_template")


if __name__ == "__main__":
    unittest.main()
