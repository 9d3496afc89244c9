"""One `pace serve` process under supervision, spoken to over HTTP.

`EngineProcess` starts a server, answers calls in its name, and replaces it when it dies or stops
answering: the new one gets the last complete weights and the pause state. Requests that were in the
old one are answered as aborted without tokens, so a client submits them again. verl itself has no
answer to a lost replica: checkpoint_engine/base.py raises at the next sync.

    engine = EngineProcess(command, label="replica 0")
    await engine.start()
    answer = await engine.generate(request_id, token_ids, sampling_params)
    await engine.pause(); await engine.load(folder, step); await engine.resume()

Needs aiohttp; neither verl nor Ray. Every wait has a deadline.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import dataclasses
import os
import signal
import subprocess
import tempfile
import time

import aiohttp

_LOST = (aiohttp.ClientConnectionError, aiohttp.ClientPayloadError, asyncio.TimeoutError,
         ConnectionError)


@dataclasses.dataclass
class Answer:
    """One attempt of a response. `step` is the global step of the weights that sampled it."""

    token_ids: list[int]
    log_probs: list[float]
    finish_reason: str  # stop, length, abort
    step: int | None
    # Entry i scores token i + 1 of the prompt; the last one is padding, as verl's servers have it.
    prompt_logprobs: list[list[float]] | None = None


def answer_of(body: dict, served: int | None) -> Answer:
    """Reads an answer of `/inference/v1/generate`. `served` stands for the label of a response
    that was aborted before its first token.

    >>> from pace.verl.engine_process import answer_of
    >>> answer_of({"choices": [{"token_ids": [5], "finish_reason": "stop",
    ...                         "logprobs": {"content": [{"token_id": 5, "logprob": -0.5}]},
    ...                         "weight_versions": [{"version": "step-3", "start": 0, "end": 1}]}],
    ...            "prompt_logprobs": [None, {"7": {"logprob": -1.5}}]}, served=2)
    Answer(token_ids=[5], log_probs=[-0.5], finish_reason='stop', step=3, \
prompt_logprobs=[[-1.5], [0.0]])
    """
    choice = body["choices"][0]
    spans = choice.get("weight_versions") or []
    step = step_of(spans[-1]["version"]) if spans else served
    scored = body.get("prompt_logprobs")
    if scored is not None:
        scored = [[next(iter(entry.values()))["logprob"]] for entry in scored[1:]] + [[0.0]]
    return Answer(list(choice["token_ids"]),
                  [entry["logprob"] for entry in (choice.get("logprobs") or {}).get("content", [])],
                  choice["finish_reason"], step, scored)


def label_of(step: int) -> str:
    return f"step-{step}"


def step_of(label: str) -> int | None:
    """The step of a label; None for weights that no sync has set."""
    return int(label.removeprefix("step-")) if label.startswith("step-") else None


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


class EngineProcess:
    def __init__(self, command: list[str], *, label: str = "engine", call_seconds: float = 60.0,
                 start_seconds: float = 120.0, health_seconds: float = 5.0, log=print):
        """`command` without `--port` and `--ready-file`. A call to control the server that takes
        longer than `call_seconds`, or a health check longer than `health_seconds`, means that the
        server hangs."""
        self.command = command
        self.label = label
        self.call_seconds = call_seconds
        self.start_seconds = start_seconds
        self.health_seconds = health_seconds
        self.log = log
        self.step: int | None = None     # of the weights that are served
        self.num_replaced = 0
        self.url: str | None = None
        self._process: subprocess.Popen | None = None
        self._folder: str | None = None  # of these weights
        self._paused = False
        self._replacing = asyncio.Lock()
        self._session: aiohttp.ClientSession | None = None
        self._watch: asyncio.Task | None = None

    # ---- life ----

    async def start(self) -> str:
        """Returns the address, host:port."""
        self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None),
                                              connector=aiohttp.TCPConnector(limit=0))
        await self._start()
        self._watch = asyncio.create_task(self._watch_health())
        return self.url.removeprefix("http://")

    async def stop(self) -> None:
        if self._watch is not None:
            self._watch.cancel()
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        if self._session is not None:
            await self._session.close()

    @property
    def pid(self) -> int:
        return self._process.pid

    async def _start(self) -> None:
        """A new process with the last weights, paused if the old one was; `url` is set last."""
        with tempfile.TemporaryDirectory() as folder:
            ready = os.path.join(folder, "url")
            process = subprocess.Popen([*self.command, "--port", "0", "--ready-file", ready],
                                       preexec_fn=_die_with_parent)
            deadline = time.monotonic() + self.start_seconds
            while not os.path.exists(ready):
                if process.poll() is not None:
                    raise RuntimeError(f"{self.label}: {self.command[0]} ended with exit code "
                                       f"{process.returncode} while starting")
                if time.monotonic() > deadline:
                    process.kill()
                    raise RuntimeError(f"{self.label}: no server after {self.start_seconds} s")
                await asyncio.sleep(0.02)
            with open(ready, encoding="utf-8") as file:
                url = file.read().strip()
        try:
            if self._folder is not None:
                await self._load(url, self._folder, self.step)
            if self._paused:
                await self._post(url, "/pause?mode=abort")
        except _LOST as error:
            process.kill()
            raise RuntimeError(f"{self.label}: a new server was lost at once: {error!r}") from error
        self._process, self.url = process, url

    async def _replace(self, process: subprocess.Popen, error: BaseException) -> None:
        """Puts a new server in the place of `process`, unless somebody has."""
        async with self._replacing:
            if self._process is not process:
                return
            begin = time.monotonic()
            process.kill()  # a stopped or hanging one, too; its requests end with it
            process.wait()
            await self._start()
            self.num_replaced += 1
            self.log(f"pace: {self.label}: server lost ({type(error).__name__}: {error}); a new one "
                     f"serves step {self.step} after {time.monotonic() - begin:.1f} s")

    async def _watch_health(self) -> None:
        while True:
            await asyncio.sleep(self.health_seconds / 5)
            process, url = self._process, self.url
            try:
                timeout = aiohttp.ClientTimeout(total=self.health_seconds)
                async with self._session.get(url + "/health", timeout=timeout) as answer:
                    await answer.read()
            except _LOST as error:
                with contextlib.suppress(RuntimeError):
                    await self._replace(process, error)

    # ---- calls ----

    async def _post(self, url: str, path: str, body: dict | None = None,
                    seconds: float | None = None) -> dict:
        timeout = aiohttp.ClientTimeout(total=seconds or self.call_seconds)
        async with self._session.post(url + path, json=body or {}, timeout=timeout) as answer:
            if answer.status >= 400:
                raise RuntimeError(f"{self.label}: {path}: status {answer.status}: "
                                   f"{(await answer.text())[:500]}")
            return await answer.json()

    async def _control(self, call) -> None:
        """`call(url)`, again on a new server if the server is lost meanwhile."""
        for attempt in range(3):
            process = self._process
            try:
                await call(self.url)
                return
            except _LOST as error:
                if attempt == 2:
                    raise RuntimeError(f"{self.label}: lost three servers in one call") from error
                await self._replace(process, error)

    async def pause(self) -> None:
        self._paused = True
        await self._control(lambda url: self._post(url, "/pause?mode=abort"))

    async def resume(self) -> None:
        self._paused = False
        await self._control(lambda url: self._post(url, "/resume"))

    async def load(self, folder: str, step: int) -> None:
        """Serves the weights in `folder` as those of `step`."""
        await self._control(lambda url: self._load(url, folder, step))
        self._folder, self.step = folder, step

    async def _load(self, url: str, folder: str, step: int) -> None:
        await self._post(url, "/collective_rpc",
                         {"method": "reload_weights", "kwargs": {"weights_path": folder}})
        await self._post(url, "/update_weight_version", {"new_version": label_of(step)})

    async def generate(self, request_id: str, token_ids: list[int], sampling_params: dict) -> Answer:
        process = self._process
        try:
            timeout = aiohttp.ClientTimeout(total=None)  # the watch ends a server that hangs
            async with self._session.post(
                    self.url + "/inference/v1/generate", timeout=timeout,
                    json={"request_id": request_id, "token_ids": token_ids,
                          "sampling_params": sampling_params}) as answer:
                if answer.status >= 400:
                    raise RuntimeError(f"{self.label}: request {request_id}: status "
                                       f"{answer.status}: {(await answer.text())[:500]}")
                return answer_of(await answer.json(), self.step)
        except _LOST as error:
            await self._replace(process, error)
            return Answer([], [], "abort", self.step)
