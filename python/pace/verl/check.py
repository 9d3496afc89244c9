"""What of an installation and a configuration fits pace, one line each.

    python -m pace.verl check [CONFIG...]

`findings_of_installation` looks at installed packages, `findings_of_configuration` at values. Both
are pure: they take what was found and return findings.
"""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import os
import pathlib
from collections.abc import Mapping
from importlib import metadata

from .. import _core
from .configuration import Configuration
from .options import Options

VERL = "0.9.1"
# package -> versions that runs were made with, and what it is for
_TESTED = {
    "verl": (VERL, "the hooks are those of this version"),
    "TransferQueue": ("0.1.11", "0.1.9 is the first that saves checkpoints"),
    "ray": ("2.60.0", ""),
    "torch": ("2.13.0", ""),
    "tensordict": ("0.10.0", ""),
    "transformers": ("5.10.4", ""),
}


@dataclasses.dataclass(frozen=True)
class Finding:
    level: str  # fits, differs, missing
    text: str

    def __str__(self):
        return f"{self.level:8} {self.text}"


def installed_versions() -> dict[str, str]:
    out = {}
    for name in (*_TESTED, "vllm", "sglang"):
        try:
            out[name] = metadata.version(name).split("+")[0]
        except metadata.PackageNotFoundError:
            pass
    return out


def changed_files(package: str) -> tuple[int, list[str]]:
    """How many files of an installed package have a recorded hash, and those that differ from it."""
    count, changed = 0, []
    for file in metadata.files(package) or []:
        if file.hash is None:
            continue
        count += 1
        path = pathlib.Path(file.locate())
        digest = (base64.urlsafe_b64encode(hashlib.new(file.hash.mode, path.read_bytes()).digest())
                  .rstrip(b"=").decode() if path.is_file() else "")
        if digest != file.hash.value:
            changed.append(str(file))
    return count, changed


def findings_of_installation(versions: Mapping[str, str],
                             changed: tuple[int, list[str]] | None) -> list[Finding]:
    """`versions` by package; `changed` is what `changed_files("verl")` gave, None without verl."""
    out = []
    for name, (tested, remark) in _TESTED.items():
        remark = f" ({remark})" if remark else ""
        if name not in versions:
            out.append(Finding("missing", f"{name}: not installed: pip install {name}=={tested}"))
        elif versions[name] == tested:
            out.append(Finding("fits", f"{name} {tested}"))
        else:
            out.append(Finding("differs", f"{name} {versions[name]}: runs were made with "
                                          f"{tested}{remark}"))
    if changed is not None:
        count, files = changed
        if files:
            out.append(Finding("differs", f"verl: {len(files)} of {count} files are not those of "
                                          f"the release, first {files[0]}"))
        else:
            out.append(Finding("fits", f"verl: its {count} files are those of the release"))
    vllm = versions.get("vllm")
    if vllm is not None and _numbers(vllm) >= (0, 32):
        out.append(Finding("differs", f"vllm {vllm}: verl {VERL} passes pause_generation an "
                                      "argument that vLLM 0.32 does not take: use 0.24"))
    elif vllm is not None:
        out.append(Finding("fits", f"vllm {vllm}"))
    return out


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:2] if part.isdigit())


def findings_of_configuration(config: Configuration, environment: Mapping[str, str] = os.environ
                              ) -> list[Finding]:
    out: list[Finding] = []

    def want(key, good, remedy, rule=None):
        value = config[key]
        if good(value):
            out.append(Finding("fits", f"{key} = {value}"))
        else:
            out.append(Finding("missing", f"{key} = {value}: {rule or remedy}"
                                          + (f" (set {remedy})" if rule else "")))

    want("trainer.use_v1", bool, "true")
    want("trainer.v1.trainer_mode", lambda v: v == "separate_async", "separate_async")
    want("trainer.v1.sampler.custom_sampler.path",
         lambda v: v and "pace.verl.sampler" in str(v), "pkg://pace.verl.sampler",
         "is not pace's sampler")
    want("trainer.v1.sampler.custom_sampler.name", lambda v: v == "PaceSampler", "PaceSampler",
         "is not pace's sampler")
    want("actor_rollout_ref.rollout.agent.agent_loop_manager_class",
         lambda v: v == "pace.verl.agent_loop.PaceAgentLoops",
         "it to pace.verl.agent_loop.PaceAgentLoops, with + in front on the command line",
         "versions per token and prefix scores are not kept")
    want("trainer.checkpoint_callback_class",
         lambda v: v == "pace.verl.checkpoint.PaceCheckpoint",
         "it to pace.verl.checkpoint.PaceCheckpoint", "a resumed run begins with empty windows")
    want("trainer.v1.sampler.max_off_policy_threshold", lambda v: v is None, "null",
         "verl also drops groups by the age of their prompt")
    want("actor_rollout_ref.rollout.checkpoint_engine.backend", lambda v: v != "naive",
         "nccl, nixl or another engine", "separate_async refuses it")
    want("actor_rollout_ref.rollout.calculate_log_probs", bool, "true",
         "without recorded log-probabilities there are no prefix scores")
    out.extend(_findings_on_batches(config))
    out.extend(_findings_on_method(config))
    if not config["actor_rollout_ref.hybrid_engine"]:
        level = environment.get("VERL_LOGGING_LEVEL", "INFO").upper()
        quiet = level in ("WARN", "WARNING", "ERROR", "CRITICAL")
        out.append(Finding("fits" if quiet else "missing",
                           f"VERL_LOGGING_LEVEL = {level}" + ("" if quiet else
                           ": with hybrid_engine=False verl calls logger.info(flush=True), which "
                           "raises TypeError, trainer_separate_async.py:181 (set WARN)")))
    return out


def _findings_on_batches(config: Configuration):
    batch = config.number("data.train_batch_size")
    steps = config.number("trainer.v1.separate_async.parameter_sync_step")
    mini = config.number("actor_rollout_ref.actor.ppo_mini_batch_size")
    equation = (f"data.train_batch_size = {batch}, parameter_sync_step * ppo_mini_batch_size = "
                f"{steps * mini}")
    if batch == steps * mini:
        yield Finding("fits", equation)
    else:
        yield Finding("missing", equation + ": separate_async asserts that they are equal")
    gen = config.get("data.gen_batch_size")
    if gen in (None, 1):
        yield Finding("fits", f"data.gen_batch_size = {gen}: verl sets 1 in asynchronous modes")
    else:
        yield Finding("differs", f"data.gen_batch_size = {gen}: verl overrides it with 1")
    for prefix in ("actor_rollout_ref.rollout", "trainer"):
        gpus = config.number(f"{prefix}.nnodes") * config.number(f"{prefix}.n_gpus_per_node")
        yield Finding("fits" if gpus else "missing",
                      f"{prefix}.nnodes * n_gpus_per_node = {gpus}"
                      + ("" if gpus else ": separate_async needs GPUs of its own here"))
    warmup = config.number("trainer.v1.separate_async.num_warmup_batches")
    if warmup < 2:
        yield Finding("differs", f"num_warmup_batches = {warmup}: little is outstanding, so little "
                                 "waits and there is little to admit (the paper: 8)")
    else:
        yield Finding("fits", f"num_warmup_batches = {warmup}")


def _findings_on_method(config: Configuration):
    try:
        options = Options.read(config.section("trainer.v1.sampler.sampler_kwargs"))
    except _core.Error as error:
        yield Finding("missing", str(error))
        return
    yield Finding("fits", f"sampler_kwargs.method = {options.method}")
    if options.record is None:
        yield Finding("differs", "sampler_kwargs.record = None: no run directory for pace report")
    if not options.needs_scores:
        return
    rollout = "actor_rollout_ref.rollout"
    values = [config[f"{rollout}.{name}"] for name in ("temperature", "top_p", "top_k")]
    if values[0] == 1 and values[1] in (None, 1) and values[2] in (None, -1, 0):
        yield Finding("fits", "temperature 1 and the whole vocabulary: prefixes can be scored")
    else:
        yield Finding("differs", f"temperature, top_p, top_k = {values}: servers score prompts at "
                                 "temperature 1 over the whole vocabulary, so no prefix is scored "
                                 "(use method raw, or 1, 1, -1)")
