"""python/vllm_plugin in a real vLLM: weights are read before the pause, and they are the same."""

import json
import pathlib
import tempfile
import unittest

import vllm_process

import pace_process
from recording_proxy import RecordingProxy

PLUGIN = pace_process.SOURCE / "python" / "vllm_plugin"
NUM_STEPS = 4


class VllmPluginTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        server = vllm_process.VllmServer(
            cls.folder / "vllm.log", arguments=["--worker-extension-cls", "pace_vllm.NextWeights"],
            env={"PYTHONPATH": str(PLUGIN)})
        cls.addClassCleanup(server.end)
        server.wait_until_ready()
        cls.url = server.url

    def rpc(self, method, **kwargs):
        return vllm_process.call(self.url, "POST", "/collective_rpc",
                                 {"method": method, "kwargs": kwargs})

    def logprobs(self):
        """Of a greedy response."""
        status, answer = vllm_process.call(self.url, "POST", "/inference/v1/generate", {
            "token_ids": [6, 13, 7, 16],
            "sampling_params": {"max_tokens": 24, "temperature": 0, "logprobs": 0,
                                "ignore_eos": True}})
        self.assertEqual(status, 200, answer)
        return [(entry["token_id"], entry["logprob"])
                for entry in answer["choices"][0]["logprobs"]["content"]]

    def load(self, method, **kwargs):
        for path in ("/pause?mode=abort&clear_cache=true", None, "/resume"):
            status, answer = (self.rpc(method, **kwargs) if path is None else
                              vllm_process.call(self.url, "POST", path))
            self.assertEqual(status, 200, answer)

    def test_a_run_fetches_before_each_pause_and_trains(self):
        proxy = RecordingProxy(self.url, self.folder)
        self.addCleanup(proxy.end)
        run = self.folder / "run"
        done = pace_process.run("train", "tiny", f"engine.urls=[{proxy.url}]", "--method", "pace",
                                f"run.num_steps={NUM_STEPS}", "run.evaluate_every=0",
                                "batch.num_groups=4", "batch.group_size=6", "--out", run)
        self.assertEqual(done.returncode, 0, done.stderr)
        steps = []
        for path, body in proxy.calls:
            if path == "/collective_rpc":
                steps.append(json.loads(body)["method"])
            elif path.startswith("/pause"):
                steps.append("pause")
        self.assertNotIn("reload_weights", steps)
        self.assertGreaterEqual(steps.count("pace_install"), NUM_STEPS)
        installs = [index for index, step in enumerate(steps) if step == "pace_install"]
        for index in installs:
            self.assertEqual(steps[index - 1], "pause", steps)
            self.assertEqual(steps[index - 2], "pace_fetch", steps)

        # The weights that the plugin installed last are those that vLLM itself reads.
        newest = max(proxy.weights, key=lambda label: int(label.rpartition(":")[2]))
        installed = self.logprobs()
        self.load("reload_weights", weights_path=str(vllm_process.MODEL))
        self.assertNotEqual(self.logprobs(), installed)
        self.load("reload_weights", weights_path=str(proxy.weights[newest]))
        self.assertEqual(self.logprobs(), installed)
        # Installed without having been fetched, they are read in the pause.
        self.load("reload_weights", weights_path=str(vllm_process.MODEL))
        self.load("pace_install", folder=str(proxy.weights[newest]))
        self.assertEqual(self.logprobs(), installed)

    def test_a_folder_without_weights_is_an_error_and_the_server_lives(self):
        empty = self.folder / "empty"
        empty.mkdir()
        before = self.logprobs()
        status, answer = self.rpc("pace_fetch", folder=str(empty))
        self.assertGreaterEqual(status, 400, answer)
        status, answer = self.rpc("no_such_method")
        self.assertGreaterEqual(status, 400, answer)
        self.assertEqual(self.logprobs(), before)


if __name__ == "__main__":
    unittest.main()
