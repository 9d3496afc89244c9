"""Commands on a verl installation.

    python -m pace.verl check [CONFIG...]     what fits and what is missing, a line each
    python -m pace.verl sim CONFIG...         simulate the configuration
    python -m pace.verl config                the folder with pace.yaml, for --config-dir
    python -m pace.verl run OVERRIDES...      verl on the CPU with replicas of `pace serve`

CONFIG is a YAML or JSON file of verl, or key=value as on its command line.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import sys

from .. import _core
from . import check, configuration, simulation

_FOLDER = pathlib.Path(__file__).parent / "config"
_COLUMNS = (("seconds a step", "mean_step"),)
_MEANS = (("waiting", "staleness/waiting/mean"), ("lag", "staleness/lag/mean"),
          ("occupancy", "pool/occupancy"), ("rejected", "admission/realised"))
# docs/integrations.md says which place in verl each is for.
_CPU_ENVIRONMENT = {
    "VERL_USE_EXTERNAL_MODULES": "pace.verl.plugin", "VERL_PLATFORM": "pace_cpu",
    "VERL_ENGINE_DEVICE": "cuda", "VERL_ENGINE_VENDOR": "nvidia", "VERL_LOGGING_LEVEL": "WARN",
    "OMP_NUM_THREADS": "1", "PACE_SERVE_SETTINGS": "engine.threads=1",
}


def _check(arguments) -> int:
    versions = check.installed_versions()
    changed = check.changed_files("verl") if "verl" in versions else None
    findings = check.findings_of_installation(versions, changed)
    if arguments.config:
        findings += check.findings_of_configuration(configuration.read(arguments.config))
    for finding in findings:
        print(finding)
    return 1 if any(finding.level == "missing" for finding in findings) else 0


def _mean(values) -> float:
    values = [value for value in values if value is not None]
    return sum(values) / len(values) if values else float("nan")


def _sim(arguments) -> int:
    config = configuration.read(arguments.config)
    stated = config.get("trainer.v1.sampler.sampler_kwargs.method", "pace")
    methods = arguments.methods.split(",") if arguments.methods else [stated, "observe"]
    changes = tuple(arguments.set)
    _, lines = simulation.settings_of(config, methods[0], changes)
    for line in lines:
        print(f"assumed: {line}", file=sys.stderr)
    heads = [head for head, _ in (*_COLUMNS, *_MEANS)]
    print(f"{'method':12}" + "".join(f"{head:>16}" for head in heads))
    for method, run in simulation.simulate_all(config, methods, changes):
        # The pool fills during the first fifth.
        first = len(run.rows) // 5
        row = [run.totals[key] for _, key in _COLUMNS]
        row += [_mean(run.column(key)[first:]) for _, key in _MEANS]
        print(f"{method:12}" + "".join(f"{value:16.3f}" for value in row))
    return 0


def _config(arguments) -> int:
    print(_FOLDER)
    return 0


def _run(arguments) -> int:
    environment = {**_CPU_ENVIRONMENT, **os.environ}
    command = [sys.executable, "-m", "verl.trainer.main_ppo", "--config-dir", str(_FOLDER),
               "--config-name", "pace_cpu", *arguments.overrides]
    os.execve(sys.executable, command, environment)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m pace.verl", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    one = commands.add_parser("check", help="what fits and what is missing")
    one.add_argument("config", nargs="*")
    one.set_defaults(run=_check)
    one = commands.add_parser("sim", help="simulate a configuration")
    one.add_argument("config", nargs="+")
    one.add_argument("--methods", help="names with commas between (default: that of the "
                                       "configuration, and observe)")
    one.add_argument("--set", action="append", default=[], metavar="KEY=VALUE",
                     help="a setting of pace, such as workload.mean_tokens=3000")
    one.set_defaults(run=_sim)
    one = commands.add_parser("config", help="print the folder with pace.yaml")
    one.set_defaults(run=_config)
    one = commands.add_parser("run", help="verl on the CPU, with replicas of pace serve")
    one.add_argument("overrides", nargs=argparse.REMAINDER)
    one.set_defaults(run=_run)
    arguments = parser.parse_args()
    try:
        return arguments.run(arguments)
    except _core.Error as error:
        print(f"pace.verl: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
