"""The examples in headers compile.

An example is a block of a header's comment that is indented by three spaces and holds a line
that ends in a semicolon. Each becomes the body of a function, all of them in one source, which
the compiler checks. `{ ... }`, or `...` at the end of a line, stands for statements left out. What an example assumes (variables, functions) are the parameters of its
function: header_examples.json lists them per header, with further headers to include.

Headers that reach LibTorch take too long to parse: of their examples only the names are looked
up, in the sources.
"""

import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

import source_tree

_TABLE = pathlib.Path(__file__).resolve().with_name("header_examples.json")
_INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<((?:torch|ATen|c10|cuda)[^>]*)>)', re.M)
_INDENTED = re.compile(r"^\s*//   (.*)$")


def examples_of(text):
    """(line number, code) of every example in a header."""
    found, block, first = [], [], 0
    for number, line in enumerate(text.splitlines() + [""], 1):
        match = _INDENTED.match(line)
        if match or (block and line.strip() == "//"):
            first = first if block else number
            block.append(match.group(1) if match else "")
        elif block:
            if any(re.sub(r"//.*", "", code).rstrip().endswith(";") for code in block):
                found.append((first, "\n".join(block)))
            block = []
    return found


def without_ellipses(code):
    return re.sub(r" \.\.\.$", " {}", re.sub(r"\{ ?\.\.\. ?\}", "{}", code), flags=re.M)


def reaches_torch(src, header, known):
    """Whether a header includes one of LibTorch's, directly or through others of ours."""
    if header not in known:
        known[header] = False
        path = src / header
        includes = _INCLUDE.findall(path.read_text()) if path.is_file() else []
        known[header] = any(theirs or reaches_torch(src, ours, known) for ours, theirs in includes)
    return known[header]


def collect(tree):
    """header -> its examples, apart for headers without and with LibTorch."""
    plain, torch, known = {}, {}, {}
    for path in source_tree.files(tree):
        if (path.parts[0] != "src" or path.suffix not in (".h", ".cuh")
                or path.name.startswith("test_")):
            continue
        header = path.relative_to("src").as_posix()
        examples = examples_of((tree / path).read_text())
        if examples:
            with_torch = path.suffix == ".cuh" or reaches_torch(tree / "src", header, known)
            (torch if with_torch else plain)[header] = examples
    return plain, torch


def source_of(plain, table):
    """One source with every example in a function of its own."""
    lines = ["// Made by tests/header_examples_test.py."]
    includes = {include for header in plain
                for include in [header, *table.get(header, {}).get("include", [])]}
    lines += [f"#include <{name}>" if "." not in name or name.startswith("gtest/")
              else f'#include "{name}"' for name in sorted(includes)]
    lines += ['#include "core/status.h"', "namespace pace {", "namespace {"]
    for number, (header, examples) in enumerate(sorted(plain.items())):
        given = table.get(header, {}).get("given", "")
        for line, code in examples:
            lines += [f'#line {line} "src/{header}"',
                      f"[[maybe_unused]] Status Example{number}At{line}({given}) {{",
                      f'#line {line} "src/{header}"', without_ellipses(code), "return Status::Ok();", "}"]
    return "\n".join(lines + ["}", "}", ""])


def problems_of_table(plain, table):
    return [f"{header}: has no example that compiles: remove it from header_examples.json"
            for header in sorted(set(table) - set(plain))]


def compile_errors(source, src):
    """What the compiler says of a source; empty when it compiles."""
    with tempfile.TemporaryDirectory() as scratch:
        path = pathlib.Path(scratch) / "examples.cc"
        path.write_text(source)
        done = subprocess.run(
            [os.environ.get("CXX", "c++"), "-std=c++20", "-fsyntax-only", "-w", f"-I{src}", str(path)],
            capture_output=True, text=True, check=False)
        return done.stderr if done.returncode else ""


def unknown_names(tree, torch):
    """Names of ours, such as MakeLoss or TrainerOptions, that no source holds any more."""
    problems, words = [], set()
    for path in source_tree.files(tree):
        if path.parts[0] == "src" and path.suffix in (".h", ".cc", ".cu", ".cuh"):
            code = re.sub(r"//.*", "", (tree / path).read_text())
            words.update(re.findall(r"\w+", code))
    for header, examples in sorted(torch.items()):
        for line, code in examples:
            code = re.sub(r'//.*|"[^"]*"', "", code)
            problems += [f"src/{header}:{line}: {name}: no source has this name"
                         for name in sorted(set(re.findall(r"\b[A-Z]\w+", code)) - words)]
    return problems


@unittest.skipUnless("PACE_BINARY_DIR" in os.environ, "compiles for a minute: ctest runs it")
class HeaderExamplesTest(unittest.TestCase):
    def setUp(self):
        self.tree = source_tree.root()
        self.plain, self.torch = collect(self.tree)
        self.table = json.loads(_TABLE.read_text())

    def test_examples_compile(self):
        self.assertGreater(len(self.plain), 30)
        errors = compile_errors(source_of(self.plain, self.table), self.tree / "src")
        if errors:
            self.fail("\n" + errors)

    def test_the_names_in_examples_with_tensors_exist(self):
        self.assertEqual(unknown_names(self.tree, self.torch), [])

    def test_the_table_names_headers_with_examples(self):
        self.assertEqual(problems_of_table(self.plain, self.table), [])


class HeaderExamplesCheckCanFailTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.tree = pathlib.Path(scratch.name)
        self.write("core/status.h", "namespace pace { struct Status { static Status Ok(); }; }\n")

    def write(self, path, text):
        source_tree.write(self.tree, f"src/{path}", text)

    def errors(self, example, given=""):
        self.write("pool/pool.h", f"// A pool.\n//\n{example}\n//\n// Thread-safety: none.\n"
                   "namespace pace { struct Pool { int Draw(int n); }; }\n")
        plain, _ = collect(self.tree)
        return compile_errors(source_of(plain, {"pool/pool.h": {"given": given}}),
                              self.tree / "src")

    def test_an_example_that_fits_its_header_passes(self):
        self.assertEqual(self.errors("//   Pool pool;\n//   int n = pool.Draw(3);  // 3"), "")

    def test_a_call_that_the_header_no_longer_has_is_found_with_its_line(self):
        errors = self.errors("//   Pool pool;\n//   int n = pool.Take(3);")
        self.assertIn("src/pool/pool.h:4", errors)

    def test_a_variable_that_nobody_declares_is_found(self):
        example = "//   int n = pool.Draw(k);"
        self.assertIn("'k'", self.errors(example, "Pool& pool").replace("\u2018", "'")
                      .replace("\u2019", "'"))
        self.assertEqual(self.errors(example, "Pool& pool, int k"), "")

    def test_a_formula_or_a_table_is_no_example(self):
        self.assertEqual(examples_of("//   a = b + c\n//   b   what is added"), [])

    def test_an_example_inside_a_class_is_found(self):
        self.assertEqual(examples_of("struct A {\n  //   A a;\n  int b;\n};\n"), [(2, "A a;")])

    def test_a_name_that_is_gone_is_found_in_a_header_with_tensors(self):
        self.write("train/a.h", "#include <ATen/ATen.h>\n//   Make(Gone(1));\nvoid Make(int);\n")
        plain, torch = collect(self.tree)
        self.assertEqual(list(plain), [])
        self.assertIn("Gone", unknown_names(self.tree, torch)[0])

    def test_a_row_without_an_example_is_found(self):
        self.assertEqual(len(problems_of_table({}, {"pool/pool.h": {}})), 1)


if __name__ == "__main__":
    unittest.main()
