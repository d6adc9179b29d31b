"""Prints the errors of RATTLE and of splittings in the papers' experiments, from bare loops in double precision.

    python constrained.py

The rows of experiments.toml on these methods come from here. For H = |p|^2/2 + V(q), unit masses (HLW VII.1 (1.26)):
p½ = p - h/2 (V_q + G^T lam), q1 = q + h p½ with g(q1) = 0; p1 = p½ - h/2 (V_q(q1) + G(q1)^T mu) with G(q1) p1 = 0.
"""

import math
import tomllib
from pathlib import Path

from formulations import solve

dot = lambda a, b: sum(x*y for x, y in zip(a, b))
moved = lambda x, h, v: [a + h*b for a, b in zip(x, v)]


def rods(pairs, lengths, d):
    """|r_j - r_i| = l; i = None for the origin."""
    def part(q, i):
        return [0.0]*d if i is None else q[i*d:i*d + d]

    def g(q):
        return [dot(e, e) - l*l for l, e in zip(lengths, (moved(part(q, j), -1, part(q, i)) for i, j in pairs))]

    def G(q):
        rows = []
        for i, j in pairs:
            e, row = moved(part(q, j), -1, part(q, i)), [0.0]*len(q)
            for k in range(d):
                row[j*d + k] = 2*e[k]
                if i is not None:
                    row[i*d + k] = -2*e[k]
            rows.append(row)
        return rows

    return g, G


def rattle(V_q, g, G):
    def step(h, q, p):
        rows, free = G(q), moved(p, -h/2, V_q(q))
        lam = [0.0]*len(rows)

        def at(lam):
            half = free
            for l, row in zip(lam, rows):
                half = moved(half, -h/2*l, row)
            return half, moved(q, h, half)

        for _ in range(8):
            half, q1 = at(lam)
            after = G(q1)
            A = [[-h*h/2*dot(a, b) for b in rows] for a in after]
            lam = moved(lam, -1.0, solve(A, g(q1)))
        half, q1 = at(lam)
        after, free = G(q1), moved(half, -h/2, V_q(q1))
        mu = solve([[dot(a, b) for b in after] for a in after], [dot(a, free) for a in after])
        p1 = free
        for m, row in zip(mu, after):
            p1 = moved(p1, -m, row)
        return q1, p1
    return step


def circle(h, q, p):
    w = math.sqrt(dot(p, p)/dot(q, q))
    c, s = math.cos(w*h), math.sin(w*h)
    return [a*c + b*s/w for a, b in zip(q, p)], [b*c - a*w*s for a, b in zip(q, p)]


def kick(h, q, p):
    """V = z, within the tangent space."""
    share = q[2]/dot(q, q)
    return q, [b - h*((k == 2) - share*a) for k, (a, b) in enumerate(zip(q, p))]


def lie_trotter(h, q, p):
    return circle(h, *kick(h, q, p))


def strang(h, q, p):
    return circle(h/2, *kick(h, *circle(h/2, q, p)))


def suzuki4(step):
    c = 1/(4 - 4**(1/3))

    def composed(h, q, p):
        for part in (c, c, 1 - 4*c, c, c):
            q, p = step(part*h, q, p)
        return q, p
    return composed


def run(step, h, count, q, p):
    for _ in range(count):
        q, p = step(h, q, p)
    return q, p


def main():
    cases = tomllib.loads((Path(__file__).parent.parent/"references.toml").read_text())["case"]
    state = {case["name"]: [c for v in case["state"].values() for c in flat(v)] for case in cases}
    error = lambda x, y: math.sqrt(sum((a - b)**2 for a, b in zip(x[0] + x[1], y)))
    down = lambda d: lambda q: [float(k % d == d - 1) for k in range(len(q))]

    sphere = rattle(down(3), *rods([(None, 0)], [1.0], 3))
    for name, step in (("rattle", sphere), ("lie-trotter", lie_trotter), ("strang", strang)):
        print("spherical pendulum", name,
              error(run(step, 1e-3, 100000, [0.0, 1.0, 0.0], [1.0, 0.0, -1.0]), state["spherical-pendulum"]))
    plane = rattle(down(2), *rods([(None, 0)], [1.0], 2))
    for count in (7416, 742, 371):
        print("planar pendulum rattle", count,
              error(run(plane, 7.4162987092054875/count, count, [1.0, 0.0], [0.0, 0.0]), [1, 0, 0, 0]))
    for name, pairs, lengths, q in (
            ("double-pendulum", [(None, 0), (0, 1)], [1.0, math.sqrt(2)], [0.0, -1.0, 1.0, -2.0]),
            ("chain-of-four", [(None, 0), (0, 1), (1, 2), (2, 3)], [math.sqrt(5)]*4,
             [float(c) for i in range(1, 5) for c in (i, -2*i)])):
        until = next(case["until"] for case in cases if case["name"] == name)
        step = rattle(down(2), *rods(pairs, lengths, 2))
        for method, s in (("rattle", step), ("suzuki4(rattle)", suzuki4(step))):
            for count in (500, 1000):
                print(name, method, until, count, error(run(s, until/count, count, q, [0.0]*len(q)), state[name]))


def flat(v):
    return [c for w in v for c in flat(w)] if isinstance(v, list) else [v]


main()
