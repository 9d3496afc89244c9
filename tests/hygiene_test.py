"""Small rules that a reader relies on everywhere in the repository.

No path of one machine, no open end without an issue, no large file, header guards that
follow the path, files within the size budget, no crowded folder, few headers that hardly
say anything, no folder whose name says nothing. Run by hand, it also prints the files nearest to the budget.
"""

import collections
import pathlib
import re
import tempfile
import unittest

import source_tree

# Written in pieces so that this file passes its own check.
_PLACES = "|".join(["work", "root", "home"])
_MACHINE_PATH = re.compile(rf"(?<![\w./$}}-])/(?:{_PLACES})(?![\w-])")
_OPEN_ENDS = "|".join(["TO" + "DO", "FIX" + "ME", "X" * 3, "HA" + "CK"])
_OPEN_END = re.compile(rf"\b(?:{_OPEN_ENDS})\b(?!\(#\d+\))")
_EMPTY_NAME = re.compile(r"^(?:.*_)?(?:utils?|common|helpers?|managers?|misc)$")
_PICTURES = {".png", ".jpg", ".svg", ".webp", ".gif"}
_MAX_BYTES = 1 << 20
_MAX_MODEL = 4 << 20
# suffix -> (budget of review, limit of this test), in lines
_BUDGETS = {".h": (150, 180), ".cc": (600, 650)}
_MAX_FILES_OF_FOLDER = 60
_SHORT_HEADER = 30  # lines
_MAX_SHORT_HEADERS = 24


def problems_of_text(path, text):
    for number, line in enumerate(text.splitlines(), 1):
        if _MACHINE_PATH.search(line):
            yield f"{path}:{number}: the path of one machine: {line.strip()}"
        if _OPEN_END.search(line):
            yield f"{path}:{number}: name the issue, as in (#12): {line.strip()}"


def problems_of_header(path, text):
    words = "_".join(path.with_suffix("").parts[1:]).upper().replace("-", "_")
    guard = f"PACE_{words}_H_"
    if f"#ifndef {guard}\n#define {guard}\n" not in text:
        yield f"{path}: the header guard must be {guard}"
    elif not text.rstrip().endswith(f"#endif  // {guard}"):
        yield f"{path}: must end with '#endif  // {guard}'"


def problems_of_file(tree, path):
    for name in [*path.parts[:-1], path.stem]:
        if _EMPTY_NAME.match(name.lower()):
            yield f"{path}: '{name}' does not say what is inside"
    size = (tree / path).stat().st_size
    picture = path.parts[0] == "docs" and path.suffix in _PICTURES
    model = path.parts[0] == "models" and path.suffix == ".safetensors" and size <= _MAX_MODEL
    if size > _MAX_BYTES and not picture and not model:
        yield (f"{path}: {size} bytes: at most {_MAX_BYTES}, but for pictures in docs and the "
               "model that is built in")
    try:
        text = (tree / path).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return
    yield from problems_of_text(path, text)
    if path.parts[0] != "src":
        return
    if path.suffix == ".h":
        yield from problems_of_header(path, text)
    num_lines = text.count("\n")
    if path.suffix in _BUDGETS and num_lines > _BUDGETS[path.suffix][1]:
        yield f"{path}: {num_lines} lines: at most {_BUDGETS[path.suffix][1]}, split it"


def problems_of_folders(paths):
    counts = collections.Counter(path.parent for path in paths if path.parts[0] == "src")
    for folder, count in sorted(counts.items()):
        if count > _MAX_FILES_OF_FOLDER:
            yield f"{folder}: {count} files: at most {_MAX_FILES_OF_FOLDER}, give one idea a folder"


def problems_of_short_headers(tree, paths):
    short = [str(path) for path in paths if path.parts[0] == "src" and path.suffix == ".h"
             and (tree / path).read_text().count("\n") < _SHORT_HEADER]
    if len(short) > _MAX_SHORT_HEADERS:
        yield (f"{len(short)} headers have fewer than {_SHORT_HEADER} lines: at most "
               f"{_MAX_SHORT_HEADERS}, join some: {', '.join(sorted(short))}")


def problems_of(tree):
    paths = list(source_tree.files(tree))
    return [*(problem for path in paths for problem in problems_of_file(tree, path)),
            *problems_of_folders(paths), *problems_of_short_headers(tree, paths)]


def over_review_budget(tree):
    """The files that a review should ask about, the longest first."""
    found = []
    for path in source_tree.files(tree):
        if path.parts[0] == "src" and path.suffix in _BUDGETS:
            num_lines = (tree / path).read_text().count("\n")
            if num_lines > _BUDGETS[path.suffix][0]:
                found.append((num_lines, str(path)))
    return sorted(found, reverse=True)


class HygieneTest(unittest.TestCase):
    def test_the_repository_keeps_the_small_rules(self):
        problems = problems_of(source_tree.root())
        for num_lines, path in over_review_budget(source_tree.root()):
            print(f"over the review budget: {path}: {num_lines} lines")
        if problems:
            self.fail("\n" + "\n".join(problems))


class HygieneCheckCanFailTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.tree = pathlib.Path(scratch.name)

    def problems(self, path, text):
        source_tree.write(self.tree, path, text)
        return problems_of(self.tree)

    def assert_found(self, path, text):
        self.assertEqual(len(self.problems(path, text)), 1, (path, text))

    def assert_fine(self, path, text):
        self.assertEqual(self.problems(path, text), [], (path, text))

    def test_a_path_of_one_machine_is_found(self):
        for name in ("work", "root", "home"):
            self.assert_found("README.md", f"see `/{name}/x`\n")
        self.assert_found("README.md", "in /" + "work\n")

    def test_a_relative_path_of_the_same_name_is_fine(self):
        self.assert_fine("README.md", "docs/home/x.md, $HOME/" "root/y, /workload, /root-cause\n")

    def test_a_nameless_open_end_is_found_and_a_named_one_is_fine(self):
        self.assert_found("a.txt", "TO" + "DO: later\n")
        self.assert_fine("a.txt", "TO" + "DO(#12): later\n")

    def test_a_large_file_is_found_unless_it_is_a_picture_in_docs(self):
        self.assert_found("data.bin", "x" * (_MAX_BYTES + 1))
        (self.tree / "data.bin").unlink()
        self.assert_fine("docs/run.png", "x" * (_MAX_BYTES + 1))

    def test_a_header_guard_that_does_not_follow_the_path_is_found(self):
        good = "#ifndef PACE_POOL_A_H_\n#define PACE_POOL_A_H_\n#endif  // PACE_POOL_A_H_\n"
        self.assert_fine("src/pool/a.h", good)
        self.assert_found("src/pool/a.h", good.replace("POOL", "CORE"))
        self.assert_found("src/pool/a.h", good.replace("  //", " //"))

    def test_a_source_over_the_limit_is_found(self):
        self.assert_fine("src/pool/a.cc", "\n" * 650)
        self.assertEqual(len(over_review_budget(self.tree)), 1)
        self.assert_found("src/pool/a.cc", "\n" * 651)

    def test_a_crowded_folder_is_found(self):
        for number in range(60):
            source_tree.write(self.tree, f"src/pool/a{number}.cc", "")
        self.assert_fine("src/pool/inner/b.cc", "")
        self.assert_found("src/pool/b.cc", "")

    def test_many_short_headers_are_found(self):
        def write(number, num_lines):
            guard = f"PACE_POOL{number}_A_H_"
            text = f"#ifndef {guard}\n#define {guard}\n{{}}#endif  // {guard}\n"
            source_tree.write(self.tree, f"src/pool{number}/a.h",
                              text.format("\n" * (num_lines - 3)))

        for number in range(24):
            write(number, 29)
        write(24, 30)
        self.assertEqual(problems_of(self.tree), [])
        write(24, 29)
        self.assertEqual(len(problems_of(self.tree)), 1)

    def test_a_name_that_says_nothing_is_found(self):
        self.assert_found("src/utils/a.cc", "")
        (self.tree / "src/utils/a.cc").unlink()
        self.assert_found("src/pool/pool_manager.cc", "")
        (self.tree / "src/pool/pool_manager.cc").unlink()
        self.assert_fine("src/pool/commonality.cc", "")


if __name__ == "__main__":
    unittest.main()
