"""A run whose GPU sends weights over NCCL to servers, one of which is killed and comes back.

    python nccl_train.py --pace build-cuda/pace --files FOLDER

Each server is a `pace serve` behind a process with vLLM's own receiver (nccl_receiver.py), which joins
the communicator, receives the tensors and gives them to `pace serve` as a folder when an update is
finished. So everything is real but vLLM's generation. Needs a GPU and what nccl_receiver.py needs.

The run is on-policy: with the right weights in the servers the trainer's log-probabilities are those
that were recorded, so `train/kl` is 0 up to rounding in every step.
"""

import argparse
import http.client
import http.server
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

MODEL = pathlib.Path(__file__).parents[2] / "models" / "tiny"
MOST_KL = 1e-5


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Tensors:
    """What the receiver loads into: the tensors of one update, on the host."""

    def __init__(self):
        self.tensors = {}

    def load_weights(self, weights):
        for name, tensor in weights:
            self.tensors[name] = tensor.cpu().clone()


class Front(http.server.BaseHTTPRequestHandler):
    """vLLM's routes of a weight transfer; everything else goes to `pace serve`."""

    protocol_version = "HTTP/1.1"
    backend, files, scratch = "", "", None
    engines, engine, num_updates = None, None, 0

    def log_message(self, *_):
        pass

    def answer(self, status, body):
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def forward(self, method, path, body):
        connection = http.client.HTTPConnection(self.backend, timeout=600)
        connection.request(method, path, body=body, headers={"Content-Type": "application/json"})
        answer = connection.getresponse()
        return answer.status, answer.read()

    def do_GET(self):
        if self.path.startswith("/get_world_size"):
            return self.answer(200, b'{"world_size": 1}')
        return self.answer(*self.forward("GET", self.path, None))

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        take = {"/init_weight_transfer_engine": self.take_init, "/start_weight_update": self.take_start,
                "/update_weights": self.take_update, "/finish_weight_update": self.take_finish}.get(self.path)
        if take is None:
            return self.answer(*self.forward("POST", self.path, body))
        take(json.loads(body) if body else {})
        return self.answer(200, b"{}")

    def take_init(self, body):
        import nccl_receiver
        Front.engines, Front.engine = nccl_receiver.receiver_of(self.files, body["init_info"])

    def take_start(self, _):
        Front.engine.model = Tensors()

    def take_update(self, body):
        import torch
        Front.engine.receive_weights(
            self.engines.NCCLWeightTransferUpdateInfo(**body["update_info"]))
        torch.cuda.synchronize()

    def take_finish(self, body):
        from safetensors.torch import save_file
        Front.num_updates += 1
        folder = self.scratch / f"v{Front.num_updates}"
        folder.mkdir()
        for name in ("config.json", "generation_config.json", "tokenizer.json"):
            shutil.copy(MODEL / name, folder)
        save_file(Front.engine.model.tensors, folder / "model.safetensors")
        for path, value in (("/collective_rpc", {"method": "reload_weights",
                                                 "kwargs": {"weights_path": str(folder)}}),
                            ("/update_weight_version", {"new_version": body["weight_version"]})):
            status, text = self.forward("POST", path, json.dumps(value))
            assert status == 200, text
        shutil.rmtree(folder)


class FrontServer(http.server.ThreadingHTTPServer):
    request_queue_size = 1024    # a run connects once for each response
    daemon_threads = True


def serve(options):
    """A process: the front of one server."""
    Front.backend, Front.files, Front.scratch = options.serve, options.files, pathlib.Path(
        tempfile.mkdtemp())
    sys.path.insert(0, str(pathlib.Path(__file__).parent))
    import torch
    torch.cuda.init()
    FrontServer(("127.0.0.1", options.port), Front).serve_forever()


class Server:
    def __init__(self, options, scratch):
        self.port, self.ready = free_port(), scratch / f"ready-{time.monotonic_ns()}"
        environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
        self.backend = subprocess.Popen(
            [options.pace, "serve", str(MODEL), "--port", "0", "--ready-file", str(self.ready)],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, env=environment)
        while not self.ready.exists():
            assert self.backend.poll() is None, "pace serve ended"
            time.sleep(0.05)
        self.options = options
        self.start_front()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def start_front(self):
        backend = self.ready.read_text().strip().removeprefix("http://")
        self.front = subprocess.Popen([sys.executable, __file__, "--files", self.options.files,
                                       "--serve", backend, "--port", str(self.port)])

    def end(self):
        self.front.kill()
        self.backend.kill()


def rows_of(folder):
    path = folder / "metrics.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--pace", default="build-cuda/pace")
    parser.add_argument("--files", required=True)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        return serve(options)
    scratch = pathlib.Path(tempfile.mkdtemp())
    servers = [Server(options, scratch) for _ in range(2)]
    run = subprocess.Popen(
        [options.pace, "train", "tiny", "--method", "sync", "--out", str(scratch / "run"),
         f"run.num_steps={options.steps}", "run.evaluate_every=0", "device=cuda",
         f"engine.urls=[{','.join(server.url for server in servers)}]", "engine.transfer=nccl",
         "engine.transfer_mib=1", "engine.load_s=20", "record.level=full"],
        stdin=subprocess.DEVNULL)
    killed = False
    while run.poll() is None:
        rows = len(rows_of(scratch / "run"))
        if not killed and rows >= options.steps // 3:
            servers[0].front.send_signal(signal.SIGKILL)
            servers[0].front.wait()
            servers[0].start_front()
            killed = True
        time.sleep(0.02)
    rows = rows_of(scratch / "run")
    worst = max(abs(row["train/kl"]) for row in rows)
    events = (scratch / "run" / "events.jsonl").read_text()
    lost = events.count("WorkerLost") + events.count("worker_lost")
    print(f"{len(rows)} steps, exit code {run.returncode}, largest train/kl {worst:.1e}, "
          f"{lost} workers lost", flush=True)
    replay = subprocess.run([options.pace, "replay", str(scratch / "run" / "events.jsonl")],
                            stdout=subprocess.DEVNULL, check=False)
    print(f"replay: exit code {replay.returncode}", flush=True)
    for server in servers:
        server.end()
    failed = run.returncode != 0 or len(rows) != options.steps or worst > MOST_KL
    return 1 if failed or replay.returncode != 0 or lost == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
