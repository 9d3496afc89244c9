"""Rollout on servers: pace train on fleets of pace serve, killed, shared, refused, resumed.

PACE_LONG_TESTS=1 also makes a run of 20 steps in each of which a server is killed."""

import collections
import itertools
import json
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import time
import unittest
import urllib.request

import pace_process
from recording_proxy import RecordingProxy
from small_run import SHAPE, SMALL
from watched_run import WatchedRun

PATIENCE = 300
LONG = os.environ.get("PACE_LONG_TESTS") == "1"
# Seconds within which a run notices that a server was killed, and that one does not answer.
KILL_NOTICED = 2
CONTROL_SECONDS = 3


class Server:
    """One `pace serve` of a test's own; `begin` starts it again at the same address."""

    def __init__(self, model, folder, name):
        self.model = model
        self.ready = pathlib.Path(folder) / f"{name}.url"
        self.url = "http://127.0.0.1:0"
        self.begin()

    def begin(self):
        self.ready.unlink(missing_ok=True)
        self.process = subprocess.Popen(
            [str(pace_process.BINARY), "serve", str(self.model),
             "--port", self.url.rpartition(":")[2], "--ready-file", str(self.ready)],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + PATIENCE
        while not self.ready.exists():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError("pace serve did not start")
            time.sleep(0.05)
        self.url = self.ready.read_text().strip()

    def label(self):
        """Of the weights that it serves."""
        with urllib.request.urlopen(f"{self.url}/weight_info", timeout=60) as answer:
            return json.load(answer)["weight_version"]

    def end(self):
        self.process.kill()
        self.process.wait()


class Liar:
    """Changes every third answer to a generate request, each time in another way."""

    def __init__(self):
        self.num_lies = 0
        self._count = itertools.count(1)

    def __call__(self, path, status, data):
        if path != "/inference/v1/generate" or status != 200 or next(self._count) % 3 != 0:
            return status, data
        kinds = [self.token, self.version, self.length, self.logprobs, self.spans]
        number = self.num_lies % (len(kinds) + 4)
        self.num_lies += 1
        if number >= len(kinds):
            return [(500, b'{"error": {"message": "broken"}}'), (200, b"\xff\x00 garbage"),
                    (200, data[:len(data) // 2]), None][number - len(kinds)]
        answer = json.loads(data)
        kinds[number](answer["choices"][0])
        return status, json.dumps(answer).encode()

    @staticmethod
    def token(choice):
        choice["token_ids"][-1:] = [1 << 20]
        choice["logprobs"]["content"][-1:] = [{"token_id": 1 << 20, "logprob": -1.0}]

    @staticmethod
    def version(choice):
        for span in choice["weight_versions"]:
            span["version"] = span["version"].rpartition(":")[0] + ":900"

    @staticmethod
    def length(choice):
        choice["token_ids"] += [3] * 5000
        choice["logprobs"]["content"] += [{"token_id": 3, "logprob": -1.0}] * 5000

    @staticmethod
    def logprobs(choice):
        choice["logprobs"]["content"] = choice["logprobs"]["content"][:-1]

    @staticmethod
    def spans(choice):
        choice["weight_versions"] = [{**span, "end": span["end"] + 1}
                                     for span in choice["weight_versions"]]


def children(pid):
    text = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(word) for word in text.split()]


class EnginesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cls.model = cls.folder / "model"
        made = pace_process.run("sft", "tiny", *SMALL, *SHAPE, "sft.num_steps=3", "--fresh",
                                "--out", cls.model, cwd=cls.folder)
        assert made.returncode == 0, made.stderr

    def command(self, *arguments):
        return [str(pace_process.BINARY), "train", "tiny", *SMALL, f"policy.model={self.model}",
                *map(str, arguments)]

    def train(self, *arguments, code=0):
        done = subprocess.run(self.command(*arguments), capture_output=True, text=True,
                              cwd=self.folder, timeout=pace_process.PATIENCE, check=False)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def check_run(self, run, num_steps):
        """Every step is there, lags add up, and the decisions replay."""
        rows = pace_process.json_lines((run / "metrics.jsonl").read_text())
        self.assertEqual([row["step"] for row in rows], list(range(num_steps)))
        replayed = pace_process.run("replay", run / "trace.jsonl")
        self.assertEqual(replayed.returncode, 0, replayed.stdout + replayed.stderr)
        return rows

    def test_a_fleet_of_its_own_trains_and_replays(self):
        run = self.folder / "fleet"
        self.train("run.num_steps=6", "--fleet", 2, "--method", "pace", "--out", run)
        rows = self.check_run(run, 6)
        self.assertGreater(max(row["staleness/lag/max"] for row in rows), 0)
        self.assertTrue(any(f"worker/{worker}/tokens_per_s" in rows[-1] for worker in range(2)))
        for worker in range(2):
            # On a busy machine one may join after the first steps, or after the last; then it stays.
            present = [f"worker/{worker}/tokens_per_s" in row for row in rows]
            self.assertEqual(present, sorted(present))
            for row in rows:
                self.assertEqual(row.get(f"worker/{worker}/failures", 0), 0)
        self.assertGreater(sum(row.get("worker/0/pauses", 0) for row in rows), 1)
        for row in rows:
            self.assertAlmostEqual(row["staleness/waiting/mean"] + row["staleness/generation/mean"],
                                   row["staleness/lag/mean"], places=9)
        self.assertFalse(list((run / "weights").glob("v*")), "weights are removed at the end")
        self.assertEqual(len(list((run / "servers").glob("*.log"))), 2)

    def test_a_fleet_replaces_servers_that_are_killed(self):
        run = self.folder / "replaced"
        watched = WatchedRun(*self.command("run.num_steps=6", "--fleet", 2, "--out", run)[1:],
                             cwd=self.folder)
        self.addCleanup(watched.end)
        watched.wait_for("step 1 of")
        os.kill(children(watched.process.pid)[0], signal.SIGKILL)
        watched.process.wait(timeout=PATIENCE)
        self.assertEqual(watched.process.returncode, 0, watched.text())
        self.check_run(run, 6)

    def servers(self, name, model):
        """Two, and the setting that names them."""
        servers = [Server(model, self.folder, f"{name}{i}") for i in range(2)]
        for server in servers:
            self.addCleanup(server.end)
        return servers, f"engine.urls=[{','.join(server.url for server in servers)}]"

    def test_servers_are_killed_and_one_is_stopped(self):
        servers, urls = self.servers("killed", self.model)
        out = self.folder / "killed"
        # The run cannot end before the kills: it is asked to.
        run = WatchedRun(*self.command("run.num_steps=100000", urls, "record.level=full",
                                       f"engine.control_s={CONTROL_SECONDS}", "--method", "pace",
                                       "--out", out)[1:], cwd=self.folder)
        self.addCleanup(run.end)
        num_kills = 5
        for number in range(num_kills):
            run.wait_for(r"step \d+ of ", after=time.monotonic())
            victim = servers[number % 2]
            self.wait_until_served(victim)
            killed = time.monotonic()
            victim.end()
            noticed = run.wait_for(f"lost {victim.url}", after=killed)
            # The other one goes on, and the one that was killed joins again.
            run.wait_for(r"step \d+ of ", after=noticed)
            victim.begin()
            run.wait_for(f"{victim.url}: is back", after=killed)
        stopped = time.monotonic()
        servers[0].process.send_signal(signal.SIGSTOP)
        noticed = run.wait_for(f"lost {servers[0].url}", after=stopped)
        run.wait_for(r"step \d+ of ", after=noticed)
        servers[0].process.send_signal(signal.SIGCONT)
        run.wait_for(f"{servers[0].url}: is back", after=noticed)
        run.process.send_signal(signal.SIGTERM)
        run.process.wait(timeout=PATIENCE)
        self.assertEqual(run.process.returncode, 3, run.text())
        rows = pace_process.json_lines((out / "metrics.jsonl").read_text())
        self.check_run(out, len(rows))
        self.check_trained_once(out, len(rows) * 3, num_begun=3)
        failures = sum(row.get(f"worker/{i}/failures", 0) for row in rows for i in range(2))
        self.assertGreater(failures, num_kills)
        self.assertTrue(any(row.get("worker/1/tokens_per_s", 0) > 0 for row in rows))

    @unittest.skipUnless(LONG, "PACE_LONG_TESTS=1 kills a server in each of 20 steps")
    def test_a_server_is_killed_in_each_of_twenty_steps(self):
        servers, urls = self.servers("each", "tiny")
        out = self.folder / "each"
        num_steps = 20
        run = WatchedRun("train", "tiny", f"run.num_steps={num_steps}", "run.evaluate_every=0",
                         "batch.num_groups=24", "batch.group_size=8", "supply.threshold=3",
                         "record.level=full", urls, f"engine.control_s={CONTROL_SECONDS}",
                         "--method", "pace", "--out", out, cwd=self.folder)
        self.addCleanup(run.end)
        kills = []  # the step that was under way, the time, and whom
        for step in range(num_steps):
            if step > 0:
                run.wait_for(f"step {step} of ")
            victim = servers[step % 2]
            self.wait_until_served(victim)
            kills.append((step, time.monotonic(), victim.url))
            victim.end()
            ended = run.said(f"step {step + 1} of ")
            self.assertTrue(ended is None or ended > kills[-1][1], "the step ended before its kill")
            victim.begin()
        run.process.wait(timeout=PATIENCE)
        self.assertEqual(run.process.returncode, 0, run.text())
        noticed = [run.wait_for(f"lost {url}", after=when) - when for _, when, url in kills]
        returns = sum(line.endswith(": is back\n") for _, line in run.lines)
        print(f"\n{len(kills)} kills in {num_steps} steps, noticed after at most "
              f"{max(noticed):.2f} s; {returns} returns")
        self.assertLess(max(noticed), KILL_NOTICED)
        self.assertGreaterEqual(returns, num_steps - 2)
        self.check_run(out, num_steps)
        self.check_trained_once(out, num_steps * 24)

    def wait_until_served(self, server):
        """The run has given it weights."""
        deadline = time.monotonic() + PATIENCE
        while not server.label().startswith("run-"):
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.02)

    def check_trained_once(self, run, num_groups, num_begun=0):
        """No group is admitted twice, and every batch is whole.

        A run that was asked to end may have admitted groups for a step that it no longer took,
        at most num_begun.
        """
        admitted = [line["group"] for line in
                    pace_process.json_lines((run / "decisions.jsonl").read_text())
                    if line["verdict"] == "admit"]
        self.assertEqual(len(admitted), len(set(admitted)))
        self.assertIn(len(admitted), range(num_groups, num_groups + num_begun + 1))

    def test_a_server_that_lies_spoils_no_run(self):
        # Alone, so that every answer that the run needs comes from it, and every kind of lie is told.
        server = Server(self.model, self.folder, "lied")
        liar = Liar()
        proxy = RecordingProxy(server.url, self.folder, lie=liar)
        for other in (server, proxy):
            self.addCleanup(other.end)
        run = self.folder / "lies"
        done = self.train("run.num_steps=6", f"engine.urls=[{proxy.url}]", "--method", "pace",
                          "--out", run)
        self.check_run(run, 6)
        self.assertGreater(liar.num_lies, 9)
        self.assertIn(f"lost {proxy.url}", done.stderr)
        self.assertIn(f"{proxy.url}: is back", done.stderr)
        self.check_trained_once(run, 6 * 3)

    def test_evaluations_are_generated_by_servers_under_one_version(self):
        server = Server(self.model, self.folder, "evaluated")
        proxy = RecordingProxy(server.url, self.folder)
        for other in (server, proxy):
            self.addCleanup(other.end)
        settings = ["run.num_steps=4", "run.evaluate_every=2", "evaluation.greedy=true",
                    "task.held_out_problems=8"]
        run = self.folder / "evaluated"
        done = self.train(*settings, f"engine.urls=[{proxy.url}]", "--out", run)
        # Training may overtake an evaluation, which then ends in the process; not the last one.
        here = set(re.findall(r"version (\d+) is evaluated in this process: no server has it any more",
                              done.stderr))
        self.assertEqual(done.stderr.count("is evaluated in this process"), len(here))
        by_servers = {"0", "2", "4"} - here
        self.assertIn("4", by_servers)
        self.check_run(run, 4)
        alone = self.folder / "evaluated-here"
        self.train(*settings, "--out", alone)
        rows, local = (pace_process.json_lines((folder / "eval.jsonl").read_text())
                       for folder in (run, alone))
        self.assertEqual([row["step"] for row in rows], [0, 2, 4])
        # Before the first step both have the same weights, and greedy responses have no seed.
        greedy = [key for key in rows[0] if key.endswith("/greedy")]
        self.assertEqual([rows[0][key] for key in greedy], [local[0][key] for key in greedy])
        self.assertTrue(greedy)
        # Each response of an evaluation is of one version, and there are as many as asked for.
        versions = {}
        for request, answer in proxy.answers:
            group, member = request["request_id"].split("-")[-3:-1]
            if int(group) < 1 << 40:
                continue
            for span in answer["choices"][0]["weight_versions"]:
                versions.setdefault((group, member), set()).add(span["version"].rpartition(":")[2])
        self.assertEqual({len(seen) for seen in versions.values()}, {1})
        counts = collections.Counter(next(iter(seen)) for seen in versions.values())
        self.assertLessEqual(set(counts), {"0", "2", "4"})
        self.assertEqual({version: counts[version] for version in by_servers},
                         {version: 8 * 3 for version in by_servers})

    def test_an_evaluation_outlives_its_server(self):
        servers, urls = self.servers("outlived", self.model)
        run = self.folder / "outlived"
        watched = WatchedRun(*self.command("run.num_steps=6", "run.evaluate_every=1", urls,
                                           "task.held_out_problems=64", "--out", run)[1:],
                             cwd=self.folder)
        self.addCleanup(watched.end)
        watched.wait_for("step 2 of")
        servers[0].end()
        watched.process.wait(timeout=PATIENCE)
        self.assertEqual(watched.process.returncode, 0, watched.text())
        rows = pace_process.json_lines((run / "eval.jsonl").read_text())
        self.assertEqual([row["step"] for row in rows], list(range(7)))

    def test_a_network_of_another_shape_is_refused_in_one_line(self):
        server = Server("tiny", self.folder, "shape")
        self.addCleanup(server.end)
        done = self.train(f"engine.urls=[{server.url}]", "--out", self.folder / "shape", code=2)
        self.assertIn("a network of 4 layers of 128 for 18 tokens: must be the policy's, 2 layers",
                      done.stderr)

    def test_resumes_with_other_engines(self):
        run = self.folder / "moved"
        self.train("run.num_steps=3", "run.checkpoint_every=1", "--fleet", 2, "--out", run)
        for number, change in enumerate((["engine.fleet=0"], ["engine.count=2"],
                                         ["engine.fleet=1", "engine.count=1"])):
            steps = 5 + 2 * number
            done = subprocess.run(
                [str(pace_process.BINARY), "train", "--resume", str(run),
                 f"run.num_steps={steps}", *change],
                capture_output=True, text=True, timeout=pace_process.PATIENCE, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
        self.check_run(run, 9)

    def test_two_runs_on_one_server_are_noticed(self):
        server = Server(self.model, self.folder, "shared")
        self.addCleanup(server.end)
        runs = [subprocess.Popen(
            self.command("run.num_steps=40", f"engine.urls=[{server.url}]",
                         "--out", self.folder / f"shared{i}"),
            cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            for i in range(2)]
        errors = [run.communicate(timeout=pace_process.PATIENCE)[1] for run in runs]
        stopped = [error for run, error in zip(runs, errors) if run.returncode != 0]
        self.assertTrue(stopped, errors)
        self.assertTrue(any("another run uses the server" in error for error in stopped), stopped)

    def test_what_cannot_serve_is_refused_in_one_line(self):
        done = self.train("engine.urls=[ftp://host]", "--out", self.folder / "bad1", code=2)
        self.assertIn("must be http://HOST:PORT", done.stderr)
        done = self.train("engine.urls=[http://127.0.0.1:9]", "engine.join_s=2",
                          "--out", self.folder / "bad2", code=2)
        self.assertIn("no server of engine.urls is ready; http://127.0.0.1:9", done.stderr)
        done = self.train("engine.urls=[http://127.0.0.1:9]", "--fleet", 2,
                          "--out", self.folder / "bad3", code=2)
        self.assertIn("must be 0 where engine.urls names servers", done.stderr)
        done = self.train("engine.quantization=fp8", "--fleet", 2, "--out", self.folder / "bad4", code=2)
        self.assertIn("pace serve MODEL engine.quantization=fp8", done.stderr)
        server = "engine.urls=[http://127.0.0.1:9]"
        for number, (message, settings) in enumerate({
                "needs vLLM or SGLang servers": ["--fleet", 2],
                "sends from the trainer's GPU": [server, "engine.server=sglang"],
                "engine.transfer_address = http://a: must be a host name or an address":
                    [server, "engine.server=sglang", "engine.transfer_address=http://a"]}.items()):
            done = self.train("engine.transfer=nccl", *settings,
                              "--out", self.folder / f"sent{number}", code=2)
            self.assertIn(message, done.stderr)


if __name__ == "__main__":
    unittest.main()
