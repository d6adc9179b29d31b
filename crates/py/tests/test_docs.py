"""The code of the pages for Python runs, and prints what they show."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

ROOT = Path(__file__).parents[3]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def shows(shown: str, printed: str) -> bool:
    """True if a page shows what was printed, where `…` stands for the rest of a line."""
    wanted, lines = shown.rstrip().split("\n"), printed.rstrip().split("\n")
    return len(wanted) == len(lines) and all(
        re.fullmatch(".*".join(map(re.escape, want.rstrip().split("…"))), line.rstrip())
        for want, line in zip(wanted, lines)
    )


@pytest.mark.parametrize("page", ["docs/python.md", "README.md"])
def test_a_page_is_true(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models").symlink_to(ROOT / "models")
    text = (ROOT / page).read_text()
    blocks = list(BLOCK.finditer(text))
    names: dict[str, object] = {}
    ran = 0
    for k, block in enumerate(blocks):
        language, code = block.groups()
        if language != "python":
            continue
        plt.close("all")
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, f"{page}, block {k}", "exec"), names)
        following = blocks[k + 1] if k + 1 < len(blocks) else None
        if following and not text[block.end() : following.start()].strip():
            if following[1] == "text":
                assert shows(following[2], printed.getvalue()), printed.getvalue()
        ran += 1
    plt.close("all")
    assert ran > 0
    # Pictures that the page makes are those that it shows, as far as their structure goes.
    for made in [*tmp_path.glob("*.svg"), *tmp_path.glob("*.png")]:
        shown = ROOT / "docs" / "figures" / "python" / made.name
        assert shown.exists(), f"{made.name} is not in docs/figures/python"
        if made.suffix == ".svg":
            assert made.read_text().count("<path") == shown.read_text().count("<path")
