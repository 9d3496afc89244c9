"""A run that generates on two vLLM servers, held against the servers' own words."""

import collections
import pathlib
import struct
import tempfile
import unittest

import vllm_process

import pace_process
from recording_proxy import RecordingProxy

NUM_STEPS = 20
MIN_RESPONSES = 500
MAX_SCORED = 64  # prefix.max_tokens of the preset
MIN_PREFIX_SCORES = 100
# Log-probabilities of the same tokens under the same weights, in float32 on both sides.
MEAN_TOLERANCE = 1e-5
LARGEST_TOLERANCE = 5e-5
PREFIX_TOLERANCE = 1e-4


class Response:
    """One response as the servers gave it, request by request."""

    def __init__(self):
        self.prompt = None
        self.tokens = []
        self.logprobs = []
        self.versions = []
        self.prefix_score = None

    def take(self, asked, answer, max_scored):
        choice = answer["choices"][0]
        if self.prompt is None:
            self.prompt = asked["token_ids"]
        sent = asked["token_ids"][len(self.prompt):]
        assert asked["token_ids"][:len(self.prompt)] == self.prompt and sent == self.tokens
        scored = answer.get("prompt_logprobs")
        # One that ended before its prompt was read has none.
        if scored is not None and len(scored) == len(asked["token_ids"]):
            given = asked["token_ids"]
            scores = [entry[str(token)]["logprob"] for token, entry
                      in zip(given[1:], scored[1:], strict=True)][len(self.prompt) - 1:]
            count = min(len(scores), max_scored)
            # In float32, as a run records them.
            pairs = zip(scores[:count], self.logprobs[:count], strict=True)
            self.prefix_score = sum(abs(float32(s) - r) for s, r in pairs) / count
        self.tokens += choice["token_ids"]
        self.logprobs += [float32(entry["logprob"]) for entry in choice["logprobs"]["content"]]
        for span in choice["weight_versions"]:
            assert span["start"] == len(self.versions) - len(sent), span
            label = span["version"]
            self.versions += [label] * (span["end"] - span["start"])
        assert len(self.versions) == len(self.tokens) == len(self.logprobs)

    def segments(self):
        """[[version, tokens], ...], as a run writes them."""
        found = []
        for label in self.versions:
            version = int(label.rpartition(":")[2])
            if found and found[-1][0] == version:
                found[-1][1] += 1
            else:
                found.append([version, 1])
        return found

    def record(self):
        """The bytes of a checkpoint's record of it, up to and with its prefix score."""
        count = len(self.tokens)
        runs = self.segments()
        data = struct.pack(f"<Q{count}iQ", count, *self.tokens, len(runs))
        for version, length in runs:
            data += struct.pack("<qBQ", version, 0, length)
        data += struct.pack(f"<B{count}f", 1, *self.logprobs)
        return data + struct.pack("<Bd", self.prefix_score is not None, self.prefix_score or 0)


def float32(value):
    return struct.unpack("<f", struct.pack("<f", value))[0]


class VllmTrainTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        servers = vllm_process.start_servers(cls.folder, 2)
        for server in servers:
            cls.addClassCleanup(server.end)
        cls.proxies = []
        for index, server in enumerate(servers):
            folder = cls.folder / f"proxy{index}"
            folder.mkdir()
            cls.proxies.append(RecordingProxy(server.url, folder))
            cls.addClassCleanup(cls.proxies[-1].end)
        cls.run_folder = cls.folder / "run"
        urls = ",".join(proxy.url for proxy in cls.proxies)
        done = pace_process.run(
            "train", "tiny", f"engine.urls=[{urls}]", "--method", "pace",
            f"run.num_steps={NUM_STEPS}", "run.evaluate_every=0", "run.checkpoint_every=5",
            "engine.requests=64", "batch.num_groups=6", "batch.group_size=8",
            # Slow is not lost: servers and trainer share all cores.
            "engine.control_s=120", "supply.threshold=4", "record.level=full", "--out",
            cls.run_folder)
        assert done.returncode == 0, done.stdout + done.stderr
        cls.said = done.stderr
        cls.responses = collections.defaultdict(Response)
        for proxy in cls.proxies:
            answers = [(asked["request_id"].rsplit("-", 3)[1:], asked, answer)
                       for asked, answer in proxy.answers]
            for (group, member, _), asked, answer in answers:
                cls.responses[int(group), int(member)].take(
                    asked, answer, MAX_SCORED)

    def lines(self, name):
        return pace_process.json_lines((self.run_folder / name).read_text())

    def finished(self):
        return [event for event in self.lines("events.jsonl")
                if event["event"] == "response_finished"]

    def test_no_server_was_lost(self):
        self.assertNotIn("lost", self.said)

    def test_decisions_replay(self):
        replayed = pace_process.run("replay", self.run_folder / "trace.jsonl")
        self.assertEqual(replayed.returncode, 0, replayed.stdout + replayed.stderr)
        self.assertIn("all as recorded", replayed.stderr)

    def test_segments_are_the_servers_weight_versions(self):
        finished = self.finished()
        self.assertGreaterEqual(len(finished), MIN_RESPONSES)
        for event in finished:
            response = self.responses[event["group"], event["member"]]
            self.assertEqual(event["segments"], response.segments(), event)
        several = sum(len(event["segments"]) > 1 for event in finished)
        print(f"\n{len(finished)} responses have the servers' versions, {several} of them of "
              "several versions")
        self.assertGreater(several, 0)

    def test_generation_and_waiting_staleness_add_up_to_the_lag(self):
        decisions = self.lines("decisions.jsonl")
        trace = {line["group"]: line for line in self.lines("trace.jsonl") if "group" in line}
        self.assertGreater(len(decisions), 0)
        for decision in decisions:
            lag = 0
            for member in trace[decision["group"]]["members"]:
                tokens = sum(count for _, count in member["segments"])
                lag += sum((decision["step"] - version) * count
                           for version, count in member["segments"]) / tokens
            lag /= len(trace[decision["group"]]["members"])
            self.assertEqual(decision["waiting"] + decision["generation"], decision["lag"])
            self.assertAlmostEqual(decision["lag"], lag, places=12)
        self.assertGreater(max(decision["lag"] for decision in decisions), 0)

    def test_checkpoints_hold_the_servers_tokens_and_logprobs_to_the_bit(self):
        whole = {event["group"] for event in self.finished()}
        found = 0
        for file in sorted(self.run_folder.glob("checkpoints/step-*/groups.bin")):
            data = file.read_bytes()
            held = sum(response.record() in data for (group, _), response
                       in self.responses.items() if group in whole and response.tokens)
            found += held
        print(f"\n{found} records of checkpoints hold what the servers sent")
        self.assertGreater(found, 0)

    def test_recorded_logprobs_are_those_of_each_versions_weights(self):
        folders = {}
        for proxy in self.proxies:
            folders.update(proxy.weights)
        finished = {(event["group"], event["member"]) for event in self.finished()}
        by_label = collections.defaultdict(list)
        for key in sorted(finished):
            for label in sorted(set(self.responses[key].versions)):
                by_label[label].append(self.responses[key])
        differences = []
        for label, responses in by_label.items():
            scored = self.score(folders[label], responses)
            for response, logprobs in zip(responses, scored, strict=True):
                differences += [abs(ours - theirs) for ours, theirs, sampled_by
                                in zip(logprobs, response.logprobs, response.versions, strict=True)
                                if sampled_by == label]
        mean = sum(differences) / len(differences)
        print(f"\n{len(differences)} log-probabilities of {len(by_label)} versions: mean "
              f"difference {mean:.2e}, largest {max(differences):.2e}")
        self.assertLessEqual(mean, MEAN_TOLERANCE)
        self.assertLessEqual(max(differences), LARGEST_TOLERANCE)

    def test_prefix_scores_are_those_of_our_engine(self):
        folders = {}
        for proxy in self.proxies:
            folders.update(proxy.weights)
        cases = collections.defaultdict(list)  # label -> (tokens, of the prompt, server's scores)
        for proxy in self.proxies:
            for asked, answer in proxy.answers:
                entries = answer.get("prompt_logprobs")
                spans = answer["choices"][0]["weight_versions"]
                if entries is None or not spans:
                    continue  # none asked for, or ended before its prompt was read
                tokens = asked["token_ids"]
                group, member, _ = asked["request_id"].rsplit("-", 3)[1:]
                num_prompt = len(self.responses[int(group), int(member)].prompt)
                cases[spans[0]["version"]].append((tokens, num_prompt, [
                    entry[str(token)]["logprob"]
                    for token, entry in zip(tokens[1:], entries[1:], strict=True)]))
        largest = 0
        count = sum(map(len, cases.values()))
        for label, found in cases.items():
            scored = self.score_tokens(folders[label], [tokens for tokens, _, _ in found])
            for (_, num_prompt, theirs), ours in zip(found, scored, strict=True):
                pairs = list(zip(theirs, ours, strict=True))[num_prompt - 1:]
                self.assertGreater(len(pairs), 0)
                largest = max(largest, *(abs(a - b) for a, b in pairs))
        print(f"\n{count} prefixes scored by vLLM: largest difference of a token {largest:.2e}")
        self.assertGreaterEqual(count, MIN_PREFIX_SCORES)
        self.assertLessEqual(largest, PREFIX_TOLERANCE)

    def score(self, folder, responses):
        """Our log-probabilities of the responses' tokens under these weights."""
        whole = self.score_tokens(folder, [r.prompt + r.tokens for r in responses])
        return [logprobs[len(response.prompt) - 1:]
                for response, logprobs in zip(responses, whole, strict=True)]

    def score_tokens(self, folder, tokens):
        done = pace_process.run("score", "--model", folder,
                                lines=[{"ids": ids} for ids in tokens])
        self.assertEqual(done.returncode, 0, done.stderr)
        return [line["logprobs"] for line in pace_process.json_lines(done.stdout)]


if __name__ == "__main__":
    unittest.main()
