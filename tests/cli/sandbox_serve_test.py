"""`pace sandbox serve` as a SandboxFusion client meets it.

PACE_SANDBOX_LOAD_SECONDS sets how long the load lasts (default 5).
"""

import base64
import concurrent.futures
import json
import os
import re
import signal
import socket
import subprocess
import time
import unittest
import urllib.error
import urllib.request

import pace_process

LOAD_SECONDS = float(os.environ.get("PACE_SANDBOX_LOAD_SECONDS", "5"))


def start(*arguments):
    """The server and its port; (None, why) where the machine offers no isolation."""
    server = subprocess.Popen(
        [str(pace_process.BINARY), "sandbox", "serve", "--port", "0", *arguments],
        stderr=subprocess.PIPE, text=True)
    said = ""
    for line in server.stderr:
        said += line
        found = re.search(r"http://127\.0\.0\.1:(\d+)", line)
        if found:
            return server, int(found.group(1))
    server.wait()
    server.stderr.close()
    return None, said


def stop(server):
    server.send_signal(signal.SIGTERM)
    server.wait(timeout=pace_process.PATIENCE)
    server.stderr.close()


def call(port, path, body=None):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", data=data)
    try:
        with urllib.request.urlopen(request, timeout=pace_process.PATIENCE) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def run_code(port, code, **fields):
    status, answer = call(port, "/run_code", {"code": code, "language": "python", **fields})
    assert status == 200, answer
    return answer


def descendants(pid):
    """Processes below this one."""
    children = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as file:
                parent = int(file.read().rpartition(")")[2].split()[1])
        except (OSError, IndexError):
            continue
        children.setdefault(parent, []).append(int(name))
    found, waiting = [], [pid]
    while waiting:
        below = children.get(waiting.pop(), [])
        found += below
        waiting += below
    return found


def resident_kb(pid):
    with open(f"/proc/{pid}/status", encoding="utf-8") as file:
        return int(re.search(r"VmRSS:\s+(\d+)", file.read()).group(1))


class SandboxServeTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server, cls.port = start("--max-programs", "2")
        if cls.server is None:
            raise unittest.SkipTest(f"SKIPPED: nothing was tested: {cls.port}")

    @classmethod
    def tearDownClass(cls):
        stop(cls.server)

    def test_a_ping_is_answered(self):
        self.assertEqual(call(self.port, "/v1/ping"), (200, "pong"))

    def test_a_program_that_succeeds(self):
        answer = run_code(self.port, "print(input())", stdin="hello", memory_limit_MB=256)
        self.assertEqual(answer["status"], "Success")
        self.assertEqual(answer["message"], "")
        self.assertIsNone(answer["compile_result"])
        result = answer["run_result"]
        self.assertGreater(result.pop("execution_time"), 0)
        self.assertEqual(result, {"status": "Finished", "return_code": 0, "stdout": "hello\n",
                                  "stderr": ""})

    def test_a_program_that_fails(self):
        answer = run_code(self.port, "raise SystemExit(3)")
        self.assertEqual((answer["status"], answer["run_result"]["return_code"]), ("Failed", 3))
        answer = run_code(self.port, "print('begun', flush=True)\nwhile True: pass",
                          run_timeout=0.5)
        self.assertEqual(answer["status"], "Failed")
        self.assertEqual(answer["run_result"]["status"], "TimeLimitExceeded")
        self.assertEqual(answer["run_result"]["stdout"], "begun\n")

    def test_output_that_is_no_text(self):
        answer = run_code(self.port, "import os; os.write(1, b'ok\\xff')")
        self.assertEqual(
            answer["run_result"]["stdout"],
            "[DecodeError] 'utf-8' codec can't decode byte 0xff in position 2: invalid start byte")

    def test_files_go_in_and_out(self):
        answer = run_code(self.port, "open('b', 'w').write(open('a').read() * 2)",
                          files={"a": base64.b64encode(b"xy").decode()}, fetch_files=["b", "c"])
        self.assertEqual(answer["files"], {"b": base64.b64encode(b"xyxy").decode()})

    def test_a_request_that_breaks_a_rule(self):
        for body in ({}, {"code": "x"}, {"code": 1, "language": "python"}):
            self.assertEqual(call(self.port, "/run_code", body)[0], 422, body)

    def test_clients_that_vanish_free_their_places(self):
        body = json.dumps({"code": "import time; time.sleep(200)", "language": "python",
                           "run_timeout": 250})
        for _ in range(6):  # three times as many as there are places
            client = socket.create_connection(("127.0.0.1", self.port))
            client.sendall(f"POST /run_code HTTP/1.1\r\nContent-Length: {len(body)}\r\n\r\n{body}"
                           .encode())
            time.sleep(0.1)
            client.close()
        self.assertEqual(run_code(self.port, "print(1)")["run_result"]["stdout"], "1\n")

    def test_load_leaves_no_trace(self):
        def work(number):
            count = 0
            while time.monotonic() < end:
                answer = run_code(self.port, f"print({number} * 2)")
                self.assertEqual(answer["run_result"]["stdout"], f"{number * 2}\n")
                count += 1
            return count

        end = time.monotonic() + 1
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            list(pool.map(work, range(16)))
            processes = len(descendants(self.server.pid))
            descriptors = len(os.listdir(f"/proc/{self.server.pid}/fd"))
            memory = resident_kb(self.server.pid)
            end = time.monotonic() + LOAD_SECONDS
            total = sum(pool.map(work, range(16)))
        self.assertGreater(total, 16)
        time.sleep(1.5)  # connections that ended are joined once a second
        self.assertEqual(len(descendants(self.server.pid)), processes)
        self.assertLessEqual(len(os.listdir(f"/proc/{self.server.pid}/fd")), descriptors)
        self.assertLess(resident_kb(self.server.pid), memory + 20_000)
        print(f"{total} programs in {LOAD_SECONDS} s")


class SandboxEndTest(unittest.TestCase):
    def test_nothing_is_left_when_the_server_dies(self):
        for number in (signal.SIGTERM, signal.SIGKILL):
            server, port = start()
            if server is None:
                self.skipTest(f"SKIPPED: nothing was tested: {port}")
            client = socket.create_connection(("127.0.0.1", port))
            body = json.dumps({"code": "import time; time.sleep(200)", "language": "python"})
            client.sendall(f"POST /run_code HTTP/1.1\r\nContent-Length: {len(body)}\r\n\r\n{body}"
                           .encode())
            time.sleep(0.5)
            below = descendants(server.pid)
            self.assertTrue(below)
            server.send_signal(number)
            server.wait(timeout=pace_process.PATIENCE)
            server.stderr.close()
            client.close()
            deadline = time.monotonic() + 30
            while any(map(alive, below)) and time.monotonic() < deadline:
                time.sleep(0.05)
            self.assertEqual([pid for pid in below if alive(pid)], [])

    def test_a_mistake_is_one_line(self):
        for arguments in (["--python", "no-such-python"], ["--address", "nowhere"]):
            done = pace_process.run("sandbox", "serve", "--port", "0", *arguments)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


if __name__ == "__main__":
    unittest.main()
