"""Rewards from a server: pace verify and pace train with task.verifier=http://..."""

import http.server
import json
import threading
import time
import unittest

import pace_process
import run_cases


class Server:
    """A server of rewards whose behaviour a test sets: `act(handler, items, number of the call)`
    returns what to answer, or None where it has answered itself."""

    def __init__(self, act):
        self.calls, self.sizes = 0, []
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                items = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["items"]
                server.calls += 1
                server.sizes.append(len(items))
                answer = act(self, items, server.calls)
                if answer is not None:
                    self.answer(200, json.dumps(answer).encode())

            def answer(self, code, data):
                try:
                    self.send_response(code)
                    self.send_header("Content-Length", str(len(data)))
                    self.end_headers()
                    self.wfile.write(data)
                except OSError:
                    pass  # it was too late

            def log_message(self, *arguments):
                pass

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}/rewards"
        self.thread = threading.Thread(target=self.http.serve_forever)
        self.thread.start()

    def stop(self):
        self.http.shutdown()
        self.http.server_close()
        self.thread.join()


def scores(items):
    return {"results": [float(len(item["response"]) % 3 == 0) for item in items]}


class HttpRewardTest(run_cases.TinyCase):
    def serve(self, act):
        server = Server(act)
        self.addCleanup(server.stop)
        return server

    def ask(self, name, server, *arguments):
        return self.train(name, f"task.verifier={server.url}", "run.num_steps=2", *arguments)

    def test_a_server_judges_in_batches_and_its_detail_is_recorded(self):
        def act(handler, items, call):
            self.assertLessEqual({"id", "response", "answer", "prompt"}, set(items[0]))
            return [{"score": 1.0, "seen": len(item["response"])} for item in items]
        server = self.serve(act)
        done, run = self.ask("fine", server, "reward.batch=8")
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = self.rows(run, "rollouts.jsonl")
        self.assertTrue(all(set(row["detail"]) == {"seen"} for row in rows))
        self.assertGreater(max(server.sizes), 1)
        self.assertLessEqual(max(server.sizes), 8)

    def test_an_attempt_that_fails_is_made_again(self):
        def act(handler, items, call):
            if call % 2 == 1:
                return handler.answer(503, b"busy")
            return scores(items)
        done, run = self.ask("again", self.serve(act), "reward.batch=16")
        self.assertEqual((done.returncode, len(self.rows(run))), (0, 2), done.stderr)
        self.assertNotIn("reward of problem", done.stderr)

    def faulty(self, name, act, words):
        """Under each setting: every third batch goes wrong, for ever."""
        for setting in ("fail_group", "zero", "stop"):
            def wrong(handler, items, call):
                if any(len(item["id"]) and int(item["id"].split("/")[-1]) % 4 == 0
                       for item in items):
                    return act(handler, items)
                return scores(items)
            done, run = self.ask(f"{name}-{setting}", self.serve(wrong), "reward.timeout=0.5",
                                   "reward.num_retries=0", f"reward.on_error={setting}")
            self.assertRegex(done.stderr, "reward of problem .*" + words)
            if setting == "stop":
                self.assertEqual(done.returncode, 2)
            else:
                self.assertEqual((done.returncode, len(self.rows(run))), (0, 2), done.stderr)

    def test_a_slow_server_follows_the_setting(self):
        def slow(handler, items):
            time.sleep(2)
            return scores(items)
        self.faulty("slow", slow, "timed out")

    def test_half_a_batch_follows_the_setting(self):
        self.faulty("half", lambda handler, items: {"results": [1.0] * (len(items) // 2)},
                    "gave 0 results for 1 responses")

    def test_a_wrong_answer_follows_the_setting(self):
        self.faulty("wrong", lambda handler, items: {"results": ["1.0"] * len(items)},
                    "gave str instead of a number")

    def test_a_server_that_is_killed_ends_the_run_after_64_faults(self):
        servers = []
        def act(handler, items, call):
            if call == 20:
                threading.Thread(target=servers[0].stop).start()
            return scores(items)
        servers.append(Server(act))
        done, _ = self.ask("killed", servers[0], "reward.num_retries=0", "run.num_steps=50")
        servers[0].thread.join()
        self.assertEqual(done.returncode, 2)
        self.assertIn("Connection refused", done.stderr)
        self.assertIn("64 failed in a row", done.stderr)

    def test_a_server_that_is_not_there_is_refused_in_one_line(self):
        server = Server(lambda handler, items, call: None)
        server.stop()
        done, run = self.ask("none", server)
        self.assertEqual(done.returncode, 2)
        self.assertIn("cannot be reached", done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1)
        self.assertFalse(run.exists())

    def test_verify_asks_the_server(self):
        server = self.serve(lambda handler, items, call: scores(items))
        done = pace_process.run("verify", "--mode", server.url,
                                lines=[{"response": "abc", "answer": "1"},
                                       {"response": "abcd", "answer": "1"}])
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual([row["score"] for row in pace_process.json_lines(done.stdout)], [1, 0])


if __name__ == "__main__":
    unittest.main()
