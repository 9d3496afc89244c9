"""vLLM servers that are killed and stopped in the middle of a run."""

import pathlib
import re
import signal
import subprocess
import tempfile
import threading
import time
import unittest

import vllm_process

import pace_process

# Seconds within which a run notices that a server was killed.
KILL_NOTICED = 2
CONTROL_SECONDS = 10
PATIENCE = 900


class Run:
    """A run and what it says, with the time of each line."""

    def __init__(self, *arguments):
        self.process = subprocess.Popen([str(pace_process.BINARY), *map(str, arguments)],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.lines = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self.process.stderr:
            self.lines.append((time.monotonic(), line))

    def wait_for(self, pattern, after=0.0):
        """When the run said it, after this time."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            for when, line in list(self.lines):
                if when > after and re.search(pattern, line):
                    return when
            if self.process.poll() is not None:
                break
            time.sleep(0.05)
        raise AssertionError(f"the run did not say {pattern!r}:\n{self.text()}")

    def text(self):
        return "".join(line for _, line in self.lines)

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._reader.join()
        self.process.stderr.close()


class VllmFaultsTest(unittest.TestCase):
    def test_killed_and_stopped_servers_are_lost_and_return(self):
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        servers = vllm_process.start_servers(folder, 2)
        for server in servers:
            self.addCleanup(server.end)
        out = folder / "run"
        urls = ",".join(server.url for server in servers)
        run = Run("train", "tiny", f"engine.urls=[{urls}]", "--method", "pace",
                  "run.num_steps=100000", "run.evaluate_every=0", "batch.num_groups=4",
                  "batch.group_size=6", "supply.threshold=3", "record.level=full",
                  f"engine.control_s={CONTROL_SECONDS}", "--out", out)
        self.addCleanup(run.end)
        run.wait_for("step 3 of ")

        killed = time.monotonic()
        servers[0].kill()
        noticed = run.wait_for(f"lost {servers[0].url}") - killed
        servers[0].begin()
        # The other one goes on alone.
        run.wait_for(r"step \d+ of ", after=killed + noticed)
        back = run.wait_for(f"{servers[0].url}: is back") - killed

        stopped = time.monotonic()
        servers[1].signal(signal.SIGSTOP)
        hung = run.wait_for(f"lost {servers[1].url}", after=stopped) - stopped
        run.wait_for(r"step \d+ of ", after=stopped + hung)
        continued = time.monotonic()
        servers[1].signal(signal.SIGCONT)
        returned = run.wait_for(f"{servers[1].url}: is back", after=continued) - continued
        run.wait_for(r"step \d+ of ", after=continued + returned)
        print(f"\na killed server was noticed after {noticed:.2f} s and back after {back:.0f} s; "
              f"a stopped one after {hung:.1f} s, back {returned:.1f} s after it went on")
        self.assertLess(noticed, KILL_NOTICED)

        # The run ends when it is asked to, and goes on to its end.
        run.process.send_signal(signal.SIGTERM)
        run.process.wait(timeout=PATIENCE)
        steps = self.check(out)
        done = pace_process.run("train", "--resume", out, f"run.num_steps={steps + 3}")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.check(out), steps + 3)

    def check(self, out):
        """Every step is there once, nothing is trained on twice, and decisions replay."""
        rows = pace_process.json_lines((out / "metrics.jsonl").read_text())
        self.assertEqual([row["step"] for row in rows], list(range(len(rows))))
        admitted = [line["group"] for line in
                    pace_process.json_lines((out / "decisions.jsonl").read_text())
                    if line["verdict"] == "admit"]
        self.assertEqual(len(admitted), len(set(admitted)))
        replayed = pace_process.run("replay", out / "trace.jsonl")
        self.assertEqual(replayed.returncode, 0, replayed.stdout + replayed.stderr)
        return len(rows)


if __name__ == "__main__":
    unittest.main()
