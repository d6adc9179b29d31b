"""Writes ../references.toml. Every state is computed by two formulations that have to agree to 1e-20.

    pip install mpmath gmpy2 sympy scipy;  python references.py [NAME ...]

With names, only those cases are computed anew. A quarter of an hour on two cores.
"""

import math
import sys
from multiprocessing import Pool
from pathlib import Path

import gmpy2
import sympy as sp
from gmpy2 import mpfr
from mpmath import mp, mpf
from scipy.integrate import solve_ivp

from formulations import dirac, function, integrate, minimal, natural, t

mp.dps = 45

CASES = {}
Q = sp.Rational
dot = lambda a, b: sum(x*y for x, y in zip(a, b))
sub = lambda a, b: [x - y for x, y in zip(a, b)]
cross = lambda a, b: [a[1]*b[2] - a[2]*b[1], a[2]*b[0] - a[0]*b[2], a[0]*b[1] - a[1]*b[0]]
norm = lambda a: sp.sqrt(dot(a, a))


def number(c):
    """Anything numeric as an mpfr, without a detour through double precision."""
    if isinstance(c, sp.Basic):
        return mpfr(str(sp.N(c, 45)))
    return mpfr(mp.nstr(c, 45)) if isinstance(c, mpf) else mpfr(c)


def numbers(v):
    return [number(c) for c in v]


def case(model, until, shape, steps, **facts):
    """Registers a function that returns (start, field in phase space or None, other way to the final state, its words).

    The phase-space field comes from `dirac` (or is a function of the module name); `other(steps)` is independent of it.
    """
    def register(make):
        name = make.__name__.replace("_", "-")
        CASES[name] = dict(name=name, model=model, until=until, shape=shape, steps=steps, make=make, facts=facts)
        return make
    return register


def phase(n):
    return sp.symbols(f"q:{n}"), sp.symbols(f"p:{n}")


def mechanical(q, p, mass, V, g, start, u, x, u0, words, until):
    """Constrained Cartesian against minimal coordinates: H = p^2/(2 mass) + V(q), g(q, t) = 0, q = x(u, t)."""
    M = sp.Matrix(mass) if isinstance(mass, sp.MatrixBase) else sp.diag(*mass)
    H = (sp.Matrix([p])*M.inv()*sp.Matrix(p))[0]/2 + V
    f = natural(q, p, H, g)
    n = len(q)
    start = numbers(start)
    v0 = [sum(number(c)*a for c, a in zip(row, start[n:]) if c) for row in M.inv().tolist()]
    field, begin, out = minimal(u, x, mass, V, q)
    y0 = begin(numbers(u0), v0)
    assert max(abs(a - b) for a, b in zip(out(0, y0), start)) < 1e-35, "the minimal start is not the Cartesian one"
    other = lambda steps: out(number(until), integrate(field, y0, number(until), steps))
    return start, lambda precise: dirac(q, p, H, f, precise), other, words


# ---- the papers' models ---------------------------------------------------------------------------------------------

PERIOD = 4*mp.ellipk(mpf(1)/2)


def pendulum(until):
    q, p = phase(2)
    a, = u = sp.symbols("u:1")
    return mechanical(q, p, [1, 1], q[1], [dot(q, q) - 1], [1, 0, 0, 0], u, [sp.sin(a), -sp.cos(a)], [mp.pi/2],
                      "the angle", until)


@case("planar-pendulum", 5, dict(q=(2,), p=(2,)), 20, constraints=["rod"], hidden=["rod"])
def planar_pendulum():
    return pendulum(5)


@case("planar-pendulum", PERIOD, dict(q=(2,), p=(2,)), 30, constraints=["rod"], hidden=["rod"])
def planar_pendulum_period():
    start, field, other, _ = pendulum(PERIOD)
    return start, field, lambda steps: start, "one period, 4 K(1/2): the start itself"


@case("spherical-pendulum", 100, dict(q=(3,), p=(3,)), 600, constraints=["rod"], hidden=["rod"], integrals=["J"])
def spherical_pendulum():
    q, p = phase(3)
    a, b = u = sp.symbols("u:2")
    x = [sp.sin(a)*sp.cos(b), sp.sin(a)*sp.sin(b), -sp.cos(a)]
    return mechanical(q, p, [1]*3, q[2], [dot(q, q) - 1], [0, 1, 0, 1, 0, -1], u, x, [mp.pi/2]*2,
                      "inclination and azimuth", 100)


def kepler(until):
    q, p = phase(3)
    H = dot(p, p)/2 - 1/norm(q)
    a, e = mpf(5), mpf("0.8")
    E = mp.findroot(lambda E: E - e*mp.sin(E) - until/a**1.5, until/a**1.5 + e*mp.sin(until/a**1.5))
    b, rate = a*mp.sqrt(1 - e**2), 1/(a**1.5*(1 - e*mp.cos(E)))
    exact = [a*(mp.cos(E) - e), b*mp.sin(E), mpf(0), -a*mp.sin(E)*rate, b*mp.cos(E)*rate, mpf(0)]
    return (numbers([1, 0, 0, 0, sp.sqrt(Q(9, 5)), 0]), lambda precise: dirac(q, p, H, [], precise), lambda steps: exact,
            "Kepler's equation")


@case("kepler", 10, dict(x=(3,), v=(3,)), 60, integrals=["L", "A"])
def kepler_part():
    return kepler(10)


@case("kepler", 2*mp.pi*mpf(5)**1.5, dict(x=(3,), v=(3,)), 250, integrals=["L", "A"])
def kepler_period():
    return kepler(2*mp.pi*mpf(5)**1.5)


@case("perturbed-kepler", 200, dict(x=(3,), v=(3,)), 1350, integrals=["L"], tolerance=1e-8)
def perturbed_kepler():
    q, p = phase(3)
    r, b, z = u = sp.symbols("u:3")
    V = -1/norm(q) - Q(1, 400)/norm(q)**3
    return mechanical(q, p, [1]*3, V, [], [Q(2, 5), 0, 0, 0, 2, 0], u, [r*sp.cos(b), r*sp.sin(b), z], [Q(2, 5), 0, 0],
                      "polar coordinates", 200)


def euler(I, w):
    """I w' + w x I w = 0, solved for w'."""
    return [c/i for c, i in zip(cross([i*a for i, a in zip(I, w)], w), I)]


def turn(q, w):
    """q (0, w), quaternions as (scalar, vector)."""
    return [-q[1]*w[0] - q[2]*w[1] - q[3]*w[2], q[0]*w[0] + q[2]*w[2] - q[3]*w[1],
            q[0]*w[1] + q[3]*w[0] - q[1]*w[2], q[0]*w[2] + q[1]*w[1] - q[2]*w[0]]


def rotation(q):
    a, b, c, d = q
    return [[a*a + b*b - c*c - d*d, 2*(b*c - a*d), 2*(b*d + a*c)],
            [2*(b*c + a*d), a*a - b*b + c*c - d*d, 2*(c*d - a*b)],
            [2*(b*d - a*c), 2*(c*d + a*b), a*a - b*b - c*c + d*d]]


def hat(w):
    return [[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]]


def quaternion_run(I, q0, w0, until, steps, mgl=0):
    """Euler-Poisson equations and quaternion kinematics q' = q (0, w)/2."""
    def field(time, y):
        q, w = y[:4], y[4:]
        torque = [-mgl*c for c in cross([0, 0, 1], rotation(q)[2])]   # m g l e3 x (-up), up in the body
        return [c/2 for c in turn(q, w)] + [a + b/i for a, b, i in zip(euler(I, w), torque, I)]
    y = integrate(field, numbers(q0) + numbers(w0), until, steps)
    return y[:4], y[4:]


@case("rigid-body", 10, dict(R=(3, 3), w=(3,)), 60, constraints=["orthogonal"], integrals=["E", "Pi"])
def rigid_body():
    I = [3, 2, 1]

    def field(time, y):
        R, w = [y[0:3], y[3:6], y[6:9]], y[9:]
        return [dot(row, column) for row in R for column in zip(*hat(w))] + euler(I, w)

    def other(steps):
        q, w = quaternion_run(I, [1, 0, 0, 0], [1, 1, 1], 10, steps)
        return sum(rotation(q), []) + w

    return numbers([1, 0, 0, 0, 1, 0, 0, 0, 1, 1, 1, 1]), lambda precise: field, other, "a unit quaternion"


@case("henon-heiles", 50, dict(q=(2,), p=(2,)), 90)
def henon_heiles():
    q, p = phase(2)
    u = sp.symbols("u:2")
    V = dot(q, q)/2 + q[0]**2*q[1] - q[1]**3/3
    E, y = Q(1, 12), Q(1, 10)
    return mechanical(q, p, [1, 1], V, [], [0, y, sp.sqrt(2*E - y**2 + 2*y**3/3), 0], u, [u[0] + u[1]**2/5, u[1]],
                      [-y**2/5, y], "sheared coordinates", 50)


def hanging(angles, lengths):
    """Positions of the joints of planar rods with the given angles from the downward vertical."""
    x = y = 0
    out = []
    for a, l in zip(angles, lengths):
        x, y = x + l*sp.sin(a), y - l*sp.cos(a)
        out += [x, y]
    return out


def double_pendulum_run():
    q, p = phase(4)
    u = sp.symbols("u:2")
    g = [dot(q[:2], q[:2]) - 1, dot(sub(q[2:], q[:2]), sub(q[2:], q[:2])) - 2]
    return mechanical(q, p, [1]*4, q[1] + q[3], g, [0, -1, 1, -2, 0, 0, 0, 0], u, hanging(u, [1, sp.sqrt(2)]),
                      [0, mp.pi/4], "two angles", 10)


@case("double-pendulum", 10, dict(r1=(2,), r2=(2,), p1=(2,), p2=(2,)), 60, constraints=["upper", "lower"],
      hidden=["upper", "lower"])
def double_pendulum():
    return double_pendulum_run()


@case("suite:double-pendulum-angles", 10, dict(theta=(), phi=(), a=(), b=()), 60)
def double_pendulum_angles():
    q, p = phase(2)
    L, c = [1, sp.sqrt(2)], sp.cos(q[0] - q[1])
    M = sp.Matrix([[2, L[1]*c], [L[1]*c, 2]])
    H = (sp.Matrix([p])*M.inv()*sp.Matrix(p))[0]/2 - (2*sp.cos(q[0]) + L[1]*sp.cos(q[1]))
    cartesian = double_pendulum_run()[2]

    def other(steps):     # from the Cartesian state: angles, and momenta as J^T p
        x1, y1, x2, y2, *p = cartesian(steps)
        return [gmpy2.atan2(x1, -y1), gmpy2.atan2(x2 - x1, y1 - y2),
                -y1*(p[0] + p[2]) + x1*(p[1] + p[3]), (y1 - y2)*p[2] + (x2 - x1)*p[3]]

    return numbers([0, sp.pi/4, 0, 0]), lambda precise: dirac(q, p, H, [], precise), other, "the Cartesian formulation"


@case("chain", 5, dict(r=(4, 2), p=(4, 2)), 60, set=["n=4"], constraints=["anchor", "link"],
      hidden=["anchor", "link"])
def chain_of_four():
    q, p = phase(8)
    u = sp.symbols("u:4")
    r = [[0, 0]] + [q[2*i:2*i + 2] for i in range(4)]
    g = [dot(sub(b, a), sub(b, a)) - 5 for a, b in zip(r, r[1:])]
    start = sum([[i, -2*i] for i in range(1, 5)], []) + [0]*8
    return mechanical(q, p, [1]*8, sum(q[1::2]), g, start, u, hanging(u, [sp.sqrt(5)]*4), [mp.atan(mpf(1)/2)]*4,
                      "four angles", 5)


# ---- mechanical systems that no author has tuned for ----------------------------------------------------------------

@case("suite:double-spherical-pendulum", 10, dict(a=(3,), b=(3,), pa=(3,), pb=(3,)), 160,
      constraints=["upper", "lower"], hidden=["upper", "lower"], integrals=["J"])
def double_spherical_pendulum():
    q, p = phase(6)
    u = sp.symbols("u:4")
    sin, cos = sp.sin, sp.cos
    m, l = Q(7, 10), Q(4, 5)
    a = [cos(u[0])*sin(u[1]), sin(u[0]), -cos(u[0])*cos(u[1])]
    d = [l*sin(u[2])*cos(u[3]), l*sin(u[2])*sin(u[3]), -l*cos(u[2])]
    V = q[2] + m*q[5]
    g = [dot(q[:3], q[:3]) - 1, dot(sub(q[3:], q[:3]), sub(q[3:], q[:3])) - l**2]
    start = [Q(3, 5), 0, -Q(4, 5), Q(3, 5), Q(4, 5), -Q(4, 5), 0, Q(1, 2), 0, m*Q(2, 5), m*Q(1, 2), -m*Q(3, 10)]
    return mechanical(q, p, [1]*3 + [m]*3, V, g, start, u, a + [x + y for x, y in zip(a, d)],
                      [0, mp.atan2(3, 4), mp.pi/2, mp.pi/2], "four angles", 10)


def torus(polynomial):
    q, p = phase(3)
    a, b = u = sp.symbols("u:2")
    R, r = 2, Q(1, 2)
    rho2 = q[0]**2 + q[1]**2
    g = (dot(q, q) + R**2 - r**2)**2 - 4*R**2*rho2 if polynomial else (sp.sqrt(rho2) - R)**2 + q[2]**2 - r**2
    rho = R + r*sp.cos(a)
    start = [Q(12, 5), 0, Q(3, 10), Q(9, 20), Q(6, 5), -Q(3, 5)]
    return mechanical(q, p, [1]*3, q[2], [g], start, u, [rho*sp.cos(b), rho*sp.sin(b), r*sp.sin(a)],
                      [mp.atan2(3, 4), 0], "the two angles of the torus", 15)


TORUS = dict(constraints=["torus"], hidden=["torus"], integrals=["J"])


@case("suite:bead-on-torus-root", 15, dict(x=(3,), p=(3,)), 90, **TORUS)
def bead_on_torus_root():
    return torus(False)


@case("suite:bead-on-torus-polynomial", 15, dict(x=(3,), p=(3,)), 90, **TORUS)
def bead_on_torus_polynomial():
    return torus(True)


def quaternion(I, q0, w0, until, mgl=0):
    q, p = phase(4)
    basis = lambda q: [turn(q, e) for e in ([1, 0, 0], [0, 1, 0], [0, 0, 1])]
    momentum = lambda q, w, I: [sum(2*i*c*e[k] for i, c, e in zip(I, w, basis(q))) for k in range(4)]
    H = sum(dot(p, e)**2/i for e, i in zip(basis(q), I))/8 + mgl*(q[0]**2 - q[1]**2 - q[2]**2 + q[3]**2)

    def other(steps):
        x, w = quaternion_run(numbers(I), q0, w0, until, steps, mgl)
        return x + momentum(x, w, numbers(I))

    start = numbers(list(q0) + momentum(q0, w0, I))
    return start, lambda precise: dirac(q, p, H, [dot(q, q) - 1, dot(q, p)], precise), other, "Euler's equations"


@case("suite:quaternion-free-body", 10, dict(q=(4,), p=(4,)), 60, constraints=["unit"], hidden=["unit"],
      integrals=["casimir"])
def quaternion_free_body():
    return quaternion([3, 2, 1], [Q(c, 5) for c in (1, 2, 2, 4)], [1, 1, 1], 10)


@case("suite:quaternion-heavy-top", 10, dict(q=(4,), p=(4,)), 100, constraints=["unit"], hidden=["unit"],
      integrals=["Lz"])
def quaternion_heavy_top():
    return quaternion([2, Q(3, 2), 1], [Q(c, 5) for c in (4, 2, 2, 1)], [Q(3, 10), Q(1, 5), 2], 10, 1)


@case("suite:slider-crank", 10, dict(pin=(2,), slider=(2,), pp=(2,), ps=(2,)), 300,
      constraints=["crank", "rod", "guide"], hidden=["crank", "rod", "guide"])
def slider_crank():
    q, p = phase(4)
    a, = u = sp.symbols("u:1")
    g = [dot(q[:2], q[:2]) - 1, dot(sub(q[2:], q[:2]), sub(q[2:], q[:2])) - Q(25, 4), q[3]]
    x = [sp.sin(a), sp.cos(a), sp.sin(a) + sp.sqrt(Q(25, 4) - sp.cos(a)**2), 0]
    return mechanical(q, p, [1, 1, 2, 2], q[1], g, [0, 1, sp.sqrt(Q(21, 4)), 0, 3, 0, 6, 0], u, x, [0],
                      "the crank angle", 10)


@case("suite:rod-chain-in-space", 3, dict(r=(4, 3), p=(4, 3)), 30, constraints=["rod"], hidden=["rod"],
      integrals=["P", "L"])
def rod_chain_in_space():
    q, p = phase(12)
    u = sp.symbols("u:9")
    sin, cos = sp.sin, sp.cos
    m = [1, 2, Q(3, 2), Q(4, 5)]
    r = [q[3*i:3*i + 3] for i in range(4)]
    V = -sum(m[i]*m[j]/norm(sub(r[i], r[j])) for i in range(4) for j in range(i))/10
    g = [dot(sub(b, a), sub(b, a)) - 1 for a, b in zip(r, r[1:])]
    flat = lambda a, b: [cos(a)*cos(b), sin(a)*cos(b), sin(b)]
    rods = [flat(u[3], u[4]), flat(u[5], u[6]), flat(u[7], u[8])[2:] + flat(u[7], u[8])[:2]]
    x = [list(u[:3])]
    for rod in rods:
        x.append([a + b for a, b in zip(x[-1], rod)])
    v = [[0, 6, 1], [0, 1, -2], [3, 1, 3], [3, 4, 3]]
    start = [0, 0, 0, 1, 0, 0, 1, 1, 0, 1, 1, 1] + [m[i]*Q(c, 10) for i in range(4) for c in v[i]]
    return mechanical(q, p, [c for c in m for _ in range(3)], V, g, start, u, sum(x, []),
                      [0, 0, 0, 0, 0, mp.pi/2, 0, mp.pi/2, 0], "a body and three pairs of angles", 3)


@case("suite:spring-ring", 5, dict(x=(5, 2), p=(5, 2)), 80, integrals=["P", "J"])
def spring_ring():
    q, p = phase(10)
    u = sp.symbols("u:10")
    z = [q[2*i:2*i + 2] for i in range(5)]
    near = lambda a, b: (b - a) % 5 in (1, 4)
    V = sum(2*(norm(sub(z[a], z[b])) - Q(11, 10))**2 if near(a, b) else 1/norm(sub(z[a], z[b]))
            for a in range(5) for b in range(a))
    start = [c for a in range(1, 6) for c in (sp.cos(2*sp.pi*a/5) + Q(a, 20), sp.sin(2*sp.pi*a/5) - Q(a, 20))] \
        + [c for a in range(1, 6) for c in (Q(3 - a, 10), Q((a - 3)**2, 5) - Q(2, 5))]
    x = [u[k] + (u[k - 2] if k > 1 else 0) for k in range(10)]
    u0 = start[:2]
    for k in range(2, 10):
        u0.append(start[k] - u0[k - 2])
    return mechanical(q, p, [1]*10, V, [], start, u, x, u0, "sums of neighbours", 5)


@case("suite:driven-pendulum", 10, dict(q=(2,), p=(2,)), 80, constraints=["rod"], hidden=["rod"], feature="rheonomic")
def driven_pendulum():
    q, p = phase(2)
    a, = u = sp.symbols("u:1")
    pivot = Q(2, 5)*sp.sin(Q(3, 2)*t)
    g = (q[0] - pivot)**2 + q[1]**2 - 1
    return mechanical(q, p, [1, 1], q[1], [g], [Q(3, 5), -Q(4, 5), 1, Q(3, 10)], u, [pivot + sp.sin(a), -sp.cos(a)],
                      [mp.atan2(3, 4)], "the angle", 10)


@case("suite:coupled-masses", 10, dict(q=(2,), p_q=(2,)), 80, feature="velocity")
def coupled_masses():
    q, p = phase(2)
    u = sp.symbols("u:2")
    M = sp.Matrix([[2, 1], [1, 3]])
    V = dot(q, q)/2 + (q[0] - q[1])**4/4
    start = [1, -Q(1, 2)] + list(M*sp.Matrix([Q(1, 5), Q(7, 10)]))
    return mechanical(q, p, M, V, [], start, u, [(u[0] + u[1])/2, (u[1] - u[0])/2], [Q(3, 2), Q(1, 2)],
                      "difference and sum", 10)


@case("suite:dumbbell", 10, dict(r=(2, 2), p_r=(2, 2)), 80, constraints=["rod"], hidden=["rod"],
      feature="velocity")
def dumbbell():
    q, p = phase(4)
    u = sp.symbols("u:3")
    m = [1, 1, 3, 3]
    V = sum(m*(x**2 + 2*y**2)/2 for m, x, y in ((1, q[0], q[1]), (3, q[2], q[3])))
    g = norm(sub(q[2:], q[:2])) - 1
    c, s = sp.cos(u[2]), sp.sin(u[2])
    x = [u[0] - 3*c/4, u[1] - 3*s/4, u[0] + c/4, u[1] + s/4]
    start = [0, Q(1, 5), 1, Q(1, 5), Q(1, 10), Q(1, 10), Q(3, 10), Q(3, 2)]
    return mechanical(q, p, m, V, [g], start, u, x, [Q(3, 4), Q(1, 5), 0], "centre of mass and angle", 10)


@case("suite:outer-planets", 1000, dict(q=(6, 3), p=(6, 3)), 30, integrals=["P", "L"], feature="table")
def outer_planets():
    q, p = phase(18)
    u = sp.symbols("u:18")
    text = (Path(__file__).parent.parent/"models/outer-planets.csv").read_text().split()[1:]
    rows = [[Q(c) for c in line.split(",")] for line in text]
    m = [row[0] for row in rows]
    r = [q[3*i:3*i + 3] for i in range(6)]
    G = Q("2.95912208286e-4")
    V = -G*sum(m[i]*m[j]/norm(sub(r[i], r[j])) for i in range(6) for j in range(i))
    positions = [c for row in rows for c in row[1:4]]
    x = [u[k] + (u[k % 3] if k > 2 else 0) for k in range(18)]
    u0 = [c - (positions[k % 3] if k > 2 else 0) for k, c in enumerate(positions)]
    start = positions + [row[0]*c for row in rows for c in row[4:]]
    return mechanical(q, p, [c for c in m for _ in range(3)], V, [], start, u, x, u0, "heliocentric coordinates", 1000)


@case("suite:lopsided-oscillator", 10, dict(q=(), p=()), 0, feature="if", hamiltonian=1.0)
def lopsided_oscillator():
    def other(steps):
        q, p, left = mpf(1)/2, mpf(1), mpf(10)
        while True:
            w = 2 if q > 0 or (q == 0 and p > 0) else 1
            turn = (mp.atan2(w*q, p) % mp.pi)/w       # time since the last zero
            rest = min(mp.pi/w - turn, left)
            A = mp.hypot(w*q, p)
            sign = 1 if w == 2 else -1
            if rest == left:
                return [sign*A*mp.sin(w*(turn + rest))/w, sign*A*mp.cos(w*(turn + rest))]
            q, p, left = mpf(0), -sign*A, left - rest
    field = lambda time, y: [y[1], -(4 if y[0] > 0 else 1)*y[0]]
    return numbers([Q(1, 2), 1]), lambda precise: None if precise else field, other, "sines, half period by half period"


@case("suite:toda-lattice", 10, dict(x=(6,), p=(6,)), 100, feature="if, let functions of indices")
def toda_lattice():
    q, p = phase(6)
    u = sp.symbols("u:6")
    x = [0] + list(q) + [0]
    V = sum((2 if i == 3 else 1)*(sp.exp(x[i] - x[i + 1]) + x[i + 1] - x[i] - 1) for i in range(7))
    start = [sp.sin(i)/4 for i in range(1, 7)] + [sp.cos(3*i)/2 for i in range(1, 7)]
    sums = [sum(u[:k + 1]) for k in range(6)]
    u0 = [start[0]] + [start[k] - start[k - 1] for k in range(1, 6)]
    return mechanical(q, p, [1]*6, V, [], start, u, sums, u0, "differences of neighbours", 10)


def matrix_body(J, q0, w0, until, weight=0):
    """A body with the mass moments J, in a potential of the height of its third axis."""
    q, p = phase(9)
    H = sum(p[3*i + k]**2/J[k] for i in range(3) for k in range(3))/2 + weight*q[8]
    column = lambda k: q[k::3]
    g = [dot(column(i), column(k)) - int(i == k) for i in range(3) for k in range(i + 1)]
    momentum = lambda R, w, J: [dot(row, column)*J[k] for row in R for k, column in enumerate(zip(*hat(w)))]

    def other(steps):
        x, w = quaternion_run(numbers([sum(J) - j for j in J]), q0, w0, until, steps, weight)
        return sum(rotation(x), []) + momentum(rotation(x), w, numbers(J))

    R0 = rotation(q0)
    return (numbers(sum(R0, []) + momentum(R0, w0, J)), lambda precise: dirac(q, p, H, natural(q, p, H, g), precise), other,
            "Euler's equations and a quaternion")


@case("suite:matrix-rigid-body", 5, dict(Q=(3, 3), P=(3, 3)), 40, constraints=["orthogonal"],
      hidden=["orthogonal"], integrals=["spin"])
def matrix_rigid_body():
    return matrix_body([3, 2, 1], [1, 0, 0, 0], [Q(1, 2), 1, -Q(7, 10)], 5)


@case("magnetic-body", 10, dict(R=(3, 3), P=(3, 3)), 60, constraints=["orthogonal"], hidden=["orthogonal"],
      integrals=["Lz", "spin"])
def magnetic_body():
    return matrix_body([Q(1, 2)]*3, [1, 0, 0, 0], [1, Q(1, 5), Q(1, 10)], 10, 1)


@case("heavy-top", 5, dict(R=(3, 3), P=(3, 3)), 60, constraints=["orthogonal"], hidden=["orthogonal"], integrals=["Lz"])
def heavy_top():
    turned = [2/sp.sqrt(5), 0, 1/sp.sqrt(5), 0]
    return matrix_body([Q(1, 4), Q(3, 4), Q(5, 4)], turned, [Q(3, 10), Q(1, 5), 2], 5, 1)


@case("suite:magnetic-particle", 10, dict(q=(3,), p=(3,)), 80)
def magnetic_particle():
    q, p = phase(3)
    B, E = Q(3, 2), Q(2, 5)
    A = lambda q, B: [-B*q[1]/2, B*q[0]/2, 0]
    H = dot(sub(p, A(q, B)), sub(p, A(q, B)))/2 - E*q[0]
    exact = [Q(1, 2), -Q(1, 5), Q(1, 10), Q(3, 10), Q(4, 5), Q(1, 4)]
    start = numbers(exact)

    def other(steps):     # x'' = B y' + E, y'' = -B x': a circle about a centre that drifts along -y
        b, e, T = mpf(3)/2, mpf(2)/5, mpf(10)
        begin = [mpf(c.p)/c.q for c in exact]
        v = sub(begin[3:], A(begin[:3], b))
        c = mp.mpc(v[0], v[1] + e/b)
        w = c*mp.expj(-b*T) - mp.mpc(0, e/b)
        z = mp.mpc(*begin[:2]) + c*(1 - mp.expj(-b*T))/(1j*b) - mp.mpc(0, e/b*T)
        x = [z.real, z.imag, begin[2] + v[2]*T]
        return x + [a + c for a, c in zip([w.real, w.imag, v[2]], A(x, b))]

    return start, lambda precise: dirac(q, p, H, [], precise), other, "complex exponentials"


@case("suite:forced-oscillators", 10, dict(x=(3, 2)), 100)
def forced_oscillators():
    def make(sin):
        def field(time, y):
            x, v = y[0::2], y[1::2]
            around = [sin(13*time/10)] + list(x) + [0]
            a = [-x[i]**3 - v[i]/10 + around[i] - 2*x[i] + around[i + 2] for i in range(3)]
            return [c for pair in zip(v, a) for c in pair]
        return field

    def other(steps):     # the same with y = x' + x/20 for the velocity and the drive as a second oscillator
        def field(time, y):
            x, v, s, c = y[0:3], y[3:6], y[6], y[7]
            z = [s, *x, 0]
            return [v[i] - x[i]/20 for i in range(3)] \
                + [-x[i]**3 - v[i]/20 + x[i]/400 + z[i] - 2*x[i] + z[i + 2] for i in range(3)] \
                + [13*c/10, -13*s/10]
        x0, v0 = start[0::2], start[1::2]
        y = integrate(field, x0 + [v + x/20 for v, x in zip(v0, x0)] + [mpfr(0), mpfr(1)], 10, steps)
        return [c for x, v in zip(y[0:3], y[3:6]) for c in (x, v - x/20)]

    start = numbers([c for i in (1, 2, 3) for c in (Q(i, 5), 1 - Q(3*i, 10))])
    return start, lambda precise: make(gmpy2.sin if precise else math.sin), other, "an autonomous system"


# ---- constraints in phase space -------------------------------------------------------------------------------------

@case("suite:second-class-pair", 10, dict(q=(3,), p=(3,)), 100, constraints=["height", "lift"])
def second_class_pair():
    q, p = phase(3)
    a, b = Q(1, 2), Q(7, 10)
    H = dot(p, p)/2 + dot(q, q)/2 + q[0]*q[1]**2/5
    f = [q[2] - a*q[0]*q[1], p[2] - b*q[0]**2]
    start = numbers([1, Q(1, 2), Q(1, 4), Q(1, 5), Q(9, 10), Q(7, 10)])
    h = H.subs({q[2]: a*q[0]*q[1], p[2]: b*q[0]**2})
    dh = function((q[:2], p[:2]), [sp.diff(h, c) for c in q[:2] + p[:2]])
    a, b = numbers([a, b])

    def other(steps):     # dp/dt = -h_q + the magnetic force of 2 a b x^2
        def field(time, y):
            hx, hy, vx, vy = dh(y[:2], y[2:])
            B = 2*a*b*y[0]**2
            return [vx, vy, -hx + B*vy, -hy - B*vx]
        x, y, px, py = integrate(field, start[:2] + start[3:5], 10, steps)
        return [x, y, a*x*y, px, py, b*x*x]

    return start, lambda precise: dirac(q, p, H, f, precise), other, "the reduced Lagrangian, a magnetic field"


@case("suite:guiding-centre", 10, dict(q=(2,), p=(2,)), 100, constraints=["landau"])
def guiding_centre():
    q, p = phase(2)
    V = q[0]**2/2 + q[1]**4/4 - sp.cos(q[0]*q[1])
    start = numbers([Q(3, 10), Q(11, 10), -Q(11, 10), Q(3, 10)])

    def other(steps):
        field = lambda time, y: [-(y[1]**3 + y[0]*gmpy2.sin(y[0]*y[1]))/2, (y[0] + y[1]*gmpy2.sin(y[0]*y[1]))/2]
        x, y = integrate(field, start[:2], 10, steps)
        return [x, y, -y, x]

    return start, lambda precise: dirac(q, p, V, [p[0] + q[1], p[1] - q[0]], precise), other, "the drift along V"


@case("suite:vortices", 2, dict(z=(4, 2), p=(4, 2)), 200, constraints=["slaved"],
      integrals=["centre", "impulse"])
def vortices():
    q, p = phase(8)
    c = [1, Q(3, 2), -Q(1, 2), 2]
    z = [q[2*i:2*i + 2] for i in range(4)]
    H = -sum(c[i]*c[j]*sp.log(norm(sub(z[i], z[j]))) for i in range(4) for j in range(i))
    f = [e for i in range(4) for e in (p[2*i] - c[i]*q[2*i + 1]/2, p[2*i + 1] + c[i]*q[2*i]/2)]
    momentum = lambda y: [e for i in range(4) for e in (c[i]*y[2*i + 1]/2, -c[i]*y[2*i]/2)]
    z0 = [1, 0, 0, Q(6, 5), -Q(11, 10), Q(3, 10), Q(1, 5), -Q(9, 10)]

    def other(steps):     # every vortex circles in the field of the others
        C = numbers(c)
        def field(time, y):
            z = [gmpy2.mpc(y[2*i], y[2*i + 1]) for i in range(4)]
            v = [sum(C[j]/(z[i] - z[j]) for j in range(4) if j != i) for i in range(4)]     # -i times the conjugate velocity
            return [e for w in v for e in (w.imag, w.real)]
        y = integrate(field, numbers(z0), 2, steps)
        return y + [e for i in range(4) for e in (C[i]*y[2*i + 1]/2, -C[i]*y[2*i]/2)]

    return numbers(z0 + momentum(z0)), lambda precise: dirac(q, p, H, f, precise), other, "complex velocities"


def sphere(q, p):
    return dot(q, q) + dot(p, p) - 1


@case("suite:hopf-oscillator", 10, dict(q=(2,), p=(2,)), 60, constraints=["sphere"], hidden=["sphere"],
      integrals=["J"])
def hopf_oscillator():
    q, p = phase(2)
    H = dot(p, p)/2

    def other(steps):     # q' = (1 + 2l) p, p' = -2l q with 2l = p^2/(q^2 - p^2) = 9/7
        w = mp.sqrt(mpf(9)*16)/7
        c, s = mp.cos(10*w), mp.sin(10*w)
        return [mpf(4)/5*c, mpf(4)/5*s, -mpf(3)/5*s, mpf(3)/5*c]

    return (numbers([Q(4, 5), 0, 0, Q(3, 5)]), lambda precise: dirac(q, p, H, [sphere(q, p), 2*dot(q, p)], precise), other,
            "a circle of angular velocity 12/7")


@case("suite:hopf-pendulum", 5, dict(q=(2,), p=(2,)), 400, constraints=["sphere"], hidden=["sphere"])
def hopf_pendulum():
    q, p = phase(2)
    H = dot(p, p)/2 + q[1]
    f = [sphere(q, p), 2*(p[0]*q[0] + p[1]*(q[1] - 1))]
    start = numbers([Q(c, 289) for c in (216, -116, 135, 72)])
    b, s = sp.symbols("b s")     # q = (0, 1) + a e(s), p = b e'(s): the action is a b ds - H dt
    e = [sp.cos(s), sp.sin(s)]
    a = -e[1] + sp.sqrt(e[1]**2 - b**2)
    F, h = a*b, b**2/2 + 1 + a*e[1]
    rates = function((b, s), [-sp.diff(h, s)/sp.diff(F, b), sp.diff(h, b)/sp.diff(F, b)])
    back = function((b, s), [a*e[0], 1 + a*e[1], -b*e[1], b*e[0]])

    def other(steps):
        y = integrate(lambda time, y: rates(*y), numbers([mpf(9)/17, mp.atan2(-15, 8)]), 5, steps)
        return back(*y)

    return start, lambda precise: dirac(q, p, H, f, precise), other, "the reduced action in two variables"


# ---- computing and writing ------------------------------------------------------------------------------------------

def nested(values, shape):
    if not shape:
        return repr(float(values[0]))
    size = len(values)//shape[0]
    return "[" + ", ".join(nested(values[i*size:(i + 1)*size], shape[1:]) for i in range(shape[0])) + "]"


def quoted(words):
    return "[" + ", ".join(f'"{w}"' for w in words) + "]"


def compute(name):
    """The text of a case, and one line about it."""
    c = CASES[name]
    start, make, other, words = c["make"]()
    until, facts = number(c["until"]), c["facts"]
    exact = numbers(other(c["steps"]))
    distance = lambda a, b: float(max(abs(x - y) for x, y in zip(a, b)))
    source = [words]
    field = make(True)
    if field:
        second = distance(exact, integrate(field, start, until, 4*c["steps"]//3))
        if not second < 1e-16:
            return name, None, f"NO AGREEMENT: {second}"
        source.append(("the Dirac extension" if facts.get("constraints") and hasattr(field, "energy") else "the field as it stands")
                      + f" in 45 digits agrees to {second:.0e}")
    quick = make(False)
    run = solve_ivp(quick, (0, float(until)), [float(e) for e in start], method="DOP853", rtol=1e-12, atol=1e-12)
    plain = distance(exact, run.y[:, -1])
    source.append(f"DOP853 in double precision errs by {plain:.0e}")
    tolerance = max(1e-9, 10.0**math.ceil(math.log10(5*plain)))
    lines = ["[[case]]", f'name = "{name}"',
             f'model = "{c["model"].replace("suite:", "models/") if "suite:" in c["model"] else "../models/" + c["model"]}.holo"']
    if "set" in facts:
        lines.append(f"set = {quoted(facts['set'])}")
    if "feature" in facts:
        lines.append(f'feature = "{facts["feature"]}"')
    lines += [f"until = {float(until)!r}", 'method = "plain:dop853"', "rtol = 1e-12", "atol = 1e-12",
              f"tolerance = {tolerance:.0e}".replace("e-0", "e-"), f'source = "{"; ".join(source)}"']
    if hasattr(field, "energy") and facts.get("feature") != "rheonomic":
        lines.append(f"hamiltonian = {float(field.energy(start))!r}")
    elif "hamiltonian" in facts:
        lines.append(f"hamiltonian = {facts['hamiltonian']}")
    lines += [f"{key} = {quoted(facts[key])}" for key in ("constraints", "hidden", "integrals") if key in facts]
    for key, shape in c["shape"].items():
        size = math.prod(shape)
        lines.append(f"state.{key} = {nested(exact[:size], shape)}")
        exact = exact[size:]
    return name, "\n".join(lines) + "\n", "; ".join(source)


HEADER = """\
# Reference states, independent of the engine. Written by reference/references.py; do not edit by hand.
#
# [[case]]        run `model` (a path from this folder; `set` as on the command line) with `method`, `rtol`, `atol` up to
#                 `until`: each component of the state is within `tolerance` of `state` (nested as in `run --json`), and the
#                 drift holds exactly the members `hamiltonian` (its initial value is given), `constraints`, `hidden`, `integrals`.
#                 `feature` names the part of the language a case is there for; "rheonomic" may be refused.
#                 `source` says how the state was made, how well a second formulation agrees, and what DOP853 in double precision
#                 makes of it at these tolerances: divided by 1e-12, that is how much small errors grow up to `until`,
#                 which is kept short where a system is chaotic. `tolerance` is 1e-9, or 5 times that error rounded up to a power of 10.
# [[experiment]]  a published number, checked by reference/experiments.c, projection.py, constrained.py or rigid_bodies.py,
#                 or one computed by reference/symmetric_projection.py: `options` as on the command
#                 line; `quantity` is a path into the output of `run --json`, or `error`, the Euclidean distance in all of
#                 phase space between the final state and the state of the case `reference` (or, for "start", the initial state).

"""


def main():
    names = sys.argv[1:] or list(CASES)
    here = Path(__file__).parent
    target = here.parent/"references.toml"
    old = target.read_text().split("\n[[experiment]]")[0].split("\n[[case]]")[1:] if target.exists() else []
    texts = {text.split('"')[1]: f"[[case]]{text.split('# ----')[0].rstrip()}\n" for text in old}
    with Pool() as pool:
        for name, text, words in pool.imap_unordered(compute, names):
            print(f"{name:30s} {words}", flush=True)
            texts[name] = text
            cases = "\n".join(texts[name] for name in CASES if texts.get(name))
            target.write_text(HEADER + cases + "\n" + (here/"experiments.toml").read_text())


if __name__ == "__main__":
    main()
