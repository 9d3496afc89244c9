"""An HTTP proxy that writes down what an inference server was asked and what it answered.

Tests read what crossed the wire from it, so that they compare a run's records with the server's
own words, not with what the run made of them. It can lie, too.
"""

import contextlib
import http.client
import http.server
import json
import pathlib
import shutil
import tempfile
import threading


class RecordingProxy:
    """Passes calls on to `target`. `answers` are pairs of request and answer of generate calls,
    in order of their answers; `calls` are the paths and bodies of the others; `weights` maps labels
    to copies of the folders that the server was told to load, in a new folder below `folder`. `lie` takes the path, the status and the body of an answer and returns those that
    the client gets, or None: the connection breaks."""

    def __init__(self, target, folder, lie=None):
        self.answers = []
        self.calls = []
        self._lie = lie
        self.weights = {}
        self._folder = pathlib.Path(tempfile.mkdtemp(dir=folder))  # of this proxy alone
        self._target = target.removeprefix("http://")
        self._loaded = None
        self._lock = threading.Lock()
        proxy = self

        class Handler(http.server.BaseHTTPRequestHandler):
            """One connection of a client, and one to the server."""

            protocol_version = "HTTP/1.1"

            def setup(self):
                super().setup()
                self.upstream = http.client.HTTPConnection(proxy._target, timeout=600)

            def finish(self):
                self.upstream.close()
                super().finish()

            def pass_on(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                headers = {"Content-Type": "application/json"}
                try:
                    self.upstream.request(self.command, self.path, body=body, headers=headers)
                    answer = self.upstream.getresponse()
                    data = answer.read()
                except (OSError, http.client.HTTPException):
                    self.close_connection = True
                    return
                proxy.note(self.path, body, answer.status, data)
                told = proxy.tell(self.path, answer.status, data)
                if told is None:
                    self.close_connection = True
                    return
                status, data = told
                with contextlib.suppress(OSError):
                    self.send_response(status)
                    self.send_header("Content-Type", "application/json")
                    self.send_header("Content-Length", str(len(data)))
                    self.end_headers()
                    self.wfile.write(data)

            do_GET = do_POST = pass_on  # pylint: disable=invalid-name

            def log_message(self, *arguments):
                pass

        class Server(http.server.ThreadingHTTPServer):
            """With room for a burst of connections."""

            daemon_threads = True
            request_queue_size = 1024

            def handle_error(self, request, client_address):
                """Clients that go away are no news."""

        self._server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def note(self, path, body, status, data):
        if path != "/inference/v1/generate":
            with self._lock:
                self.calls.append((path, body))
        if status != 200:
            return
        if path == "/inference/v1/generate":
            with self._lock:
                self.answers.append((json.loads(body), json.loads(data)))
        elif path == "/collective_rpc" and b"reload_weights" in body:
            self._loaded = json.loads(body)["kwargs"]["weights_path"]
        elif path == "/collective_rpc" and b"pace_install" in body:
            self._loaded = json.loads(body)["kwargs"]["folder"]
        elif path == "/update_weight_version":
            label = json.loads(body)["new_version"]
            if label not in self.weights:
                copy = self._folder / f"weights-{len(self.weights)}"
                shutil.copytree(self._loaded, copy)
                self.weights[label] = copy

    def tell(self, path, status, data):
        return (status, data) if self._lie is None else self._lie(path, status, data)

    def end(self):
        self._server.shutdown()
        self._server.server_close()
