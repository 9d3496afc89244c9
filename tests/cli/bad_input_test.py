"""Bad input gives one line on stderr, exit code 2, and nothing is lost."""

import json
import pathlib
import tempfile
import unittest

import pace_process

STEP = '{"step": 1, "occupancy": 20}'
GROUP = ('{"group": 0, "members": [{"completed": 1, "segments": [[0, 7], [1, 7]], '
         '"prefix_score": null}]}')
CONFIG = {"policy": "pace", "target_occupancy": 12, "beta": 0.9, "max_budget": 0.9,
          "window": 512, "min_observations": 32, "gamma": 4.0, "wait_weight": 1.0,
          "generation_weight": "prefix", "unscored_weight": 1.0}

# (what is wrong, the trace's lines, the line number the message must name)
BAD_TRACES = [
    ("not json", ["hello"], 1),
    ("not an object", ["[1]"], 1),
    ("empty line", [STEP, "", GROUP], 2),
    ("group before a step", [GROUP], 1),
    ("truncated", [STEP, GROUP[:40]], 2),
    ("unknown key in a step", ['{"step": 1, "occupancy": 2, "ocupancy": 3}'], 1),
    ("unknown key in a group", [STEP, GROUP[:-1] + ', "age": 3}'], 2),
    ("unknown key in a member", [STEP, GROUP.replace('"completed"', '"compleeted"')], 2),
    ("missing occupancy", ['{"step": 1}'], 1),
    ("missing members", [STEP, '{"group": 0}'], 2),
    ("missing prefix score", [STEP, GROUP.replace(', "prefix_score": null', "")], 2),
    ("step is text", ['{"step": "1", "occupancy": 2}'], 1),
    ("step is fractional", ['{"step": 1.5, "occupancy": 2}'], 1),
    ("negative occupancy", ['{"step": 1, "occupancy": -2}'], 1),
    ("huge occupancy", ['{"step": 1, "occupancy": 1e300}'], 1),
    ("NaN score", [STEP, GROUP.replace("null", "NaN")], 2),
    ("infinite score", [STEP, GROUP.replace("null", "1e999")], 2),
    ("negative score", [STEP, GROUP.replace("null", "-0.5")], 2),
    ("no members", [STEP, '{"group": 0, "members": []}'], 2),
    ("no segments", [STEP, GROUP.replace("[[0, 7], [1, 7]]", "[]")], 2),
    ("no tokens", [STEP, GROUP.replace("[0, 7]", "[0, 0]")], 2),
    ("negative tokens", [STEP, GROUP.replace("[0, 7]", "[0, -7]")], 2),
    ("three in a segment", [STEP, GROUP.replace("[0, 7]", "[0, 7, 7]")], 2),
    ("sampled after completion", [STEP, GROUP.replace("[1, 7]", "[2, 7]")], 2),
    ("completed after the step", [STEP, GROUP.replace('"completed": 1', '"completed": 3')], 2),
    ("steps fall", [STEP, '{"step": 0, "occupancy": 2}'], 2),
    ("doubled key", ['{"step": 1, "step": 2, "occupancy": 2}'], 1),
    ("invalid utf-8", [STEP, b'{"group\xff": 0}'], 2),
    ("NUL byte", [STEP, b"{\x00}"], 2),
    ("deep nesting", [STEP, "[" * 100000], 2),
]

BAD_CONFIGS = [
    ("not json", "{", ""),
    ("no config", "{}", "config"),
    ("unknown key", {"betta": 1}, "beta"),
    ("text for a number", {"beta": "0.9"}, "beta"),
    ("number for a name", {"policy": 3}, "policy"),
    ("unknown policy", {"policy": "best"}, "policy"),
    ("negative window", {"window": -5}, "window"),
    ("zero window", {"window": 0}, "window"),
    ("fractional window", {"window": 1.5}, "window"),
    ("huge window", {"window": 10**30}, "window"),
    ("beta above one", {"beta": 1.1}, "beta"),
    ("NaN", '{"config": {"beta": NaN}}', "beta"),
    ("overflow", '{"config": {"gamma": 1e999}}', "gamma"),
    ("list", {"gamma": [4]}, "gamma"),
    ("unknown generation weight", {"generation_weight": "two"}, "generation_weight"),
]


class BadInputTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.config = self.folder / "good.json"
        self.config.write_text(json.dumps({"config": CONFIG}))
        self.trace = self.folder / "good.jsonl"
        self.trace.write_text(f"{STEP}\n{GROUP}\n")

    def refuse(self, done, *words):
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, repr(done.stderr))
        self.assertTrue(done.stderr.startswith("pace: "), done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)

    def test_good_input_is_accepted(self):
        done = pace_process.run("replay", self.trace, "--config", self.config)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(len(done.stdout.splitlines()), 2)

    def test_traces(self):
        for what, lines, number in BAD_TRACES:
            with self.subTest(what):
                path = self.folder / "bad.jsonl"
                path.write_bytes(b"".join(
                    (line if isinstance(line, bytes) else line.encode()) + b"\n"
                    for line in lines))
                done = pace_process.run("replay", path, "--config", self.config)
                self.refuse(done, f"{path}:{number}")
                # What came before the bad line was still answered.
                self.assertEqual(len(done.stdout.splitlines()), number - 1)

    def test_truncation_at_every_byte_never_crashes(self):
        whole = f"{STEP}\n{GROUP}\n".encode()
        path = self.folder / "cut.jsonl"
        for size in range(len(whole)):
            path.write_bytes(whole[:size])
            done = pace_process.run("replay", path, "--config", self.config)
            self.assertIn(done.returncode, (0, 2), f"{size}: {done.stderr}")
            if done.returncode == 2:
                self.refuse(done, str(path))

    def test_configs(self):
        for what, content, word in BAD_CONFIGS:
            with self.subTest(what):
                path = self.folder / "bad.json"
                path.write_text(content if isinstance(content, str) else
                                json.dumps({"config": {**CONFIG, **content}}))
                self.refuse(pace_process.run("replay", self.trace, "--config", path),
                            str(path), word)

    def test_missing_files(self):
        self.refuse(pace_process.run("replay", "nosuch.jsonl", "--config", self.config),
                    "nosuch.jsonl")
        self.refuse(pace_process.run("replay", self.trace, "--config", "nosuch.json"),
                    "nosuch.json")
        self.refuse(pace_process.run("replay", self.trace), "config.yaml")
        self.refuse(pace_process.run("replay", self.folder, "--config", self.config))
        self.refuse(pace_process.run("report", self.folder / "nosuch"), "nosuch")
        self.refuse(pace_process.run("report", self.folder), str(self.folder))
        self.refuse(pace_process.run("sim", "nosuch"), "nosuch", "nearest")
        self.refuse(pace_process.run("config", "math-4"), "math-4b")

    def test_settings(self):
        for override, word in [("supply.threshold=-1", "must be >= 0"),
                               ("supply.treshold=1", "supply.threshold"),
                               ("batch.num_groups=0", "batch.num_groups"),
                               ("admission.beta=nan", "finite"),
                               ("run.num_steps=1e30", "run.num_steps"),
                               ("nonsense", "key=value")]:
            with self.subTest(override):
                self.refuse(pace_process.run("sim", "small", override), word)
        path = self.folder / "bad.yaml"
        path.write_text("preset: small\nadmission:\n  gamma: -1\n")
        self.refuse(pace_process.run("sim", path), f"{path}:3", "admission.gamma", "-1")

    def test_paths_that_the_system_refuses(self):
        long = "x" * 300
        for arguments in [("replay", f"{long}/trace.jsonl"), ("compare", long), ("report", long),
                          ("sim", long), ("data", "show", f"{long}.jsonl"),
                          ("train", "tiny", f"policy.model={long}"),
                          ("eval", "tiny", f"task.benchmarks=[{long}.jsonl]")]:
            with self.subTest(arguments[0]):
                self.refuse(pace_process.run(*arguments, cwd=self.folder))

    def test_a_line_without_end_is_refused(self):
        done = pace_process.run("tokenize", "--tokenizer",
                                pace_process.SOURCE / "models" / "tiny",
                                lines=['{"text": "' + "1" * (66 << 20) + '"}'])
        self.refuse(done, "stdin:1", "longer than")

    def test_lists_and_odd_texts_survive_the_command_line(self):
        done = pace_process.run("config", "tiny", 'task.benchmarks=[my data/a[1].jsonl, "b,c"]',
                                "policy.model=null")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn('benchmarks: ["my data/a[1].jsonl", "b,c"]', done.stdout)
        path = self.folder / "odd.yaml"
        path.write_text(done.stdout)
        again = pace_process.run("config", path)
        self.assertEqual((again.returncode, again.stdout), (0, done.stdout), again.stderr)

    def test_a_method_that_is_none(self):
        self.refuse(pace_process.run("train", "tiny", "--method", "pce"), "--method pce", "pace")
        done = pace_process.run("config", "--methods")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("pace, effective", done.stdout)

    def test_usage(self):
        for arguments in [(), ("nosuch",), ("sim",), ("replay",), ("sim", "small", "--jobs", "x")]:
            with self.subTest(arguments):
                done = pace_process.run(*arguments)
                self.assertEqual(done.returncode, 2, done.stdout)
                self.assertEqual(done.stdout, "")
                self.assertIn("--help", done.stderr)

    def test_a_benchmark_without_settings_takes_none(self):
        done = pace_process.run("bench", "sandbox", "batch.num_groups=4")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertEqual(done.stderr, "pace: bench sandbox: takes no settings "
                         "(batch.num_groups=4); methods does\n")
        done = pace_process.run("bench", "methods", "supply.treshold=4")
        self.assertEqual(done.returncode, 2)
        self.assertIn("nearest: supply.threshold", done.stderr)

    def test_every_command_has_help_with_an_example(self):
        for command in ("sim", "replay", "report", "config", "bench", "tokenize", "import",
                        "export", "score", "generate", "data"):
            with self.subTest(command):
                done = pace_process.run(command, "--help")
                self.assertEqual(done.returncode, 0)
                self.assertIn("Example:", done.stdout)
                self.assertIn(f"pace {command}", done.stdout)


if __name__ == "__main__":
    unittest.main(verbosity=2)
