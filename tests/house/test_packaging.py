"""The built wheel: what is in it, and that it works where nothing else of this repository is."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterable
from email.parser import HeaderParser
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PACKAGES = ("kernels", "learners", "pipeline")
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]

SMALL_JOB = """
import sys, tempfile
from gramline.kernels import Identity, SequenceLabeling, Substitution
from gramline.learners import LabelingPerceptron
from gramline.pipeline import Corpus, KernelLabeler, build_gram

X = [["the", "dog", "barks"], ["the", "cat", "sleeps"]]
y = [["D", "N", "V"], ["D", "N", "V"]]
kernel = SequenceLabeling(observation=Identity())
with tempfile.TemporaryDirectory() as folder:
    corpus = Corpus.from_sequences(X, y)
    model = LabelingPerceptron().fit(build_gram(kernel, corpus, folder + "/small.zarr"), corpus.labels)
assert Substitution.named("blosum62").is_positive_semidefinite  # reads a table that is no module
print(KernelLabeler(kernel, LabelingPerceptron()).fit(X, y).predict([["the", "dog", "sleeps"]]))
assert not {"kernels", "learners", "pipeline"} & set(sys.modules)
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from a copy, so that no build folder of the work tree leaks into it."""
    source = tmp_path_factory.mktemp("source") / "gramline"
    source.mkdir()
    for name in (*PACKAGES, "pyproject.toml", "README.md", "LICENSE"):
        path = ROOT / name
        if path.is_dir():
            shutil.copytree(path, source / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(path, source / name)
    target = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(target), str(source)]
    subprocess.run(command, check=True, capture_output=True)
    (built,) = target.glob("*.whl")
    return built


def test_wheel_holds_every_module_and_nothing_else(wheel: Path) -> None:
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    endings = {".py", ".pyi", ".html", ".css", ".js", ".json", ".md", ".txt"}
    sources = [path for package in PACKAGES for path in (ROOT / package).rglob("*.*") if path.suffix in endings]
    modules = {f"gramline/{path.relative_to(ROOT)}" for path in sources}
    assert names == modules | {f"gramline/{package}/py.typed" for package in PACKAGES}


def test_the_licence_is_in_the_wheel(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    (name,) = (name for name in archive.namelist() if name.endswith("/licenses/LICENSE"))
    assert archive.read(name) == (ROOT / "LICENSE").read_bytes()
    (described,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
    described_as = HeaderParser().parsestr(archive.read(described).decode())
    assert described_as["License-Expression"] == "Apache-2.0"
    assert described_as.get_all("Project-URL") is None  # left out rather than invented


def test_the_version_is_the_same_everywhere() -> None:
    texts = {name: (ROOT / name).read_text("utf-8") for name in ("CITATION.cff", "CHANGELOG.md")}
    assert f"\nversion: {VERSION}\n" in texts["CITATION.cff"]
    assert re.findall(r"^## \[([0-9.]+)\]", texts["CHANGELOG.md"], flags=re.MULTILINE)[0] == VERSION
    tagged = [
        path for path in (ROOT / "deploy").rglob("*") if path.suffix in {".yaml", ".md"} or path.stem == "Containerfile"
    ]
    tags = {tag for path in tagged for tag in re.findall(r"gramline:(\d[\w.]*\d)", path.read_text("utf-8"))}
    assert tags == {VERSION}


def test_every_extra_is_explained() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    page = (ROOT / "docs" / "installation.md").read_text("utf-8").partition("## Extras")[2].partition("##")[0]
    assert [name for name in extras if f"`{name}`" not in page] == []


def test_every_dependency_says_why_it_is_there() -> None:
    lines = (ROOT / "pyproject.toml").read_text("utf-8").splitlines()
    requirements = [line for line in lines if line.strip().startswith('"') and ">=" in line]
    declared = tomllib.loads("\n".join(lines))["project"]["dependencies"]
    assert len(requirements) >= len(declared)
    assert [line for line in requirements if "#" not in line] == []


def test_constraints_pin_versions_and_name_no_index() -> None:
    lines = (ROOT / "constraints.txt").read_text("utf-8").split()
    assert lines
    assert [line for line in lines if line.count("==") != 1 or "/" in line] == []


def add_needed(requirements: Iterable[str], extras: Iterable[str], found: dict[str, Distribution]) -> None:
    """Add the installed distributions that `requirements` ask for, and those that these ask for."""
    for requirement in map(Requirement, requirements):
        if requirement.marker and not any(requirement.marker.evaluate({"extra": extra}) for extra in ("", *extras)):
            continue
        name = canonicalize_name(requirement.name)
        if name not in found or requirement.extras:
            found[name] = distribution(name)
            add_needed(found[name].requires or (), requirement.extras, found)


def link_installed(distributions: Iterable[Distribution], target: Path) -> None:
    """What is installed here, as links in another environment: clean, and nothing is downloaded or unpacked."""
    for one in distributions:
        for top in {file.parts[0] for file in one.files or ()} - {"..", "__pycache__"}:
            if not (target / top).is_symlink():
                (target / top).symlink_to(Path(str(one.locate_file(top))))


def assert_wheel_works(environment: Path, folder: Path) -> None:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    python = str(environment / "bin" / "python")
    job = subprocess.run([python, "-c", SMALL_JOB], cwd=folder, env=clean, capture_output=True, text=True)
    assert (job.returncode, job.stderr) == (0, "")
    assert job.stdout.strip() == "[['D', 'N', 'V']]"
    command = [str(environment / "bin" / "gramline"), "--version"]
    version = subprocess.run(command, cwd=folder, env=clean, capture_output=True, text=True, check=True)
    assert version.stdout.strip() == f"gramline {VERSION}"


def test_wheel_runs_a_small_job_beside_its_dependencies_alone(wheel: Path, tmp_path: Path) -> None:
    (described,) = (name for name in zipfile.ZipFile(wheel).namelist() if name.endswith(".dist-info/METADATA"))
    declared = HeaderParser().parsestr(zipfile.ZipFile(wheel).read(described).decode()).get_all("Requires-Dist", [])
    needed: dict[str, Distribution] = {}
    add_needed(declared, (), needed)
    environment = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True)
    (packages,) = environment.glob("lib/python*/site-packages")
    link_installed(needed.values(), packages)
    pip = [sys.executable, "-m", "pip", "--quiet", "--python", str(environment)]
    subprocess.run([*pip, "install", "--no-index", "--no-deps", str(wheel)], check=True, capture_output=True)
    checked = subprocess.run([*pip, "check"], capture_output=True, text=True)
    assert (checked.returncode, checked.stdout) == (0, "")
    assert_wheel_works(environment, tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_wheel_installs_and_runs_in_an_empty_environment(wheel: Path, tmp_path: Path) -> None:
    environment = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
    pip = [str(environment / "bin" / "python"), "-m", "pip", "--quiet"]
    constraints = ["--constraint", str(ROOT / "constraints.txt")]
    subprocess.run([*pip, "install", *constraints, str(wheel)], check=True, cwd=tmp_path, capture_output=True)
    assert_wheel_works(environment, tmp_path)
