"""Small safetensors files, whole and broken, and what the package `safetensors` makes of them."""

import json
import struct

import safetensors
import safetensors.torch
import torch

import golden_files

NAMES = {torch.bool: "bool", torch.uint8: "uint8", torch.int16: "int16", torch.int64: "int64",
         torch.float16: "float16", torch.bfloat16: "bfloat16", torch.float32: "float32",
         torch.float64: "float64"}


def raw(header, data=b"", length=None):
    body = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(body) if length is None else length) + body + data


def entry(dtype, shape, begin, end):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def good_files():
    yield "types", safetensors.torch.save({
        "flags": torch.tensor([True, False]), "bytes": torch.tensor([[0, 255]], dtype=torch.uint8),
        "short": torch.tensor([-32768, 7], dtype=torch.int16),
        "long": torch.tensor([-(2 ** 62), 5]), "half": torch.tensor([1.5, -0.25]).to(torch.float16),
        "brain": torch.tensor([3.0, -0.125]).to(torch.bfloat16),
        "single": torch.tensor([[0.1], [-2.5]]), "double": torch.tensor([1 / 3], dtype=torch.float64),
    }, metadata={"made by": "hand\n\u00e9"})
    yield "special", safetensors.torch.save({"values": torch.tensor(
        [float("nan"), float("inf"), -float("inf"), -0.0, 1e-45])})
    yield "shapes", safetensors.torch.save({
        "scalar": torch.tensor(2.0), "none": torch.zeros((0, 3)), "cube": torch.ones((2, 1, 2))})
    yield "no_tensors", raw({})
    yield "spaces_behind", raw(json.dumps({"a": entry("U8", [1], 0, 1)}).encode() + b"   ", b"\x07")


def broken_files():
    yield "empty", b""
    yield "cut_length", b"\x10\x00\x00"
    yield "length_beyond_the_file", raw({"a": entry("U8", [1], 0, 1)}, b"\x07", 9999)
    yield "huge_length", struct.pack("<Q", 2 ** 63 + 5) + b"{}"
    yield "not_json", raw(b"{not json", b"")
    yield "not_utf8", raw(b'{"\xff\xfe": 1}', b"")
    yield "a_list", raw(b"[1]", b"")
    yield "data_cut", raw({"a": entry("F32", [2], 0, 8)}, b"\0" * 7)
    yield "data_left_over", raw({"a": entry("U8", [1], 0, 1)}, b"\x07\x08")
    yield "size_differs", raw({"a": entry("F32", [3], 0, 8)}, b"\0" * 8)
    yield "ends_before_it_begins", raw({"a": entry("U8", [1], 1, 0)}, b"\x07")
    yield "overlap", raw({"a": entry("U8", [2], 0, 2), "b": entry("U8", [2], 1, 3)}, b"\0" * 3)
    yield "hole", raw({"a": entry("U8", [1], 0, 1), "b": entry("U8", [1], 2, 3)}, b"\0" * 3)
    yield "negative_shape", raw({"a": entry("U8", [-1], 0, 1)}, b"\x07")
    yield "unknown_type", raw({"a": entry("F33", [1], 0, 1)}, b"\x07")
    yield "no_type", raw({"a": {"shape": [1], "data_offsets": [0, 1]}}, b"\x07")
    yield "overflowing_shape", raw({"a": entry("U8", [2 ** 40, 2 ** 40], 0, 1)}, b"\x07")


def values_of(tensor):
    flat = tensor.flatten()
    if tensor.is_floating_point():
        return [repr(value) for value in flat.to(torch.float64).tolist()]
    return [int(value) for value in flat]


def read(path):
    try:
        with safetensors.safe_open(path, "pt") as file:
            names = file.keys()
            tensors = {name: file.get_tensor(name) for name in names}
            metadata = file.metadata()
    except Exception as error:  # the package raises several kinds
        return {"ok": False, "error": str(error)[:200].replace(str(path.parent), "")}
    return {"ok": True, "metadata": metadata or None, "tensors": {
        name: {"dtype": NAMES[t.dtype], "shape": list(t.shape), "values": values_of(t)}
        for name, t in sorted(tensors.items())}}


def write(folder):
    target = folder / "safetensors"
    target.mkdir(parents=True, exist_ok=True)
    cases = []
    for name, data in [*good_files(), *broken_files()]:
        path = target / f"{name}.safetensors"
        path.write_bytes(data)
        cases.append({"file": path.name, **read(path)})
    golden_files.write_cases(
        target / "expected.json", "What the package reads from each file, or that it refuses it.",
        ["safetensors", "torch"], files=cases)
