"""Documentation: notebooks run, their pages show what they give, and examples of other pages run."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import nbformat
import pytest

import holonome as ho

DOCS = Path(__file__).resolve().parents[3] / "docs"
NOTEBOOKS = DOCS / "notebooks"


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, NOTEBOOKS / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


render, reference = script("render"), script("reference")
NAMES: list[str] = render.names()


def prose(page: str) -> list[str]:
    """Lines of a page outside of its fenced blocks."""
    parts = re.split(r"(?ms)^```.*?^```$", page)
    return [line for part in parts for line in part.splitlines()]


@pytest.mark.parametrize("name", NAMES)
def test_a_page_is_what_its_notebook_gives(name: str) -> None:
    page = render.render(name, render.execute(name))
    stored = (DOCS / "python" / f"{name}.md").read_text()
    assert stored == page.text, f"python docs/notebooks/render.py {name}"
    for file, svg in page.pictures.items():
        drawn = (render.PICTURES / file).read_text()
        assert render.structure(drawn) == render.structure(svg) and render.structure(svg), file
        assert len(drawn) < 100_000, f"{file}: {len(drawn)} bytes"
    kept = {path.name for path in render.PICTURES.glob(f"{name}-*.svg")}
    assert kept == set(page.pictures)


@pytest.mark.parametrize("name", NAMES)
def test_notebooks_are_stored_without_outputs(name: str) -> None:
    notebook = nbformat.read(NOTEBOOKS / f"{name}.ipynb", as_version=4)  # type: ignore[no-untyped-call]
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert not any(cell.outputs or cell.execution_count for cell in code)


def test_the_structure_of_a_picture_is_what_is_drawn() -> None:
    empty = '<svg xmlns="http://www.w3.org/2000/svg"><g id="axes_1"><g id="line2d_3"/></g></svg>'
    assert render.structure(empty) == [{"line2d": 1}]
    assert render.structure(empty.replace("line2d", "QuadMesh")) != render.structure(empty)


def test_the_reference_is_that_of_the_docstrings() -> None:
    text = reference.reference()
    stored = (DOCS / "python" / "reference.md").read_text()
    assert stored == text, "python docs/notebooks/reference.py"
    entries = re.findall(r"(?m)^### (\w+)$", text)
    assert sorted(entries) == sorted(ho.__all__), "every public name has its entry once"


def blocks(page: str) -> list[tuple[str, str | None]]:
    """Blocks ``python`` of a page, each with the block ``text`` that follows it at once, if there
    is one: what it prints."""
    found = re.findall(r"(?ms)^```python\n(.*?)^```$(?:\n\n```text\n(.*?)^```$)?", page)
    return [(code, printed or None) for code, printed in found]


def with_examples() -> list[str]:
    """Pages by hand that import the package."""
    root = DOCS.parent
    pages = [root / "README.md", *DOCS.glob("*.md"), *(DOCS / "python").glob("*.md")]
    written = [page for page in pages if page.parent == DOCS or page.stem not in NAMES]
    found = [
        page
        for page in written
        if any("import holonome" in code for code, _ in blocks(page.read_text()))
    ]
    return sorted(str(page.relative_to(root)) for page in found)


@pytest.mark.parametrize("name", with_examples())
def test_examples_of_other_pages_run(name: str, tmp_path: Path) -> None:
    examples = [
        one for one in blocks((DOCS.parent / name).read_text()) if "import holonome" in one[0]
    ]
    # As on the page: one after the other, in a folder that has the models.
    (tmp_path / "models").symlink_to(DOCS.parent / "models")
    mark = "-- next --"
    code = f"\nprint({mark!r})\n".join(code for code, _ in examples)
    environment = {**os.environ, "MPLBACKEND": "Agg"}
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    for (_, wanted), printed in zip(examples, run.stdout.split(f"{mark}\n")):
        assert wanted is None or printed == wanted


def test_pages_are_in_the_book_and_their_links_lead_somewhere() -> None:
    summary = (DOCS / "SUMMARY.md").read_text()
    pages = sorted((DOCS / "python").glob("*.md"))
    assert {page.stem for page in pages} >= {*NAMES, "reference", "installing"}
    for page in pages:
        assert summary.count(f"](python/{page.name})") == 1, page.name
        text = page.read_text()
        for line in prose(text):
            assert len(line) <= 110, f"{page.name}: {line}"
        for target in re.findall(r"\]\(([^)\s]+)\)", "\n".join(prose(text))):
            file, _, anchor = target.partition("#")
            if target.startswith("http"):
                continue
            path = page.parent / file if file else page
            assert path.exists(), f"{page.name}: {target}"
            titles = re.findall(r"(?m)^#+ (.*)$", path.read_text()) if anchor else []
            assert not anchor or anchor in [title.lower().replace(" ", "-") for title in titles]


def test_notebooks_are_json_as_editors_write_it() -> None:
    for name in NAMES:
        text = (NOTEBOOKS / f"{name}.ipynb").read_text()
        assert text == json.dumps(json.loads(text), indent=1, ensure_ascii=False) + "\n"
