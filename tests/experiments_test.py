"""experiments/README.md lists every experiment, with the numbers of its file."""

import re
import unittest

import source_tree

_ROW = re.compile(r"^\| `(\w+)` \| (\d+) × (\d+) \|", re.MULTILINE)


def arms_and_seeds(text):
    """Of an experiment file: the number of arms and of seeds."""
    arms = re.search(r"^arms:\n((?:[ #].*\n)+)", text, re.MULTILINE).group(1)
    seeds = re.search(r"^seeds: (\d+)", text, re.MULTILINE).group(1)
    return len(re.findall(r"^  - ", arms, re.MULTILINE)), int(seeds)


def problems(readme, files):
    """`files`: {name: text} of the experiments."""
    rows = {name: (int(arms), int(seeds)) for name, arms, seeds in _ROW.findall(readme)}
    for name in sorted(set(files) - set(rows)):
        yield f"experiments/README.md: no row for {name}"
    for name in sorted(set(rows) - set(files)):
        yield f"experiments/README.md: {name} is no file of experiments/"
    for name in sorted(set(rows) & set(files)):
        if rows[name] != arms_and_seeds(files[name]):
            yield f"experiments/README.md: {name} has {arms_and_seeds(files[name])} arms and seeds"


class ExperimentsTest(unittest.TestCase):

    def test_the_page_lists_every_experiment(self):
        tree = source_tree.root() / "experiments"
        files = {path.stem: path.read_text(encoding="utf-8") for path in tree.glob("*.yaml")}
        self.assertEqual(list(problems((tree / "README.md").read_text(encoding="utf-8"), files)), [])

    def test_a_missing_row_a_row_too_many_and_a_wrong_number_are_found(self):
        text = "seeds: 2\narms:\n  - sync\n  - async\nclaims:\n  - {}\n"
        found = list(problems("| `old` | 1 × 1 |\n| `one` | 2 × 3 |\n", {"one": text, "new": text}))
        self.assertEqual(found, ["experiments/README.md: no row for new",
                                 "experiments/README.md: old is no file of experiments/",
                                 "experiments/README.md: one has (2, 2) arms and seeds"])


if __name__ == "__main__":
    unittest.main()
