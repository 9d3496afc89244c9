"""Folders include only what the table in layers.json lets them include."""

import json
import pathlib
import re
import tempfile
import unittest

import source_tree

_TABLE = pathlib.Path(__file__).resolve().parent / "layers.json"
_QUOTED = re.compile(r'^\s*#\s*include\s*"([^"]+)"')
_TORCH = re.compile(r"^\s*#\s*include\s*[<\"](torch|ATen|c10|caffe2)/")
_TOP = ("bench", "conformance", "cli")


def load_table(text):
    """folder -> folders it may include (core and itself left out), and the torch folders."""
    rows = json.loads(text)["folders"]
    allowed = {}
    for folder, row in rows.items():
        names = set(row["may_include"]) | set(row.get("and_below", []))
        if "anything" in names:
            names = set(rows) - {folder}
        elif "below cli" in names:
            names = set(rows) - set(_TOP)
        allowed[folder] = names
    return allowed, {folder for folder, row in rows.items() if row.get("torch")}


def problems_of_and_below(text):
    """What a row adds must already lie below the folders it may include."""
    rows = json.loads(text)["folders"]

    def below(folder):
        direct = set(rows[folder]["may_include"]) & set(rows)
        return direct.union(*(below(name) for name in direct))

    return [f"{folder}: {name} is not below what it may include" for folder, row in rows.items()
            for name in sorted(set(row.get("and_below", [])) - below(folder))]


def problems_of_table(allowed, torch):
    problems = [f"{folder}: may include {name}, which has no row"
                for folder, names in allowed.items() for name in sorted(names - set(allowed))]
    problems += [f"{folder} has no LibTorch but may include {name}, which has"
                 for folder, names in allowed.items() if folder not in torch
                 for name in sorted(names & torch)]
    settled = set()
    while True:
        ready = {folder for folder, names in allowed.items()
                 if folder not in settled and names & set(allowed) <= settled}
        if not ready:
            break
        settled |= ready
    if settled != set(allowed):
        problems.append("a cycle among: " + ", ".join(sorted(set(allowed) - settled)))
    return problems


def problem_of_include(folder, line, allowed, torch):
    if _TORCH.match(line) and folder not in torch:
        return f"{folder} builds without LibTorch"
    quoted = _QUOTED.match(line)
    if not quoted:
        return None
    parts = quoted.group(1).split("/")
    if len(parts) < 2:
        return "write the folder too, as in \"core/status.h\""
    if parts[0] not in allowed:
        return f"{parts[0]} is no folder of the table"
    if parts[0] in allowed[folder] | {folder, "core"}:
        return None
    return f"{folder} may not include {parts[0]}"


def problems_of_sources(tree, allowed, torch):
    problems = [f"src/{folder}: has a row in tests/layers.json, but does not exist"
                for folder in sorted(allowed) if not (tree / "src" / folder).is_dir()]
    for path in source_tree.files(tree):
        if path.parts[0] != "src" or len(path.parts) < 3:
            continue
        folder = path.parts[1]
        if folder not in allowed:
            problems.append(f"{path}: folder {folder} has no row in tests/layers.json")
        elif path.suffix in (".h", ".cc", ".cu", ".cuh"):
            for number, line in enumerate((tree / path).read_text().splitlines(), 1):
                problem = problem_of_include(folder, line, allowed, torch)
                if problem:
                    problems.append(f"{path}:{number}: {line.strip()}: {problem}")
        elif path.name == "CMakeLists.txt":
            linked = set(re.findall(r"\bpace::([a-z]+)", (tree / path).read_text()))
            problems += [f"{path}: links pace::{name}: {folder} may not include {name}"
                         for name in sorted(linked - allowed[folder] - {folder, "core"})]
    return problems


class LayersTest(unittest.TestCase):
    def setUp(self):
        self.allowed, self.torch = load_table(_TABLE.read_text())

    def test_the_table_is_acyclic_and_keeps_libtorch_above(self):
        self.assertEqual(problems_of_table(self.allowed, self.torch), [])
        self.assertEqual(problems_of_and_below(_TABLE.read_text()), [])

    def test_the_sources_stay_inside_the_table(self):
        problems = problems_of_sources(source_tree.root(), self.allowed, self.torch)
        if problems:
            self.fail("\n" + "\n".join(problems))


class LayersCheckCanFailTest(unittest.TestCase):
    def setUp(self):
        self.allowed = {"core": set(), "pool": {"control"}, "control": set(), "model": {"pool"}}
        self.torch = {"model"}
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.tree = pathlib.Path(scratch.name)
        for folder in self.allowed:
            (self.tree / "src" / folder).mkdir(parents=True)

    def problems(self, path, text):
        source_tree.write(self.tree, path, text)
        return problems_of_sources(self.tree, self.allowed, self.torch)

    def test_a_cycle_is_found(self):
        self.allowed["control"] = {"pool"}
        self.assertIn("cycle", problems_of_table(self.allowed, self.torch)[0])

    def test_a_torch_folder_below_a_torch_free_one_is_found(self):
        self.allowed["pool"] = {"model"}
        self.allowed["model"] = set()
        self.assertIn("model", problems_of_table(self.allowed, self.torch)[0])

    def test_a_row_for_a_folder_that_does_not_exist_is_found(self):
        self.allowed["pool"] = {"pol"}
        self.assertIn("pol", problems_of_table(self.allowed, self.torch)[0])

    def test_an_addition_that_is_not_below_is_found(self):
        rows = {"a": {"may_include": ["b"], "and_below": ["c", "d"]}, "b": {"may_include": ["c"]},
                "c": {"may_include": []}, "d": {"may_include": []}}
        self.assertEqual(len(problems_of_and_below(json.dumps({"folders": rows}))), 1)

    def test_an_include_upwards_is_found_with_its_line(self):
        problems = self.problems("src/control/x.h", '#include <map>\n#include "pool/y.h"\n')
        self.assertEqual(len(problems), 1)
        self.assertIn("src/control/x.h:2", problems[0])

    def test_includes_of_core_and_of_the_own_folder_are_fine(self):
        text = '#include "core/a.h"\n#include "pool/b.h"\n#include "control/c.h"\n'
        self.assertEqual(self.problems("src/pool/x.cc", text), [])

    def test_an_include_without_a_folder_is_found(self):
        self.assertEqual(len(self.problems("src/pool/x.cc", '#include "b.h"\n')), 1)

    def test_libtorch_in_a_torch_free_folder_is_found(self):
        self.assertEqual(len(self.problems("src/pool/x.cc", "#include <ATen/ATen.h>\n")), 1)
        self.assertEqual(len(self.problems("src/model/x.cc", "#include <ATen/ATen.h>\n")), 1)

    def test_a_folder_without_a_row_is_found(self):
        self.assertEqual(len(self.problems("src/extra/x.cc", "")), 1)

    def test_a_row_without_a_folder_is_found(self):
        self.allowed["extra"] = set()
        self.assertEqual(len(self.problems("src/pool/x.cc", "")), 1)

    def test_linking_upwards_is_found(self):
        problems = self.problems("src/control/CMakeLists.txt", "pace_library(c DEPS pace::pool)")
        self.assertEqual(len(problems), 1)


if __name__ == "__main__":
    unittest.main()
