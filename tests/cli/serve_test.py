"""`pace serve` as clients of vLLM and OpenAI meet it.

With PACE_SERVE_URL the same calls go to another server, such as vLLM 0.32 with models/tiny
(VLLM_SERVER_DEV_MODE=1, --enable-scale-out, --generation-config vllm, --dtype float32); tests of
what only `pace serve` does are then skipped. Other weights are written to a folder that both can read.
"""

import concurrent.futures
import contextlib
import http.client
import json
import os
import pathlib
import resource
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import time
import unittest
import urllib.parse

import pace_process

try:
    import openai
except ImportError:
    openai = None

URL = os.environ.get("PACE_SERVE_URL", "")
OURS = not URL
# Scores of the same tokens under the same weights: to the bit here, nearly elsewhere.
TOLERANCE = 0 if OURS else 1e-4
MODEL = pace_process.SOURCE / "models" / "tiny"
PROMPT = [6, 13, 7, 16]  # "3+4="
LONG = {"max_tokens": 1000, "seed": 5, "logprobs": 0, "ignore_eos": True}


def start(*arguments, env=None):
    """A server and its URL."""
    folder = tempfile.mkdtemp()
    ready = pathlib.Path(folder) / "ready"
    server = subprocess.Popen(
        [str(pace_process.BINARY), "serve", *arguments, "--port", "0", "--ready-file", str(ready)],
        stderr=subprocess.PIPE, text=True, env={**os.environ, **(env or {})})
    while not ready.exists():
        if server.poll() is not None:
            raise RuntimeError(server.stderr.read())
        time.sleep(0.01)
    url = ready.read_text().strip()
    shutil.rmtree(folder)
    return server, url


def stop(server):
    server.send_signal(signal.SIGTERM)
    code = server.wait(timeout=pace_process.PATIENCE)
    said = server.stderr.read()
    server.stderr.close()
    return code, said


class Client:
    def __init__(self, url, key=None):
        self.host = urllib.parse.urlsplit(url).netloc
        self.headers = {"Content-Type": "application/json"}
        if key is not None:
            self.headers["Authorization"] = f"Bearer {key}"

    def call(self, method, path, body=None):
        """The status and the body, read as JSON where it is any."""
        connection = http.client.HTTPConnection(self.host, timeout=pace_process.PATIENCE)
        with contextlib.closing(connection):
            data = None if body is None else body if isinstance(body, str) else json.dumps(body)
            connection.request(method, path, body=data, headers=self.headers)
            answer = connection.getresponse()
            text = answer.read().decode()
            try:
                return answer.status, json.loads(text)
            except json.JSONDecodeError:
                return answer.status, text

    def get(self, path):
        return self.call("GET", path)

    def post(self, path, body=None):
        return self.call("POST", path, body)

    def generate(self, token_ids=None, request=None, **params):
        status, answer = self.post("/inference/v1/generate", {
            "token_ids": PROMPT if token_ids is None else token_ids,
            "sampling_params": params, **(request or {})})
        assert status == 200, answer
        return answer

    def events(self, path, body):
        """The events of a streamed answer."""
        status, text = self.post(path, {**body, "stream": True})
        assert status == 200, text
        lines = [line for line in text.split("\n\n") if line]
        assert all(line.startswith("data: ") for line in lines), text
        assert lines.pop() == "data: [DONE]", text
        return [json.loads(line.removeprefix("data: ")) for line in lines]


def other_weights(folder):
    """The model with other values in its first layer."""
    folder.mkdir()
    for name in ("config.json", "generation_config.json", "tokenizer.json"):
        shutil.copy(MODEL / name, folder / name)
    data = bytearray((MODEL / "model.safetensors").read_bytes())
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    for name in ("model.layers.0.self_attn.v_proj.weight", "model.layers.0.mlp.up_proj.weight"):
        assert header[name]["dtype"] == "BF16"
        begin, end = (8 + size + at for at in header[name]["data_offsets"])
        for at in range(begin, end, 2):
            value = struct.unpack("<f", b"\0\0" + data[at:at + 2])[0] * 1.5
            data[at:at + 2] = struct.pack("<f", value)[2:]
    (folder / "model.safetensors").write_bytes(data)
    return folder


def logprobs_of(answer):
    return [entry["logprob"] for entry in answer["choices"][0]["logprobs"]["content"]]


def scores_of(answer, token_ids):
    """Prompt log-probabilities of all tokens but the first."""
    entries = answer["prompt_logprobs"]
    assert entries[0] is None and len(entries) == len(token_ids)
    return [entry[str(token)]["logprob"]
            for token, entry in zip(token_ids[1:], entries[1:], strict=True)]


class ServeTest(unittest.TestCase):
    """Calls that any server of this interface answers."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.other = other_weights(pathlib.Path(cls.folder.name) / "other")
        cls.server = None
        url = URL
        if OURS:
            cls.server, url = start("tiny")
            cls.addClassCleanup(stop, cls.server)
        cls.client = Client(url, os.environ.get("PACE_SERVE_KEY"))
        cls.url = url

    def setUp(self):
        self.addCleanup(self.reset)

    def reset(self):
        """The first weights, running."""
        self.client.post("/abort_requests", {})
        if self.client.get("/weight_info")[1]["weight_version"] != "default":
            self.update(MODEL, "default")
        self.client.post("/resume")

    def update(self, folder, label):
        status, answer = self.client.post("/collective_rpc", {
            "method": "reload_weights", "kwargs": {"weights_path": str(folder)}})
        self.assertEqual(status, 200, answer)
        status, answer = self.client.post("/update_weight_version", {"new_version": label})
        self.assertEqual((status, answer), (200, {"success": True, "new_version": label}))

    def running(self, count=8):
        """Long responses, all of which have tokens."""
        pool = concurrent.futures.ThreadPoolExecutor(count)
        self.addCleanup(pool.shutdown)
        before = self.metric("vllm:generation_tokens_total")
        pending = [pool.submit(self.client.generate, request={"request_id": f"r{index}"},
                               **{**LONG, "seed": index}) for index in range(count)]
        while (self.metric("vllm:num_requests_running") < count or
               self.metric("vllm:generation_tokens_total") < before + 2 * count):
            self.assertFalse(any(future.done() for future in pending))
            time.sleep(0.002)
        return pending

    def metric(self, name):
        _, text = self.client.get("/metrics")
        lines = [line for line in text.splitlines() if line.startswith(name)]
        return float(lines[0].split()[-1]) if lines else 0

    # Answers.

    def test_an_answer_has_its_keys_and_types(self):
        answer = self.client.generate(request={"request_id": "mine"}, max_tokens=5, seed=1,
                                      logprobs=0, temperature=1.0, ignore_eos=True)
        self.assertEqual(answer["request_id"], "generate-tokens-mine")
        self.assertIsNone(answer["prompt_logprobs"])
        choice = answer["choices"][0]
        self.assertEqual(choice["index"], 0)
        self.assertEqual(len(choice["token_ids"]), 5)
        self.assertTrue(all(isinstance(token, int) for token in choice["token_ids"]))
        self.assertEqual((choice["finish_reason"], choice["stop_reason"]), ("length", None))
        self.assertEqual(choice["weight_versions"], [{"version": "default", "start": 0, "end": 5}])
        content = choice["logprobs"]["content"]
        self.assertEqual([entry["token_id"] for entry in content], choice["token_ids"])
        for entry in content:
            self.assertIsInstance(entry["logprob"], float)
            self.assertLessEqual(entry["logprob"], 0)
            self.assertEqual(entry["top_logprobs"][0]["token_id"], entry["token_id"])
        self.assertEqual(
            {key: answer["usage"][key] for key in ("prompt_tokens", "completion_tokens",
                                                   "total_tokens")},
            {"prompt_tokens": 4, "completion_tokens": 5, "total_tokens": 9})

    def test_without_logprobs_there_are_none(self):
        choice = self.client.generate(max_tokens=2, seed=1)["choices"][0]
        self.assertIsNone(choice["logprobs"])

    def test_a_greedy_response_repeats(self):
        first, second = (self.client.generate(max_tokens=8, temperature=0)["choices"][0]
                         for _ in range(2))
        self.assertEqual(first["token_ids"], second["token_ids"])

    def test_a_seed_repeats_and_another_differs(self):
        def tokens(seed):
            return self.client.generate(max_tokens=60, seed=seed, ignore_eos=True)[
                "choices"][0]["token_ids"]
        self.assertEqual(tokens(3), tokens(3))
        self.assertNotEqual(tokens(3), tokens(4))

    def test_without_a_seed_responses_differ(self):
        answers = {tuple(self.client.generate(max_tokens=60, ignore_eos=True)[
            "choices"][0]["token_ids"]) for _ in range(3)}
        self.assertGreater(len(answers), 1)

    def test_the_end_token_ends_a_response(self):
        choice = self.client.generate(max_tokens=500, temperature=0)["choices"][0]
        self.assertEqual(choice["finish_reason"], "stop")
        # vLLM takes the end for a stop token where the tokenizer does not name it.
        self.assertIn(choice["stop_reason"], (None,) if OURS else (None, 1))
        self.assertEqual(choice["token_ids"][-1], 1)

    def test_a_stop_token_ends_a_response_and_is_its_reason(self):
        tokens = self.client.generate(max_tokens=40, seed=2, ignore_eos=True)[
            "choices"][0]["token_ids"]
        end = tokens[10]
        choice = self.client.generate(max_tokens=40, seed=2, ignore_eos=True,
                                      stop_token_ids=[end])["choices"][0]
        self.assertEqual((choice["finish_reason"], choice["stop_reason"]), ("stop", end))
        self.assertEqual(choice["token_ids"], tokens[:tokens.index(end) + 1])

    def test_a_stop_string_ends_a_response_and_is_its_reason(self):
        choice = self.client.generate(max_tokens=400, seed=2, ignore_eos=True, stop=["7", "zz"])[
            "choices"][0]
        self.assertEqual((choice["finish_reason"], choice["stop_reason"]), ("stop", "7"))
        self.assertEqual(choice["token_ids"][-1], 10)

    def test_max_tokens_ends_where_the_model_does(self):
        choice = self.client.generate(seed=2, ignore_eos=True)["choices"][0]
        self.assertEqual(choice["finish_reason"], "length")
        self.assertEqual(len(choice["token_ids"]), 1024 - len(PROMPT))

    def test_prompt_tokens_come_back_where_asked_for(self):
        answer = self.client.generate(request={"return_token_ids": True}, max_tokens=1)
        self.assertEqual(answer["prompt_token_ids"], PROMPT)

    def test_a_longer_response_begins_like_a_shorter_one(self):
        short, long = (self.client.generate(max_tokens=count, seed=7, ignore_eos=True)[
            "choices"][0]["token_ids"] for count in (10, 30))
        self.assertEqual((len(short), len(long)), (10, 30))
        self.assertEqual(long[:10], short)

    def test_the_most_likely_token_alone_is_greedy(self):
        greedy = self.client.generate(max_tokens=20, temperature=0, ignore_eos=True)
        for params in ({"top_k": 1}, {"top_p": 1e-6}, {"min_p": 1.0}):
            answer = self.client.generate(max_tokens=20, seed=1, ignore_eos=True, **params)
            self.assertEqual(answer["choices"][0]["token_ids"],
                             greedy["choices"][0]["token_ids"], params)

    def test_a_prompt_may_be_one_token(self):
        answer = self.client.generate([6], max_tokens=3, prompt_logprobs=0, ignore_eos=True)
        self.assertEqual(answer["prompt_logprobs"], [None])
        self.assertEqual(len(answer["choices"][0]["token_ids"]), 3)

    def test_many_requests_at_once_are_all_answered(self):
        with concurrent.futures.ThreadPoolExecutor(64) as pool:
            answers = list(pool.map(
                lambda index: self.client.generate(
                    request={"request_id": f"many{index}"}, max_tokens=5 + index % 7,
                    ignore_eos=True), range(64)))
        for index, answer in enumerate(answers):
            self.assertEqual(answer["request_id"], f"generate-tokens-many{index}")
            self.assertEqual(len(answer["choices"][0]["token_ids"]), 5 + index % 7)

    def test_prompt_scores_are_the_recorded_logprobs(self):
        answer = self.client.generate(max_tokens=50, seed=9, logprobs=0, ignore_eos=True)
        tokens = PROMPT + answer["choices"][0]["token_ids"]
        scored = self.client.generate(tokens, max_tokens=1, prompt_logprobs=0)
        scores = scores_of(scored, tokens)[len(PROMPT) - 1:]
        for score, recorded in zip(scores, logprobs_of(answer), strict=True):
            self.assertLessEqual(abs(score - recorded), TOLERANCE)

    def test_answers_do_not_depend_on_load(self):
        alone = self.client.generate(**{**LONG, "max_tokens": 200})
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            answers = list(pool.map(
                lambda index: self.client.generate(**{**LONG, "max_tokens": 200,
                                                      "seed": 5 if index % 2 else index}),
                range(16)))
        for answer in answers[1::2]:
            self.assertEqual(answer["choices"][0]["token_ids"], alone["choices"][0]["token_ids"])
            for here, there in zip(logprobs_of(answer), logprobs_of(alone), strict=True):
                self.assertLessEqual(abs(here - there), TOLERANCE)

    # Streams.

    def test_a_stream_has_the_tokens_of_the_answer(self):
        body = {"token_ids": PROMPT, "sampling_params": {**LONG, "max_tokens": 30}}
        whole = self.client.generate(**{**LONG, "max_tokens": 30})["choices"][0]
        events = self.client.events("/inference/v1/generate", body)
        choices = [event["choices"][0] for event in events]
        self.assertEqual(sum((choice["token_ids"] for choice in choices), []), whole["token_ids"])
        self.assertEqual(choices[-1]["finish_reason"], "length")
        self.assertEqual(choices[-1]["weight_versions"], whole["weight_versions"])
        self.assertTrue(all(choice["finish_reason"] is None for choice in choices[:-1]))

    def test_a_stream_may_end_with_its_usage(self):
        events = self.client.events("/inference/v1/generate", {
            "token_ids": PROMPT, "sampling_params": {"max_tokens": 5, "ignore_eos": True},
            "stream_options": {"include_usage": True}})
        self.assertEqual(events[-1]["choices"], [])
        self.assertEqual(events[-1]["usage"]["completion_tokens"], 5)

    # OpenAI's interfaces.

    def test_a_completion_has_a_text(self):
        status, answer = self.client.post("/v1/completions", {
            "prompt": "3+4=", "max_tokens": 30, "temperature": 0, "logprobs": 0,
            "return_token_ids": True})
        self.assertEqual(status, 200, answer)
        self.assertEqual(answer["object"], "text_completion")
        choice = answer["choices"][0]
        self.assertIsInstance(choice["text"], str)
        self.assertNotIn("<eos>", choice["text"])
        self.assertEqual(choice["prompt_token_ids"], PROMPT)
        self.assertEqual(len(choice["logprobs"]["tokens"]), len(choice["token_ids"]))
        self.assertEqual(len(choice["logprobs"]["token_logprobs"]), len(choice["token_ids"]))
        self.assertEqual(answer["usage"]["prompt_tokens"], 4)

    def test_a_completion_stops_before_its_stop_string(self):
        body = {"prompt": "3+4=", "max_tokens": 300, "seed": 2, "stop": ["7"], "ignore_eos": True}
        status, answer = self.client.post("/v1/completions", body)
        self.assertEqual(status, 200, answer)
        self.assertEqual(answer["choices"][0]["stop_reason"], "7")
        self.assertNotIn("7", answer["choices"][0]["text"])
        events = self.client.events("/v1/completions", body)
        text = "".join(event["choices"][0]["text"] for event in events)
        self.assertEqual(text, answer["choices"][0]["text"])
        self.assertEqual(events[-1]["choices"][0]["finish_reason"], "stop")

    def test_a_completion_has_sixteen_tokens_where_nothing_is_said(self):
        status, answer = self.client.post("/v1/completions", {
            "prompt": PROMPT, "seed": 2, "ignore_eos": True})
        self.assertEqual(status, 200, answer)
        self.assertEqual(answer["usage"]["completion_tokens"], 16)

    def test_the_model_is_listed(self):
        status, answer = self.client.get("/v1/models")
        self.assertEqual((status, answer["object"]), (200, "list"))
        self.assertEqual(answer["data"][0]["object"], "model")
        self.assertEqual(answer["data"][0]["max_model_len"], 1024)

    def test_tokenize_and_detokenize_are_inverse(self):
        status, answer = self.client.post("/tokenize", {"prompt": "3+4="})
        self.assertEqual((status, answer["tokens"], answer["count"]), (200, PROMPT, 4))
        self.assertEqual(answer["max_model_len"], 1024)
        status, answer = self.client.post("/detokenize", {"tokens": PROMPT})
        self.assertEqual((status, answer["prompt"]), (200, "3+4="))

    @unittest.skipIf(openai is None, "the package openai is not installed")
    def test_openais_client_completes_and_streams(self):
        client = openai.OpenAI(base_url=self.url + "/v1", api_key="none")
        model = client.models.list().data[0].id
        answer = client.completions.create(model=model, prompt="3+4=", max_tokens=20, temperature=0)
        parts = client.completions.create(model=model, prompt="3+4=", max_tokens=20, temperature=0,
                                          stream=True)
        self.assertEqual("".join(part.choices[0].text for part in parts), answer.choices[0].text)

    # Mistakes.

    def test_mistakes_are_refused_with_an_error(self):
        path = "/inference/v1/generate"
        for body in ("{", "[]", {}, {"token_ids": PROMPT}, {"sampling_params": {}},
                     {"token_ids": [], "sampling_params": {}},
                     {"token_ids": [-1], "sampling_params": {}},
                     {"token_ids": PROMPT, "sampling_params": {"temperature": -1}},
                     {"token_ids": PROMPT, "sampling_params": {"top_p": 0}},
                     {"token_ids": PROMPT, "sampling_params": {"max_tokens": 0}},
                     {"token_ids": PROMPT, "sampling_params": {"stop": [""]}},
                     {"token_ids": PROMPT * 300, "sampling_params": {"max_tokens": 5}}):
            status, answer = self.client.post(path, body)
            self.assertEqual(status, 400, (body, answer))
            self.assertEqual(set(answer["error"]), {"message", "type", "param", "code"})
            self.assertEqual(answer["error"]["code"], 400)

    def test_another_model_is_not_found(self):
        status, answer = self.client.post("/v1/completions", {"prompt": "3", "model": "gpt"})
        self.assertEqual((status, answer["error"]["code"]), (404, 404))
        self.assertEqual(answer["error"]["type"], "NotFoundError")

    def test_a_completion_that_does_not_fit_is_refused(self):
        status, _ = self.client.post("/v1/completions", {"prompt": "3", "max_tokens": 5000})
        self.assertEqual(status, 400)

    def test_unknown_routes_and_methods(self):
        self.assertEqual(self.client.get("/nothing")[0], 404)
        self.assertEqual(self.client.get("/pause")[0], 405)
        self.assertEqual(self.client.post("/pause?mode=never")[0], 400)

    # Control.

    def test_an_abort_by_id_ends_that_request_alone(self):
        pending = self.running()
        status, _ = self.client.post("/abort_requests",
                                     {"request_ids": ["generate-tokens-r3"]})
        self.assertEqual(status, 200)
        choices = [future.result()["choices"][0] for future in pending]
        self.assertEqual([choice["finish_reason"] for choice in choices],
                         ["length"] * 3 + ["abort"] + ["length"] * 4)
        aborted = choices[3]
        count = len(aborted["token_ids"])
        self.assertGreater(count, 0)
        self.assertLess(count, 1000)
        self.assertEqual(len(aborted["logprobs"]["content"]), count)
        self.assertEqual(aborted["weight_versions"],
                         [{"version": "default", "start": 0, "end": count}])

    def test_an_abort_of_all_ends_all(self):
        pending = self.running()
        status, answer = self.client.post("/abort_requests", {})
        self.assertEqual((status, answer["status"]), (200, "aborted"))
        for future in pending:
            self.assertEqual(future.result()["choices"][0]["finish_reason"], "abort")

    def test_the_guarded_abort_needs_ids(self):
        self.assertEqual(self.client.post("/inference/v1/abort_requests", {})[0], 400)
        self.assertEqual(self.client.post("/inference/v1/abort_requests",
                                          {"request_ids": ["nobody"]})[0], 200)

    def test_a_pause_with_abort_a_new_version_and_a_scored_continuation(self):
        pending = self.running()
        status, answer = self.client.post("/pause?mode=abort")
        self.assertEqual((status, answer), (200, {"status": "paused"}))
        self.assertEqual(self.client.get("/is_paused"), (200, {"is_paused": True}))
        answers = [future.result() for future in pending]
        self.update(self.other, "v1")
        self.assertEqual(self.client.post("/resume"), (200, {"status": "resumed"}))
        self.assertEqual(self.client.get("/is_paused"), (200, {"is_paused": False}))
        self.assertEqual(self.client.get("/weight_info"), (200, {"weight_version": "v1"}))
        for answer in answers[:3]:
            choice = answer["choices"][0]
            self.assertEqual(choice["finish_reason"], "abort")
            tokens = PROMPT + choice["token_ids"]
            resumed = self.client.generate(tokens, max_tokens=5, prompt_logprobs=0, logprobs=0,
                                           ignore_eos=True)
            scores = scores_of(resumed, tokens)[len(PROMPT) - 1:]
            differences = [abs(score - recorded) for score, recorded
                           in zip(scores, logprobs_of(answer), strict=True)]
            self.assertGreater(sum(differences) / len(differences), 1e-3)
            self.assertEqual(resumed["choices"][0]["weight_versions"],
                             [{"version": "v1", "start": 0, "end": 5}])

    def across_an_update(self, clear_cache):
        """A kept response over an update, and how far its later tokens are from what the new
        weights say of them."""
        pending = self.running()
        self.client.post(f"/pause?mode=keep&clear_cache={clear_cache}")
        self.update(self.other, "v1")
        self.client.post("/resume")
        found = []
        for future in pending:
            answer = future.result()
            spans = answer["choices"][0]["weight_versions"]
            self.assertEqual([span["version"] for span in spans], ["default", "v1"])
            self.assertEqual((spans[0]["start"], spans[1]["end"]), (0, 1000))
            self.assertEqual(spans[0]["end"], spans[1]["start"])
            cut = spans[1]["start"]
            tokens = PROMPT + answer["choices"][0]["token_ids"][:cut + 20]
            scored = self.client.generate(tokens, max_tokens=1, prompt_logprobs=0)
            scores = scores_of(scored, tokens)[len(PROMPT) - 1 + cut:]
            found.append(max(abs(score - recorded) for score, recorded
                             in zip(scores, logprobs_of(answer)[cut:cut + 20], strict=True)))
        return found

    def test_a_kept_response_without_its_cache_is_of_the_new_weights(self):
        for difference in self.across_an_update("true"):
            self.assertLessEqual(difference, TOLERANCE)

    def test_a_kept_response_with_its_cache_is_of_old_values(self):
        for difference in self.across_an_update("false"):
            self.assertGreater(difference, 1e-3)

    def test_a_pause_that_waits_lets_responses_finish(self):
        pending = self.running(4)
        self.assertEqual(self.client.post("/pause?mode=wait")[0], 200)
        for future in pending:
            self.assertEqual(future.result()["choices"][0]["finish_reason"], "length")

    def test_requests_wait_while_paused(self):
        self.client.post("/pause?mode=keep")
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            late = pool.submit(self.client.generate, max_tokens=2, ignore_eos=True)
            time.sleep(0.3)
            self.assertFalse(late.done())
            self.client.post("/resume")
            self.assertEqual(len(late.result()["choices"][0]["token_ids"]), 2)

    def test_a_second_pause_and_a_second_resume_change_nothing(self):
        for _ in range(2):
            self.assertEqual(self.client.post("/pause?mode=keep")[0], 200)
        self.assertEqual(self.client.get("/is_paused"), (200, {"is_paused": True}))
        for _ in range(2):
            self.assertEqual(self.client.post("/resume")[0], 200)
        self.assertEqual(len(self.client.generate(max_tokens=2, ignore_eos=True)[
            "choices"][0]["token_ids"]), 2)

    def test_a_request_that_began_before_a_label_has_both(self):
        pending = self.running(2)
        status, _ = self.client.post("/update_weight_version", {"new_version": "v2"})
        self.assertEqual(status, 200)
        for future in pending:
            spans = future.result()["choices"][0]["weight_versions"]
            self.assertEqual([span["version"] for span in spans], ["default", "v2"])
            self.assertEqual((spans[0]["start"], spans[0]["end"], spans[1]["end"]),
                             (0, spans[1]["start"], 1000))

    def test_a_request_aborted_while_paused_has_no_token(self):
        self.client.post("/pause?mode=keep")
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            late = pool.submit(self.client.generate, request={"request_id": "late"}, max_tokens=9,
                               logprobs=0, prompt_logprobs=0, ignore_eos=True)
            deadline = time.monotonic() + 60
            while not late.done() and time.monotonic() < deadline:
                self.client.post("/abort_requests", {"request_ids": ["generate-tokens-late"]})
                time.sleep(0.05)
            answer = late.result()
        choice = answer["choices"][0]
        self.assertEqual((choice["finish_reason"], choice["token_ids"]), ("abort", []))
        self.assertEqual(choice["weight_versions"], [])
        self.assertIn(answer["prompt_logprobs"], (None, [None]))

    def test_the_network_is_described(self):
        status, answer = self.client.post("/collective_rpc", {"method": "get_model_inspection"})
        self.assertEqual(status, 200, answer)
        text = answer["results"][0]
        self.assertRegex(text, r"\(embed_tokens\): \w+\(num_embeddings=18,")
        self.assertIn("embedding_dim=128", text)
        self.assertIn("(0-3): 4 x ", text)

    def test_the_cache_may_be_reset(self):
        self.assertEqual(self.client.post("/reset_prefix_cache"), (200, {"success": True}))

    @unittest.skipUnless(OURS, "vLLM 0.32 does not survive it")
    def test_weights_that_are_not_there_change_nothing(self):
        status, _ = self.client.post("/collective_rpc", {
            "method": "reload_weights", "kwargs": {"weights_path": "no/such/folder"}})
        self.assertGreaterEqual(status, 400)
        before = self.client.generate(max_tokens=20, seed=1)["choices"][0]["token_ids"]
        self.assertEqual(self.client.generate(max_tokens=20, seed=1)["choices"][0]["token_ids"],
                         before)

    # What it says of itself.

    def test_it_says_how_it_is(self):
        for path in ("/health", "/ping"):
            self.assertEqual(self.client.get(path)[0], 200)
        self.assertIsInstance(self.client.get("/version")[1]["version"], str)
        self.assertIsInstance(self.client.get("/load")[1]["server_load"], int)
        self.assertEqual(self.client.get("/get_world_size")[1], {"world_size": 1})
        self.assertIsInstance(self.client.get("/server_info")[1], dict)
        paths = self.client.get("/openapi.json")[1]["paths"]
        for path in ("/inference/v1/generate", "/pause", "/weight_info", "/v1/completions"):
            self.assertIn(path, paths)
        self.assertIn("vllm:num_requests_running", self.client.get("/metrics")[1])


@unittest.skipUnless(OURS, "only of pace serve")
class OwnServeTest(unittest.TestCase):
    """What `pace serve` promises beyond the interface."""

    def test_what_is_not_supported_is_refused_by_name(self):
        server, url = start("tiny")
        self.addCleanup(stop, server)
        client = Client(url)
        for params, key in (({"n": 2}, "n"), ({"presence_penalty": 1}, "presence_penalty"),
                            ({"logit_bias": {"1": 1}}, "logit_bias"), ({"min_tokens": 3},
                                                                       "min_tokens"),
                            ({"structured_outputs": {"regex": "a"}}, "structured_outputs"),
                            ({"max_tokns": 3}, "max_tokns")):
            status, answer = client.post("/inference/v1/generate", {
                "token_ids": PROMPT, "sampling_params": params})
            self.assertEqual(status, 400, answer)
            self.assertIn(f"sampling_params.{key}", answer["error"]["message"])
            self.assertNotIn("\n", answer["error"]["message"])
        # The whole protocol of an update, from a folder.
        self.assertEqual(client.post("/init_weight_transfer_engine", {"init_info": {}})[0], 200)
        self.assertEqual(client.post("/update_weights", {
            "update_info": {"weights_path": str(MODEL)}})[0], 400)
        self.assertEqual(client.post("/start_weight_update")[0], 200)
        self.assertEqual(client.post("/update_weights", {
            "update_info": {"weights_path": str(MODEL)}})[0], 200)
        self.assertEqual(client.post("/finish_weight_update", {"weight_version": "r:1"})[0], 200)
        self.assertEqual(client.get("/weight_info")[1], {"weight_version": "r:1"})

    def test_a_chat_uses_the_models_template(self):
        server, url = start("tiny-retool", "--served-model-name", "mine")
        self.addCleanup(stop, server)
        client = Client(url)
        body = {"model": "mine", "messages": [{"role": "user", "content": "3+4="}],
                "temperature": 0, "max_tokens": 20}
        status, answer = client.post("/v1/chat/completions", body)
        self.assertEqual(status, 200, answer)
        self.assertEqual(answer["choices"][0]["message"]["role"], "assistant")
        text = answer["choices"][0]["message"]["content"]
        events = client.events("/v1/chat/completions", body)
        self.assertEqual(events[0]["choices"][0]["delta"]["role"], "assistant")
        self.assertEqual("".join(event["choices"][0]["delta"]["content"] for event in events), text)
        status, tokens = client.post("/tokenize", {"messages": body["messages"]})
        self.assertEqual(status, 200, tokens)
        self.assertEqual(tokens["count"], answer["usage"]["prompt_tokens"])
        if openai is not None:
            reply = openai.OpenAI(base_url=url + "/v1", api_key="none").chat.completions.create(
                **body)
            self.assertEqual(reply.choices[0].message.content, text)

    def test_every_route_needs_the_key(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "key"
            path.write_text("s3cret\n")
            server, url = start("tiny", "--api-key-file", str(path))
        self.addCleanup(stop, server)
        anyone = Client(url)
        for method, path in (("GET", "/health"), ("POST", "/pause"), ("GET", "/metrics"),
                             ("POST", "/inference/v1/generate"), ("GET", "/nothing")):
            self.assertEqual(anyone.call(method, path), (401, {"error": "Unauthorized"}))
        self.assertEqual(Client(url, "wrong!").get("/health")[0], 401)
        self.assertEqual(Client(url, "s3cret").get("/health")[0], 200)
        self.assertEqual(len(Client(url, "s3cret").generate(max_tokens=2, ignore_eos=True)[
            "choices"][0]["token_ids"]), 2)

    def test_it_says_when_it_is_ready_and_ends_cleanly(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            server, url = start("tiny", "engine.threads=2", "engine.kv_mib=64")
            pending = threading.Thread(target=_try, args=(url,))
            pending.start()
            time.sleep(0.1)
            server.send_signal(number)
            self.assertEqual(server.wait(timeout=60), 0)
            said = server.stderr.read()
            server.stderr.close()
            pending.join()
            self.assertRegex(said, rf"^serving tiny at {url} \(ready in \d+\.\d s\)\n$")

    def test_mistakes_on_the_command_line_are_one_line(self):
        for arguments in (["no-such-model"], ["tiny", "--host", "0.0.0.0"],
                          ["tiny", "engine.kv_mib=0"], ["tiny", "--api-key-file", "no/such/file"],
                          ["tiny", "--host", "nowhere", "--allow-anyone"],
                          ["tiny", "engine.typo=1"]):
            done = pace_process.run("serve", "--port", "0", *arguments)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)

    def test_slow_and_rude_clients_do_not_keep_others_out(self):
        server, url = start("tiny")
        self.addCleanup(stop, server)
        client = Client(url)
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192), hard))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        host, port = urllib.parse.urlsplit(url).netloc.split(":")
        body = json.dumps({"token_ids": PROMPT, "sampling_params": {"max_tokens": 50, "seed": 5,
                                                                    "ignore_eos": True}}).encode()
        expected = client.generate(max_tokens=50, seed=5, ignore_eos=True)["choices"][0]["token_ids"]
        before = resident_kb(server.pid)
        post = b"POST /inference/v1/generate HTTP/1.1\r\nHost: x\r\nContent-Length: "
        whole = post + b"%d\r\n\r\n" % len(body) + body
        says = [
            b"",  # connects and says nothing
            b"POST /inference/v1/generate HTTP/1.1\r\nHost: x\r\nContent-Le",
            post + b"5000\r\n\r\n" + b"x" * 3000,  # half a body
            post + b"900000000000\r\n\r\n",  # too long a body
            b"GET /health HTTP/1.1\r\nX: " + b"y" * 300_000,  # a giant header
            b"GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n" * 200,  # never reads the answers
            whole * 4,  # several requests at once
            whole,  # closes early: below
            b"\xff\x00\r\n\r\n",
        ]
        rude = []
        most = 0
        for index in range(1800):
            kind = index % len(says)
            connection = socket.create_connection((host, int(port)))
            connection.settimeout(0.05)
            with contextlib.suppress(OSError):
                connection.sendall(says[kind])
            if kind == 7:
                connection.close()
            else:
                rude.append(connection)
            if index % 300 == 299:
                self.assertEqual(self.wait_for_answer(client, seed=5), expected)
                most = max(most, resident_kb(server.pid))
        self.assertEqual(self.wait_for_answer(client, seed=5), expected)
        most = max(most, resident_kb(server.pid))
        print(f"\n1800 rude clients: {before} kB before, at most {most} kB")
        # 1,024 connections and as many that end, 64 KiB each of buffer and of message, and the
        # 256 MiB of max_total_bytes.
        self.assertLess(most, before + 2048 * 128 + (256 << 10))
        for connection in rude:
            connection.close()

    def wait_for_answer(self, client, **sampling):
        """The tokens of a response; those that connected just now keep their places for a second."""
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError, http.client.HTTPException):
                status, answer = client.post("/inference/v1/generate", {
                    "token_ids": PROMPT,
                    "sampling_params": {"max_tokens": 50, "ignore_eos": True, **sampling}})
                if status == 200:
                    return answer["choices"][0]["token_ids"]
            time.sleep(0.1)
        raise AssertionError("a live client was not served")

    def test_readers_that_stop_reading_do_not_stop_others(self):
        server, url = start("tiny")
        self.addCleanup(stop, server)
        host, port = urllib.parse.urlsplit(url).netloc.split(":")
        body = json.dumps({"token_ids": PROMPT, "stream": True, "sampling_params": LONG}).encode()
        stuck = []
        for _ in range(50):
            connection = socket.create_connection((host, int(port)))
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.sendall(b"POST /inference/v1/generate HTTP/1.1\r\nContent-Length: %d\r\n\r\n"
                               % len(body) + body)
            stuck.append(connection)
        answer = Client(url).generate(max_tokens=20, ignore_eos=True)
        self.assertEqual(len(answer["choices"][0]["token_ids"]), 20)
        for connection in stuck:
            connection.close()
        deadline = time.monotonic() + 60
        while Client(url).get("/load")[1]["server_load"] > 0 and time.monotonic() < deadline:
            time.sleep(0.05)
        self.assertEqual(Client(url).get("/load")[1]["server_load"], 0)


def _try(url):
    with contextlib.suppress(OSError, http.client.HTTPException, AssertionError):
        Client(url).generate(**LONG)


def resident_kb(pid):
    with open(f"/proc/{pid}/status", encoding="utf-8") as file:
        return int(next(line for line in file if line.startswith("VmRSS")).split()[1])


if __name__ == "__main__":
    unittest.main()
