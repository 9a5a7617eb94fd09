"""A TOML job file: what would otherwise be options of `gram`, `fit` and `cv`, in tables. Options win over the file.

`tables` declares the keys; docs/jobs.md and job.schema.json are made of them. In `cv`, kernel and learner may be there
several times ([[kernel]]), and a list of values means each of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from gramline.kernels.errors import KernelError, LocatedError
from gramline.learners.errors import LearnerError
from gramline.pipeline.cli.job_file.tables import TABLES, JobTables
from gramline.pipeline.cli.terminal.notation import parse_record, parse_sum, read_matrix, read_object
from gramline.pipeline.crossval.setting_names import list_digest
from gramline.pipeline.errors import InputError
from gramline.pipeline.files import require_file
from gramline.pipeline.settings_file import SettingsFile

REPEATED = ("kernel", "learner")  # tables that may be there several times; the records know their keys
PARTS = {  # of a kernel: records of their own, which a file may hold
    "observation": "the observation kernel",
    "prior": "the prior",
    "label_kernel": "the label kernel",
}
E = TypeVar("E", bound=LocatedError)


@dataclass(frozen=True)
class OptionValues:
    """What options of a command line say in the place of a job file."""

    tables: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # values by table and key
    insecure_plain_text: bool = False  # never from a job file, which may be a stranger's

    def of(self, table: str) -> Mapping[str, Any]:
        """The keys of a table that options have given."""
        return self.tables.get(table, {})


@dataclass(frozen=True)
class JobFile(JobTables):
    """A job file, checked, with options of the command line in the place of what it says; without one, the defaults."""

    kernels: tuple[dict[str, Any], ...] = ()
    learners: tuple[dict[str, Any], ...] = ()
    source: SettingsFile = field(default_factory=SettingsFile)
    given: OptionValues = field(default_factory=OptionValues)
    files: dict[str, str] = field(default_factory=dict)  # that parts of kernels were read from, see `setting_names`

    @property
    def kernel(self) -> dict[str, Any]:
        """The one [kernel] table."""
        return self._only("kernel", self.kernels)

    @property
    def learner(self) -> dict[str, Any]:
        """The one [learner] table."""
        return self._only("learner", self.learners)

    def _only(self, name: str, tables: Sequence[dict[str, Any]]) -> dict[str, Any]:
        if len(tables) > 1:
            problem = f"there are {len(tables)} [[{name}]] tables, but only `gramline cv` takes more than one"
            raise InputError(problem, path=self.source.path, line=self.source.lines.line(name, index=1))
        return dict(tables[0]) if tables else {}

    def locate_error(self, error: E, table: str, given: Collection[str] = (), index: int = 0) -> E:
        """The same error with the line of the key it is about, unless an option of the command line gave that."""
        key = (error.key or "").partition(".")[0]
        if key in given or key in self.given.of(table) or not self.source.lines.line(table, index=index):
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


def required(path: str | None, table: str, what: str) -> str:
    """The path of a table, which the job cannot do without."""
    if path is None:
        advice = f"name it on the command line or as 'path' in [{table}] of a job file"
        raise InputError(f"{what} is missing", advice=advice)
    return path


def merged(listed: Mapping[str, Any], given: Mapping[str, Any], default: str) -> dict[str, Any]:
    """A kernel or learner as listed, with what options give; another one takes over none of the listed parameters."""
    own = {"name": default} | dict(listed)
    return own | dict(given) if given.get("name", own["name"]) == own["name"] else dict(given)


def load_job(path: str | None, given: OptionValues | None = None) -> JobFile:
    """Read and check a job file, and put what options have given in its place."""
    job = JobFile() if path is None else _read(path)
    if given is None:
        return job
    tables = {name: replace(table, **given.of(name)) for name, table in vars(job).items() if name in TABLES}
    return replace(job, given=given, **tables)


def _read(path: str) -> JobFile:
    require_file(path, "a job file (TOML)")
    source = SettingsFile.read(path, "job file")
    source.require_tables([*TABLES, *REPEATED], REPEATED)
    tables: dict[str, Any] = {name: source.table(name, kind) for name, kind in TABLES.items()}
    if tables["cluster"].inline and tables["cluster"].scheduler is not None:
        error = InputError("inline computes in this process and scheduler elsewhere", advice="choose one of them")
        raise source.locate(error, "cluster", "inline")
    files: dict[str, str] = {}
    kernels, learners = (_repeated(source, name, files) for name in REPEATED)
    return JobFile(**tables, kernels=kernels, learners=learners, source=source, files=files)


def _repeated(source: SettingsFile, name: str, files: dict[str, str]) -> tuple[dict[str, Any], ...]:
    """All tables of that name; parts of kernels with what their files hold in the place of the files."""
    content = source.tables.get(name, [])
    tables = [dict(table) for table in (content if isinstance(content, list) else [content])]
    for index, table in enumerate(tables if name == "kernel" else []):
        for key in PARTS.keys() & table:
            try:
                table[key] = kernel_part(table[key], key, source.folder, files)
            except InputError as error:
                raise source.locate(error, name, key, index) from None
    return tuple(tables)


def kernel_part(value: Any, key: str, folder: Path, files: dict[str, str]) -> Any:
    """A part of a kernel with what its file holds in the place of the file, which `files` get; in a grid, each."""
    what = PARTS[key]

    def read(path: str, what: str) -> dict[str, Any]:
        content = read_object(path, what)
        files.update({list_digest(item): path for item in content.values() if isinstance(item, list)})
        return content

    if key == "label_kernel":
        if not isinstance(value, str):
            return value
        matrix = read_matrix(str(folder / value), what)
        files[list_digest(matrix)] = str(folder / value)
        return matrix
    if isinstance(value, list):
        return [kernel_part(item, key, folder, files) for item in value]
    if isinstance(value, str):
        value = (parse_sum if key == "observation" else parse_record)(value, what, folder, read)
    if isinstance(value, dict) and isinstance(value.get("file"), str):
        own = {name: inner for name, inner in value.items() if name != "file"}
        return read(str(folder / value["file"]), what) | own
    return value
