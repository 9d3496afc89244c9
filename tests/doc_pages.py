"""The pages for readers, and the code in them, for the tests that check pages.

Code is what stands between backticks, in fenced blocks and in indented blocks.
"""

import itertools
import pathlib
import re
import shlex

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
_INDENTED = re.compile(r"(?:(?<=\n\n)|\A)(?: {4}[^\n]*\n?)+")
_SPAN = re.compile(r"`([^`]+)`")
_SHELL = {"", "sh", "console", "bash"}
# A redirection or a pipe ends the words of a command.
_END = re.compile(r"^(?:[|<>&;]|\d?>)")


def pages(tree):
    """Every page that a reader is sent to, generated ones included."""
    tree = pathlib.Path(tree)
    names = [tree / "README.md", tree / "CONTRIBUTING.md", tree / "SECURITY.md"]
    names += sorted(tree.glob("docs/*.md")) + sorted(tree.glob("models/*/README.md"))
    names += sorted(tree.glob("results/README.md")) + sorted(tree.glob("experiments/*.md"))
    return [name for name in names if name.exists()]


def prose(text):
    """The page without its code blocks."""
    return _INDENTED.sub("\n", _FENCE.sub("", text))


def spans(text):
    """What stands between backticks, a line break inside being a space."""
    for paragraph in re.split(r"\n\s*\n", prose(text)):
        # A table's rows and a list's points are paragraphs of their own.
        for part in re.split(r"\n(?=\s*(?:\||[-*] |\d+\. ))", paragraph):
            for span in _SPAN.findall(part):
                yield " ".join(span.split())


def blocks(text, language):
    return [block for found, block in _FENCE.findall(text) if found == language]


def shell_lines(text):
    """Lines of the blocks that hold commands, continued lines joined."""
    blocks = [block for language, block in _FENCE.findall(text) if language in _SHELL]
    blocks += _INDENTED.findall(_FENCE.sub("", text))
    for block in blocks:
        for line in block.replace("\\\n", " ").splitlines():
            yield line.strip().removeprefix("$ ")


def pace_commands(text):
    """Each call of pace on a page, as the words after `pace`."""
    for line in itertools.chain(shell_lines(text), spans(text)):
        for part in re.split(r"\s[|;&]+\s", line):
            if re.match(r"(?:build/)?pace(?:\s|$)", part):
                yield words_of(part)[1:]


def words_of(line):
    """The words of a command up to a comment or a redirection."""
    try:
        words = shlex.split(line, comments=True)
    except ValueError:
        words = line.split()
    return list(itertools.takewhile(lambda word: not _END.match(word), words))


def expand(word):
    """A shell's braces: a/{b,c} is a/b and a/c."""
    match = re.search(r"\{([^{}]*)\}", word)
    if not match:
        return [word]
    return [whole for choice in match[1].split(",")
            for whole in expand(word[:match.start()] + choice.strip() + word[match.end():])]


def slug(heading):
    """The anchor that GitHub gives a heading."""
    bare = re.sub(r"[`*]|\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[^\w\- ]", "", bare.strip().lower()).replace(" ", "-")


def anchors(text):
    return {slug(heading) for heading in re.findall(r"^#+ (.*)$", _FENCE.sub("", text),
                                                    re.MULTILINE)}
