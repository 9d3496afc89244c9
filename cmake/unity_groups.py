"""Chooses which source files are compiled together (PaceUnity.cmake).

    unity_groups.py TARGETS OUT

TARGETS has a line per target: its name, its folder and its files, separated by tabs.
OUT receives CMake code that sets UNITY_GROUP for each file.

Files of one group share a translation unit, so no name of an unnamed namespace may
occur in another file of its group: it could clash with, or be taken for, that file's own.
"""

import pathlib
import re
import sys

# Beyond these a group takes longer than the parsing that it saves is worth.
MAX_FILES = 10
MAX_LINES = 2200

_NOISE = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'', re.S)
_UNNAMED = re.compile(r"\bnamespace\s*\{")
# Not members of objects, nor of what is named in front of them.
_WORD = re.compile(r"(?<![\w.>])(?<!\w::)[A-Za-z_]\w*")
# What a base class, an alias or a suite of tests names is declared elsewhere.
_BASES = re.compile(r"(\b(?:struct|class)\s+\w+(?:\s+final)?)\s*:(?!:)[^{;]*")
_NAMED = re.compile(
    r"(\busing\s+\w+\s*=)[^;]*|\busing\s+enum\b[^;]*|\bINSTANTIATE_TEST_SUITE_P\([^;]*")
# What files repeat without harm: GoogleTest's macros, and the functions of records, which are
# overloaded for types.
_SHARED = {"TEST", "TEST_F", "TEST_P", "TYPED_TEST", "INSTANTIATE_TEST_SUITE_P", "JsonKeys", "ReadJson"}
# Functions, types and constants of ours; other words are parameters, members, aliases of
# namespaces or the language's.
_OURS = re.compile(r"k?[A-Z]\w*(?<!_)$")


def code_of(text):
    return _NOISE.sub(" ", text)


def unnamed_names(code):
    """Words that unnamed namespaces declare: those in front of a bracket, a brace, a
    semicolon or an equals sign, outside of bodies."""
    names = set()
    for start in _UNNAMED.finditer(code):
        depth, outside = 1, []
        for character in code[start.end():]:
            if character == "{":
                depth += 1
                outside.append(" {" if depth == 2 else "")
            elif character == "}":
                depth -= 1
                if depth == 0:
                    break
            elif depth == 1:
                outside.append(character)
        text = _NAMED.sub(r"\1", _BASES.sub(r"\1", "".join(outside)))
        names |= set(re.findall(r"(?<![\w:.<>])(\w+)\s*(?=[({;=\[])", text))
        names |= set(re.findall(r"\b(?:struct|class|enum|using)\s+(?:class\s+)?(\w+)", text))
    return {name for name in names - _SHARED if _OURS.match(name)}


class SourceFile:
    def __init__(self, path):
        text = path.read_text(encoding="utf-8")
        code = code_of(text)
        self.num_lines = text.count("\n")
        self.unnamed = unnamed_names(code)
        self.words = set(_WORD.findall(code))

    def clashes(self, other):
        return not (self.unnamed.isdisjoint(other.words) and other.unnamed.isdisjoint(self.words))


def groups_of(files):
    """Indices of `files` in groups, each file in the first group that has room for it. Files that
    clash with many choose first."""
    def num_clashes(index):
        return sum(files[index].clashes(other) for other in files if other is not files[index])

    groups = []
    for index in sorted(range(len(files)), key=num_clashes, reverse=True):
        file = files[index]
        for group in groups:
            lines = sum(files[i].num_lines for i in group) + file.num_lines
            if len(group) < MAX_FILES and lines <= MAX_LINES and not any(
                    files[i].clashes(file) for i in group):
                group.append(index)
                break
        else:
            groups.append([index])
    return sorted(sorted(group) for group in groups)


def main():
    targets, out = map(pathlib.Path, sys.argv[1:])
    lines = []
    for line in targets.read_text().splitlines():
        target, folder, *names = line.split("\t")
        paths = [pathlib.Path(folder, name) for name in names]
        files = [SourceFile(path) for path in paths]
        for number, group in enumerate(groups_of(files)):
            members = " ".join(f'"{paths[i]}"' for i in group)
            lines.append(f'set_source_files_properties({members} DIRECTORY "{folder}" '
                         f'PROPERTIES UNITY_GROUP {target}{number})')
    text = "\n".join(lines) + "\n"
    if not out.exists() or out.read_text() != text:
        out.write_text(text)


if __name__ == "__main__":
    main()
