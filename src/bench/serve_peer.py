"""The peer of `pace bench serve`: starts servers, and is a bare client of them.

    serve_peer.py PACE MODEL THREADS VLLM_PYTHON

One JSON request per line, one JSON answer per line:

  {"start": "pace"}   {"url": ..., "seconds": until it was ready, "vocabulary": ...}
  {"start": "vllm"}   {"url": ..., "seconds": ..., "version": ...}
  {"url": ..., "concurrency": 8, "responses": 32, "tokens": 64}   {"seconds": ..., "tokens": ...}
  {"watch": URL}      {"url": ...}: a proxy of that server, which notes when requests come
  {"watched": URL}    {"seconds": ..., "requests": ...}: mean time from the answer to the last /resume
                      that went through the proxy to the first token of a request after it: until
                      the request came, and from there on as the server measured it
  {"end": true}       {}: the servers have ended

The client is asyncio with as many connections as there are requests at a time, and nothing
else: no package of HTTP, no retries.
"""

import asyncio
import atexit
import ctypes
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

PROMPT = [6, 13, 7, 16]
PATIENCE = 600

folder = tempfile.TemporaryDirectory()
servers = []


def end_servers():
    for server in servers:
        try:
            os.killpg(server.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        server.wait()


def die_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def get(url, path):
    with urllib.request.urlopen(url + path, timeout=60) as answer:
        return json.loads(answer.read() or "null")


def start(words, url, env=None):
    """Seconds until it answers."""
    begun = time.monotonic()
    log = pathlib.Path(folder.name) / f"server{len(servers)}.log"
    with log.open("wb") as out:
        server = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                  env={**os.environ, **(env or {})}, start_new_session=True,
                                  preexec_fn=die_with_parent)
    servers.append(server)
    while True:
        try:
            get(url, "/health")
            return time.monotonic() - begun
        except (OSError, urllib.error.URLError):
            if server.poll() is not None or time.monotonic() > begun + PATIENCE:
                lines = log.read_text(errors="replace").strip().splitlines()
                raise RuntimeError("it did not start: " + (lines or ["no reason given"])[-1])
        time.sleep(0.005)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def start_pace(pace, model, threads):
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    seconds = start([pace, "serve", model, "--port", str(port), f"engine.threads={threads}"], url)
    info = get(url, "/server_info")
    return {"url": url, "seconds": seconds, "vocabulary": info["vocab_size"]}


def start_vllm(python, model, threads):
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    cores = sorted(os.sched_getaffinity(0))[:threads]
    seconds = start(
        [python, "-m", "vllm.entrypoints.openai.api_server", "--model", model, "--host",
         "127.0.0.1", "--port", str(port), "--dtype", "float32", "--enforce-eager",
         "--generation-config", "vllm", "--enable-scale-out", "--disable-uvicorn-access-log"],
        url, {"VLLM_SERVER_DEV_MODE": "1", "VLLM_CPU_KVCACHE_SPACE": "1", "HF_HUB_OFFLINE": "1",
              "VLLM_NO_USAGE_STATS": "1", "VLLM_LOGGING_LEVEL": "ERROR",
              "VLLM_CPU_OMP_THREADS_BIND": ",".join(map(str, cores))})
    return {"url": url, "seconds": seconds, "version": "vLLM " + get(url, "/version")["version"]}


async def one_connection(host, port, body, left):
    reader, writer = await asyncio.open_connection(host, port)
    head = (f"POST /inference/v1/generate HTTP/1.1\r\nHost: {host}:{port}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n").encode()
    tokens = 0
    while left:
        left.pop()
        writer.write(head + body)
        lines = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = int(lines.split("content-length:")[1].split("\r\n")[0])
        answer = json.loads(await reader.readexactly(length))
        tokens += len(answer["choices"][0]["token_ids"])
    writer.close()
    return tokens


class Watch:
    """A proxy of one server, on a thread of its own."""

    def __init__(self, target):
        self.target = target
        self._host, port = target.removeprefix("http://").split(":")
        self._port = int(port)
        self._resumed = None  # when the answer to /resume went out
        self._came = []       # requests since then
        self._before = (0, 0)
        self._loop = asyncio.new_event_loop()
        self.url = None
        ready = threading.Event()
        threading.Thread(target=self._run, args=(ready,), daemon=True).start()
        ready.wait()

    def _run(self, ready):
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        ready.set()
        self._loop.run_forever()

    def first_tokens(self):
        """How many requests have a token, and the sum of their seconds to it."""
        with urllib.request.urlopen(self.target + "/metrics", timeout=60) as answer:
            lines = answer.read().decode().splitlines()
        return [sum(float(line.rpartition(" ")[2]) for line in lines
                    if line.startswith(f"vllm:time_to_first_token_seconds_{part}"))
                for part in ("count", "sum")]

    async def _serve(self, reader, writer):
        try:
            up_reader, up_writer = await asyncio.open_connection(self._host, self._port)
        except OSError:
            writer.close()
            return
        try:
            while True:
                head, body = await read_message(reader)
                path = head.split(b" ", 2)[1]
                if path == b"/inference/v1/generate" and self._resumed is not None:
                    self._came.append(time.perf_counter())
                if path == b"/resume":
                    # Nothing runs: what the server counts from here on are requests after it.
                    self._before = await asyncio.to_thread(self.first_tokens)
                    self._came.clear()
                up_writer.write(head + body)
                answer = b"".join(await read_message(up_reader))
                if path == b"/resume":
                    self._resumed = time.perf_counter()
                writer.write(answer)
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()
            up_writer.close()

    def take(self):
        """The mean time to a first token after the last resume, and over how many requests."""
        count, seconds = (now - before for now, before
                          in zip(self.first_tokens(), self._before, strict=True))
        if not self._came or count == 0:
            raise RuntimeError("no request came after a resume")
        late = sum(when - self._resumed for when in self._came) / len(self._came)
        self._resumed = None
        return {"seconds": late + seconds / count, "requests": len(self._came)}


async def read_message(reader):
    """Head and body of an HTTP message."""
    while True:
        head = await reader.readuntil(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 100"):
            break
    lines = head.decode().lower()
    length = int(lines.split("content-length:")[1].split("\r\n")[0]) if (
        "content-length:" in lines) else 0
    return head, await reader.readexactly(length)


async def measure(request):
    host, port = request["url"].removeprefix("http://").split(":")
    body = json.dumps({"token_ids": PROMPT, "sampling_params": {
        "max_tokens": request["tokens"], "temperature": 1.0, "logprobs": 0, "ignore_eos": True,
        "detokenize": False}}).encode()
    left = [None] * request["responses"]
    begun = time.perf_counter()
    counts = await asyncio.gather(*(one_connection(host, int(port), body, left)
                                    for _ in range(request["concurrency"])))
    return {"seconds": time.perf_counter() - begun, "tokens": sum(counts)}


def main():
    pace, model, threads, python = sys.argv[1:]
    watches = {}
    atexit.register(end_servers)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    for line in sys.stdin:
        request = json.loads(line)
        if request.get("start") == "pace":
            answer = start_pace(pace, model, int(threads))
        elif request.get("start") == "vllm":
            answer = start_vllm(python, model, int(threads))
        elif "watch" in request:
            watches[request["watch"]] = Watch(request["watch"])
            answer = {"url": watches[request["watch"]].url}
        elif "watched" in request:
            answer = watches[request["watched"]].take()
        elif "end" in request:
            end_servers()
            servers.clear()
            answer = {}
        else:
            answer = asyncio.run(measure(request))
        print(json.dumps(answer), flush=True)


main()
