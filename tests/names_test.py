"""Every type has a name of its own.

Two types of one name in one namespace are undefined behaviour as soon as one program holds
both: the linker keeps one std::vector of that name for the two of them. Compilers see one file
at a time and say nothing. Unnamed namespaces are apart by nature.
"""

import collections
import pathlib
import re
import tempfile
import unittest

import source_tree

_SUFFIXES = {".h", ".cc", ".cuh", ".cu"}
_OPENED = re.compile(r"^(?:inline )?namespace ?([\w:]*) \{")
_CLOSED = re.compile(r"^\}  // namespace")
_TYPE = re.compile(r"^(?:struct|class|enum class|enum|union) (?:alignas\([^)]*\) )?"
                   r"([A-Z]\w*)(?: final)?(?: :[^:;{][^;{]*)? \{")


def types_of(text):
    """Qualified names of the types that a file defines outside of unnamed namespaces."""
    namespaces = []
    for line in text.splitlines():
        if opened := _OPENED.match(line):
            namespaces.append(opened[1])
        elif _CLOSED.match(line):
            namespaces.pop()
        elif (found := _TYPE.match(line)) and "" not in namespaces:
            yield "::".join([*namespaces, found[1]])


def problems_of(tree):
    places = collections.defaultdict(list)
    for path in source_tree.files(tree):
        if path.parts[0] == "src" and path.suffix in _SUFFIXES:
            for name in types_of((pathlib.Path(tree) / path).read_text(encoding="utf-8")):
                places[name].append(str(path))
    return [f"{name} is defined in {' and in '.join(paths)}: rename one"
            for name, paths in sorted(places.items()) if len(paths) > 1]


class NamesTest(unittest.TestCase):
    def test_every_type_has_a_name_of_its_own(self):
        problems = problems_of(source_tree.root())
        if problems:
            self.fail("\n" + "\n".join(problems))

    def test_types_are_found(self):
        names = set()
        for path in source_tree.files(source_tree.root()):
            if path.parts[0] == "src" and path.suffix == ".h":
                names.update(types_of((source_tree.root() / path).read_text(encoding="utf-8")))
        for name in ("pace::Settings", "pace::Decoder", "pace::WeightSet", "pace::cuda::Product"):
            self.assertIn(name, names)


class NamesCheckCanFailTest(unittest.TestCase):
    def problems(self, *texts):
        with tempfile.TemporaryDirectory() as scratch:
            for number, text in enumerate(texts):
                source_tree.write(scratch, f"src/pool/{number}.h", text)
            return problems_of(scratch)

    def test_one_name_twice_is_found(self):
        one = "namespace pace {\nstruct A {\n};\n}  // namespace pace\n"
        other = "namespace pace {\nclass A final : public B {\n};\n}  // namespace pace\n"
        self.assertEqual(self.problems(one, other), [
            "pace::A is defined in src/pool/0.h and in src/pool/1.h: rename one"])

    def test_other_namespaces_and_declarations_are_fine(self):
        one = "namespace pace {\nclass A {\n};\nnamespace {\nstruct B {\n};\n}  // namespace\n"
        one += "}  // namespace pace\n"
        other = "namespace pace {\nclass A;\nnamespace {\nstruct B {\n};\n}  // namespace\n"
        other += "struct A::Impl {\n};\n}  // namespace pace\n"
        third = "namespace pace::x {\nenum class A {\n};\n}  // namespace pace::x\n"
        self.assertEqual(self.problems(one, other, third), [])


if __name__ == "__main__":
    unittest.main()
