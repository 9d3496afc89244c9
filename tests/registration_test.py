"""Every test and every fuzz target that exists is also built and run."""

import pathlib
import re
import tempfile
import unittest

import source_tree

# file name ending -> the CMake function that must name the file
_SOURCES = {"_test.cc": "pace_test", "_fuzz.cc": "pace_fuzzer"}


def words_in(lists, *functions):
    """The words in all calls of these functions; none where there is no such file."""
    text = lists.read_text() if lists.is_file() else ""
    return {word for function in functions
            for call in source_tree.cmake_calls(text, function) for word in call}


def lists_of(tree, path):
    """The CMakeLists.txt that must name a source: of its folder, or of the next one above that
    has any. With it the name that the source has there."""
    folder = path.parent
    while len(folder.parts) > 2 and not (tree / folder / "CMakeLists.txt").is_file():
        folder = folder.parent
    return folder / "CMakeLists.txt", path.relative_to(folder).as_posix()


def problems_of(tree):
    problems = []
    listed = words_in(tree / "src/CMakeLists.txt", "set", "list")
    joined = words_in(tree / "tests/CMakeLists.txt", "foreach")
    for path in source_tree.files(tree):
        if path.parts[0] == "src" and path.suffix == ".cc":
            if path.parts[1] not in listed:
                problems.append(f"{path}: src/CMakeLists.txt does not list {path.parts[1]}")
            functions = [function for ending, function in _SOURCES.items()
                         if path.name.endswith(ending)]
            # Any other source must be part of some target.
            functions = functions or ["pace_library", "pace_binary", "pace_test", "pace_fuzzer"]
            lists, name = lists_of(tree, path)
            if name not in words_in(tree / lists, *functions):
                problems.append(f"{path}: no {' or '.join(functions)} in {lists} names it")
        if path.parts[0] == "tests" and path.name.endswith(("_test.py", "_test.cc")):
            function = "pace_test" if path.suffix == ".cc" else "pace_python_test"
            lists = path.parent / "CMakeLists.txt"
            if path.name not in words_in(tree / lists, function):
                problems.append(f"{path}: no {function} in {lists} names it")
            if len(path.parts) > 2 and path.parts[1] not in joined:
                problems.append(f"{path}: tests/CMakeLists.txt does not add {path.parts[1]}")
    named = {}
    for path in source_tree.files(tree):
        if path.name != "CMakeLists.txt" or path.parts[0] not in ("src", "tests"):
            continue
        for function in ("pace_test", "pace_python_test", "pace_fuzzer"):
            for call in source_tree.cmake_calls((tree / path).read_text(), function):
                named.setdefault(call[0], []).append(path)
    problems += [f"{name}: a test of {' and of '.join(map(str, paths))}"
                 for name, paths in named.items() if len(paths) > 1]
    return problems


class RegistrationTest(unittest.TestCase):
    def test_every_source_and_every_test_is_registered(self):
        problems = problems_of(source_tree.root())
        if problems:
            self.fail("\n" + "\n".join(problems))

    def test_there_are_tests_to_find(self):
        names = [path.name for path in source_tree.files(source_tree.root())]
        self.assertTrue(any(re.search(r"_test\.cc$", name) for name in names))


class RegistrationCheckCanFailTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.tree = pathlib.Path(scratch.name)
        self.write("src/CMakeLists.txt", "set(folders core pool)")
        self.write("src/core/CMakeLists.txt",
                   "pace_library(core SRCS a.cc)\n"
                   "pace_test(t\n  SRCS a_test.cc b_test.cc\n  DEPS x)\n"
                   "pace_fuzzer(f SRCS a_fuzz.cc)\n")
        self.write("src/core/a.cc")
        self.write("src/core/a_test.cc")
        self.write("src/core/a_fuzz.cc")
        self.write("tests/CMakeLists.txt",
                   "pace_python_test(x SCRIPT x_test.py)\nforeach(folder report)")
        self.write("tests/x_test.py")

    def write(self, path, text=""):
        source_tree.write(self.tree, path, text)

    def assert_one_problem(self, path):
        problems = problems_of(self.tree)
        self.assertEqual(len(problems), 1, problems)
        self.assertIn(path, problems[0])

    def test_a_registered_tree_has_no_problem(self):
        self.assertEqual(problems_of(self.tree), [])

    def test_an_unlisted_test_is_found(self):
        self.write("src/core/forgotten_test.cc")
        self.assert_one_problem("src/core/forgotten_test.cc")

    def test_a_test_that_only_a_comment_names_is_found(self):
        self.write("src/core/CMakeLists.txt",
                   "pace_library(core SRCS a.cc)\npace_test(t SRCS # a_test.cc\n b_test.cc)\n"
                   "pace_fuzzer(f SRCS a_fuzz.cc)\n")
        self.assert_one_problem("src/core/a_test.cc")

    def test_a_fuzz_target_registered_as_a_test_is_found(self):
        self.write("src/core/b_fuzz.cc")
        self.write("src/pool/CMakeLists.txt", "pace_test(other SRCS b_fuzz.cc)")
        self.assert_one_problem("src/core/b_fuzz.cc")

    def test_a_source_outside_every_target_is_found(self):
        self.write("src/core/orphan.cc")
        self.assert_one_problem("src/core/orphan.cc")

    def test_a_folder_without_lists_of_its_own_is_named_above(self):
        self.write("src/core/deep/b.cc")
        self.assert_one_problem("src/core/deep/b.cc")
        self.write("src/core/CMakeLists.txt",
                   "pace_library(core SRCS a.cc deep/b.cc)\n"
                   "pace_test(t SRCS a_test.cc)\npace_fuzzer(f SRCS a_fuzz.cc)\n")
        self.assertEqual(problems_of(self.tree), [])

    def test_a_name_of_two_tests_is_found(self):
        self.write("src/pool/CMakeLists.txt", "pace_test(t SRCS c_test.cc)")
        self.write("src/pool/c_test.cc")
        self.assert_one_problem("src/core/CMakeLists.txt and of src/pool/CMakeLists.txt")

    def test_a_folder_outside_the_build_is_found(self):
        self.write("src/extra/CMakeLists.txt", "pace_library(extra SRCS a.cc)")
        self.write("src/extra/a.cc")
        self.assert_one_problem("src/extra/a.cc")

    def test_an_unlisted_python_test_is_found(self):
        self.write("tests/report/CMakeLists.txt", "")
        self.write("tests/report/y_test.py")
        self.assert_one_problem("tests/report/y_test.py")

    def test_an_unlisted_test_of_the_whole_is_found(self):
        self.write("tests/report/CMakeLists.txt", "pace_test(other SRCS other_test.cc)")
        self.write("tests/report/y_test.cc")
        self.assert_one_problem("tests/report/y_test.cc")

    def test_a_tests_folder_that_is_not_added_is_found(self):
        self.write("tests/other/CMakeLists.txt", "pace_python_test(y SCRIPT y_test.py)")
        self.write("tests/other/y_test.py")
        self.assert_one_problem("tests/other/y_test.py")


if __name__ == "__main__":
    unittest.main()
