"""The static site of `make docs`: the pages of this project, and every public name from its docstring.

Pages stay where they are and link to each other as files; nothing here is needed to read them as Markdown.
"""

from __future__ import annotations

import inspect
import re
import tomllib
from collections.abc import Iterator
from importlib import import_module
from itertools import groupby
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

from gramline.kernels.parameters import REQUIRED, parameters_of

ROOT = Path(__file__).parents[1]
RULE = re.compile(r"-{3,}")  # below the heading of a section
FORMULA = re.compile(r"^ |\S {3,}\S")  # in a paragraph that is laid out by hand
PACKAGES = {
    "kernels": "Kernels of sequences, trees, graphs and parses; what compares observations; priors",
    "learners": "Learners, and a Gram matrix in memory",
    "pipeline": "Corpora, stored Gram matrices, cross-validation, models and clusters",
}
CONTENTS = {
    "To use it": ["installation", "tutorial", "how-to", "jobs", "reference", "cluster", "glossary"],
    "From Python": [f"api/{package}" for package in PACKAGES],
    "How it works": [
        *("how-a-tile-is-made", "one-pass-cross-validation", "what-done-means", "lazy-training"),
        *("reliability", "scale", "benchmarks", "design-notes", "house", "../CONTRIBUTING", "../CHANGELOG"),
    ],
    "Results": ["results", "results-labeling", "results-trees", "results-zscore", "results-gpsl", "bibliography"],
    "Places": [f"../deploy/{place}/README" for place in ("local", "ssh", "slurm", "kubernetes", "compose", "image")],
}

project = "gramline"
copyright = "the authors of gramline, Apache-2.0"
release = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
root_doc = "README"
include_patterns = ["*.md", "docs/*.md", "docs/api/*.md", "deploy/*/README.md"]
exclude_patterns = [".*", "build", "demo-out", "tests"]
extensions = ["myst_parser", "sphinx.ext.autodoc"]
myst_heading_anchors = 4
html_theme = "furo"
html_static_path = ["style"]
html_css_files = ["site.css"]
html_title = f"gramline {release}"
html_show_sourcelink = False
html_copy_source = False
highlight_language = "none"
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # every parameter is listed with its description


def setup(app: Sphinx) -> None:
    app.connect("builder-inited", write_pages)
    app.connect("source-read", add_contents)
    app.connect("autodoc-process-docstring", describe)


def write_pages(_app: Sphinx) -> None:
    """One page per package with all its public names; written anew for every build, and not kept."""
    for package, title in PACKAGES.items():
        module = import_module(f"gramline.{package}")
        parts = [f"# gramline.{package}\n\n{title}.\n"]
        for name in sorted(module.__all__):
            value = getattr(module, name)
            if inspect.isclass(value):
                parts.append(_directive("autoclass", package, name, ["members:", "inherited-members: object"]))
            elif inspect.isfunction(value):
                parts.append(_directive("autofunction", package, name, []))
        page = ROOT / "docs" / "api" / f"{package}.md"
        page.parent.mkdir(exist_ok=True)
        page.write_text("\n".join(parts), "utf-8")


def _directive(kind: str, package: str, name: str, options: list[str]) -> str:
    lines = [f".. {kind}:: gramline.{package}.{name}", *(f"   :{option}" for option in options)]
    return "\n".join([f"## {name}\n", "```{eval-rst}", *lines, "```\n"])


def add_contents(_app: Sphinx, name: str, source: list[str]) -> None:
    """The first page leads to all others; as a file it has its own list of links."""
    if name != root_doc:
        return
    for caption, pages in CONTENTS.items():
        names = (page.removeprefix("../") if page.startswith("../") else f"docs/{page}" for page in pages)
        source[0] += "\n".join(["", "```{toctree}", ":hidden:", f":caption: {caption}", "", *names, "```", ""])


def describe(_app: Sphinx, what: str, _name: str, value: Any, _options: Any, lines: list[str]) -> None:
    """Sections of `name : what it is` become lists; parameters that annotations describe are listed as well."""
    lines[:] = [*_fields(lines), "", *(_parameters(value) if what == "class" else ()), ""]


def _fields(lines: list[str]) -> Iterator[str]:
    """The same text as reStructuredText, paragraph by paragraph."""
    for _, group in groupby(lines, key=bool):
        paragraph = list(group)
        if paragraph[0].startswith(">>>") or not paragraph[0]:
            yield from paragraph
        elif len(paragraph) > 1 and RULE.fullmatch(paragraph[1]):
            yield from _section(paragraph[0], paragraph[2:])
        elif any(FORMULA.search(line) for line in paragraph):
            yield from ["::", "", *(f"    {line}" for line in paragraph)]
        else:
            yield from map(_escaped, paragraph)


def _section(title: str, lines: list[str]) -> Iterator[str]:
    """Items are `name : what it is`, with more of it in indented lines; other sections stay as they are."""
    yield from [f".. rubric:: {title}", ""]
    if title not in ("Parameters", "Attributes"):
        yield from lines
        return
    for line in lines:
        names, _, text = line.partition(" : ")
        is_more = line.startswith(" ")
        listed = ", ".join(f"``{name}``" for name in names.split(", "))
        yield f"  {_escaped(line.strip())}" if is_more else f"* {listed}: {_escaped(text)}"


def _parameters(owner: type) -> Iterator[str]:
    """What annotations declare, with the defaults."""
    try:
        declared = parameters_of(owner).values()
    except (KeyError, NameError, TypeError, ValueError):  # not one of ours, or names that only type checkers load
        return
    described = [parameter for parameter in declared if parameter.description]
    yield from [".. rubric:: Parameters", ""] if described else []
    for parameter in described:
        default = "" if parameter.default is REQUIRED else f" [``{parameter.default!r}``]"
        yield f"* ``{parameter.name}``: {_escaped(parameter.description)}{default}"


def _escaped(text: str) -> str:
    """Our docstrings are plain text in which `x` is code: what reStructuredText would read into the rest is escaped."""
    parts = re.split(r"(`[^`]+`)", text)
    return "".join(
        f"`{part}`" if part.startswith("`") and len(part) > 2 else re.sub(r"([*|\\]|_(?!\w))", r"\\\1", part)
        for part in parts
    )
