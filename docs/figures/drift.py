"""Draws drift.svg: how far the energy of the spherical pendulum has drifted, by four methods.

Usage: python3 docs/figures/drift.py [HOLONOME]

Run it from the repository's root; HOLONOME is the program, by default target/release/holonome. It needs nothing but
Python's own library, integrates the four runs anew and writes docs/figures/drift.svg.
"""

import csv
import math
import pathlib
import subprocess
import sys
import tempfile

MODEL = "models/spherical-pendulum.holo"
EULER = ["--step", "1e-3"]
GAINS = ["--gain", "rod=50,rod.hidden=12.5,H=50,J=50"]
# Label, flags, colour. The colours and the grey can be read on a white and on a dark page.
CURVES = [
    ("euler", ["--method", "euler", *EULER], "#e0533d"),
    ("feedback:euler", ["--method", "feedback:euler", *EULER, *GAINS], "#c98a00"),
    ("corrected:euler", ["--method", "corrected:euler", *EULER], "#2f9e6e"),
    ("corrected:dop853, the default", [], "#3b86d8"),
]
GREY = "#7d8590"
SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")

WIDTH, HEIGHT = 760, 330
LEFT, RIGHT, TOP, BOTTOM = 70, 240, 34, 44
T_END, LOW, HIGH = 100.0, -16.5, 0.5


def drift(holonome, flags, folder):
    """Times and the largest |H - H(0)| so far, of one run."""
    run, table = folder / "run", folder / "run.csv"
    subprocess.run([holonome, "run", MODEL, *flags, "--out", run, "--quiet"], check=True)
    subprocess.run([holonome, "export", run, "--csv", table, "--quiet"], check=True)
    with open(table, newline="", encoding="utf-8") as file:
        rows = [(float(row["t"]), float(row["H"])) for row in csv.DictReader(file)]
    points, largest = [], 0.0
    for t, energy in rows:
        largest = max(largest, abs(energy - rows[0][1]))
        points.append((t, largest))
    return points


def x_of(t):
    return LEFT + (WIDTH - LEFT - RIGHT) * t / T_END


def y_of(exponent):
    return TOP + (HEIGHT - TOP - BOTTOM) * (HIGH - exponent) / (HIGH - LOW)


def path(points):
    """A line through the points where there is a drift, without those that repeat the height before."""
    commands, last = [], None
    for k, (t, value) in enumerate(points):
        if value == 0.0:
            continue
        y = f"{y_of(math.log10(value)):.1f}"
        if y != last or k == len(points) - 1:
            commands.append(f"{'L' if commands else 'M'}{x_of(t):.1f} {y}")
            last = y
    return "".join(commands)


def main():
    holonome = sys.argv[1] if len(sys.argv) > 1 else "target/release/holonome"
    font = 'font-family="system-ui, sans-serif" font-size="13"'
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        f'role="img" {font} fill="{GREY}">',
        "<title>Largest energy drift of the spherical pendulum so far, by four methods</title>",
        f'<text x="{LEFT}" y="16">largest |H − H(0)| so far</text>',
    ]
    for exponent in range(0, math.floor(LOW), -4):
        y = y_of(exponent)
        out.append(f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="{GREY}" stroke-opacity=".35"/>')
        label = "1" if exponent == 0 else "10⁻" + str(-exponent).translate(SUPERSCRIPTS)
        out.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{label}</text>')
    for t in (0, 25, 50, 75, 100):
        out.append(f'<text x="{x_of(t):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{t}</text>')
    out.append(f'<text x="{x_of(T_END / 2):.1f}" y="{HEIGHT - 8}" text-anchor="middle">time</text>')
    for label, flags, colour in CURVES:
        with tempfile.TemporaryDirectory() as folder:
            points = drift(holonome, flags, pathlib.Path(folder))
        out.append(f'<path d="{path(points)}" fill="none" stroke="{colour}" stroke-width="2"/>')
        y = y_of(math.log10(points[-1][1]))
        out.append(f'<text x="{WIDTH - RIGHT + 8}" y="{y + 4:.1f}" fill="{colour}">{label}</text>')
    out.append("</svg>")
    pathlib.Path("docs/figures/drift.svg").write_text("\n".join(out) + "\n", encoding="utf-8")


main()
