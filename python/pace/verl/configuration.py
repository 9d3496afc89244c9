"""A verl configuration as plain values, wherever it comes from.

`read` takes a YAML or JSON file, Hydra overrides (`data.train_batch_size=64`, with `+` or `++` in
front or not), or both. A file may be a whole resolved configuration, such as `.hydra/config.yaml`
of a run, or name what differs from verl's defaults. Neither verl nor Hydra is needed; PyYAML is,
for YAML. Values that refer to others (`${trainer.nnodes}`) are looked up.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping

from .. import _core

# What pace reads of verl 0.9.1's defaults.
DEFAULTS = {
    "actor_rollout_ref.actor.ppo_epochs": 1,
    "actor_rollout_ref.actor.ppo_mini_batch_size": 256,
    "actor_rollout_ref.hybrid_engine": True,
    "actor_rollout_ref.rollout.calculate_log_probs": False,
    "actor_rollout_ref.rollout.checkpoint_engine.backend": "naive",
    "actor_rollout_ref.rollout.gpu_memory_utilization": 0.5,
    "actor_rollout_ref.rollout.max_num_seqs": 1024,
    "actor_rollout_ref.rollout.n": 1,
    "actor_rollout_ref.rollout.n_gpus_per_node": 0,
    "actor_rollout_ref.rollout.nnodes": 0,
    "actor_rollout_ref.rollout.temperature": 1.0,
    "actor_rollout_ref.rollout.tensor_model_parallel_size": 2,
    "actor_rollout_ref.rollout.top_k": -1,
    "actor_rollout_ref.rollout.top_p": 1,
    "algorithm.rollout_correction.bypass_mode": False,
    "data.max_prompt_length": 512,
    "data.max_response_length": 512,
    "data.train_batch_size": 1024,
    "trainer.n_gpus_per_node": 8,
    "trainer.nnodes": 1,
    "trainer.use_v1": True,
    "trainer.v1.sampler.max_off_policy_threshold": 8,
    "trainer.v1.separate_async.num_warmup_batches": 1,
    "trainer.v1.separate_async.parameter_sync_step": 4,
    "trainer.v1.trainer_mode": "sync",
}

_REFERENCE = re.compile(r"^\$\{([\w.]+)\}$")


class Configuration:
    """Values by dotted key.

    >>> from pace.verl.configuration import read
    >>> config = read(["data.train_batch_size=64", "+trainer.v1.trainer_mode=separate_async"])
    >>> config["data.train_batch_size"], config["actor_rollout_ref.rollout.n"]
    (64, 1)
    >>> config.states("data.train_batch_size"), config.states("actor_rollout_ref.rollout.n")
    (True, False)
    """

    def __init__(self, values: Mapping[str, object]):
        self._values = dict(values)

    def get(self, key: str, otherwise=None):
        value = self._values.get(key, DEFAULTS.get(key, otherwise))
        for _ in range(8):
            reference = _REFERENCE.match(value) if isinstance(value, str) else None
            if reference is None:
                break
            value = self._values.get(reference[1], DEFAULTS.get(reference[1], otherwise))
        return value

    __getitem__ = get

    def states(self, key: str) -> bool:
        """Whether the configuration says it, rather than verl's defaults."""
        return key in self._values

    def number(self, key: str) -> float:
        value = self.get(key)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise _core.InvalidArgument(f"{key} = {value!r}: must be a number")
        return value

    def section(self, prefix: str) -> dict:
        """Everything below a key, nested again."""
        out: dict = {}
        for key in self._values:
            if key.startswith(prefix + "."):
                _put(out, key[len(prefix) + 1:].split("."), self.get(key))
        return out


def _put(out: dict, path: list[str], value) -> None:
    for part in path[:-1]:
        out = out.setdefault(part, {})
    out[path[-1]] = value


def read(sources: Iterable[str]) -> Configuration:
    """Files and overrides, the later ones winning."""
    values: dict[str, object] = {}
    for source in sources:
        if "=" in source:
            key, _, text = source.partition("=")
            values[key.lstrip("+~")] = _value(text)
        else:
            values.update(_flat(_load(source)))
    return Configuration(values)


def _value(text: str):
    text = text.strip().strip("'\"")
    if text.lower() in ("null", "none", "~"):
        return None
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


def _load(path: str) -> Mapping:
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except OSError as error:
        raise _core.NotFound(f"{path}: {error.strerror} (a verl configuration in YAML or JSON, or "
                             "key=value)") from None
    try:
        if text.lstrip().startswith("{"):
            loaded = json.loads(text)
        else:
            import yaml

            loaded = yaml.safe_load(text)
    except ImportError:
        raise _core.NotFound(f"{path}: reading YAML needs PyYAML (pip install pyyaml)") from None
    except Exception as error:
        raise _core.InvalidArgument(f"{path}: {' '.join(str(error).split())}") from None
    if not isinstance(loaded, Mapping):
        raise _core.InvalidArgument(f"{path}: must hold a mapping")
    return loaded


def _flat(tree: Mapping, prefix: str = "") -> dict[str, object]:
    out: dict[str, object] = {}
    for key, value in tree.items():
        if isinstance(value, Mapping):
            out.update(_flat(value, f"{prefix}{key}."))
        else:
            out[f"{prefix}{key}"] = value
    return out
