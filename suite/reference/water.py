"""Writes ../structure/water.toml: rigid water after some steps of RATTLE, in double precision.

    python water.py

The step is typed from HLW VII.1 (1.26), the model from its sources and its starts again; the multipliers of every molecule
are found by Newton's method with the exact matrix, by Cramer's rule. Nothing is shared with the engine.
"""

import csv
from math import cos, fsum, pi, sin, sqrt
from pathlib import Path

HERE = Path(__file__).parent
K, A, C, OH = 14.39968, 25237.96, 25.8017, 0.9572
ANGLE = 104.52*pi/180
HH = 2*OH*sin(ANGLE/2)
M, Q = (1.008, 15.9994, 1.008), (0.417, -0.834, 0.417)
RODS = ((0, 1, OH), (2, 1, OH), (0, 2, HH))


def table(n):
    with open(HERE / f"../../models/water-{n}.csv") as file:
        rows = [[float(v) for v in row] for row in list(csv.reader(file))[1:]]
    sites = [(row[:3], row[3:]) for row in rows]
    return ([[sites[3*a + s][0] for s in range(3)] for a in range(n)],
            [[[M[s]*v for v in sites[3*a + s][1]] for s in range(3)] for a in range(n)])


def lattice(n):
    side = 1
    while side**3 < n:
        side += 1
    x = []
    for a in range(1, n + 1):
        layer, rest = divmod(a - 1, side*side)
        line, column = divmod(rest, side)
        o = [3.1*column, 3.1*line, 3.1*layer]
        f, g = 2.4*a, 1.3*a
        across = [cos(f), sin(f)*cos(g), sin(f)*sin(g)]
        along = [-sin(f), cos(f)*cos(g), cos(f)*sin(g)]
        site = lambda u, v: [c + OH*(u*sin(ANGLE/2)*d + v*cos(ANGLE/2)*e) for c, d, e in zip(o, across, along)]
        x.append([site(-1, 1), o, site(1, 1)])
    return x, [[[0.0]*3 for _ in range(3)] for _ in range(n)]


def forces(x):
    n = len(x)
    parts = [[[[] for _ in range(3)] for _ in range(3)] for _ in range(n)]
    for a in range(n):
        for b in range(a):
            for s in range(3):
                for u in range(3):
                    d = [i - j for i, j in zip(x[a][s], x[b][u])]
                    r2 = fsum(c*c for c in d)
                    w = K*Q[s]*Q[u]/(r2*sqrt(r2))
                    if s == 1 and u == 1:
                        w += (12*A/r2**6 - 6*C/r2**3)/r2
                    for c in range(3):
                        parts[a][s][c].append(w*d[c])
                        parts[b][u][c].append(-w*d[c])
    return [[[fsum(c) for c in site] for site in molecule] for molecule in parts]


def solve3(m, r):
    det = lambda m: (m[0][0]*(m[1][1]*m[2][2] - m[1][2]*m[2][1]) - m[0][1]*(m[1][0]*m[2][2] - m[1][2]*m[2][0])
                     + m[0][2]*(m[1][0]*m[2][1] - m[1][1]*m[2][0]))
    whole = det(m)
    return [det([[r[i] if j == k else m[i][j] for j in range(3)] for i in range(3)])/whole for k in range(3)]


def rods(x):
    return [[i - j for i, j in zip(x[a], x[b])] for a, b, _ in RODS]


def pulled(p, d, weights):
    p = [list(site) for site in p]
    for (a, b, _), rod, w in zip(RODS, d, weights):
        for c in range(3):
            p[a][c] -= 2*w*rod[c]
            p[b][c] += 2*w*rod[c]
    return p


def matrix(d, e):
    """Of the rods d at the end and e along which the forces act: d_i . M^-1 of the force of rod j, over 2."""
    share = lambda i, j: sum((1 if v == u else -1)/M[k]
                             for v, k in enumerate(RODS[i][:2]) for u, l in enumerate(RODS[j][:2]) if k == l)
    return [[2*share(i, j)*sum(a*b for a, b in zip(d[i], e[j])) for j in range(3)] for i in range(3)]


def rattle(x, p, f, h):
    n, x1, half = len(x), [], []
    for a in range(n):
        d, lam = rods(x[a]), [0.0]*3
        kicked = [[v + h/2*w for v, w in zip(p[a][s], f[a][s])] for s in range(3)]
        for _ in range(20):
            q = pulled(kicked, d, [h/2*v for v in lam])
            y = [[u + h*v/M[s] for u, v in zip(x[a][s], q[s])] for s in range(3)]
            e = rods(y)
            g = [sum(c*c for c in rod) - l*l for rod, (_, _, l) in zip(e, RODS)]
            if max(map(abs, g)) < 4e-16:
                break
            lam = [u + v for u, v in zip(lam, solve3([[h*h*v for v in row] for row in matrix(e, d)], g))]
        x1.append(y)
        half.append(q)
    f1, p1 = forces(x1), []
    for a in range(n):
        q = [[v + h/2*w for v, w in zip(half[a][s], f1[a][s])] for s in range(3)]
        for _ in range(2):
            d = rods(x1[a])
            v = [[c/M[s] for c in q[s]] for s in range(3)]
            g = [2*sum(a*b for a, b in zip(rod, w)) for rod, w in zip(d, rods(v))]
            q = pulled(q, d, [v/2 for v in solve3(matrix(d, d), g)])
        p1.append(q)
    return x1, p1, f1


def case(n, h, count):
    x, p = table(n) if n in (7, 100) else lattice(n)
    f = forces(x)
    for _ in range(count):
        x, p, f = rattle(x, p, f, h)
    flat = lambda y: ", ".join(f"{c!r}" for molecule in y for site in molecule for c in site)
    return f"\n[[water]]\nn = {n}\nh = {h}\ncount = {count}\nx = [{flat(x)}]\np = [{flat(p)}]\n"


if __name__ == "__main__":
    head = """# Rigid water after some steps of RATTLE, independent of the engine. Written by ../reference/water.py; do not edit by hand.
# The model is ../../models/water.holo with so many molecules, started as it starts.
"""
    text = head + "".join(case(*c) for c in ((2, 0.1, 5), (7, 0.05, 40), (9, 0.05, 20), (30, 0.05, 4)))
    (HERE / "../structure/water.toml").write_text(text)
