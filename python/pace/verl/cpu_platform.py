"""verl 0.9.1 on a machine without GPUs: VERL_PLATFORM=pace_cpu.

verl has a registry for platforms but none for the CPU. `PlatformCpu` is one: gloo for collectives,
logical GPUs for Ray. What verl asks of the CPU beyond that is in `install`, each with the place in
verl 0.9.1 that asks for it. No file of verl or torch changes. docs/integrations.md lists the
settings that go with it.
"""

from __future__ import annotations

import contextlib

import torch
from verl.plugin.platform.platform_base import PlatformBase
from verl.plugin.platform.platform_manager import PlatformRegistry


@PlatformRegistry.register(platform="pace_cpu")
class PlatformCpu(PlatformBase):
    @property
    def device_name(self):
        return "cpu"

    @property
    def vendor_name(self):
        return "cpu"

    @property
    def device_module(self):
        return torch.cpu

    def is_available(self):
        return True

    def current_device(self):
        return "cpu"

    def device_count(self):
        return 1

    def set_device(self, device_index):
        """There is one."""

    def synchronize(self, device_index=None):
        """Nothing runs ahead."""

    def manual_seed(self, seed):
        torch.manual_seed(seed)

    def manual_seed_all(self, seed):
        torch.manual_seed(seed)

    def set_allocator_settings(self, settings):
        """No caching allocator."""

    def empty_cache(self):
        """No caching allocator."""

    def get_device_capability(self, device_index=0):
        return None, None

    def communication_backend_name(self):
        return "gloo"

    def visible_devices_envvar(self):
        return "CUDA_VISIBLE_DEVICES"

    @contextlib.contextmanager
    def nvtx_range(self, msg):
        yield

    def profiler_start(self):
        """No device profiler."""

    def profiler_stop(self):
        """No device profiler."""

    def ray_resource_name(self):
        # single_controller/ray/base.py:226 counts resources called GPU or NPU.
        return "GPU"

    def ray_noset_envvars(self):
        return ["RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES"]

    def is_ipc_supported(self):
        return False

    def cudart(self):
        return None


def _add_missing(module, functions) -> None:
    for name, function in functions.items():
        if not hasattr(module, name):
            setattr(module, name, function)


def _answer(value):
    return lambda *args, **kwargs: value


def install() -> None:
    # utils/memory_utils.py:47, workers/engine_workers.py:219 and utils/fsdp_utils.py read memory
    # counters of the device module. utils/profiler/performance.py:45 compares that module with
    # torch.cpu, so it must be torch.cpu itself, with the names that it lacks.
    _add_missing(torch.cpu, {
        "memory_allocated": _answer(0), "memory_reserved": _answer(0),
        "max_memory_allocated": _answer(0), "max_memory_reserved": _answer(0),
        "mem_get_info": _answer((0, 0)), "empty_cache": _answer(None),
        "reset_peak_memory_stats": _answer(None), "reset_accumulated_memory_stats": _answer(None),
        "ipc_collect": _answer(None),
        # utils/checkpoint/checkpoint_manager.py:218 restores the state of the device's generator.
        "get_rng_state": torch.get_rng_state, "set_rng_state": torch.set_rng_state})
    _install_backend()
    _install_copy()


def _install_backend() -> None:
    # utils/distributed.py:89 names the backend "cpu:gloo,cpu:gloo"; torch refuses a device twice.
    real = torch.distributed.init_process_group
    if getattr(real, "of_pace", False):
        return

    def init_process_group(backend=None, *args, **kwargs):
        if isinstance(backend, str):
            backend = ",".join(dict.fromkeys(backend.split(",")))
        return real(backend, *args, **kwargs)

    init_process_group.of_pace = True
    torch.distributed.init_process_group = init_process_group


def _install_copy() -> None:
    # utils/fsdp_utils.py:1180 keeps the old policy with .detach().cpu(), which copies nothing where
    # parameters are on the CPU: with parameter_sync_step > 1 the old policy would follow the new.
    from verl.utils import fsdp_utils

    real = fsdp_utils.fsdp2_sharded_save_to_cpu
    if getattr(real, "of_pace", False):
        return

    def save(model):
        state, spec = real(model)
        return {name: (tensor.clone(), extra) for name, (tensor, extra) in state.items()}, spec

    save.of_pace = True
    fsdp_utils.fsdp2_sharded_save_to_cpu = save
