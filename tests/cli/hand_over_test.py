"""pace becomes pace-learn for the commands that need LibTorch, and loads nothing of it for others."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import pace_process

LEARN = pace_process.BINARY.parent / "pace-learn"


def run(program, *arguments):
    return subprocess.run([str(program), *arguments], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=pace_process.PATIENCE, check=False)


class HandOverTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def test_both_programs_list_the_same_commands(self):
        here = run(pace_process.BINARY, "--help")
        self.assertEqual(here.returncode, 0, here.stderr)
        self.assertEqual(here.stdout, run(LEARN, "--help").stdout)
        self.assertEqual(run(pace_process.BINARY, "--version").stdout,
                         run(LEARN, "--version").stdout)

    def test_a_command_of_the_other_program_is_carried_out_there(self):
        for arguments in (["train", "--help"], ["data", "show", "tiny", "-n", "1"],
                          ["train", "no-such-preset"], ["train", "tiny", "--no-such-flag"]):
            here, there = run(pace_process.BINARY, *arguments), run(LEARN, *arguments)
            self.assertEqual((here.returncode, here.stdout, here.stderr),
                             (there.returncode, there.stdout, there.stderr), arguments)

    def test_a_link_to_pace_finds_the_other_program(self):
        link = self.folder / "link"
        link.symlink_to(pace_process.BINARY)
        self.assertEqual(run(link, "train", "--help").returncode, 0)

    def test_a_copy_without_the_other_program_says_so_in_one_line(self):
        shutil.copy(pace_process.BINARY, self.folder / "pace")
        self.assertEqual(run(self.folder / "pace", "config", "tiny").returncode, 0)
        alone = run(self.folder / "pace", "train", "tiny")
        self.assertEqual(alone.returncode, 2)
        self.assertEqual(alone.stdout, "")
        self.assertRegex(alone.stderr, r"^pace: train: cannot start .*/pace-learn: No such file or "
                                       r"directory \(it belongs beside pace; make build makes both\)\n$")

    @unittest.skipUnless(shutil.which("ldd"), "no ldd here")
    def test_pace_itself_loads_no_libtorch(self):
        loaded = subprocess.run(["ldd", str(pace_process.BINARY)], capture_output=True, text=True,
                                env={**os.environ, "LC_ALL": "C"}, check=True).stdout
        self.assertIn("libstdc++", loaded)
        self.assertNotIn("libtorch", loaded)


if __name__ == "__main__":
    unittest.main()
