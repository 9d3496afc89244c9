"""The parts of pace.verl that need neither verl nor Ray."""

import doctest
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import unittest

import pace
import pace.verl.admission
import pace.verl.attempts
import pace.verl.configuration
import pace.verl.options
import pace.verl.supply
from pace.verl import check, simulation
from pace.verl.admission import Admission, Member
from pace.verl.attempts import Attempts
from pace.verl.configuration import read
from pace.verl.options import Options
from pace.verl.supply import PromptSupply

_PROGRAM = pathlib.Path(__file__).resolve().parents[2] / "build" / "pace"


def tag_of(segments, score=None, completed=None, reward=0.0):
    return {"min_global_steps": segments[0][0], "max_global_steps": segments[-1][0],
            "response_len": sum(n for _, n in segments),
            "pace": {"segments": [list(s) for s in segments], "prefix_score": score,
                     "completed": segments[-1][0] if completed is None else completed,
                     "reward": reward}}


class DocstringsTest(unittest.TestCase):
    def test_examples_run(self):
        num_examples = 0
        for module in (pace.verl.admission, pace.verl.attempts, pace.verl.configuration,
                       pace.verl.options, pace.verl.supply):
            result = doctest.testmod(module, optionflags=doctest.IGNORE_EXCEPTION_DETAIL)
            self.assertEqual(result.failed, 0, module.__name__)
            num_examples += result.attempted
        self.assertGreater(num_examples, 12)


class OptionsTest(unittest.TestCase):
    def refused(self, kwargs, part):
        with self.assertRaises(pace.InvalidArgument) as caught:
            Options.read(kwargs)
        self.assertIn(part, str(caught.exception))
        self.assertNotIn("\n", str(caught.exception))

    def test_wrong_options_are_named(self):
        self.refused({"pol_interval": 1}, "poll_interval")
        self.refused({"poll_interval": 0}, "must be > 0")
        self.refused({"method": "pase"}, "pase")
        self.refused({"method": "pool"}, "completion order")
        self.refused({"settings": {"admission.windw": 5}}, "admission.window")
        self.refused({"settings": [1]}, "must map")

    def test_settings_may_be_nested(self):
        flat = Options.read({"settings": {"admission.beta": 0.5, "prefix.min_tokens": 4}})
        nested = Options.read({"settings": {"admission": {"beta": 0.5}, "prefix": {"min_tokens": 4}}})
        self.assertEqual(flat, nested)
        self.assertEqual(nested.session_settings(4)["admission.beta"], 0.5)
        self.assertEqual(nested.score_limits[0], 4)

    def test_who_needs_scores(self):
        wanted = {"pace": True, "raw": False, "waiting": False, "generation": True, "jit": True,
                  "observe": True, "stale-2": False}
        self.assertEqual({m: Options.read({"method": m}).needs_scores for m in wanted}, wanted)

    def test_only_jit_holds_prompts(self):
        methods = ("pace", "raw", "waiting", "observe", "jit")
        self.assertEqual([m for m in methods if Options.read({"method": m}).just_in_time], ["jit"])

    def test_the_window_follows_the_batch(self):
        settings = Options.read({}).session_settings(batch=64)
        self.assertEqual(settings["admission.window"], "auto")

    def test_where_the_state_is(self):
        options = Options.read({"checkpoints": "c", "resume_from": "d/global_step_7"})
        self.assertEqual(options.state_path(7), "d/global_step_7/pace.json")
        self.assertEqual(options.state_path(9), "c/global_step_9/pace.json")
        self.assertIsNone(Options.read({}).state_path(9))


class NaiveAttempts:
    """Per token: position, token, log-probability, version. Scores by definition."""

    def __init__(self, least, most):
        self.least, self.most = least, most
        self.tokens, self.score = [], None

    def resubmit(self, logprob_now):
        if len(self.tokens) >= self.least:
            scored = self.tokens[:self.most]
            self.score = sum(abs(logprob_now(at) - lp) for at, lp, _ in scored) / len(scored)


class AttemptsTest(unittest.TestCase):
    def test_against_the_definition(self):
        for seed in range(200):
            rng = random.Random(seed)
            least, most = rng.randint(1, 6), rng.randint(6, 12)
            attempts, naive = Attempts(least, most), NaiveAttempts(least, most)
            context, version, scored = [], 0, 0
            for _ in range(rng.randint(1, 3)):
                context += [rng.randrange(9) for _ in range(rng.randint(1, 4))]
                attempts.begin_turn(context)
                aborted = False
                while True:
                    now = {at: -rng.random() for at in range(len(context) + 1)}
                    scores = None
                    if aborted:
                        naive.resubmit(lambda at: now[at])
                        self.assertEqual(attempts.wants_score, len(naive.tokens) >= least)
                    if attempts.wants_score:
                        scores = [[now[at]] for at in range(1, len(context))] + [[0.0]]
                        scored += 1
                    new = [rng.randrange(9) for _ in range(rng.randint(0, 5))]
                    log_probs = [-rng.random() for _ in new]
                    aborted = rng.random() < 0.5
                    attempts.add(version, new, log_probs, scores, aborted)
                    naive.tokens += [(len(context) + i, lp, version)
                                     for i, lp in enumerate(log_probs)]
                    context = context + new
                    self.assertEqual(attempts.context, context)
                    if not aborted:
                        break
                    version += rng.randint(0, 2)
            segments = []
            for _, _, v in naive.tokens:
                if segments and segments[-1][0] == v:
                    segments[-1][1] += 1
                else:
                    segments.append([v, 1])
            tag = attempts.tag()
            self.assertEqual(tag["segments"], segments)
            self.assertEqual(tag["completed"], version)
            if naive.score is None:
                self.assertIsNone(tag["prefix_score"])
            else:
                self.assertAlmostEqual(tag["prefix_score"], naive.score, places=12)
            json.dumps(tag)

    def test_tokens_that_a_template_moved_are_not_scored(self):
        attempts = Attempts(1, 10)
        attempts.begin_turn([1, 2])
        attempts.add(0, [5, 6], [-1.0, -1.0])
        attempts.begin_turn([1, 5, 6, 9])   # one token shorter than it was
        attempts.add(0, [7], [-1.0], aborted=True)
        self.assertTrue(attempts.wants_score)
        attempts.add(1, [], [], [[-9.0], [-9.0], [-9.0], [-3.0], [0.0]])
        self.assertEqual(attempts.tag()["prefix_score"], 2.0)

    def test_no_scores_where_nobody_asks(self):
        attempts = Attempts(1, 10, scores=False)
        attempts.begin_turn([1])
        attempts.add(0, [5], [-1.0], aborted=True)
        self.assertFalse(attempts.wants_score)


class MemberTest(unittest.TestCase):
    def test_an_engine_without_a_version_counts_as_the_oldest(self):
        tag = tag_of([(-1, 3), (5, 2)])
        tag["min_global_steps"] = 4
        self.assertEqual(Member.of_tag(tag, 0).segments, [(4, 3), (5, 2)])

    def test_versions_never_decrease(self):
        self.assertEqual(Member.of_tag(tag_of([(4, 3), (2, 2), (5, 1)]), 0).segments,
                         [(4, 5), (5, 1)])

    def test_a_tag_of_verl_alone(self):
        member = Member.of_tag({"response_len": 0}, 6)
        self.assertEqual((member.completed, member.segments, member.known), (6, [(6, 1)], False))

    def test_versions_above_the_step_are_cut(self):
        member = Member.of_tag(tag_of([(2, 3), (5, 2), (6, 1)]), 0).at_most(4)
        self.assertEqual((member.completed, member.segments), (4, [(2, 3), (4, 3)]))


def options_of(**kwargs):
    return Options.read({"settings": {"admission.min_observations": 8, "admission.beta": 0},
                         **kwargs})


class Run:
    """A verl run in miniature: an engine that finishes groups, a trainer that draws them."""

    def __init__(self, options, seed, state=None, batch=4):
        self.rng = random.Random(seed)
        self.batch = batch
        self.admission = Admission(options, batch, group_size=2, state=state)
        self.pool, self.trained, self.evicted, self.refills = {}, [], [], 0
        self.next = 0

    def finish(self, version):
        tags = []
        for _ in range(2):
            old = max(0, version - self.rng.randrange(4))
            segments = [(old, self.rng.randint(1, 50))]
            score = None
            if old < version:
                segments.append((version, self.rng.randint(1, 50)))
                score = self.rng.random() / 10
            tags.append(tag_of(segments, score, reward=self.rng.random()))
        self.pool[f"uid{self.next:04d}"] = tags
        self.next += 1

    def step(self, version):
        out, missing = [], self.rng.randint(0, 10)
        for _ in range(missing):
            self.finish(max(0, version - 1))
        while True:
            self.admission.see(self.pool)
            self.admission.begin_step(version)
            drawn = self.admission.draw(self.batch)
            for uid in drawn.rejected:
                del self.pool[uid]
            self.evicted += drawn.rejected
            self.refills += len(drawn.rejected)
            if len(drawn.admitted) >= self.batch:
                break
            assert self.admission.occupancy == 0    # it waits only when nothing is left to draw
            self.finish(version)
        out = drawn.admitted
        self.admission.take(out)
        for uid in out:
            del self.pool[uid]
        self.trained += out
        return out


class AdmissionTest(unittest.TestCase):
    def test_no_group_is_lost_or_trained_twice(self):
        for method in ("pace", "raw", "waiting", "generation", "stale-1", "observe", "jit"):
            run = Run(options_of(method=method), seed=3)
            for version in range(60):
                run.step(version)
                self.assertEqual(run.admission.num_refilled, len(run.evicted))
                self.assertEqual(run.refills, len(run.evicted))
                metrics = run.admission.metrics()
                for name in ("waiting", "generation", "lag"):
                    self.assertGreaterEqual(metrics[f"pace/staleness/{name}/mean"], 0)
                self.assertAlmostEqual(metrics["pace/staleness/lag/mean"],
                                       metrics["pace/staleness/waiting/mean"]
                                       + metrics["pace/staleness/generation/mean"])
            everything = [*run.trained, *run.evicted, *run.pool]
            self.assertEqual(len(everything), len(set(everything)))
            self.assertEqual(sorted(everything), [f"uid{i:04d}" for i in range(run.next)])
            rejects = method not in ("observe", "jit")
            self.assertEqual(bool(run.evicted), rejects, method)

    def test_the_verdicts_are_those_of_a_plain_session(self):
        options = options_of(method="raw")
        run = Run(options, seed=5)
        session = pace.AdmissionSession(options.session_settings(4, 2))
        for version in range(40):
            verdicts, real = [], run.admission.session

            class Spy:
                def __getattr__(self, name):
                    return getattr(real, name)

                def begin_step(self, *args, **kwargs):
                    session.begin_step(*args, **kwargs)
                    return real.begin_step(*args, **kwargs)

                def draw(self, group):
                    decision, again = real.draw(group), session.draw(group)
                    verdicts.append((decision.verdict, decision.score)
                                    == (again.verdict, again.score))
                    return decision

            run.admission.session = Spy()
            run.step(version)
            run.admission.session = real
            self.assertTrue(verdicts and all(verdicts))

    def test_groups_are_drawn_in_completion_order(self):
        admission = Admission(options_of(method="observe"), batch=2)
        admission.see({"b": [tag_of([(0, 5)])]})
        admission.see({"a": [tag_of([(0, 5)])], "b": [tag_of([(0, 5)])]})
        admission.begin_step(0)
        self.assertEqual(admission.draw(2).admitted, ["b", "a"])

    def test_a_step_of_several_minibatches_has_one_plan(self):
        admission = Admission(options_of(method="observe"), batch=4)
        admission.see({f"u{i}": [tag_of([(0, 5)])] for i in range(6)})
        admission.begin_step(0)
        first = admission.draw(2).admitted
        admission.take(first)
        admission.begin_step(0)
        second = admission.draw(2).admitted
        admission.take(second)
        self.assertEqual(first + second, ["u0", "u1", "u2", "u3"])
        self.assertEqual(admission.metrics()["pace/occupancy"], 6)

    def test_what_was_admitted_and_not_taken_waits_again(self):
        admission = Admission(options_of(method="observe"), batch=2)
        admission.see({f"u{i}": [tag_of([(0, 5)])] for i in range(3)})
        admission.begin_step(0)
        self.assertEqual(admission.draw(2).admitted, ["u0", "u1"])
        admission.take(["u0"])
        admission.begin_step(1)
        self.assertEqual(admission.occupancy, 2)
        self.assertEqual(admission.draw(2).admitted, ["u1", "u2"])

    def test_groups_that_verl_evicts_are_forgotten(self):
        admission = Admission(options_of(), batch=1)
        admission.see({"a": [tag_of([(0, 5)])], "b": [tag_of([(0, 5)])]})
        admission.forget(["a"])
        admission.see({"b": [tag_of([(0, 5)])]})
        admission.begin_step(0)
        self.assertEqual(admission.draw(1).admitted, ["b"])


class RecordTest(unittest.TestCase):
    def test_a_killed_run_continues_to_the_bit(self):
        """Whole run against one that is killed after step 24, five steps past its checkpoint."""
        with tempfile.TemporaryDirectory() as folder:
            whole = Run(options_of(record=f"{folder}/whole"), seed=9)
            batches = [whole.step(version) for version in range(40)]
            whole.admission.close()

            killed = Run(options_of(record=f"{folder}/killed"), seed=9)
            for version in range(20):
                killed.step(version)
            saved = json.dumps(killed.admission.save())
            rest = (killed.rng.getstate(), dict(killed.pool), killed.next)
            for version in range(20, 25):
                killed.step(version)

            resumed = Run(options_of(record=f"{folder}/killed"), seed=0, state=json.loads(saved))
            again, before = resumed.admission.save(), json.loads(saved)
            before["record"].pop("time")    # of the wall clock
            again["record"].pop("time")
            self.assertEqual(json.loads(json.dumps(again)), before)
            state, resumed.pool, resumed.next = rest
            resumed.rng.setstate(state)
            self.assertEqual([resumed.step(version) for version in range(20, 40)], batches[20:])
            self.assertEqual(resumed.admission.num_refilled, whole.admission.num_refilled)
            self.assertEqual(resumed.admission.session.save(), whole.admission.session.save())
            resumed.admission.close()
            for name in ("trace.jsonl", "decisions.jsonl"):
                self.assertEqual(pathlib.Path(folder, "whole", name).read_bytes(),
                                 pathlib.Path(folder, "killed", name).read_bytes())
            runs = [pace.Run(f"{folder}/{name}") for name in ("whole", "killed")]
            columns = [run.column("staleness/waiting/mean") for run in runs]
            self.assertEqual(len(columns[0]), 40)
            self.assertEqual(*columns)
            times = runs[1].column("time")
            self.assertEqual(times, sorted(times))

    def test_the_record_replays_and_reports(self):
        with tempfile.TemporaryDirectory() as folder:
            run = Run(options_of(record=f"{folder}/sub/run"), seed=2)
            for version in range(30):
                run.step(version)
            run.admission.close()
            recorded = list(pace.Run(f"{folder}/sub/run").decisions())
            again = [line for line in pace.replay(f"{folder}/sub/run/trace.jsonl")
                     if "group" in line]
            self.assertEqual([(d["group"], d["verdict"], d["reason"]) for d in recorded],
                             [(d["group"], d["verdict"], d["reason"]) for d in again])
            self.assertIn("reject", {d["verdict"] for d in recorded})
            said = subprocess.run([_PROGRAM, "report", f"{folder}/sub/run", "--out",
                                   f"{folder}/report.html"], capture_output=True, text=True)
            self.assertEqual(said.returncode, 0, said.stderr)
            self.assertIn("<svg", pathlib.Path(folder, "report.html").read_text())

    def test_a_folder_that_exists_is_left_alone(self):
        with tempfile.TemporaryDirectory() as folder:
            first = Admission(options_of(record=f"{folder}/run"), batch=1)
            second = Admission(options_of(record=f"{folder}/run"), batch=1)
            self.assertEqual((first.directory, second.directory),
                             (f"{folder}/run", f"{folder}/run-2"))

    def test_a_state_of_another_batch_is_refused(self):
        state = Admission(options_of(), batch=4).save()
        with self.assertRaisesRegex(pace.InvalidArgument, "train_batch_size"):
            Admission(options_of(), batch=5, state=state)
        with self.assertRaisesRegex(pace.DataLoss, "format"):
            Admission(options_of(), batch=4, state={**state, "format": 9})


class SupplyTest(unittest.TestCase):
    def settings(self, batch=4, threshold=8):
        return Options.read({"method": "jit"}).session_settings(batch, threshold=threshold)

    def drive(self, supply, num_steps, seed, batch=4):
        """Random finishes; the counts must be those of a plain book."""
        rng, limits = random.Random(seed), []
        book = {"held": supply.num_held, "running": supply.num_running,
                "pooled": supply.num_pooled, "selected": supply.num_selected}
        for _ in range(num_steps):
            supply.offer(batch)
            book["held"] += batch
            supply.trainer_ready(1.0, 0.2 * rng.random())
            book["selected"] = 0
            while book["pooled"] < batch:
                count = supply.take()
                book["held"] -= count
                book["running"] += count
                if not book["running"]:
                    return limits
                for _ in range(rng.randint(1, book["running"])):
                    supply.finish(num_tokens=rng.randint(1, 100))
                    book["running"] -= 1
                    book["pooled"] += 1
            supply.train(batch)
            book["pooled"] -= batch
            book["selected"] += batch
            for name, value in book.items():
                self.assertEqual(getattr(supply, f"num_{name}"), value)
            outstanding = book["running"] + book["pooled"] + book["selected"]
            self.assertLessEqual(outstanding, 9 * batch)
            limits.append(supply.limit)
        return limits

    def test_the_counts_are_those_of_a_book(self):
        for seed in range(20):
            supply = PromptSupply(self.settings())
            supply.offer(32)
            self.assertEqual(len(self.drive(supply, 50, seed)), 50)

    def test_a_restored_supply_continues_to_the_bit(self):
        supply = PromptSupply(self.settings())
        supply.offer(32)
        self.drive(supply, 30, seed=1)
        saved = json.loads(json.dumps(supply.save()))
        other = PromptSupply(self.settings())
        other.restore(saved)
        self.assertEqual(other.save()["policy"], supply.save()["policy"])
        self.assertEqual((other.num_running, other.num_held), (0, 0))
        # verl submits again what was running and held.
        other.offer(supply.num_running + supply.num_held)
        other.take()
        self.assertGreaterEqual(other.num_running, supply.num_running)

    def test_a_broken_state_is_refused(self):
        policy = pace.SupplyPolicy(self.settings())
        with self.assertRaisesRegex(pace.InvalidArgument, "limit"):
            policy.restore({})


# A configuration as `python -m verl.trainer.main_ppo` takes it.
_CONFIG = [
    "trainer.v1.trainer_mode=separate_async", "trainer.v1.separate_async.parameter_sync_step=2",
    "trainer.v1.separate_async.num_warmup_batches=8", "data.train_batch_size=24",
    "actor_rollout_ref.actor.ppo_mini_batch_size=12", "actor_rollout_ref.rollout.n=12",
    "actor_rollout_ref.rollout.nnodes=1", "actor_rollout_ref.rollout.n_gpus_per_node=4",
    "actor_rollout_ref.rollout.tensor_model_parallel_size=1", "trainer.n_gpus_per_node=2",
    "actor_rollout_ref.rollout.checkpoint_engine.backend=nccl", "data.max_response_length=8192",
    "actor_rollout_ref.rollout.calculate_log_probs=True", "trainer.total_training_steps=30",
    "trainer.v1.sampler.max_off_policy_threshold=null",
    "trainer.v1.sampler.custom_sampler.path=pkg://pace.verl.sampler",
    "trainer.v1.sampler.custom_sampler.name=PaceSampler",
    "+trainer.v1.sampler.sampler_kwargs.record=runs/x",
    "trainer.checkpoint_callback_class=pace.verl.checkpoint.PaceCheckpoint",
    "+actor_rollout_ref.rollout.agent.agent_loop_manager_class="
    "pace.verl.agent_loop.PaceAgentLoops"]


class ConfigurationTest(unittest.TestCase):
    def test_files_and_overrides(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "config.json")
            path.write_text(json.dumps({"trainer": {"nnodes": 3, "n_gpus_per_node": 4},
                                        "data": {"train_batch_size": "${trainer.nnodes}"}}))
            config = read([str(path), "++trainer.n_gpus_per_node=8", "a.b='x y'", "a.c=null"])
        self.assertEqual(config["data.train_batch_size"], 3)
        self.assertEqual(config["trainer.n_gpus_per_node"], 8)
        self.assertEqual(config.section("a"), {"b": "x y", "c": None})

    def test_bad_input_gets_one_line(self):
        for sources, kind in ((["/nowhere.yaml"], pace.NotFound),
                              ([__file__.replace("_pure_test.py", "")], pace.NotFound)):
            with self.assertRaises(kind) as caught:
                read(sources)
            self.assertNotIn("\n", str(caught.exception))
        with self.assertRaisesRegex(pace.InvalidArgument, "train_batch_size = 'many'"):
            read(["data.train_batch_size=many"]).number("data.train_batch_size")


class CheckTest(unittest.TestCase):
    def levels(self, *changes, environment=None):
        findings = check.findings_of_configuration(
            read([*_CONFIG, *changes]), environment or {"VERL_LOGGING_LEVEL": "WARN"})
        return [finding for finding in findings if finding.level != "fits"]

    def test_a_good_configuration_fits(self):
        self.assertEqual(self.levels(), [])

    def test_each_fault_is_named(self):
        for change, level, part in [
                ("trainer.v1.trainer_mode=sync", "missing", "separate_async"),
                ("trainer.use_v1=False", "missing", "use_v1"),
                ("trainer.v1.sampler.custom_sampler.path=null", "missing", "pace.verl.sampler"),
                ("trainer.v1.sampler.max_off_policy_threshold=8", "missing", "age"),
                ("actor_rollout_ref.rollout.checkpoint_engine.backend=naive", "missing", "nccl"),
                ("actor_rollout_ref.rollout.calculate_log_probs=False", "missing", "prefix"),
                ("data.train_batch_size=25", "missing", "equal"),
                ("data.gen_batch_size=8", "differs", "overrides it with 1"),
                ("actor_rollout_ref.rollout.nnodes=0", "missing", "GPUs"),
                ("actor_rollout_ref.rollout.temperature=0.6", "differs", "temperature 1"),
                ("trainer.v1.separate_async.num_warmup_batches=1", "differs", "outstanding"),
                ("+trainer.v1.sampler.sampler_kwargs.method=pase", "missing", "pase"),
                ("trainer.checkpoint_callback_class=null", "missing", "empty windows")]:
            with self.subTest(change=change):
                found = self.levels(change)
                self.assertTrue(any(f.level == level and part in f.text for f in found), found)

    def test_verls_logging_call_that_raises(self):
        found = self.levels("actor_rollout_ref.hybrid_engine=False", environment={"A": "b"})
        self.assertIn("flush=True", found[0].text)

    def test_an_installation(self):
        versions = {"verl": "0.9.1", "TransferQueue": "0.1.11", "ray": "2.60.0", "torch": "2.13.0",
                    "tensordict": "0.10.0", "transformers": "5.10.4"}
        good = check.findings_of_installation(versions, (513, []))
        self.assertEqual({finding.level for finding in good}, {"fits"})
        bad = check.findings_of_installation({"verl": "0.8.0", "vllm": "0.32.1"}, (5, ["verl/x.py"]))
        text = "\n".join(map(str, bad))
        self.assertIn("differs  verl 0.8.0: runs were made with 0.9.1", text)
        self.assertIn("missing  ray: not installed: pip install ray==2.60.0", text)
        self.assertIn("1 of 5 files", text)
        self.assertIn("use 0.24", text)

    def test_files_of_a_package_are_compared_with_their_hashes(self):
        count, changed = check.changed_files("pace")
        self.assertGreater(count, 10)
        self.assertEqual(changed, [])


class SimulationTest(unittest.TestCase):
    def test_what_a_configuration_means(self):
        settings, lines = simulation.settings_of(read(_CONFIG), "raw", ("workload.sigma=0.3",))
        self.assertEqual([settings[key] for key in (
            "batch.num_groups", "batch.group_size", "batch.num_updates", "supply.threshold",
            "supply.sync_interval", "cluster.rollout_gpus", "cluster.trainer_gpus",
            "workload.max_tokens", "workload.sigma", "admission.generation_weight",
            "run.num_steps")], [24, 12, 2, 8, 1, 4, 2, 8192, 0.3, "one", 30])
        self.assertTrue(any("mean_tokens" in line for line in lines))

    def test_the_model_is_read(self):
        model = _PROGRAM.parents[1] / "models" / "tiny"
        settings, lines = simulation.settings_of(
            read([*_CONFIG, f"actor_rollout_ref.model.path={model}"]),
            changes=("workload.mean_tokens=900",))
        self.assertEqual((settings["model.hidden"], settings["model.num_layers"]), (128, 4))
        self.assertFalse(any("mean_tokens" in line for line in lines))

    def test_the_command_prints_a_line_for_each_method(self):
        done = subprocess.run(
            [sys.executable, "-m", "pace.verl", "sim", *_CONFIG, "--methods", "pace,jit,observe"],
            capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([line.split()[0] for line in done.stdout.splitlines()],
                         ["method", "pace", "jit", "observe"])

    def test_errors_are_one_line(self):
        for arguments in (["sim", "trainer.v1.trainer_mode=sync"],
                          ["sim", *_CONFIG, "--set", "workload.mean"], ["check", "/nowhere.yaml"]):
            done = subprocess.run([sys.executable, "-m", "pace.verl", *arguments],
                                  capture_output=True, text=True)
            self.assertEqual(done.returncode, 1)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)


if __name__ == "__main__":
    unittest.main()
