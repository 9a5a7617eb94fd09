"""A TOML job file: what would otherwise be options of `gram`, `fit` and `cv`, in tables. Options win over the file.

`tables` declares the keys; docs/jobs.md and job.schema.json are made of them. In `cv`, kernel and learner may be there
several times ([[kernel]]), and a list of values means each of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from gramline.kernels.errors import KernelError, LocatedError
from gramline.learners.errors import LearnerError
from gramline.pipeline.cli.job_file.tables import TABLES, JobTables
from gramline.pipeline.cli.terminal.notation import parse_record, read_matrix, read_object
from gramline.pipeline.errors import InputError
from gramline.pipeline.files import require_file
from gramline.pipeline.settings_file import SettingsFile

REPEATED = ("kernel", "learner")  # tables that may be there several times; the records know their keys
PARTS = {"observation", "prior", "label_kernel"}  # of a kernel: records of their own, which a file may hold
T = TypeVar("T")
E = TypeVar("E", bound=LocatedError)


def either(option: T | None, setting: T) -> T:
    """The option if it was given, else what the file says."""
    return setting if option is None else option


@dataclass(frozen=True)
class JobFile(JobTables):
    """A job file, checked; without one, the defaults."""

    kernels: tuple[dict[str, Any], ...] = ()
    learners: tuple[dict[str, Any], ...] = ()
    source: SettingsFile = field(default_factory=SettingsFile)

    def only(self, name: str) -> dict[str, Any]:
        """The one [kernel] or [learner] table."""
        tables: tuple[dict[str, Any], ...] = getattr(self, f"{name}s")
        if len(tables) > 1:
            problem = f"there are {len(tables)} [[{name}]] tables, but only `gramline cv` takes more than one"
            raise InputError(problem, path=self.source.path, line=self.source.lines.line(name, index=1))
        return dict(tables[0]) if tables else {}

    def path(self, option: str | None, table: str, key: str, what: str) -> str:
        """A path that the job cannot do without."""
        path: str | None = either(option, getattr(getattr(self, table), key))
        if path is None:
            raise InputError(
                f"{what} is missing", advice=f"name it on the command line or as {key!r} in [{table}] of a job file"
            )
        return path

    def locate_error(self, error: E, table: str, given: Collection[str] = (), index: int = 0) -> E:
        """The same error with the line of the key it is about, unless an option of the command line gave that."""
        if (error.key or "").partition(".")[0] in given or not self.source.lines.line(table, index=index):
            return error
        return self.source.locate(error, table, error.key, index)

    @contextmanager
    def locating(
        self, table: str, given: Collection[str] = (), index: int = 0, key: str | None = None
    ) -> Iterator[None]:
        """Locates what is refused inside; `key` is the one it is about when it does not say that itself."""
        try:
            yield
        except (InputError, KernelError, LearnerError) as error:
            if key is not None and error.structure is None:
                error.at(key=key)
            raise self.locate_error(error, table, given, index) from None


def load_job(path: str | None) -> JobFile:
    """Read and check a job file."""
    if path is None:
        return JobFile()
    require_file(path, "a job file (TOML)")
    source = SettingsFile.read(path, "job file")
    source.require_tables([*TABLES, *REPEATED], REPEATED)
    tables: dict[str, Any] = {name: source.table(name, kind) for name, kind in TABLES.items()}
    if tables["cluster"].inline and tables["cluster"].scheduler is not None:
        error = InputError("inline computes in this process and scheduler elsewhere", advice="choose one of them")
        raise source.locate(error, "cluster", "inline")
    return JobFile(**tables, kernels=_repeated(source, "kernel"), learners=_repeated(source, "learner"), source=source)


def _repeated(source: SettingsFile, name: str) -> tuple[dict[str, Any], ...]:
    """All tables of that name; parts of kernels with what their files hold in the place of the files."""
    content = source.tables.get(name, [])
    tables = [dict(table) for table in (content if isinstance(content, list) else [content])]
    for index, table in enumerate(tables if name == "kernel" else []):
        for key in PARTS & table.keys():
            try:
                table[key] = _part(table[key], key, source.folder)
            except InputError as error:
                raise source.locate(error, name, key, index) from None
    return tuple(tables)


def _part(value: Any, key: str, folder: Path) -> Any:
    """A part of a kernel with what its file holds in the place of the file; in a grid, each of them."""
    what = f"the {key.replace('_', ' ')}"
    if key == "label_kernel":
        return read_matrix(str(folder / value), what) if isinstance(value, str) else value
    if isinstance(value, list):
        return [_part(item, key, folder) for item in value]
    if isinstance(value, str):
        return parse_record(value, what, folder)
    if isinstance(value, dict) and isinstance(value.get("file"), str):
        own = {name: inner for name, inner in value.items() if name != "file"}
        return read_object(str(folder / value["file"]), what) | own
    return value
