"""The Python package gives what the C++ programs give, to the bit.

Runs in a Python that has the package installed (`make wheel` builds it, `make test-python` runs
this): docstrings, errors, verdicts of every admission trace, policies in Python, records.
"""

import doctest
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

import pace
import pace.control
import pace.runs
import pace.sim
from pace import _core

_ROOT = pathlib.Path(__file__).resolve().parents[2]
_PROGRAM = _ROOT / "build" / "pace"
sys.path.insert(0, str(_ROOT / "tests"))
sys.path.insert(0, str(_ROOT / "examples" / "python_policy"))
import shared_data  # noqa: E402  (of tests/)
from freshest_first import FreshestFirst  # noqa: E402  (of examples/)

_TRACES = shared_data.FOLDER / "admission"


class StaleK:
    def __init__(self, k):
        self.k = k

    def begin_step(self, step, occupancy, batch, served):
        self.step = step

    def score(self, group):
        return group.lag(self.step)

    def judge(self, group):
        return group.lag(self.step) <= self.k


def group_of(line):
    members = [(m["completed"], [tuple(s) for s in m["segments"]], m.get("prefix_score"))
               for m in line["members"]]
    return pace.Group(line["group"], members)


def same(expected, plan_or_decision):
    """Whether a line of `pace replay` holds the numbers of a plan or a decision."""
    values = {key: getattr(plan_or_decision, key) for key in expected if key != "group"}
    return values == {key: value for key, value in expected.items() if key != "group"}


class DocstringsTest(unittest.TestCase):
    def test_examples_run(self):
        flags = doctest.IGNORE_EXCEPTION_DETAIL
        num_examples = 0
        for module in (pace, pace.control, pace.runs, pace.sim):
            result = doctest.testmod(module, optionflags=flags)
            self.assertEqual(result.failed, 0, module.__name__)
            num_examples += result.attempted
        parser, runner = doctest.DocTestParser(), doctest.DocTestRunner(optionflags=flags)
        for name in dir(_core):
            text = getattr(_core, name).__doc__
            test = parser.get_doctest(text or "", {}, name, name, 0)
            runner.run(test)
        self.assertEqual(runner.failures, 0)
        self.assertGreater(num_examples + runner.tries, 30)

    def test_everything_public_is_documented(self):
        for name in pace.__all__:
            if name != "__version__":
                self.assertTrue(getattr(pace, name).__doc__ or name.endswith(("Loss", "Error",
                                "InvalidArgument", "NotFound", "Unavailable")), name)


class ErrorsTest(unittest.TestCase):
    def test_an_error_is_one_line_of_the_right_kind(self):
        with self.assertRaises(pace.InvalidArgument) as caught:
            pace.Settings("math-4b", "supply.treshold=4")
        self.assertIn("supply.threshold", str(caught.exception))
        self.assertNotIn("\n", str(caught.exception))
        self.assertIsInstance(caught.exception, (pace.Error, ValueError))
        with self.assertRaises(pace.NotFound):
            pace.Run("/nowhere")
        with self.assertRaises(pace.Error):
            pace.replay("/nowhere/trace.jsonl", "/nowhere/config.json")

    def test_groups_are_checked(self):
        for members, part in [([], "members = []"), ([(3, [], None)], "segments = []"),
                              ([(3, [(4, 1)], None)], "version = 4"),
                              ([(3, [(2, 1), (1, 1)], None)], "version = 1"),
                              ([(3, [(2, 0)], None)], "num_tokens = 0"),
                              ([(3, [(2, 1)], float("nan"))], "prefix_score = nan")]:
            with self.subTest(part=part), self.assertRaisesRegex(pace.InvalidArgument,
                                                                 part.replace("[]", r"\[\]")):
                pace.Group(1, members)


@shared_data.needs(shared_data.FOLDER / "admission", 10)
class TracesTest(unittest.TestCase):
    """Every admission trace, through replay and through a session."""

    def traces(self):
        paths = sorted(_TRACES.glob("*.trace.jsonl"))
        self.assertGreater(len(paths), 5)
        for trace in paths:
            name = trace.name.removesuffix(".trace.jsonl")
            yield trace, _TRACES / f"{name}.json"

    def test_replay_gives_the_lines_of_the_program(self):
        for trace, config in self.traces():
            with self.subTest(trace=trace.name):
                said = subprocess.run([_PROGRAM, "replay", trace, "--config", config],
                                      capture_output=True, text=True, check=True).stdout
                self.assertEqual(pace.replay_lines(trace, config), said.splitlines())

    def test_a_session_gives_the_verdicts_of_the_program(self):
        num_draws = 0
        for trace, config in self.traces():
            with self.subTest(trace=trace.name):
                options = json.loads(config.read_text())["config"]
                settings = pace.Settings(
                    "math-4b", "batch.num_groups=1",
                    set={f"admission.{key}": value for key, value in options.items()})
                # These traces do not say their batch, so replay has no progress guard.
                session = pace.AdmissionSession(settings, guards=False)
                expected = pace.replay(trace, config)
                lines = [json.loads(line) for line in trace.read_text().splitlines()]
                self.assertEqual(len(lines), len(expected))
                for line, said in zip(lines, expected):
                    if "step" in line:
                        given = session.begin_step(line["step"], line["occupancy"])
                    else:
                        given = session.draw(group_of(line))
                        num_draws += 1
                    self.assertTrue(same(said, given), (line, said, given))
        self.assertGreater(num_draws, 1000)


class SimulatorTest(unittest.TestCase):
    def run_both(self, settings, policy):
        """decisions.jsonl of the built-in policy and of one in Python."""
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            pace.simulate(settings, record=folder / "built_in")
            pace.simulate(settings, admission=policy, record=folder / "python")
            return [(folder / name / "decisions.jsonl").read_bytes()
                    for name in ("built_in", "python")]

    def test_freshest_first_in_python_gives_the_verdicts_of_the_built_in_one(self):
        settings = pace.Settings("math-4b", "run.num_steps=40", method="miles-24")
        built_in, python = self.run_both(settings, FreshestFirst())
        self.assertEqual(built_in, python)
        self.assertGreater(built_in.count(b"\n"), 400)

    def test_the_example_compares_policies(self):
        done = subprocess.run([sys.executable, _ROOT / "examples" / "python_policy" / "compare.py"],
                              capture_output=True, text=True, check=True)
        rows = done.stdout.splitlines()
        self.assertEqual(len(rows), 6, done.stdout)
        self.assertTrue(any(row.startswith("freshest (Python)") for row in rows))

    def test_so_does_a_policy_that_rejects(self):
        settings = pace.Settings("math-4b", "run.num_steps=40", method="stale-2")
        built_in, python = self.run_both(settings, StaleK(2))
        self.assertEqual(built_in, python)
        self.assertIn(b'"reject"', built_in)

    def test_a_policy_may_wrap_a_built_in_one(self):
        settings = pace.Settings("math-4b", "run.num_steps=20")
        built_in, python = self.run_both(settings, pace.AdmissionPolicy(settings))
        keep = ("step", "group", "verdict", "reason", "score")
        rows = [[tuple(json.loads(line)[key] for key in keep) for line in text.splitlines()]
                for text in (built_in, python)]
        self.assertEqual(rows[0], rows[1])

    def test_what_a_policy_raises_reaches_the_caller(self):
        class Broken:
            def judge(self, group):
                raise KeyError("mine")

        with self.assertRaisesRegex(KeyError, "mine"):
            pace.simulate(pace.Settings("math-4b", "run.num_steps=4"), admission=Broken())

    def test_a_supply_policy_in_python(self):
        class Threshold:
            def __init__(self, most):
                self.most = most

            def num_to_start(self, view):
                return max(0, self.most - view.num_outstanding)

            def max_outstanding(self):
                return self.most

        settings = pace.Settings("math-4b", "run.num_steps=12", "supply.threshold=2")
        most = settings["batch.num_groups"] * 3
        self.assertEqual(pace.simulate(settings, supply=Threshold(most)).rows,
                         pace.simulate(settings).rows)

    def test_the_program_gives_the_same_run(self):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([_PROGRAM, "sim", "math-4b", "run.num_steps=10", "--methods", "effective",
                            "--out", f"{folder}/a"], check=True, capture_output=True)
            pace.simulate(pace.Settings("math-4b", "run.num_steps=10", method="effective"),
                          record=f"{folder}/b", name="effective")
            for name in ("metrics.jsonl", "decisions.jsonl", "events.jsonl"):
                found = next(pathlib.Path(folder, "a").rglob(name))
                self.assertEqual(found.read_bytes(), pathlib.Path(folder, "b", name).read_bytes())


class RecordsTest(unittest.TestCase):
    def test_a_recorded_session_replays_reports_and_resumes(self):
        settings = pace.Settings("math-4b", "batch.num_groups=4", "admission.min_observations=8",
                                 "admission.beta=0")
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            decisions, saved, next_id = [], None, 0
            with pace.AdmissionSession(settings, record=str(folder / "run")) as session:
                for step in range(20):
                    session.begin_step(step, occupancy=12, served=max(0, step - 1))
                    while session.counts["admitted"] < 4:
                        version = max(0, step - next_id * 7 % 5)
                        group = pace.Group(next_id, [(version, [(version, 10 + next_id % 4)], None)])
                        decisions.append(session.draw(group))
                        next_id += 1
                    if step == 9:
                        saved = session.save()
                final = session.save()
            lines = [line for line in pace.replay(folder / "run" / "trace.jsonl")
                     if "group" in line]
            self.assertEqual([(line["verdict"], line["reason"], line["score"]) for line in lines],
                             [(d.verdict, d.reason, d.score) for d in decisions])
            self.assertIn("reject", {d.verdict for d in decisions})
            run = pace.Run(folder / "run")
            self.assertEqual(len(run.metrics()), 20)
            pace.report([run], folder / "report.html")
            self.assertIn("<svg", (folder / "report.html").read_text())
        other = pace.AdmissionSession(settings)
        other.restore(saved)
        self.assertEqual(other.save(), saved)
        other.restore(final)
        self.assertEqual(other.save(), final)

    def test_a_cut_last_line_is_left_out(self):
        with tempfile.TemporaryDirectory() as folder:
            pace.simulate(pace.Settings("math-4b", "run.num_steps=3"), record=f"{folder}/run")
            path = pathlib.Path(folder, "run", "metrics.jsonl")
            path.write_bytes(path.read_bytes()[:-20])
            self.assertEqual(len(pace.Run(f"{folder}/run").metrics()), 2)


class CoordinatorTest(unittest.TestCase):
    def test_a_small_run_goes_through(self):
        settings = pace.Settings("math-4b", "batch.num_groups=2", "batch.group_size=1",
                                 "run.num_steps=3")
        coordinator = pace.Coordinator(settings)
        events = [{"event": "worker_joined", "worker": 0, "max_groups": 4}]
        version, trained = 0, []
        while events and not coordinator.stopped:
            for command in coordinator.handle(events.pop(0)):
                kind = command["command"]
                if kind == "sync_weights":
                    version = command["version"]
                    events.append({"event": "worker_synced", "worker": 0, "version": version})
                elif kind == "start_group":
                    events.append({"event": "response_finished", "group": command["group"],
                                   "member": 0, "segments": [[version, 5]], "prefix_score": None,
                                   "num_bytes": 40})
                elif kind == "train_batch":
                    trained.append(command["groups"])
                    events.append({"event": "step_finished", "step": command["step"]})
        self.assertEqual(len(trained), 3)
        self.assertTrue(coordinator.stopped)
        self.assertGreaterEqual(len(coordinator.decisions()), 6)

    def test_a_wrong_event_is_refused(self):
        coordinator = pace.Coordinator(pace.Settings("math-4b"))
        with self.assertRaises(pace.InvalidArgument):
            coordinator.handle({"event": "worker_synced", "worker": 3, "version": 0})


if __name__ == "__main__":
    unittest.main()
