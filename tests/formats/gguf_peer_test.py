"""Our GGUF reader beside the Python package `gguf`: the same floats, bit for bit.

PACE_GGUF_FILE may name a real model, which is then compared as well.
"""

import os
import pathlib
import sys
import tempfile
import unittest

import peer

REASON = peer.missing("gguf", "numpy")
if not REASON:
    import gguf
    import numpy

_SUPPORTED = ["F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1"]


@unittest.skipIf(REASON, REASON)
class GgufPeerTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def compare(self, path):
        """Every tensor of a file, as the package and as we dequantise it."""
        out = self.folder / "floats"
        lines = peer.run("dequantize", path, out)
        floats = numpy.fromfile(out, "float32")
        tensors = gguf.GGUFReader(path).tensors
        self.assertEqual(len(lines), len(tensors))
        at = 0
        for line, tensor in zip(lines, tensors, strict=True):
            expected = gguf.dequantize(tensor.data, tensor.tensor_type).astype("float32").ravel()
            self.assertEqual(line, f"{tensor.name} {tensor.tensor_type.name} {expected.size}")
            found = floats[at:at + expected.size]
            at += expected.size
            both_nan = numpy.isnan(found) & numpy.isnan(expected)
            same = (found.view("uint32") == expected.view("uint32")) | both_nan
            self.assertTrue(same.all(), f"{tensor.name}: {(~same).sum()} values differ")
        self.assertEqual(at, floats.size)
        print(f"{path}: {len(tensors)} tensors, {at} values equal", file=sys.stderr)

    def write(self, path, tensors):
        writer = gguf.GGUFWriter(path, "llama")
        writer.add_uint32("llama.block_count", 1)
        writer.add_array("list", ["a", "b"])
        writer.add_bool("flag", True)
        for name, raw, kind in tensors:
            writer.add_tensor(name, raw, raw_dtype=kind)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()

    def test_quantised_floats_agree(self):
        rng = numpy.random.default_rng(1)
        tensors = []
        for name in _SUPPORTED:
            kind = gguf.GGMLQuantizationType[name]
            for scale in (1e-6, 1.0, 1e4):
                values = (rng.standard_normal((7, 96)) * scale).astype("float32")
                tensors.append((f"{name}.{scale}", gguf.quantize(values, kind), kind))
        path = self.folder / "model.gguf"
        self.write(path, tensors)
        self.compare(path)

    def test_blocks_of_random_bytes_agree(self):
        rng = numpy.random.default_rng(2)
        tensors = []
        for name in _SUPPORTED:
            kind = gguf.GGMLQuantizationType[name]
            elements, size = gguf.GGML_QUANT_SIZES[kind]
            row = 96 // elements * size
            raw = rng.integers(0, 256, (400, row), dtype="uint8")
            if name in ("F32", "F16"):
                raw = raw.view("float32" if name == "F32" else "float16")
                kind = None
            tensors.append((name, raw, kind))
        path = self.folder / "model.gguf"
        self.write(path, tensors)
        with numpy.errstate(all="ignore"):
            self.compare(path)

    @unittest.skipUnless("PACE_GGUF_FILE" in os.environ, "1 case skipped: PACE_GGUF_FILE is unset")
    def test_a_real_model_agrees(self):
        self.compare(os.environ["PACE_GGUF_FILE"])


if __name__ == "__main__":
    unittest.main()
