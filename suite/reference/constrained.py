"""Prints the errors of RATTLE, splittings and penalties in the papers' experiments, from bare loops in double precision.

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


def penalised(V_q, g, G, omega, beta):
    """Steps of Zhang and Skeel and of Newmark with V + omega^2/2 |g|^2, V linear; of rods, where row i of G(a) is g_i'' a."""
    w = omega**2
    scaled = lambda rows, x: [w*dot(x, column) for column in zip(*rows)]
    force = lambda q: [-a - b for a, b in zip(V_q(q), scaled(G(q), g(q)))]

    def matrix(h, q):
        """1 + beta h^2 V_qq"""
        rows, n = G(q), len(q)
        second = [[sum(r[i]*r[j] for r in rows) for j in range(n)] for i in range(n)]
        for j in range(n):
            bent = G([float(i == j) for i in range(n)])
            for i in range(n):
                second[i][j] += sum(a*row[i] for a, row in zip(g(q), bent))
        return [[(i == j) + beta*h*h*w*c for j, c in enumerate(row)] for i, row in enumerate(second)]

    def f(h, q):
        a = solve(matrix(h, q), force(q))
        rows, bent = G(q), G(a)
        third = [2*b + c for b, c in zip(scaled(bent, [dot(r, a) for r in rows]), scaled(rows, [dot(r, a) for r in bent]))]
        return moved(a, -beta**2*h**4/2, third)

    def zhang_skeel(h, q, p):
        half = moved(p, h/2, f(h, q))
        q1 = moved(q, h, half)
        return q1, moved(half, h/2, f(h, q1))

    def newmark(h, q, p):
        a0, q1 = force(q), q
        known = moved(moved(q, h, p), h*h*(0.5 - beta), a0)
        for _ in range(10):
            rest = [a - b - beta*h*h*c for a, b, c in zip(q1, known, force(q1))]
            q1 = moved(q1, -1.0, solve(matrix(h, q1), rest))
        return q1, moved(moved(p, h/2, a0), h/2, force(q1))

    return zhang_skeel, newmark


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


    g, G = rods([(None, 0), (0, 1)], [1.0, math.sqrt(2)], 2)
    exact, start = suzuki4(rattle(down(2), g, G)), [0.0, -1.0, 1.0, -2.0]
    benchmark = positions(lambda h, q, p: run(exact, h/10, 10, q, p), 0.1, 500, start)
    steps = zip(("zhang-skeel", "newmark", "rattle"), (*penalised(down(2), g, G, 20, 0.4), rattle(down(2), g, G)))
    for name, step in steps:
        errors = [math.dist(a, b) for a, b in zip(benchmark, positions(step, 0.1, 500, start))]
        print("double-pendulum, omega 20, h 0.1, mean error of the positions from 10 to 50:", name, sum(errors[100:])/401)
    g, G = rods([(i - 1 if i else None, i) for i in range(10)], [math.sqrt(5)]*10, 2)
    start = [float(c) for i in range(1, 11) for c in (i, -2*i)]
    pair = [positions(step, 0.05, 400, start) for step in (rattle(down(2), g, G), penalised(down(2), g, G, 20, 0.4)[0])]
    for k in range(2):
        gap = max(abs(b - a) for x, y in zip(*pair) for a, b in zip(x[k::2], y[k::2]))
        print("chain of ten, omega 20, h 0.05, largest difference of zhang-skeel and rattle up to 20 along", "xy"[k], gap)


def positions(step, h, count, q):
    """Those of all steps, from rest."""
    x = [(q, [0.0]*len(q))]
    for _ in range(count):
        x.append(step(h, *x[-1]))
    return [q for q, _ in x]


def flat(v):
    return [c for w in v for c in flat(w)] if isinstance(v, list) else [v]


main()
