"""Renders the notebooks of this folder as pages of the book.

Usage, with a Python that has holonome and its extras: ``python docs/notebooks/render.py [NAME …]``.
Each notebook is executed from its first cell in an empty folder. Its page docs/python/NAME.md has the
cells and what they printed, its pictures are docs/figures/python/NAME-K.svg. The tests execute the
notebooks too, and compare.

The tags of a cell: ``raises-exception`` for one that fails on purpose, ``skip`` for one that is shown
and not executed, ``hidden-output`` for one whose output differs between machines. A cell with a picture says in its
metadata, as ``alt``, what one sees.
"""

from __future__ import annotations

import copy
import re
import sys
import tempfile
import textwrap
import xml.etree.ElementTree as tree
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nbclient
import nbformat

NOTEBOOKS = Path(__file__).resolve().parent
DOCS = NOTEBOOKS.parent
PAGES, PICTURES = DOCS / "python", DOCS / "figures" / "python"

#: Widest line of output on a page.
WIDTH = 96

#: A cell before the first: pictures as SVG that do not depend on the day, and narrow tables.
_SETUP = f"""
import warnings as _warnings
_warnings.showwarning = lambda message, category, *_: print(f"{{category.__name__}}: {{message}}")
import matplotlib as _matplotlib, numpy as _numpy, pandas as _pandas, xarray as _xarray
from matplotlib_inline.backend_inline import set_matplotlib_formats as _formats
%matplotlib inline
_formats("svg", metadata={{"Date": None, "Creator": None}})
_matplotlib.rcParams.update({{
    "svg.hashsalt": "holonome", "svg.fonttype": "none", "figure.figsize": (6, 3.6), "figure.dpi": 72,
    "figure.facecolor": "white", "savefig.facecolor": "white", "lines.linewidth": 1,
    "axes.spines.top": False, "axes.spines.right": False,
}})
_numpy.set_printoptions(linewidth={WIDTH})
_pandas.set_option("display.width", {WIDTH})
_xarray.set_options(display_width={WIDTH}, display_expand_attrs=False)
"""


@dataclass
class Page:
    """A rendered notebook."""

    text: str
    pictures: dict[str, str] = field(default_factory=dict)


def names() -> list[str]:
    """Names of the notebooks."""
    return sorted(path.stem for path in NOTEBOOKS.glob("*.ipynb"))


def execute(name: str) -> Any:
    """The notebook with the outputs of its cells."""
    notebook = nbformat.read(NOTEBOOKS / f"{name}.ipynb", as_version=4)
    executed = copy.deepcopy(notebook)
    executed.cells = [
        nbformat.v4.new_code_cell(_SETUP),
        *(cell for cell in executed.cells if "skip" not in _tags(cell)),
    ]
    with tempfile.TemporaryDirectory() as folder:
        client = nbclient.NotebookClient(executed, timeout=300, kernel_name="python3")
        client.execute(cwd=folder)
    done = {cell.id: cell for cell in executed.cells[1:]}
    notebook.cells = [done.get(cell.id, cell) for cell in notebook.cells]
    return notebook


def render(name: str, executed: Any) -> Page:
    """The page of an executed notebook."""
    page = Page(f"<!-- Made from docs/notebooks/{name}.ipynb by docs/notebooks/render.py. -->\n\n")
    for cell in executed.cells:
        if cell.cell_type == "markdown":
            page.text += cell.source.strip() + "\n\n"
            continue
        page.text += _fenced("python", cell.source)
        shown = "hidden-output" not in _tags(cell)
        for output in _joined(cell.get("outputs", [])) if shown else []:
            page.text += _output(name, cell, output, page.pictures)
    page.text = page.text.rstrip() + "\n"
    return page


def _tags(cell: Any) -> list[str]:
    return list(cell.metadata.get("tags", []))


def _fenced(kind: str, text: str) -> str:
    lines = (line.rstrip() for line in text.strip("\n").splitlines())
    return "\n".join([f"```{kind}", *lines, "```"]) + "\n\n"


def _joined(outputs: list[Any]) -> list[Any]:
    """Outputs with the parts of one stream in one piece."""
    joined: list[Any] = []
    for output in outputs:
        if output.output_type == "stream" and joined and joined[-1].output_type == "stream":
            joined[-1].text += output.text
        else:
            joined.append(copy.deepcopy(output))
    return joined


def _output(name: str, cell: Any, output: Any, pictures: dict[str, str]) -> str:
    if output.output_type == "stream":
        return _fenced("text", output.text)
    if output.output_type == "error":
        return _fenced("text", f"{output.ename}: {output.evalue}")
    if "image/svg+xml" in output.data:
        file = f"{name}-{len(pictures) + 1}.svg"
        pictures[file] = _small(output.data["image/svg+xml"])
        link = f"![{cell.metadata['alt']}](../figures/python/{file})"
        return textwrap.fill(link, 106, break_on_hyphens=False) + "\n\n"
    text = output.data.get("text/plain", "")
    return "" if re.fullmatch(r"<.* object at 0x\w+>", text) else _fenced("text", text)


def _small(svg: str) -> str:
    """A picture without what viewers ignore."""
    svg = re.sub(
        r"<\?xml.*?\?>\s*|<!DOCTYPE.*?>\s*|<metadata>.*?</metadata>\s*", "", svg, flags=re.S
    )
    return re.sub(r"\s*\n\s*", "\n", svg).strip() + "\n"


def structure(svg: str) -> list[Counter[str]]:
    """What is drawn in each pair of axes of a picture: numbers of curves, meshes, images, ..."""
    axes = []
    for group in tree.fromstring(svg).iter():
        if re.fullmatch(r"axes_\d+", group.get("id", "")):
            kinds = [re.sub(r"_\d+$", "", part.get("id", "")) for part in group]
            axes.append(
                Counter(kind for kind in kinds if kind and not kind.startswith("matplotlib"))
            )
    return axes


def write(name: str) -> None:
    """Execute a notebook, and write its page and its pictures."""
    page = render(name, execute(name))
    PAGES.mkdir(exist_ok=True)
    PICTURES.mkdir(exist_ok=True)
    for old in PICTURES.glob(f"{name}-*.svg"):
        old.unlink()
    (PAGES / f"{name}.md").write_text(page.text)
    for file, svg in page.pictures.items():
        (PICTURES / file).write_text(svg)


if __name__ == "__main__":
    for one in sys.argv[1:] or names():
        write(one)
