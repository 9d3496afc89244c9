"""Sends weights with NcclSender to vLLM's own receiver, on one GPU, and measures it.

    python nccl_receiver.py --sender build-cuda/weight_sender --files FOLDER check
    python nccl_receiver.py --sender build-cuda/weight_sender --files FOLDER faults
    python nccl_receiver.py --sender build-cuda/weight_sender --files FOLDER leak

FOLDER has vLLM's files (vllm_transfer_files.py). Two processes on one GPU need NCCL 2.30 in both, and
NCCL_MULTI_RANK_GPU_ENABLE=1; LD_PRELOAD=libnccl.so.2 of a folder makes both use that one.

`check`: for every shape, form and buffer all checksums must agree; then the times of some updates,
in turn with as many from vLLM's Python sender in a process of its own. `faults`: the receiver is killed in
an update; the sender must be free within its deadline and one second, and serve the next receiver.
`leak`: 200 updates; the GPU's used memory may grow by less than 64 MiB.
"""

import argparse
import base64
import json
import multiprocessing
import os
import statistics
import subprocess
import sys
import time

MODULUS = 65521
MIB = 1 << 20
NUM_TIMED = 5


class Sender:
    """weight_sender as a child."""

    def __init__(self, path, shape, form, buffer_size, deadline_ms=60_000):
        self.shape = shape
        self.process = subprocess.Popen(
            [path, "send", shape, form, str(buffer_size), str(deadline_ms)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.update_info = json.loads(self.line())["update_info"]
        self.checksums = json.loads(self.line())
        self.init_info = json.loads(self.line())["init_info"]

    def line(self):
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"weight_sender ended with {self.process.wait()}")
        return line.rstrip("\n")

    def say(self, word):
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()

    def next_engine(self, form, buffer_size):
        self.say(f"engine {form} {buffer_size}")
        self.init_info = json.loads(self.line())["init_info"]

    def end(self):
        self.process.stdin.close()
        self.process.wait(timeout=60)


class Model:
    """What the receiver loads into."""

    def __init__(self):
        self.checks = False
        self.sums = {}

    def load_weights(self, weights):
        import torch
        if not self.checks:
            return
        for name, tensor in weights:
            values = tensor.contiguous().view(-1).view(torch.int16).to(torch.int64)
            places = torch.arange(values.numel(), device=values.device) % MODULUS
            self.sums[name] = (values.sum(), (values * places).sum())

    def found(self):
        return {name: [int(a), int(b)] for name, (a, b) in self.sums.items()}


def receiver_of(folder, init_info):
    """vLLM's NCCLWeightTransferEngine, joined, without a vLLM around it."""
    import types

    import torch
    import vllm_transfer_files
    engines = vllm_transfer_files.load(folder)
    torch.cuda.init()
    engine = engines.NCCLWeightTransferEngine.__new__(engines.NCCLWeightTransferEngine)
    engine.device = torch.device("cuda", 0)
    engine.model = Model()
    engine.parallel_config = types.SimpleNamespace(data_parallel_index=0, world_size=1, rank=0)
    engine.model_update_group = None
    engine.init_transfer_engine(engines.NCCLWeightTransferInitInfo(**init_info))
    return engines, engine


def receive(folder, init_info, update_info, commands, answers):
    """A process: "check" and "time" receive once, "die" ends it when the first bytes are there."""
    import torch

    engines, engine = receiver_of(folder, init_info)
    update = engines.NCCLWeightTransferUpdateInfo(**update_info)
    answers.put("joined")
    for command in iter(commands.get, "end"):
        if command == "die":
            half = len(update.names) // 2
            update = engines.NCCLWeightTransferUpdateInfo(
                update.names[:half], update.dtype_names[:half], update.shapes[:half])
            engine.packed = False
            engine.receive_weights(update)
            os.kill(os.getpid(), 9)
        engine.model.checks = command == "check"
        start = time.monotonic()
        engine.receive_weights(update)
        torch.cuda.synchronize()
        seconds = time.monotonic() - start
        free, total = torch.cuda.mem_get_info()
        answers.put((engine.model.found() if command == "check" else seconds, total - free))
    os._exit(0)


def send_as_vllm(folder, unique_id, update_info, init_info, commands, answers):
    """A process: vLLM's Python sender of the same shapes, packed or not."""
    import torch
    import vllm_transfer_files
    vllm_transfer_files.load(folder)
    from vllm.distributed.device_communicators.pynccl import PyNcclCommunicator
    from vllm.distributed.weight_transfer import packed_tensor
    tensors = [(name, torch.zeros(shape, dtype=getattr(torch, dtype), device="cuda"))
               for name, dtype, shape in zip(update_info["names"], update_info["dtype_names"],
                                             update_info["shapes"])]
    group = PyNcclCommunicator.from_unique_id_bytes(unique_id, 0, 2, 0)
    answers.put("joined")
    for _ in iter(commands.get, "end"):
        start = time.monotonic()
        if init_info["packed"]:
            packed_tensor.packed_nccl_broadcast_producer(
                iter(tensors), group, 0, lambda item: item[1],
                init_info["packed_buffer_size_bytes"], init_info["packed_num_buffers"])
        else:
            for _, tensor in tensors:
                group.broadcast(tensor, src=0, stream=torch.cuda.current_stream())
        torch.cuda.synchronize()
        answers.put(time.monotonic() - start)
    os._exit(0)


class Child:
    def __init__(self, target, *arguments):
        context = multiprocessing.get_context("spawn")
        self.commands, self.answers = context.Queue(), context.Queue()
        self.process = context.Process(target=target,
                                       args=(*arguments, self.commands, self.answers))
        self.process.start()

    def tell(self, command):
        self.commands.put(command)

    def answer(self):
        return self.answers.get(timeout=300)

    def end(self):
        self.tell("end")
        self.process.join(timeout=60)


def new_unique_id():
    import ctypes
    library = ctypes.CDLL("libnccl.so.2")
    unique_id = (ctypes.c_byte * 128)()
    if library.ncclGetUniqueId(ctypes.byref(unique_id)) != 0:
        sys.exit("ncclGetUniqueId failed")
    return bytes(unique_id)


class VllmPair:
    """vLLM's sender and vLLM's receiver, with the same shapes and form."""

    def __init__(self, options, sender):
        unique_id = new_unique_id()
        init_info = sender.init_info | {"nccl_unique_id_b64": base64.b64encode(unique_id).decode()}
        self.receiver = Child(receive, options.files, init_info, sender.update_info)
        self.sender = Child(send_as_vllm, options.files, unique_id, sender.update_info, init_info)

    def joined(self):
        return (self.receiver.answer(), self.sender.answer()) == ("joined", "joined")

    def update(self):
        """Its seconds."""
        self.receiver.tell("time")
        self.sender.tell("go")
        seconds = self.sender.answer()
        self.receiver.answer()
        return seconds

    def end(self):
        self.receiver.end()
        self.sender.end()


def check(options):
    failed = False
    forms = {"unpacked": ("unpacked", MIB), "1": ("packed", MIB), "64": ("packed", 64 * MIB),
             "1024": ("packed", 1024 * MIB)}
    cases = [(shape, *forms[form]) for shape in options.shapes for form in options.forms]
    sender = None
    for shape, form, buffer_size in cases:
        if sender is not None and sender.shape == shape:
            sender.next_engine(form, buffer_size)
        else:
            if sender is not None:
                sender.end()
            sender = Sender(options.sender, shape, form, buffer_size)
        receiver = Child(receive, options.files, sender.init_info, sender.update_info)
        pair = VllmPair(options, sender)
        assert (sender.line(), receiver.answer()) == ("joined", "joined") and pair.joined()
        receiver.tell("check")
        sender.say("go")
        said = sender.line()
        found, _ = receiver.answer()
        equal = found == sender.checksums and said.startswith("sent ")
        pair.update()
        seconds, theirs = [], []
        for _ in range(NUM_TIMED):
            receiver.tell("time")
            sender.say("go")
            seconds.append(float(sender.line().split()[1]))
            receiver.answer()
            theirs.append(pair.update())
        ratio = statistics.median(seconds) / statistics.median(theirs)
        failed |= not equal or ratio > 1.2
        print(f"{shape} {form} {buffer_size // MIB} MiB: {len(found)} tensors, checksums "
              f"{'equal' if equal else 'DIFFER'}; {statistics.median(seconds) * 1e3:.1f} ms, "
              f"vLLM's sender {statistics.median(theirs) * 1e3:.1f} ms, ratio {ratio:.2f}",
              flush=True)
        pair.end()
        receiver.end()
    sender.end()
    return failed


def faults(options):
    deadline = 3.0
    sender = Sender(options.sender, options.shapes[0], "unpacked", MIB, int(deadline * 1e3))
    receiver = Child(receive, options.files, sender.init_info, sender.update_info)
    assert (sender.line(), receiver.answer()) == ("joined", "joined")
    receiver.tell("die")
    start = time.monotonic()
    sender.say("go")
    said = sender.line()
    seconds = time.monotonic() - start
    receiver.process.join(timeout=60)
    print(f"receiver killed: {said} ({seconds:.2f} s)", flush=True)
    failed = not said.startswith("failed") or seconds > deadline + 1
    sender.next_engine("unpacked", MIB)
    second = Child(receive, options.files, sender.init_info, sender.update_info)
    assert (sender.line(), second.answer()) == ("joined", "joined")
    second.tell("check")
    sender.say("go")
    said = sender.line()
    found, _ = second.answer()
    print(f"next receiver: {said}, checksums "
          f"{'equal' if found == sender.checksums else 'DIFFER'}", flush=True)
    second.end()
    sender.end()
    return failed or found != sender.checksums


def leak(options):
    sender = Sender(options.sender, options.shapes[0], "packed", 64 * MIB)
    receiver = Child(receive, options.files, sender.init_info, sender.update_info)
    assert (sender.line(), receiver.answer()) == ("joined", "joined")
    used = []
    for _ in range(200):
        receiver.tell("time")
        sender.say("go")
        assert sender.line().startswith("sent ")
        used.append(receiver.answer()[1])
    grown = (used[-1] - used[4]) / MIB
    print(f"200 updates: the GPU's used memory grew by {grown:.1f} MiB after the fifth", flush=True)
    receiver.end()
    sender.end()
    return grown >= 64


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--sender", required=True)
    parser.add_argument("--files", required=True)
    parser.add_argument("--shapes", nargs="+", default=["0.6b", "4b"])
    parser.add_argument("--forms", nargs="+", default=["unpacked", "1", "64", "1024"],
                        help="unpacked, or MiB of a packed buffer: 1, 64, 1024")
    parser.add_argument("what", choices=["check", "faults", "leak"])
    options = parser.parse_args()
    sys.exit(1 if {"check": check, "faults": faults, "leak": leak}[options.what](options) else 0)


if __name__ == "__main__":
    main()
