"""The cuts of packed weights against vLLM's own code, both its sender's and its receiver's.

vLLM's files run as they are, on CPU tensors, with a group that records what would be broadcast.
"""

import contextlib
import os
import pathlib
import random
import subprocess
import unittest
from unittest import mock

import torch
from vllm.distributed.weight_transfer import packed_tensor

SENDER = pathlib.Path(os.environ["PACE_BINARY_DIR"]) / "weight_sender"
TYPES = [torch.float32, torch.bfloat16, torch.float16]


def our_cuts(sizes, buffer_size):
    done = subprocess.run([SENDER, "cuts", str(buffer_size)], input=" ".join(map(str, sizes)),
                          capture_output=True, text=True, check=True)
    return [int(line.split()[2]) for line in done.stdout.splitlines()]


class RecordingGroup:
    def __init__(self):
        self.sizes = []

    def broadcast(self, tensor, src, stream=None):
        assert src == 0 and tensor.dtype == torch.uint8
        self.sizes.append(tensor.numel())


class FakeStream:
    def synchronize(self):
        pass


@contextlib.contextmanager
def without_gpu():
    """vLLM's packing with streams that do nothing."""
    with mock.patch.object(packed_tensor, "_get_streams",
                           lambda device, count: [FakeStream()] * count), \
         mock.patch.object(torch.cuda, "stream", lambda stream: contextlib.nullcontext()), \
         mock.patch.object(torch.accelerator, "current_device_index", lambda: 0):
        yield


def their_cuts(shapes, types, buffer_size, num_buffers):
    """What the sender and the receiver of vLLM would broadcast."""
    tensors = [(str(i), torch.zeros(shape, dtype=dtype))
               for i, (shape, dtype) in enumerate(zip(shapes, types))]
    sent, received, loaded = RecordingGroup(), RecordingGroup(), []
    with without_gpu():
        packed_tensor.packed_nccl_broadcast_producer(
            iter(tensors), sent, 0, lambda item: item[1], buffer_size, num_buffers)
        packed_tensor.packed_nccl_broadcast_consumer(
            iter([(name, (list(tensor.shape), tensor.dtype)) for name, tensor in tensors]),
            received, 0, loaded.extend, buffer_size, num_buffers, device="cpu")
    assert [name for name, _ in loaded] == [name for name, _ in tensors]
    return sent.sizes, received.sizes


class PackedChunksTest(unittest.TestCase):
    def test_random_shapes_are_cut_as_vllm_cuts_them(self):
        choose = random.Random(7)
        for turn in range(150):
            shapes = [[choose.randint(1, 12) for _ in range(choose.randint(1, 3))]
                      for _ in range(choose.randint(0, 30))]
            # One type: vLLM cannot view a float32 that begins at an odd bfloat16.
            types = [choose.choice(TYPES)] * len(shapes)
            sizes = [torch.zeros(shape, dtype=dtype).nbytes for shape, dtype in zip(shapes, types)]
            # Also sizes that a sum of tensors meets exactly.
            some = sum(sizes[:choose.randint(0, len(sizes))])
            buffer_size = choose.choice([1, 100, 1000, 10 ** 9, max(1, some)])
            sent, received = their_cuts(shapes, types, buffer_size, choose.randint(1, 3))
            ours = our_cuts(sizes, buffer_size)
            self.assertEqual(ours, sent, (turn, sizes, buffer_size))
            self.assertEqual(ours, received, (turn, sizes, buffer_size))


if __name__ == "__main__":
    unittest.main()
