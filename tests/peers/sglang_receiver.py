"""Sends weights over a channel for SGLang to a process group of PyTorch, on one GPU, and measures it.

    python sglang_receiver.py --sender build-cuda/weight_sender check
    python sglang_receiver.py --sender build-cuda/weight_sender faults

The receiver does what SGLang 0.5.23 does (init_custom_process_group, FlattenedTensorBucket), with
PyTorch alone. Two processes on one GPU need NCCL 2.30 in both, and NCCL_MULTI_RANK_GPU_ENABLE=1;
LD_PRELOAD=libnccl.so.2 of a folder makes both use that one.

`check`: for every shape and buffer all checksums must agree, also those of a second channel to the
same process; the time of some updates is printed. `faults`: the receiver is killed in an update; the
sender must be free within its deadline and one second, and serve the next receiver.
"""

import argparse
import datetime
import json
import os
import statistics
import subprocess
import sys
import time

import nccl_receiver

MIB = 1 << 20
NUM_TIMED = 5
TIMEOUT = datetime.timedelta(seconds=60)


class Sender:
    """weight_sender as a child."""

    def __init__(self, path, shape, buffer_size, deadline_ms=60_000):
        self.process = subprocess.Popen(
            [path, "buckets", shape, str(buffer_size), str(deadline_ms)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.checksums = json.loads(self.line())
        self.read_invitation()

    def line(self):
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"weight_sender ended with {self.process.wait()}")
        return line.rstrip("\n")

    def say(self, word):
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()

    def read_invitation(self):
        self.group = json.loads(self.line())
        self.buckets = json.loads(self.line())

    def next_engine(self):
        self.say("engine")
        self.read_invitation()

    def end(self):
        self.process.stdin.close()
        self.process.wait(timeout=60)


def group_of(call):
    """As SGLang's init_custom_process_group."""
    from torch.distributed import distributed_c10d
    url = f"tcp://{call['master_address']}:{call['master_port']}"
    store, rank, size = next(distributed_c10d.rendezvous(
        url, call["rank_offset"], call["world_size"], timeout=TIMEOUT))
    store.set_timeout(TIMEOUT)
    store = distributed_c10d.PrefixStore(call["group_name"], store)
    group, _ = distributed_c10d._new_process_group_helper(
        size, rank, [], distributed_c10d.Backend(call["backend"]), store,
        group_name=call["group_name"], backend_options=None, timeout=TIMEOUT)
    distributed_c10d._world.pg_group_ranks[group] = {i: i for i in range(size)}
    return group


def tensors_of(group, bucket):
    """One broadcast, as SGLang's FlattenedTensorBucket takes it apart."""
    import torch
    places = []
    offset = 0
    for name, dtype, shape in zip(bucket["names"], bucket["dtypes"], bucket["shapes"], strict=True):
        dtype = getattr(torch, dtype)
        assert offset % dtype.itemsize == 0, name
        size = torch.Size(shape).numel() * dtype.itemsize
        places.append((name, dtype, shape, offset, offset + size))
        offset += size
    flat = torch.empty(offset, dtype=torch.uint8, device="cuda")
    torch.distributed.broadcast(flat, src=0, group=group)
    return [(name, flat[first:end].view(dtype).reshape(shape))
            for name, dtype, shape, first, end in places]


def receive(commands, answers):
    """A process. ("join", body) makes a group; ("check" or "time", bodies) receives an update;
    ("die", bodies) ends it when the first bucket is there."""
    import torch

    torch.cuda.init()
    # A server has a group of its own.
    torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0,
                                         world_size=1)
    model = nccl_receiver.Model()
    group = None
    for command, given in iter(commands.get, "end"):
        if command == "join":
            group = group_of(given)
            answers.put("joined")
            continue
        model.checks = command == "check"
        model.sums = {}
        start = time.monotonic()
        for bucket in given:
            model.load_weights(tensors_of(group, bucket))
            if command == "die":
                torch.cuda.synchronize()
                os.kill(os.getpid(), 9)
        torch.cuda.synchronize()
        seconds = time.monotonic() - start
        answers.put(model.found() if command == "check" else seconds)
    os._exit(0)


def join(sender, receiver):
    receiver.tell(("join", sender.group))
    assert receiver.answer() == "joined"


def update(sender, receiver, command):
    """What the receiver answers, and the sender's seconds."""
    receiver.tell((command, sender.buckets))
    sender.say("go")
    said = sender.line()
    if not said.startswith("sent "):
        sys.exit(f"the sender: {said}")
    return receiver.answer(), float(said.split()[1])


def check(options):
    failed = False
    for shape in options.shapes:
        for mib in options.mib:
            sender = Sender(options.sender, shape, mib * MIB)
            receiver = nccl_receiver.Child(receive)
            equal = True
            for channel in range(2):
                if channel > 0:
                    sender.next_engine()
                join(sender, receiver)
                found, _ = update(sender, receiver, "check")
                equal &= found == sender.checksums
            seconds = [update(sender, receiver, "time")[1] for _ in range(NUM_TIMED)]
            failed |= not equal
            print(f"{shape} {mib} MiB: {len(found)} tensors in {len(sender.buckets)} buckets, "
                  f"checksums {'equal' if equal else 'DIFFER'}; "
                  f"{statistics.median(seconds) * 1e3:.1f} ms", flush=True)
            receiver.end()
            sender.end()
    return failed


def faults(options):
    deadline = 3.0
    sender = Sender(options.sender, options.shapes[0], MIB, int(deadline * 1e3))
    receiver = nccl_receiver.Child(receive)
    join(sender, receiver)
    # The first update takes the time of the join, too.
    update(sender, receiver, "time")
    receiver.tell(("die", sender.buckets))
    start = time.monotonic()
    sender.say("go")
    said = sender.line()
    seconds = time.monotonic() - start
    receiver.process.join(timeout=60)
    print(f"receiver killed: {said} ({seconds:.2f} s)", flush=True)
    failed = not said.startswith("failed") or seconds > deadline + 1
    sender.next_engine()
    second = nccl_receiver.Child(receive)
    join(sender, second)
    found, _ = update(sender, second, "check")
    equal = found == sender.checksums
    print(f"next receiver: checksums {'equal' if equal else 'DIFFER'}", flush=True)
    second.end()
    sender.end()
    return failed or not equal


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--sender", required=True)
    parser.add_argument("--shapes", nargs="+", default=["0.6b"])
    parser.add_argument("--mib", nargs="+", type=int, default=[64, 256])
    parser.add_argument("what", choices=["check", "faults"])
    options = parser.parse_args()
    sys.exit(1 if {"check": check, "faults": faults}[options.what](options) else 0)


if __name__ == "__main__":
    main()
