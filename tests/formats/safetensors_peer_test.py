"""Our safetensors beside the Python package: the same files, accepted alike.

Random files are written by the package and rewritten by us, byte for byte; and
headers are damaged at random, after which both must agree whether they read.
"""

import json
import pathlib
import random
import struct
import sys
import tempfile
import unittest

import peer

REASON = peer.missing("safetensors", "numpy")
if not REASON:
    import numpy
    import safetensors
    import safetensors.numpy

_DTYPES = ["bool", "uint8", "int8", "int16", "uint16", "float16", "int32", "uint32", "float32",
           "float64", "int64", "uint64", "complex64"]
_NAMES = ["a", "b.weight", "model.layers.10.x", "model.layers.9.x", "tab\tquote\"back\\slash",
          "ünïcode", "日本", "\x01\x1f\x7f", "", "Z", "line\nbreak", "\u2028", "/"]

# Pieces that damage a header in interesting ways.
_PIECES = [b"{", b"}", b"[", b"]", b",", b":", b'"', b"0", b"1", b"-", b"4", b"16", b".5", b"e1",
           b"null", b"true", b" ", b"\n", b"\\", b"\\u0041", b"\xff", b"\xc3\xa9", b"F32", b"BF16",
           b'"dtype"', b'"shape"', b'"data_offsets"', b'"__metadata__"', b"[0,16]", b'"a":']


def random_tensors(rng):
    tensors = {}
    for name in rng.sample(_NAMES, rng.randrange(0, 7)):
        shape = tuple(rng.randrange(0, 4) for _ in range(rng.randrange(0, 4)))
        size = int(numpy.prod(shape, dtype=int))
        dtype = numpy.dtype(rng.choice(_DTYPES))
        raw = rng.randbytes(size * dtype.itemsize)
        if dtype == bool:
            raw = bytes(byte & 1 for byte in raw)
        tensors[name] = numpy.frombuffer(raw, dtype).reshape(shape)
    return tensors


def damaged(rng, blob):
    """The file with a header that is damaged in one or two places."""
    size = struct.unpack("<Q", blob[:8])[0]
    header, data = bytearray(blob[8:8 + size]), blob[8 + size:]
    for _ in range(rng.randrange(1, 3)):
        at = rng.randrange(0, len(header) + 1)
        end = min(len(header), at + rng.randrange(0, 4))
        header[at:end] = rng.choice(_PIECES) if rng.random() < 0.7 else b""
    length = len(header) if rng.random() < 0.95 else rng.choice([0, 7, len(header) + 1, 1 << 40])
    return struct.pack("<Q", length) + bytes(header) + data


def known_difference(blob):
    """Whether the header holds what safetensors.h says we rule on differently: -0."""
    return b"-0" in blob


@unittest.skipIf(REASON, REASON)
class SafetensorsPeerTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def test_rewrites_what_the_package_writes_byte_for_byte(self):
        rng = random.Random(1)
        for case in range(300):
            tensors = random_tensors(rng)
            # One entry: the package writes several in the order of a hash table.
            metadata = rng.choice([None, {}, {rng.choice(_NAMES): rng.choice(_NAMES)}])
            if not tensors and metadata == {}:
                continue  # of this the package (0.8.0) makes a file that it cannot read
            source, copy = self.folder / "in.safetensors", self.folder / "out.safetensors"
            source.write_bytes(safetensors.numpy.save(tensors, metadata))
            peer.run("rewrite", source, copy)
            self.assertEqual(copy.read_bytes(), source.read_bytes(), case)

    def test_shards_hold_the_same_tensors_for_the_package(self):
        rng = random.Random(2)
        for case in range(20):
            tensors = random_tensors(rng)
            source, folder = self.folder / "in.safetensors", self.folder / f"shards{case}"
            source.write_bytes(safetensors.numpy.save(tensors))
            folder.mkdir()
            peer.run("shard", source, folder, 16)
            found = {}
            for shard in folder.glob("*.safetensors"):
                for name, value in safetensors.numpy.load_file(shard).items():
                    self.assertNotIn(name, found)
                    found[name] = (shard.name, value)
            self.assertEqual(set(found), set(tensors))
            for name, value in tensors.items():
                self.assertEqual(found[name][1].tobytes(), value.tobytes())
                self.assertEqual(found[name][1].shape, value.shape)
            index = folder / "model.safetensors.index.json"
            if index.exists():
                weight_map = json.loads(index.read_text(encoding="utf-8"))["weight_map"]
                self.assertEqual(weight_map, {name: shard for name, (shard, _) in found.items()})

    def test_accepts_exactly_what_the_package_accepts(self):
        rng = random.Random(3)
        whole = safetensors.numpy.save(
            {"a": numpy.zeros(4, "float32"), "b": numpy.zeros((2, 0), "int8")}, {"format": "pt"})
        blobs = [blob for blob in (damaged(rng, whole) for _ in range(4000))
                 if not known_difference(blob)]
        paths = []
        for number, blob in enumerate(blobs):
            paths.append(self.folder / f"{number}.safetensors")
            paths[-1].write_bytes(blob)
        verdicts = peer.run("accept", *paths)
        accepted = 0
        for path, blob, verdict in zip(paths, blobs, verdicts, strict=True):
            try:
                safetensors.deserialize(blob)
                expected = True
            except safetensors.SafetensorError:
                expected = False
            accepted += expected
            self.assertEqual(verdict == "ok", expected, f"{blob!r}: {verdict}")
            if not expected:
                self.assertTrue(verdict.startswith(str(path)), verdict)
        print(f"{len(blobs)} damaged headers, {accepted} of them accepted", file=sys.stderr)
        self.assertGreater(accepted, 20)


if __name__ == "__main__":
    unittest.main()
