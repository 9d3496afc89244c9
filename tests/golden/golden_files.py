"""How golden files are written: strict JSON in ASCII, one case per line."""

import importlib.metadata
import json
import math
import platform

COMMAND = "python tests/golden/make.py"


def versions(*packages):
    found = {name: importlib.metadata.version(name) for name in packages}
    return {"python": platform.python_version(), **found}


def plain(value):
    """Non-finite numbers as texts, as the readers expect them; whole reals as they are."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return value


def line(value):
    return json.dumps(plain(value), allow_nan=False)


def write_cases(path, about, packages, **lists):
    """An object with the command, the packages' versions and lists of cases."""
    parts = [f'"about": {line(about)}', f'"made_by": {line(COMMAND)}',
             f'"versions": {line(versions(*packages))}']
    for name, cases in lists.items():
        parts.append(f'"{name}": [\n' + ",\n".join(line(case) for case in cases) + "\n]")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{" + ",\n".join(parts) + "}\n", encoding="ascii")


def write_lines(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(line(row) + "\n" for row in rows), encoding="ascii")
