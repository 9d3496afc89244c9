"""vLLM servers of a test's own, for the tests beside this file.

They run on the CPU, from the environment that `scripts/setup peers` makes, each on one core where
there are several. PACE_VLLM_PYTHON names another Python that has vLLM; PACE_VLLM_URLS, separated
by commas, servers that run already.
"""

import contextlib
import http.client
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time

sys.path.append(str(pathlib.Path(__file__).parents[1] / "cli"))

import pace_process  # pylint: disable=wrong-import-position

MODEL = pace_process.SOURCE / "models" / "tiny"
PYTHON = os.environ.get("PACE_VLLM_PYTHON", str(pace_process.SOURCE / ".venv-vllm/bin/python"))

# Seconds that a server has to start on a busy machine.
START_PATIENCE = 600


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def call(url, method, path, body=None, timeout=60):
    """The status and the body, read as JSON where it is any."""
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=timeout)
    with contextlib.closing(connection):
        connection.request(method, path, body=None if body is None else json.dumps(body),
                           headers={"Content-Type": "application/json"})
        answer = connection.getresponse()
        text = answer.read().decode()
        try:
            return answer.status, json.loads(text)
        except json.JSONDecodeError:
            return answer.status, text


class RunningServer:
    """One that somebody else started."""

    def __init__(self, url):
        self.url = url

    def end(self):
        pass


class VllmServer:
    """One server; `end` ends it, `kill` as a machine that loses power would, `begin` starts it
    again at the same address."""

    def __init__(self, log, model=MODEL, cores=None, arguments=(), env=None):
        self.log = pathlib.Path(log)
        self.model = model
        self.cores = cores
        self.arguments = arguments
        self.env = env or {}
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.process = None
        self.begin()

    def begin(self):
        env = {**os.environ, "VLLM_SERVER_DEV_MODE": "1", "VLLM_CPU_KVCACHE_SPACE": "1",
               "VLLM_LOGGING_LEVEL": "WARNING", "VLLM_NO_USAGE_STATS": "1", "HF_HUB_OFFLINE": "1"}
        env |= self.env
        if self.cores is not None:
            env["VLLM_CPU_OMP_THREADS_BIND"] = self.cores
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [PYTHON, "-m", "vllm.entrypoints.openai.api_server", "--model", str(self.model),
                 "--host", "127.0.0.1", "--port", str(self.port), "--dtype", "float32",
                 "--enforce-eager", "--generation-config", "vllm", "--enable-scale-out",
                 "--served-model-name", "tiny",
                 "--disable-uvicorn-access-log", *self.arguments],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=env, start_new_session=True)

    def wait_until_ready(self):
        deadline = time.monotonic() + START_PATIENCE
        while True:
            with contextlib.suppress(OSError, http.client.HTTPException):
                if call(self.url, "GET", "/health", timeout=5)[0] == 200:
                    return self
            if self.process.poll() is not None or time.monotonic() > deadline:
                tail = self.log.read_text(errors="replace")[-3000:]
                raise AssertionError(f"vLLM did not start:\n{tail}")
            time.sleep(0.2)

    def signal(self, number):
        """To every process of the server."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)

    def kill(self):
        self.signal(signal.SIGKILL)
        self.process.wait()

    end = kill


def start_servers(folder, count):
    """Servers that start side by side, each on a core of its own where there are enough."""
    running = [url for url in os.environ.get("PACE_VLLM_URLS", "").split(",") if url]
    if running:
        return [RunningServer(url) for url in running[:count]]
    cores = sorted(os.sched_getaffinity(0))
    servers = []
    try:
        for index in range(count):
            servers.append(VllmServer(pathlib.Path(folder) / f"vllm{index}.log",
                                      cores=str(cores[index % len(cores)])))
        for server in servers:
            server.wait_until_ready()
    except BaseException:
        for server in servers:
            server.end()
        raise
    return servers
