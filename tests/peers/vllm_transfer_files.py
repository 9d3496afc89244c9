"""vLLM's weight transfer over NCCL without an installation of vLLM.

Loads the files below, unchanged, from a folder that has them under vllm/ (an installation's
site-packages, or a copy of these files), with stand-ins for the modules that they import from the
rest of vLLM. For machines with a GPU and torch but without vLLM.
"""

import base64
import contextlib
import importlib
import logging
import os
import pathlib
import shutil
import sys
import types

import torch

FILES = ["distributed/device_communicators/pynccl.py",
         "distributed/device_communicators/pynccl_wrapper.py",
         "distributed/weight_transfer/base.py",
         "distributed/weight_transfer/nccl_common.py",
         "distributed/weight_transfer/nccl_engine.py",
         "distributed/weight_transfer/packed_tensor.py",
         "utils/nccl.py"]


def copy_files(site_packages, to):
    for name in FILES:
        target = pathlib.Path(to) / "vllm" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(pathlib.Path(site_packages) / "vllm" / name, target)


class _Logger(logging.Logger):
    def info_once(self, *arguments):
        self.info(*arguments)

    def debug_once(self, *arguments):
        self.debug(*arguments)

    def warning_once(self, *arguments):
        self.warning(*arguments)


class _Platform:
    @staticmethod
    def is_rocm():
        return False

    @staticmethod
    def is_cuda():
        return True

    @staticmethod
    def fp8_dtype():
        return torch.float8_e4m3fn


def _module(name, **values):
    module = types.ModuleType(name)
    vars(module).update(values)
    sys.modules[name] = module
    parent, _, child = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], child, module)
    return module


def _package(name, path, **values):
    # Its own __init__ is not run: modules are found in the folder.
    _module(name, **values).__path__ = [str(path)]


def load(folder):
    """vllm.distributed.weight_transfer.nccl_engine, from `folder`/vllm."""
    root = pathlib.Path(folder) / "vllm"
    _package("vllm", root)
    _module("vllm.envs", VLLM_NCCL_SO_PATH=os.environ.get("VLLM_NCCL_SO_PATH"),
            VLLM_NCCL_INCLUDE_PATH=None, VLLM_DISABLE_PYNCCL=False, VLLM_USE_NCCL_SYMM_MEM=False)
    _module("vllm.logger", init_logger=_Logger)
    _module("vllm.platforms", current_platform=_Platform)
    _package("vllm.utils", root / "utils")
    _module("vllm.utils.torch_utils", current_stream=torch.cuda.current_stream)
    _package("vllm.config", root / "config")
    _module("vllm.config.parallel", ParallelConfig=object)
    _module("vllm.config.weight_transfer", WeightTransferConfig=object)
    _package("vllm.model_executor", root / "model_executor")
    _package("vllm.model_executor.model_loader", root / "model_executor/model_loader")
    _module("vllm.model_executor.model_loader.mtp_validation",
            disable_mtp_completeness_check=contextlib.nullcontext)
    _package("vllm.distributed", root / "distributed")
    _module("vllm.distributed.utils", StatelessProcessGroup=type("StatelessProcessGroup", (), {}))
    _package("vllm.distributed.device_communicators", root / "distributed/device_communicators")
    _package("vllm.distributed.weight_transfer", root / "distributed/weight_transfer")
    sys.modules.setdefault("pybase64", base64)
    return importlib.import_module("vllm.distributed.weight_transfer.nccl_engine")
