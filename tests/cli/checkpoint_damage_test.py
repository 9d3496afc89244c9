"""Checkpoints that are damaged in every way: pace train --resume skips each with one line and
ends in the weights of a run that nothing happened to."""

import json
import os
import pathlib
import random
import re
import shutil
import struct
import subprocess
import tempfile
import unittest

import pace_process

# A network of random weights that learns from the length penalty alone.
SMALL = ["batch.num_groups=3", "batch.group_size=4", "supply.threshold=3",
         "task.max_numbers=4", "generation.max_tokens=12", "prefix.min_tokens=2",
         "admission.min_observations=4", "cluster.slots=24", "cluster.train_seconds=0.05",
         "engine.slots=24", "engine.kv_mib=4", "train.learning_rate=1e-2",
         "train.overlong_buffer=8", "task.held_out_problems=4", "evaluation.num_responses=2",
         "run.evaluate_every=0"]
SHAPE = ["model.num_layers=1", "model.hidden=16", "model.num_heads=2", "model.num_kv_heads=1",
         "model.head_dim=8", "model.ffn=24"]
# Checkpoints of a run; all but the oldest are damaged at once, each in its own way.
STEPS = 16

NONSENSE = [b"", b"{}", b"[]", b"null", b"\x00\xff\n", b"{\"format\":1}", b"[" * 100000,
            b"{\"group\":1e999}\n", b"{\"step\":-1}", b"9" * 5000]


def crc32c_table():
    table = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
        table.append(crc)
    return table


CRC_TABLE = crc32c_table()


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = CRC_TABLE[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


def list_line(key, name, data):
    return json.dumps({key: name, "num_bytes": len(data), "crc32c": crc32c(data)},
                      separators=(",", ":")) + "\n"


def relist(folder, *changed, without=()):
    """Makes files.json fit again, as one who wants to deceive would."""
    lines = []
    for line in (folder / "files.json").read_text().splitlines()[:-1]:
        name = json.loads(line)["name"]
        if name in changed:
            line = list_line("name", name, (folder / name).read_bytes())[:-1]
        if name not in without:
            lines.append(line + "\n")
    text = "".join(lines)
    (folder / "files.json").write_text(text + list_line("list", "files.json", text.encode()))


def flip(path, part):
    """Flips a bit at this part of the file, 0 to 1; an empty one grows."""
    data = bytearray(path.read_bytes()) or bytearray(b"\n\n")
    at = min(int(part * len(data)), len(data) - 1)
    data[at] ^= 1 << (at % 8)
    path.write_bytes(data)


def truncate(path, part):
    data = path.read_bytes() or b"\n\n"
    path.write_bytes(data[:min(int(part * len(data)), len(data) - 1)])


def replace_with(path, make):
    path.unlink()
    make(path)


def damages_of(name, chance):
    """(what, damage(folder, the checkpoint before)) for one file."""
    yield "deleted", lambda folder, _: (folder / name).unlink()
    yield "a folder", lambda folder, _: replace_with(folder / name, lambda path: path.mkdir())
    yield "a pipe", lambda folder, _: replace_with(folder / name, os.mkfifo)
    yield "swapped", lambda folder, before: shutil.copy(before / name, folder / name)
    for part in (0, 1, chance.random(), chance.random()):
        yield f"a bit at {part}", lambda folder, _, part=part: flip(folder / name, part)
    for part in (0.5, 1):
        yield f"cut at {part}", lambda folder, _, part=part: truncate(folder / name, part)


def nonsense_in(name, text):
    def damage(folder, _):
        (folder / name).write_bytes(text)
        if name != "files.json":
            relist(folder, name)
    return damage


def records_of(path):
    """The groups of groups.bin, as bytes."""
    data = path.read_bytes()
    at = 16
    records = []
    while True:
        (length,) = struct.unpack_from("<Q", data, at)
        at += 8
        if length == 0:
            return records
        records.append(bytearray(data[at:at + length]))
        at += length


def edited_groups(change):
    """Groups that read well but do not fit the other parts."""
    def damage(folder, _):
        path = folder / "groups.bin"
        records = records_of(path)
        change(records)
        data = path.read_bytes()[:16]
        for record in records:
            data += struct.pack("<Q", len(record)) + record
        data += struct.pack("<QQ", 0, len(records))
        path.write_bytes(data + struct.pack("<I", crc32c(data)))
        relist(folder, "groups.bin")
    return damage


def edited(name, change):
    """A part that reads well but does not fit the others."""
    def damage(folder, _):
        path = folder / name
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        change(rows)
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        relist(folder, name)
    return damage


def whole_folder_damages():
    def unlisted(folder, _):
        relist(folder, without=("model.safetensors",))

    def extra(folder, _):
        (folder / "model.safetensors.index.json").write_text("{}")

    def emptied(folder, _):
        for path in folder.iterdir():
            path.unlink()

    def line_lost(folder, _):
        lines = (folder / "files.json").read_text().splitlines(keepends=True)
        (folder / "files.json").write_text("".join(lines[1:]))

    def other_shape(folder, _):
        config = json.loads((folder / "config.json").read_text())
        config["hidden_size"] *= 2
        (folder / "config.json").write_text(json.dumps(config))
        relist(folder, "config.json")

    def list_of(folder, before):
        shutil.copy(before / "files.json", folder / "files.json")

    yield "weights not listed", unlisted
    yield "an index beside the weights", extra
    yield "empty", emptied
    yield "a line lost", line_lost
    yield "config of another shape", other_shape
    yield "the list of another", list_of
    yield "a step too far", edited("run.json", lambda rows: rows[0].update(step=999))
    yield "served too new", edited("run.json", lambda rows: rows[0].update(served=999))
    for key in ("record_sizes", "totals", "step_totals", "parts", "rescoring"):
        yield f"no {key}", edited("run.json", lambda rows, key=key: rows[0].pop(key))
    yield "a group twice", edited_groups(lambda groups: groups.append(groups[0]))
    yield "a group lost", edited_groups(lambda groups: groups.pop())
    yield "half a group", edited_groups(lambda groups: groups[0].__delitem__(slice(40, None)))
    yield "another prompt", edited_groups(
        lambda groups: struct.pack_into("<q", groups[0], 8, 10**15))
    yield "not saving", edited(
        "coordinator.json", lambda rows: rows[0]["coordinator"].update(checkpointing=False))
    yield "an unknown key", edited("coordinator.json", lambda rows: rows[0].update(colour=1))


class CheckpointDamageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        model = cls.folder / "model"
        made = pace_process.run("sft", "tiny", *SMALL, *SHAPE, "sft.num_steps=1", "--fresh",
                                "--out", model, cwd=cls.folder)
        assert made.returncode == 0, made.stderr
        cls.whole = cls.folder / "whole"
        trained = pace_process.run(
            "train", "tiny", *SMALL, f"policy.model={model}", f"run.num_steps={STEPS}",
            "run.checkpoint_every=1", "checkpoint.keep=0", "--driver", "lab", "--out", cls.whole,
            cwd=cls.folder)
        assert trained.returncode == 0, trained.stderr

    def resume(self, name, damages):
        """Resumes a copy of the run whose newest checkpoints got these damages."""
        run = self.folder / name
        shutil.copytree(self.whole, run)
        saved = sorted((run / "checkpoints").iterdir())
        for folder, (_, damage) in zip(reversed(saved), damages):
            damage(folder, sorted((self.whole / "checkpoints").iterdir())[saved.index(folder) - 1])
        done = subprocess.run([str(pace_process.BINARY), "train", "--resume", str(run)],
                              capture_output=True, text=True,
                              timeout=pace_process.PATIENCE, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        notes = [line for line in done.stderr.splitlines() if "skipped checkpoint" in line]
        last = f"checkpoints/step-{STEPS:06d}"
        for part in ("model.safetensors", "optimizer.safetensors"):
            self.assertEqual((run / last / part).read_bytes(),
                             (self.whole / last / part).read_bytes(), part)
        self.assertEqual((run / "metrics.jsonl").read_bytes(),
                         (self.whole / "metrics.jsonl").read_bytes())
        shutil.rmtree(run)
        return notes

    def assert_all_skipped(self, damages):
        for begin in range(0, len(damages), STEPS - 1):
            batch = damages[begin:begin + STEPS - 1]
            notes = self.resume(f"damaged-{begin}", batch)
            self.assertEqual(len(notes), len(batch), [what for what, _ in batch][len(notes):])
            for i, ((what, _), note) in enumerate(zip(batch, notes)):
                self.assertRegex(note, rf"skipped checkpoint \S+/step-{STEPS - i:06d}: \S", what)

    def test_a_damaged_file_is_noticed_and_its_checkpoint_skipped(self):
        chance = random.Random(1)
        newest = self.whole / "checkpoints" / f"step-{STEPS:06d}"
        names = sorted(path.name for path in newest.iterdir())
        self.assertIn("optimizer.safetensors", names)
        damages = []
        for name in names:
            same = len({(folder / name).read_bytes()
                        for folder in (self.whole / "checkpoints").iterdir()}) == 1
            damages += [(f"{name}: {what}", damage) for what, damage in damages_of(name, chance)
                        if not (same and what == "swapped")]
        self.assert_all_skipped(damages)

    def test_parts_that_do_not_fit_are_refused_even_where_sums_do(self):
        damages = list(whole_folder_damages())
        for name in ("run.json", "coordinator.json", "groups.bin", "in_flight.bin", "files.json"):
            damages += [(f"{name}: {text[:20]}", nonsense_in(name, text)) for text in NONSENSE]
        for name in ("model.safetensors", "optimizer.safetensors", "config.json"):
            damages += [(f"{name}: {text[:20]}", nonsense_in(name, text))
                        for text in (b"", b"\xff" * 64, b"{}")]
        self.assert_all_skipped(damages)

    def test_what_does_no_harm_is_let_be(self):
        def note(folder, _):
            (folder / "notes.txt").write_text("tried twice")

        def half_written(folder, _):
            (folder.parent / ".partial-step-000099").mkdir()

        for what, damage in (("a text beside it", note), ("a checkpoint begun", half_written)):
            self.assertEqual(self.resume("harmless", [(what, damage)]), [], what)

    def assert_refused(self, name, damage, expected):
        run = self.folder / name
        shutil.copytree(self.whole, run)
        for folder in (run / "checkpoints").iterdir():
            damage(folder, None)
        done = subprocess.run([str(pace_process.BINARY), "train", "--resume", str(run)],
                              capture_output=True, text=True,
                              timeout=pace_process.PATIENCE, check=False)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertTrue(re.search(f"^pace: .*{expected}", done.stderr, re.MULTILINE), done.stderr)

    def test_no_whole_checkpoint_is_one_clear_line(self):
        self.assert_refused("none", lambda folder, _: flip(folder / "model.safetensors", 0.7),
                            "holds no whole checkpoint")

    def test_workers_without_an_engine_are_refused(self):
        def change(rows):
            workers = rows[0]["coordinator"]["workers"]
            workers.append({**workers[0], "id": len(workers), "num_running": 0})
        self.assert_refused("workers", edited("coordinator.json", change), "workers, the run has")


if __name__ == "__main__":
    unittest.main()
