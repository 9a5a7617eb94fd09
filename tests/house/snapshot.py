"""Checksums of what gramline computes, says and writes, from its public names and its command line alone.

    python tests/house/snapshot.py OUT_FOLDER --record tests/house/snapshot.json
    python tests/house/snapshot.py OUT_FOLDER --check tests/house/snapshot.json [--sections=-report,-failures]
    python tests/house/snapshot.py --golden FOLDER

OUT_FOLDER is a new folder for everything that is made; `records` in it holds the text behind every checksum, so that
two runs can be compared by `diff -r`. What may differ is taken out: times, versions of libraries, absolute paths. Exit
code 1 when something differs from the record.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

from snapshot_parts import commands, failures, golden, inputs, kernels, learners
from snapshot_parts.recording import Record, differences, written

# In this order: later parts use the files of earlier ones.
PARTS: dict[str, Callable[[Record], None]] = {
    "kernels": kernels.record_kernels,
    "stores": kernels.record_stores,
    "cluster": kernels.record_cluster,
    "learners": learners.record_learners,
    "unlabeled": learners.record_unlabeled,
    "rankers": learners.record_rankers,
    "labelers": learners.record_labelers,
    "crossval": learners.record_crossval,
    "imports": commands.record_imports,
    "commands": commands.record_commands,
    "experiments": commands.record_experiments,
    "failures": failures.record_failures,
}


def take(folder: Path, parts: list[str]) -> Record:
    """Compute everything of these parts in `folder`, which becomes the current one."""
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise SystemExit(f"{folder} is not empty; give a new folder")
    os.chdir(folder)
    os.environ["COLUMNS"] = "100"
    record = Record(folder)
    inputs.write_files(folder)
    inputs.generate()
    for name in parts:
        begin = perf_counter()
        PARTS[name](record)
        print(f"{name}: {perf_counter() - begin:.1f} s", file=sys.stderr)  # noqa: T201
    return record


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", help="a new folder for everything that is made")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--record", type=Path, metavar="JSON", help="write the checksums there")
    what.add_argument("--golden", type=Path, metavar="FOLDER", help="write files for later versions there, and end")
    what.add_argument("--check", type=Path, metavar="JSON", help="compare with these checksums")
    parser.add_argument(
        "--sections", help="only these, such as --sections kernels,stores; or all but --sections=-report,-failures"
    )
    parser.add_argument("--parts", help=f"compute only these: {', '.join(PARTS)}")
    parser.add_argument("--other-machine", action="store_true", help="numbers count, but not their last bits")
    given = parser.parse_args()
    if given.golden is not None:
        golden.make(given.golden.resolve())
        return 0
    if given.folder is None:
        parser.error("give a new folder for everything that is made")
    folder, target, recorded = (
        None if path is None else path.resolve() for path in (given.folder, given.record, given.check)
    )
    before = {} if recorded is None else json.loads(recorded.read_text("utf-8"))
    warnings.simplefilter("ignore")
    parts = given.parts.split(",") if given.parts else list(PARTS)
    if unknown := set(parts) - set(PARTS):
        parser.error(f"there are no parts {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    record = take(folder, parts)
    found = {name: values for name, values in record.sections.items() if _is_wanted(name, given.sections)}
    if target is not None:
        target.write_text(written(found), "utf-8")
    is_whole = parts == list(PARTS)
    lines = differences(before, found, other_machine=given.other_machine, is_whole=is_whole) if before else []
    for line in lines:
        print(line)  # noqa: T201
    counts = ", ".join(f"{name} {len(values)}" for name, values in found.items())
    print(f"{len(lines)} differences; values: {counts}")  # noqa: T201
    return 1 if lines else 0


def _is_wanted(section: str, chosen: str | None) -> bool:
    """All sections, those that are named, or all but those named with a minus sign."""
    names = chosen.split(",") if chosen else []
    if any(name.startswith("-") for name in names):
        return f"-{section}" not in names
    return not names or section in names


if __name__ == "__main__":
    sys.exit(main())
