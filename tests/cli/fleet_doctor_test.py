"""pace doctor of a fleet: `pace serve` processes, a proxy that lies, a port without a listener."""

import http.client
import http.server
import json
import pathlib
import socket
import subprocess
import tempfile
import threading
import time
import unittest

import pace_process

TOKEN = "a-token"


class Liar(http.server.BaseHTTPRequestHandler):
    """Passes calls on to another server and changes what the class says."""
    protocol_version = "HTTP/1.1"
    target = None  # host, port
    version = None
    date = None

    def answer(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        client = http.client.HTTPConnection(*self.target, timeout=60)
        client.request(self.command, self.path, body,
                       {name: self.headers[name] for name in ("Authorization", "Content-Type")
                        if name in self.headers})
        answer = client.getresponse()
        text = answer.read()
        client.close()
        if self.path == "/version" and self.version is not None:
            text = json.dumps({"version": self.version}).encode()
        self.send_response_only(answer.status)
        self.send_header("Date", self.date or answer.getheader("Date"))
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = answer
    do_POST = answer

    def log_message(self, *_):
        pass


class Sglang(http.server.BaseHTTPRequestHandler):
    """What an SGLang server says of itself, without a tokenizer."""
    protocol_version = "HTTP/1.1"
    dp_size = 1

    def answer(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        facts = {"/server_info": {"version": "0.5.23", "context_length": 4096, "tp_size": 4,
                                  "dp_size": self.dp_size, "pp_size": 1},
                 "/model_info": {"served_model_name": "m", "weight_version": "default"}}
        text = json.dumps(facts.get(self.path, {"error": "no tokenizer"})).encode()
        self.send_response(200 if self.path in facts else 404)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = answer
    do_POST = answer

    def log_message(self, *_):
        pass


class FleetDoctorTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.token_file = cls.folder / "token"
        cls.token_file.write_text(TOKEN + "\n")
        ready = cls.folder / "ready"
        server = subprocess.Popen(
            [str(pace_process.BINARY), "serve", "tiny", "--port", "0", "--api-key-file",
             str(cls.token_file), "--ready-file", str(ready)], stderr=subprocess.DEVNULL)
        cls.addClassCleanup(server.wait)
        cls.addClassCleanup(server.terminate)
        deadline = time.monotonic() + pace_process.PATIENCE
        while not ready.exists():
            assert server.poll() is None and time.monotonic() < deadline
            time.sleep(0.05)
        cls.url = ready.read_text().strip()

    def liar(self, **facts):
        host, port = self.url.removeprefix("http://").split(":")
        return self.serve(type("OneLiar", (Liar,), dict(facts, target=(host, int(port)))))

    def serve(self, handler):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return f"http://127.0.0.1:{server.server_port}"

    def doctor(self, *arguments, token=True):
        given = ["--token-file", self.token_file] if token else []
        done = pace_process.run("doctor", *arguments, *given)
        lines = done.stdout.splitlines()
        self.assertTrue(all(line.startswith(("ok ", "failed ")) for line in lines), done.stdout)
        return done, [line for line in lines if line.startswith("failed ")]

    def settings(self, *lines):
        path = self.folder / "run.yaml"
        path.write_text("\n".join(["preset: tiny", *lines]) + "\n")
        return path

    def test_a_server_in_order(self):
        done, failures = self.doctor(self.url)
        self.assertEqual((done.returncode, failures, done.stderr), (0, [], ""))
        self.assertIn(f"{self.url} reached: in ", done.stdout)
        self.assertIn(f"{self.url} shape: vocabulary 18, width 128, 4 layers", done.stdout)
        self.assertIn(f"{self.url} clock: agrees", done.stdout)
        self.assertNotIn("without a token", done.stdout)

    def test_settings_name_servers_folder_and_shape(self):
        path = self.settings(
            f"engine: {{urls: ['{self.url}', '{self.liar()}'], token_file: '{self.token_file}',",
            f"         weights: '{self.folder}/weights'}}")
        done, failures = self.doctor(path, token=False)
        self.assertEqual((done.returncode, failures), (0, []))
        self.assertIn("fleet 2 servers are alike", done.stdout)
        self.assertIn("weights: can be written", done.stdout)
        self.assertEqual(list((self.folder / "weights").iterdir()), [])

    def test_each_failure_is_a_line_and_status_1(self):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            dead = f"http://127.0.0.1:{probe.getsockname()[1]}"
            wrong_shape = self.settings("model: {num_layers: 3}", f"engine: {{urls: ['{self.url}']}}")
            cases = {
                "reached: ": [dead],
                "version: ": [self.url, self.liar(version="0.31.0")],
                "clock: ": [self.liar(date="Sun, 06 Nov 1994 08:49:37 GMT")],
                "but policy.model has vocabulary 18, width 128, 3 layers": [wrong_shape],
            }
            for what, arguments in cases.items():
                with self.subTest(what=what):
                    done, failures = self.doctor(*arguments)
                    self.assertEqual((done.returncode, len(failures)), (1, 1), done.stdout)
                    self.assertIn(what, failures[0])

    def test_a_wrong_token_is_a_failure(self):
        done, failures = self.doctor(self.url, token=False)
        self.assertEqual((done.returncode, len(failures)), (1, 1), done.stdout)
        self.assertIn("401", failures[0])

    def test_nccl_is_needed_by_several_ranks_on_gpus(self):
        path = self.settings("policy: {device: cuda}", "cluster: {trainer_gpus: 2}",
                             f"engine: {{urls: ['{self.url}']}}")
        done, failures = self.doctor(path)
        if "libnccl.so.2: cannot be loaded" in done.stdout:
            self.assertEqual((done.returncode, len(failures)), (1, 1), done.stdout)
            self.assertIn("failed nccl libnccl.so.2", failures[0])

    def test_sglang_servers_receive_weights_with_tensor_parallelism_alone(self):
        urls = [self.serve(type("OneSglang", (Sglang,), {"dp_size": size})) for size in (1, 2)]
        path = self.settings(f"engine: {{urls: {json.dumps(urls)}, server: sglang, transfer: nccl}}")
        done, failures = self.doctor(path, token=False)
        self.assertIn(f"ok     {urls[0]} transfer: to 4 workers", done.stdout)
        failures = [line for line in failures if not line.startswith("failed nccl")]
        self.assertEqual(failures, [f"failed {urls[1]} transfer: dp_size = 2: must be 1 (SGLang "
                                    "receives weights over NCCL with tensor parallelism alone)"])
        self.assertEqual(done.returncode, 1)

    def test_json(self):
        done = pace_process.run("doctor", self.url, "--token-file", self.token_file, "--json")
        rows = pace_process.json_lines(done.stdout)
        self.assertEqual({row["failed"] for row in rows}, {False})
        self.assertEqual(list(rows[0]), ["part", "text", "failed"])

    def test_bad_input_is_one_line(self):
        for arguments, message in {
                ("tiny",): "doctor tiny: engine.urls names no server",
                ("no-such-file",): "no preset or file named no-such-file",
                (self.url, "--token-file", "/no/such"): "/no/such",
                ("tiny", "tiny"): "doctor tiny: must be a URL after one settings file"}.items():
            done = pace_process.run("doctor", *arguments)
            self.assertEqual(done.returncode, 2)
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
            self.assertIn(message, done.stderr)


if __name__ == "__main__":
    unittest.main()
