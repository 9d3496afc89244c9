"""Every object that `pace launch kubernetes` writes is valid by the published schemas of Kubernetes
(package kubernetes-validate), strictly: no unknown field."""

import pathlib
import sys
import tempfile
import unittest

import kubernetes_validate
import yaml

sys.path.append(str(pathlib.Path(__file__).parents[1] / "cli"))
import pace_process  # noqa: E402

GIVEN = ["launch.image=registry.example/pace:1", "launch.volume=shared"]
CASES = {
    "vllm on two nodes": ["math-8b"],
    "sglang": ["math-4b", "launch.engine=sglang", "launch.engine_image=registry.example/sglang:1"],
    "pace serve on CPUs": ["tiny", "launch.engine=pace", "launch.cpus=2", "cluster.rollout_gpus=2"],
    "two pods of ranks": ["math-8b", "cluster.trainer_gpus=16", "cluster.tensor_parallel=2",
                          "launch.cpus=8"],
    "odd texts": ["math-4b", "policy.model=/m/it's \"odd\": $HOME # {x}", "launch.folder=/a b",
                  "launch.engine_options=[--seed, '7: x']"],
}
KINDS = ["Secret", "ConfigMap", "Service", "StatefulSet", "Service", "Job"]


def objects_of(settings):
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "job"
        done = pace_process.run("launch", "kubernetes", *settings, *GIVEN, "--out", out)
        if done.returncode != 0:
            raise RuntimeError(done.stderr)
        return list(yaml.safe_load_all((out / "pace.yaml").read_text(encoding="utf-8")))


class KubernetesSchemaTest(unittest.TestCase):
    def test_every_object_is_valid(self):
        for name, settings in CASES.items():
            objects = objects_of(settings)
            self.assertEqual([one["kind"] for one in objects], KINDS)
            for one in objects:
                with self.subTest(case=name, kind=one["kind"]):
                    kubernetes_validate.validate(one, kubernetes_validate.latest_version(),
                                                 strict=True)

    def test_the_check_finds_an_unknown_field(self):
        job = objects_of(["math-4b"])[-1]
        job["spec"]["template"]["spec"]["containers"][0]["comand"] = []
        with self.assertRaises(kubernetes_validate.ValidationError):
            kubernetes_validate.validate(job, kubernetes_validate.latest_version(), strict=True)

    def test_texts_come_through(self):
        objects = objects_of(CASES["odd texts"])
        engine = objects[3]["spec"]["template"]["spec"]["containers"][0]
        self.assertIn("/m/it's \"odd\": $HOME # {x}", engine["command"])
        self.assertEqual(engine["command"][-2:], ["--seed", "7: x"])
        self.assertEqual(engine["workingDir"], "/a b")
        run = yaml.safe_load(objects[1]["data"]["run.yaml"])
        self.assertEqual(run["policy"]["model"], "/m/it's \"odd\": $HOME # {x}")
        # Engines are found under the names that the StatefulSet gives its pods.
        name = objects[3]["metadata"]["name"]
        service = objects[3]["spec"]["serviceName"]
        self.assertEqual(run["engine"]["urls"],
                         [f"http://{name}-{i}.{service}:8000" for i in range(4)])
        self.assertEqual(objects[2]["metadata"]["name"], service)


if __name__ == "__main__":
    unittest.main()
