"""vLLM servers that are killed and stopped in the middle of a run.

PACE_VLLM_STEPS=20 makes the run whose servers are killed in every step longer."""

import contextlib
import http.client
import os
import pathlib
import signal
import tempfile
import time
import unittest

import vllm_process

import pace_process
from watched_run import PATIENCE, WatchedRun

# Seconds within which a run notices that a server was killed.
KILL_NOTICED = 2
CONTROL_SECONDS = 10
NUM_STEPS = int(os.environ.get("PACE_VLLM_STEPS", "4"))


class VllmFaultsTest(unittest.TestCase):
    def test_killed_and_stopped_servers_are_lost_and_return(self):
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        servers = vllm_process.start_servers(folder, 2)
        for server in servers:
            self.addCleanup(server.end)
        out = folder / "run"
        urls = ",".join(server.url for server in servers)
        run = WatchedRun("train", "tiny", f"engine.urls=[{urls}]", "--method", "pace",
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

    def test_a_server_is_killed_in_every_step(self):
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        servers = vllm_process.start_servers(folder, 2)
        for server in servers:
            self.addCleanup(server.end)
        out = folder / "run"
        urls = ",".join(server.url for server in servers)
        run = WatchedRun("train", "tiny", f"engine.urls=[{urls}]", "--method", "pace",
                         f"run.num_steps={NUM_STEPS}", "run.evaluate_every=0",
                         "batch.num_groups=32", "batch.group_size=8", "supply.threshold=1",
                         "record.level=full", f"engine.control_s={CONTROL_SECONDS}", "--out", out)
        self.addCleanup(run.end)
        kills = []
        for step in range(NUM_STEPS):
            if step > 0:
                run.wait_for(f"step {step} of ")
            # A server starts slowly: where one is still absent, the run loses the other one, too.
            victim = self.kill_one_that_serves(run, servers)
            kills.append((time.monotonic(), victim.url))
            run.process.send_signal(signal.SIGCONT)
            ended = run.said(f"step {step + 1} of ")
            self.assertTrue(ended is None or ended > kills[-1][0], "the step ended before its kill")
            victim.begin()
        run.process.wait(timeout=PATIENCE)
        self.assertEqual(run.process.returncode, 0, run.text())
        noticed = [run.wait_for(f"lost {url}", after=when) - when for when, url in kills]
        returns = sum(line.endswith(": is back\n") for _, line in run.lines)
        print(f"\n{len(kills)} kills in {NUM_STEPS} steps, noticed after at most "
              f"{max(noticed):.2f} s; {returns} returns")
        self.assertLess(max(noticed), KILL_NOTICED)
        self.assertEqual(self.check(out), NUM_STEPS)

    @staticmethod
    def kill_one_that_serves(run, servers):
        """Of the servers that the run has given weights. The run is stopped then, so that its step
        does not end meanwhile."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline and run.running():
            run.process.send_signal(signal.SIGSTOP)
            for server in servers:
                with contextlib.suppress(OSError, http.client.HTTPException):
                    status, info = vllm_process.call(server.url, "GET", "/weight_info", timeout=5)
                    if status == 200 and str(info.get("weight_version")).startswith("run-"):
                        server.kill()
                        return server
            run.process.send_signal(signal.SIGCONT)
            time.sleep(0.2)
        raise AssertionError(f"no server serves the run:\n{run.text()}")

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
