"""What README.md and docs/simulator.md show is what the program prints.

The command under a `$` is run and its table compared: words exactly, numbers
within a few per cent, because another processor may round a logarithm
differently and shift a run by an event.
"""

import re
import shlex
import tempfile
import unittest

import pace_process

TOLERANCE = 0.05


def console_blocks(text):
    for block in re.findall(r"```console\n(.*?)```", text, re.DOTALL):
        lines = block.splitlines()
        yield lines[0].removeprefix("$ "), lines[1:]


def same_cell(ours, theirs):
    try:
        a, b = float(ours), float(theirs)
    except ValueError:
        return ours == theirs
    return abs(a - b) <= TOLERANCE * max(abs(a), abs(b)) + 0.06


class ReadmeTest(unittest.TestCase):
    def test_the_commands_print_what_is_shown(self):
        blocks = []
        for document in ("README.md", "docs/simulator.md"):
            found = list(console_blocks((pace_process.SOURCE / document).read_text()))
            self.assertTrue(found, document)
            blocks += found
        for command, shown in blocks:
            with self.subTest(command), tempfile.TemporaryDirectory() as folder:
                words = shlex.split(command)
                self.assertEqual(words[0], "build/pace")
                done = pace_process.run(*words[1:], cwd=folder)
                self.assertEqual(done.returncode, 0, done.stderr)
                printed = done.stdout.splitlines()
                self.assertEqual(len(printed), len(shown))
                for ours, theirs in zip(printed, shown):
                    cells = list(zip(ours.split(), theirs.split(), strict=True))
                    self.assertTrue(all(same_cell(a, b) for a, b in cells), f"{ours}\n{theirs}")

    def test_figures_with_an_interval_stand_in_the_results(self):
        figure = re.compile(r"\d+(?:\.\d+)? ± \d+(?:\.\d+)?|\d\.\d+ \[[^\]]*\d\]")
        results = set(figure.findall((pace_process.SOURCE / "docs" / "results.md").read_text()))
        stated = figure.findall((pace_process.SOURCE / "README.md").read_text())
        self.assertTrue(stated)
        self.assertEqual(set(stated) - results, set())

    def test_every_linked_file_is_there(self):
        for document in ["README.md", *pace_process.SOURCE.glob("docs/*.md")]:
            path = pace_process.SOURCE / document
            words = re.sub(r"```.*?```|^ {4,}[^\n]*$", "", path.read_text(),
                           flags=re.DOTALL | re.MULTILINE)
            for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", words):
                if "://" not in target:
                    self.assertTrue((path.parent / target).exists(), f"{path.name}: {target}")


if __name__ == "__main__":
    unittest.main(verbosity=2)
