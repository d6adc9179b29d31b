"""Writes ../structure/steps.toml: states after a few steps of the structure-preserving methods, in 45 digits.

    pip install gmpy2 sympy;  python steps.py

Each method is typed from its source (HLW = Hairer, Lubich, Wanner, Geometric Numerical Integration, 2nd ed.), with the
Hamiltonians and constraints of the models typed again. Nothing is shared with the engine: equations are solved by Newton's
method with difference quotients of 1e-20, one within another; fibres are followed by extrapolation.
"""

from functools import reduce
from pathlib import Path

import gmpy2
import mpmath as mp
import sympy as sp
from gmpy2 import mpfr

import brackets
import nonholonomic
import rigid_bodies
from formulations import function, integrate, natural, solve, t

Q = sp.Rational
dot = lambda a, b: sum(x*y for x, y in zip(a, b))
sub = lambda a, b: [x - y for x, y in zip(a, b)]
moved = lambda x, h, v: [a + h*b for a, b in zip(x, v)]
number = lambda c: mpfr(str(sp.N(c, 45)))


def newton(f, u):
    """The u with f(u) = 0 near `u`."""
    step = mpfr("1e-20")
    for _ in range(30):
        r = f(u)
        if max(abs(c) for c in r) < mpfr("1e-40"):
            return u
        columns = [sub(f([c + step*(i == k) for i, c in enumerate(u)]), r) for k in range(len(u))]
        du = solve([[column[i]/step for column in columns] for i in range(len(u))], r)
        u = sub(u, du)
    raise ArithmeticError("no solution")


class Model:
    def __init__(self, H, q, p, start, g=(), stiff=None):
        self.q, self.p, self.n = list(q), list(p), len(q)
        self.start = [number(c) for c in start]
        g, x = list(g), list(q) + list(p)
        diff = lambda f, v: [sp.diff(f, c) for c in v]
        # {g, H} + g_t
        hidden = [dot(diff(f, q), diff(H, p)) - dot(diff(f, p), diff(H, q)) + sp.diff(f, t) for f in g]
        H_q, H_p = function((t, x), diff(H, q)), function((t, x), diff(H, p))
        self.H_q = lambda time, q, p: H_q(time, list(q) + list(p))
        self.H_p = lambda time, q, p: H_p(time, list(q) + list(p))
        self.g, self.hidden = function((t, x), g), function((t, x), hidden)
        self.X_g = function((t, x), [diff(f, p) + [-c for c in diff(f, q)] for f in g])
        self.stiff = stiff
        W = sp.Matrix([[sp.diff(H, a, b) for b in p] for a in p])
        at_rest = {c: 0 for c in p}
        if not g and not W.free_symbols and all(sp.diff(H, c).subs(at_rest) == 0 for c in p):
            # H = p W p/2 + V
            V = H.subs(at_rest)
            self.M = [[number(c) for c in row] for row in W.inv().tolist()]
            hessian = lambda V: function((t, q), [diff(c, q) for c in diff(V, q)])
            self.V_q, self.V_qq = function((t, q), diff(V, q)), hessian(V)
            self.V_qqq = function((t, q), [[diff(c, q) for c in row] for row in [diff(c, q) for c in diff(V, q)]])
            self.stiff_qq = hessian(stiff) if stiff is not None else None
        self.holonomic = not any(f.has(c) for f in g for c in p)
        for f in (self.g, self.hidden):
            assert all(abs(c) < mpfr("1e-40") for c in f(mpfr(0), self.start)), "the start is off the set"

    def X(self, time, x):
        q, p = x[:self.n], x[self.n:]
        return self.H_p(time, q, p) + [-c for c in self.H_q(time, q, p)]

    def slide(self, time, x, lam):
        """The flow of lam_i X_{g_i} for the time 1."""
        field = lambda _, y: [sum(l*c for l, c in zip(lam, column)) for column in zip(*self.X_g(time, y))]
        if self.holonomic:
            return moved(x, 1, field(0, x))
        return integrate(field, x, mpfr(1), 1, columns=12)


# ---- unconstrained maps ------------------------------------------------------------------------------------------------

def euler_a(m, t, h, x):
    """HLW VI.3 (3.1), left: p1 = p - h H_q(p1, q), q1 = q + h H_p(p1, q)."""
    q, p = x[:m.n], x[m.n:]
    p1 = newton(lambda p1: sub(p1, moved(p, -h, m.H_q(t, q, p1))), p)
    return moved(q, h, m.H_p(t, q, p1)) + p1


def euler_b(m, t, h, x):
    """HLW VI.3 (3.1), right: p1 = p - h H_q(p, q1), q1 = q + h H_p(p, q1)."""
    q, p = x[:m.n], x[m.n:]
    q1 = newton(lambda q1: sub(q1, moved(q, h, m.H_p(t + h, q1, p))), q)
    return q1 + moved(p, -h, m.H_q(t + h, q1, p))


def verlet_a(m, t, h, x):
    """HLW VI.3 (3.4)."""
    q, p = x[:m.n], x[m.n:]
    half = newton(lambda y: sub(y, moved(p, -h/2, m.H_q(t, q, y))), p)
    v = m.H_p(t, q, half)
    q1 = newton(lambda y: sub(y, moved(moved(q, h/2, v), h/2, m.H_p(t + h, y, half))), q)
    return q1 + moved(half, -h/2, m.H_q(t + h, q1, half))


def verlet_b(m, t, h, x):
    """HLW VI.3 (3.5)."""
    q, p = x[:m.n], x[m.n:]
    half = newton(lambda y: sub(y, moved(q, h/2, m.H_p(t + h/2, y, p))), q)
    f = m.H_q(t + h/2, half, p)
    p1 = newton(lambda y: sub(y, moved(moved(p, -h/2, f), -h/2, m.H_q(t + h/2, half, y))), p)
    return moved(half, h/2, m.H_p(t + h/2, half, p1)) + p1


def midpoint(m, t, h, x):
    """HLW II.1 (1.7)."""
    mean = lambda y: [(a + b)/2 for a, b in zip(x, y)]
    return newton(lambda y: sub(y, moved(x, h, m.X(t + h/2, mean(y)))), x)


def gauss(A, b):
    c = [sum(row) for row in A]

    def step(m, t, h, x):
        n = len(x)
        chunks = lambda k: [k[i:i + n] for i in range(0, len(k), n)]

        def equations(k):
            k = chunks(k)
            stage = lambda row: [y + h*sum(a*kj[i] for a, kj in zip(row, k)) for i, y in enumerate(x)]
            return [c for ki, ci, row in zip(k, c, A) for c in sub(ki, m.X(t + ci*h, stage(row)))]

        k = chunks(newton(equations, m.X(t, x)*len(b)))
        return [y + h*sum(bi*ki[i] for bi, ki in zip(b, k)) for i, y in enumerate(x)]

    return step


# HLW II.1 table 1.1.
r3, r15 = sp.sqrt(3), sp.sqrt(15)
gauss4 = gauss([[number(c) for c in row] for row in ((Q(1, 4), Q(1, 4) - r3/6), (Q(1, 4) + r3/6, Q(1, 4)))],
               [mpfr("0.5")]*2)
gauss6 = gauss([[number(c) for c in row] for row in (
    (Q(5, 36), Q(2, 9) - r15/15, Q(5, 36) - r15/30),
    (Q(5, 36) + r15/24, Q(2, 9), Q(5, 36) - r15/24),
    (Q(5, 36) + r15/30, Q(2, 9) + r15/15, Q(5, 36)))], [number(Q(5, 18)), number(Q(4, 9)), number(Q(5, 18))])

def gauss_of(stages):
    """HLW II.1.3 with c the zeros of the shifted Legendre polynomial: a_ij and b_j integrate Lagrange's polynomials."""
    x = sp.Symbol("x")
    with mp.workdps(60):
        c = sorted((1 + mp.mpf(str(z)))/2 for z in sp.Poly(sp.legendre(stages, x), x).nroots(n=60, maxsteps=500))
        inverse = mp.matrix([[ci**k for k in range(stages)] for ci in c])**-1
        row = lambda t: [mpfr(mp.nstr(sum(t**(k + 1)/(k + 1)*inverse[k, j] for k in range(stages)), 50))
                         for j in range(stages)]
        return gauss([row(ci) for ci in c], row(mp.mpf(1)))


def variational_euler(m, t, h, x):
    """The discrete Legendre transform of h L(q, (q1 - q)/h): p = L_v - h L_q, p1 = L_v, with p1 = p - h H_q(q, p1)."""
    q, p = x[:m.n], x[m.n:]
    unknowns = newton(lambda u: sub(u[:m.n], moved(q, h, m.H_p(t, q, u[m.n:])))
                      + sub(u[m.n:], moved(p, -h, m.H_q(t, q, u[m.n:]))), q + p)
    return unknowns


MAPS = {"variational-euler": variational_euler, "velocity-verlet": verlet_a, "symplectic-euler-a": euler_a, "symplectic-euler-b": euler_b, "stormer-verlet-a": verlet_a,
        "stormer-verlet-b": verlet_b, "implicit-midpoint": midpoint, "gauss2": midpoint, "gauss4": gauss4,
        "gauss6": gauss6}
# For a field alone: slides take other maps.
FIELD_MAPS = {"gauss8": gauss_of(4), "gauss16": gauss_of(8)}


# ---- Newmark's methods and those of Zhang and Skeel, in velocities and accelerations -------------------------------------

BETA = mpfr("0.4")
times = lambda A, x: [dot(row, x) for row in A]
minus = lambda x: [-c for c in x]


def moving(step):
    """A step (q, v) -> (q, v) as one of (q, p = M v)."""
    def of(m, t, h, x):
        q, v = step(m, t, h, x[:m.n], solve(m.M, x[m.n:]))
        return list(q) + times(m.M, v)
    return of


def verlet_with(f):
    """x1 = x + h v + h^2/2 f, v1 = v + h/2 (f + f1)."""
    def step(m, t, h, q, v):
        f0 = f(m, t, h, q)
        q1 = moved(moved(q, h, v), h*h/2, f0)
        return q1, moved(moved(v, h/2, f0), h/2, f(m, t + h, h, q1))
    return moving(step)


def linear(m, t, h, q, hessian):
    """(M + beta h^2 V_qq) a = -V_q"""
    A = [[a + BETA*h*h*b for a, b in zip(row, other)] for row, other in zip(m.M, hessian(t, q))]
    return solve(A, minus(m.V_q(t, q)))


def bent(m, t, h, q):
    """a - beta^2 h^4/2 M^-1 (a V_qqq a)"""
    a = linear(m, t, h, q, m.V_qq)
    return moved(a, -BETA**2*h**4/2, solve(m.M, [dot(a, times(A, a)) for A in m.V_qqq(t, q)]))


acceleration = lambda m, t, q: minus(solve(m.M, m.V_q(t, q)))


def newmark_with(position):
    def step(m, t, h, q, v):
        a0 = acceleration(m, t, q)
        x1 = lambda a1: moved(moved(q, h, v), h*h, [(mpfr("0.5") - BETA)*a + BETA*b for a, b in zip(a0, a1)])
        q1 = position(m, t, h, q, x1)
        return q1, moved(v, h/2, [a + b for a, b in zip(a0, acceleration(m, t + h, q1))])
    return moving(step)


def once(m, t, h, q, x1):
    """One step of Newton's method from q, for M (q1 - x1(a(q1))) = 0, with the forces of the time t."""
    rest = times(m.M, sub(q, x1(acceleration(m, t, q))))
    return sub(q, solve([[a + BETA*h*h*b for a, b in zip(r, s)] for r, s in zip(m.M, m.V_qq(t, q))], rest))


NATURAL = {
    "zhang-skeel": verlet_with(bent),
    "zhang-skeel-simplified": verlet_with(lambda m, t, h, q: linear(m, t, h, q, m.V_qq)),
    "newmark": newmark_with(
        lambda m, t, h, q, x1: newton(lambda y: sub(y, x1(acceleration(m, t + h, y))), q)),
    "newmark-one-step": newmark_with(once),
    "pushforward-newmark": verlet_with(
        lambda m, t, h, q: newton(lambda a: sub(a, acceleration(m, t, moved(q, BETA*h*h, a))), acceleration(m, t, q))),
}
STIFF = {"zhang-skeel-stiff": verlet_with(lambda m, t, h, q: linear(m, t, h, q, m.stiff_qq))}


# ---- constraints -------------------------------------------------------------------------------------------------------

def shake(base):
    """Slide along the fibre so that the map lands on g = 0. (With a kick for fibre and (3.4) for map: HLW VII.1 (1.19).)"""
    def step(m, t, h, x):
        y = lambda lam: base(m, t, h, m.slide(t, x, [h*l for l in lam]))
        return y(newton(lambda lam: m.g(t + h, y(lam)), [mpfr(0)]*len(m.g(t, x))))
    return step


def rattle(base):
    """The same, then along the fibre until the hidden constraints hold (McLachlan, Modin, Verdier, Wilkins 2014)."""
    def step(m, t, h, x):
        y = shake(base)(m, t, h, x)
        z = lambda mu: m.slide(t + h, y, [h*c for c in mu])
        return z(newton(lambda mu: m.hidden(t + h, z(mu)), [mpfr(0)]*len(m.g(t, x))))
    return step


def rattle_hlw(m, t, h, x):
    """HLW VII.1 (1.26), all unknowns (p½, q1, p1, lambda, mu) at once; for g(q) without t."""
    n, k = m.n, len(m.g(t, x))
    q, p = x[:n], x[n:]
    force = lambda q, lam: [-sum(l*row[n + i] for l, row in zip(lam, m.X_g(t, q + p))) for i in range(n)]

    def equations(u):
        half, q1, p1, lam, mu = u[:n], u[n:2*n], u[2*n:3*n], u[3*n:3*n + k], u[3*n + k:]
        kick = lambda y, q, f: moved(moved(y, -h/2, m.H_q(t, q, half)), -h/2, f)
        return (sub(half, kick(p, q, force(q, lam)))
                + sub(q1, moved(moved(q, h/2, m.H_p(t, q, half)), h/2, m.H_p(t, q1, half)))
                + sub(p1, kick(half, q1, force(q1, mu))) + m.g(t, q1 + p1) + m.hidden(t, q1 + p1))

    u = newton(equations, p + q + p + [mpfr(0)]*(2*k))
    return u[n:3*n]


# ---- splittings --------------------------------------------------------------------------------------------------------

def splitting(motion, kick, ends=None):
    """HLW II.5 (5.2), (5.3), with the first and the last kick of a step if they differ from others. What depends on the time is
    taken at the time that the other flow has reached."""
    def chain(*flows):
        """Each with the part of the step after which its time is, and the part for which it goes."""
        return lambda m, t, h, x: reduce(lambda y, f: f[0](m, t + f[1]*h, f[2]*h, y), flows, x)

    def in_turn(motions, kicks, start=0):
        """The motion first and last, from the part `start` of the step on."""
        flows, moved, kicked = [], mpfr(start), mpfr(start)
        for k, a in enumerate(motions):
            flows.append((motion, kicked, a))
            moved += a
            if k < len(kicks):
                flows.append((kick, moved, kicks[k]))
                kicked += kicks[k]
        return flows

    def composed_of_flows(motions, kicks):
        return chain(*in_turn(motions, kicks))

    def corrected(motions, kicks):
        """Wisdom 2006: the corrector, kick, motion and kick, and the corrector's inverse."""
        back = in_turn([-a for a in motions[::-1]], [-b for b in kicks[::-1]], 1)
        return chain(*in_turn(motions, kicks), (first, 0, half), (motion, half, 1), (last, 1, half), *back)

    half, (first, last) = mpfr("0.5"), ends or (kick, kick)
    own = {"lie-trotter": chain((kick, 0, 1), (motion, 1, 1)),
           "lie-trotter-adjoint": chain((motion, 0, 1), (kick, 1, 1)),
           "strang": chain((motion, 0, half), (kick, half, 1), (motion, 1, half)),
           "strang-kdk": chain((first, 0, half), (motion, half, 1), (last, 1, half))}
    composed = {name: composed_of_flows(*coefficients) for name, coefficients in FLOWS.items()}
    return own, composed | {f"wisdom{2*n + 1}": corrected(*corrector(n)) for n in (1, 2, 3, 5, 8)}


def spheres(*masses):
    """HLW VII.4: great circles, and kicks within the tangent space; one sphere in R^3 for each mass."""
    def each(m, x, f):
        moved = [f(i, x[3*i:3*i + 3], x[m.n + 3*i:m.n + 3*i + 3]) for i in range(m.n//3)]
        return sum((q for q, _ in moved), []) + sum((p for _, p in moved), [])

    def circle(m, _, h, x):
        def f(i, q, p):
            mass, r, s = number(masses[i]), gmpy2.sqrt(dot(q, q)), gmpy2.sqrt(dot(p, p))
            angle = h*s/(mass*r)
            cos, sin = gmpy2.cos(angle), gmpy2.sin(angle)
            return [a*cos + b*r/s*sin for a, b in zip(q, p)], [b*cos - a*s/r*sin for a, b in zip(q, p)]
        return each(m, x, f)

    def kick(m, t, h, x):
        V_q = m.H_q(t, x[:m.n], x[m.n:])

        def f(i, q, p):
            v = V_q[3*i:3*i + 3]
            share = dot(q, v)/dot(q, q)
            return q, [b - h*(c - share*a) for a, b, c in zip(q, p, v)]
        return each(m, x, f)

    return splitting(circle, kick)


def oscillators(W_q):
    """Unit oscillators, and kicks by the rest W(q) of the potential."""
    def turn(m, _, h, x):
        cos, sin = gmpy2.cos(h), gmpy2.sin(h)
        q, p = x[:m.n], x[m.n:]
        return [a*cos + b*sin for a, b in zip(q, p)] + [b*cos - a*sin for a, b in zip(q, p)]
    return splitting(turn, lambda m, _, h, x: x[:m.n] + moved(x[m.n:], -h, W_q(x[:m.n])))


def drift_kick():
    """T(p) and V(q)."""
    return splitting(lambda m, t, h, x: moved(x[:m.n], h, m.H_p(t, x[:m.n], x[m.n:])) + x[m.n:],
                     lambda m, t, h, x: x[:m.n] + moved(x[m.n:], -h, m.H_q(t, x[:m.n], x[m.n:])))


def orbit(q, v, mu, tau):
    """Kepler's motion by the difference of the eccentric anomalies (Gauss's functions f and g)."""
    r, a = gmpy2.sqrt(dot(q, q)), 1/(2/gmpy2.sqrt(dot(q, q)) - dot(v, v)/mu)
    n, cosine, sine = gmpy2.sqrt(mu/a**3), 1 - r/a, dot(q, v)/gmpy2.sqrt(mu*a)
    E = newton(lambda u: [u[0] + sine*(1 - gmpy2.cos(u[0])) - cosine*gmpy2.sin(u[0]) - n*tau], [n*tau])[0]
    r1 = a*(1 - cosine*gmpy2.cos(E) + sine*gmpy2.sin(E))
    f, g = 1 - a/r*(1 - gmpy2.cos(E)), tau - (E - gmpy2.sin(E))/n
    f1, g1 = -gmpy2.sqrt(mu*a)/(r*r1)*gmpy2.sin(E), 1 - a/r1*(1 - gmpy2.cos(E))
    return [f*x + g*y for x, y in zip(q, v)], [f1*x + g1*y for x, y in zip(q, v)]


def about_a_centre():
    """The motion of Kepler about the origin, and nothing else."""
    def motion(m, _, h, x):
        q, v = orbit(x[:3], x[3:], mpfr(1), h)
        return q + v
    return splitting(motion, lambda m, _, h, x: x)


def two_planets(V_q):
    """Jacobi coordinates of a star of mass 1 and two planets; the kick by the rest of the potential, with its derivative V_q."""
    m1, m2 = number(Q(5, 100)), number(Q(8, 100))
    inner, outer = 1 + m1, 1 + m1 + m2
    mu1, mu2, k1, k2 = m1/inner, inner*m2/outer, m1, inner*m2

    def to(x):
        q0, q1, q2, p0, p1, p2 = (x[2*k:2*k + 2] for k in range(6))
        pair = [a + b for a, b in zip(p0, p1)]
        Q1, Q2 = sub(q1, q0), sub(q2, [(a + m1*b)/inner for a, b in zip(q0, q1)])
        centre = [(a + m1*b + m2*c)/outer for a, b, c in zip(q0, q1, q2)]
        P1 = [(b - m1*a)/inner for a, b in zip(p0, p1)]
        P2 = [(inner*c - m2*a)/outer for a, c in zip(pair, p2)]
        return centre, Q1, Q2, [a + c for a, c in zip(pair, p2)], P1, P2

    def back(centre, Q1, Q2, P, P1, P2):
        pair = [c - m2/outer*q for c, q in zip(centre, Q2)]
        q0, q1 = [c - m1/inner*q for c, q in zip(pair, Q1)], [c + q/inner for c, q in zip(pair, Q1)]
        p2 = [a + m2/outer*b for a, b in zip(P2, P)]
        both = sub(P, p2)
        p1 = [a + m1/inner*b for a, b in zip(P1, both)]
        return q0 + q1 + [c + inner/outer*q for c, q in zip(centre, Q2)] + sub(both, p1) + p1 + p2

    def motion(m, _, h, x):
        centre, Q1, Q2, P, P1, P2 = to(x)
        moved_ = []
        for q, p, mu, k in ((Q1, P1, mu1, k1), (Q2, P2, mu2, k2)):
            q, v = orbit(q, [c/mu for c in p], k/mu, h)
            moved_.append((q, [mu*c for c in v]))
        (Q1, P1), (Q2, P2) = moved_
        return back([c + h*p/outer for c, p in zip(centre, P)], Q1, Q2, P, P1, P2)

    def kick(m, t, h, x):
        # The derivative of k1/|Q1| + k2/|Q2| + V by q, which changes p.
        _, Q1, Q2, *_ = to(x)
        g1, g2 = ([-k*c/gmpy2.sqrt(dot(q, q))**3 for c in q] for q, k in ((Q1, k1), (Q2, k2)))
        by_pairs = ([-a - b/inner for a, b in zip(g1, g2)] + [a - m1*b/inner for a, b in zip(g1, g2)] + g2)
        slope = [a + b for a, b in zip(V_q(t, x[:6]), by_pairs)]
        return x[:6] + moved(x[6:], -h, slope)

    return splitting(motion, kick)


def two_planets_of_the_star(V_q):
    """Places from the star and barycentric momenta (Duncan, Levison, Lee 1998, (4) to (7)): the motions of Kepler and of the
    centre of mass, and around the kick, by the planets' attraction and the tide, the star's recoil: half before and half
    after it in yoshida4, but after the first kick of a step and before the last one."""
    m = [number(Q(5, 100)), number(Q(8, 100))]
    total = 1 + m[0] + m[1]

    def to(x):
        q, p = [x[2*k:2*k + 2] for k in range(3)], [x[6 + 2*k:8 + 2*k] for k in range(3)]
        whole = [a + b + c for a, b, c in zip(*p)]
        centre = [(a + m[0]*b + m[1]*c)/total for a, b, c in zip(*q)]
        return centre, [sub(q[k], q[0]) for k in (1, 2)], whole, [moved(p[k], -m[k - 1]/total, whole) for k in (1, 2)]

    def back(centre, places, whole, momenta):
        star = [c - (m[0]*a + m[1]*b)/total for c, a, b in zip(centre, *places)]
        p0 = [w/total - a - b for w, a, b in zip(whole, *momenta)]
        return (star + [a + b for place in places for a, b in zip(star, place)] + p0
                + [b for k in (0, 1) for b in moved(momenta[k], m[k]/total, whole)])

    def motion(_, t, h, x):
        centre, places, whole, momenta = to(x)
        ends = [orbit(q, [c/mass for c in p], mpfr(1), h) for q, p, mass in zip(places, momenta, m)]
        return back(moved(centre, h/total, whole), [q for q, _ in ends], whole,
                    [[mass*c for c in v] for (_, v), mass in zip(ends, m)])

    def recoil(h, x):
        centre, places, whole, momenta = to(x)
        both = [a + b for a, b in zip(*momenta)]
        return back(centre, [moved(q, h, both) for q in places], whole, momenta)

    def kick(_, t, h, x):
        q, slope = [x[2*k:2*k + 2] for k in range(3)], V_q(t, x[:6])
        for k in (1, 2):        # less the slope of -m/|q_k - q_0|
            r = sub(q[k], q[0])
            own = [m[k - 1]*c/gmpy2.sqrt(dot(r, r))**3 for c in r]
            slope[2*k:2*k + 2] = sub(slope[2*k:2*k + 2], own)
            slope[:2] = [a + b for a, b in zip(slope[:2], own)]
        return x[:6] + moved(x[6:], -h, slope)

    def middle(system, t, h, x):
        for c in COMPOSITIONS["yoshida4"]:
            x = recoil(c*h/2, kick(system, t, c*h, recoil(c*h/2, x)))
        return x

    def first(system, t, h, x):
        return recoil(h, kick(system, t, h, x))

    def last(system, t, h, x):
        return kick(system, t, h, recoil(h, x))

    return splitting(motion, middle, (first, last))


# ---- compositions ------------------------------------------------------------------------------------------------------

def symmetric(*half):
    half = [number(c) if isinstance(c, sp.Basic) else mpfr(c) for c in half]
    return half + [1 - 2*sum(half)] + half[::-1]


COMPOSITIONS = {
    "yoshida4": symmetric(1/(2 - 2**Q(1, 3))),                              # HLW II.4 (4.4)
    "suzuki4": symmetric(*[1/(4 - 4**Q(1, 3))]*2),                          # HLW II.4 (4.5)
    "yoshida6": symmetric("0.78451361047755726382", "0.23557321335935813368",   # HLW V.3 (3.11)
                          "-1.17767998417887100695"),
    "yoshida8": symmetric("0.74167036435061295345", "-0.40910082580003159400", "0.19075471029623837995",
                          "-0.57386247111608226666", "0.29906418130365592384", "0.33462491824529818378",
                          "0.31529309239676659663"),                            # HLW V.3 (3.12)
    "kahan-li8": symmetric("0.13020248308889008088", "0.56116298177510838456", "-0.38947496264484728641",
                           "0.15884190655515560090", "-0.39590389413323757734", "0.18453964097831570709",
                           "0.25837438768632204729", "0.29501172360931029887"),     # HLW V.3 (3.14)
    "sofroniou-spaletta10": symmetric(                                          # HLW V.3 (3.15)
        "0.07879572252168641926", "0.31309610341510852776", "0.02791838323507806611", "-0.22959284159390709415",
        "0.13096206107716486317", "-0.26973340565451071434", "0.07497334315589143567", "0.11199342399981020489",
        "0.36613344954622675119", "-0.39910563013603589788", "0.10308739852747107732", "0.41143087395589023782",
        "-0.00486636058313526176", "-0.39203335370863990645", "0.05194250296244964704", "0.05066509075992449634",
        "0.04967437063972987905"),
}


def mirrored(motions, kicks):
    """Coefficients of flows in the order in which they act, from their first halves (as printed in the sources)."""
    a, b = [mpfr(c) if isinstance(c, str) else number(c) for c in motions], [mpfr(c) if isinstance(c, str) else number(c) for c in kicks]
    middle = len(a) == len(b)
    return a + a[::-1][0 if middle else 1:], b + b[::-1][1 if middle else 0:]


def corrector(n):
    """Motions and kicks of a symplectic corrector: for k = 1 ... n those of a_k, b_k, -2 a_k, -b_k, a_k, with a_k = k sqrt(7/40)
    and the sum of b_k a_k^(2j - 1) = B_2j/(4j) for j = 1 ... n, of which the b_k a_k are rational."""
    square = Q(7, 40)
    rows = sp.Matrix(n, n, lambda j, k: ((k + 1)**2*square)**j)
    products = rows.LUsolve(sp.Matrix(n, 1, lambda j, _: sp.bernoulli(2*j + 2)/(4*j + 4)))
    a = [k*gmpy2.sqrt(number(square)) for k in range(n + 2)]
    motions = [x for k in range(1, n + 1) for x in (a[k] + a[k - 1], -2*a[k])] + [a[n]]
    return motions, [x for k in range(1, n + 1) for x in (number(products[k - 1])/a[k], -number(products[k - 1])/a[k])]


FLOWS = {
    "saba2": mirrored([Q(1, 2) - sp.sqrt(3)/6, sp.sqrt(3)/3], [Q(1, 2)]),                         # Laskar, Robutel 2001, table 1
    "saba3": mirrored([Q(1, 2) - sp.sqrt(15)/10, sp.sqrt(15)/10], [Q(5, 18), Q(4, 9)]),
    "saba4": mirrored([Q(1, 2) - sp.sqrt(525 + 70*sp.sqrt(30))/70,
                       (sp.sqrt(525 + 70*sp.sqrt(30)) - sp.sqrt(525 - 70*sp.sqrt(30)))/70,
                       sp.sqrt(525 - 70*sp.sqrt(30))/35],
                      [Q(1, 4) - sp.sqrt(30)/72, Q(1, 4) + sp.sqrt(30)/72]),
    # Blanes, Casas, Farres, Laskar, Makazaga, Murua 2013, tables 2 to 4
    "saba104": mirrored(["0.04706710064597250612947887637243678556564", "0.1847569354170881069247376193702560968574",
                         "0.2827060056798362053243616565541452479160", "-0.01453004174289681837857815229683813033908"],
                        ["0.1188819173681970199453503950853885936957", "0.2410504605515015657441667865901651105675",
                         "-0.2732866667053238060543113981664559460630", "0.8267085775712504407295884329818044835997"]),
    "saba864": mirrored(["0.0711334264982231177779387300061549964174", "0.241153427956640098736487795326289649618",
                         "0.521411761772814789212136078067994229991", "-0.333698616227678005726562603400438876027"],
                        ["0.183083687472197221961703757166430291072", "0.310782859898574869507522291054262796375",
                         "-0.0265646185119588006972121379164987592663", "0.0653961422823734184559721793911134363710"]),
    "saba1064": mirrored(["0.03809449742241219545697532230863756534060", "0.1452987161169137492940200726606637497442",
                          "0.2076276957255412507162056113249882065158", "0.4359097036515261592231548624010651844006",
                          "-0.6538612258327867093807117373907094120024"],
                         ["0.09585888083707521061077150377145884776921", "0.2044461531429987806805077839164344779763",
                          "0.2170703479789911017143385924306336714532", "-0.01737538195906509300561788011852699719871"]),
    "abah844": mirrored(["0.2741402689434018761640565440378637101205", "-0.1075684384401642306251105297063236526845",
                         "-0.0480185025906016926911954171508475065370", "0.7628933441747280943044988056386148982021"],
                        ["0.6408857951625127177322491164716010349386", "-0.8585754489567828565881283246356000103664",
                         "0.7176896537942701388558792081639989754277"]),
    "abah864": mirrored(["0.06810235651658372084723976682061164571212", "0.2511360387221033233072829580455350680082",
                         "-0.07507264957216562516006821767601620052338", "-0.009544719701745007811488218957217113269121",
                         "0.5307579480704471776340674235341732001443"],
                        ["0.1684432593618954534310382697756917558148", "0.4243177173742677224300351657407231801453",
                         "-0.5858109694681756812309015355404036521923", "0.4930499927320125053698281000239887162321"]),
    "abah1064": mirrored(["0.04731908697653382270404371796320813250988", "0.2651105235748785159539480036185693201078",
                          "-0.009976522883811240843267468164812380613143", "-0.05992919973494155126395247987729676004016",
                          "0.2574761120673404534492282264603316880356"],
                         ["0.1196884624585322035312864297489892143852", "0.3752955855379374250420128537687503199451",
                          "-0.4684593418325993783650820409805381740605", "0.3351397342755897010393098942949569049275",
                          "0.2766711191210800975049457263356834696055"]),
}


def composed(gamma, base):
    def step(m, t, h, x):
        made = mpfr(0)
        for c in gamma:
            x = base(m, t + made*h, c*h, x)
            made += c
        return x
    return step


# ---- models and rows ---------------------------------------------------------------------------------------------------

def phase(n):
    return sp.symbols(f"q:{n}"), sp.symbols(f"p:{n}")


def models():
    q, p = phase(2)
    E, y = Q(1, 12), Q(1, 10)
    yield "../models/henon-heiles.holo", Model(
        dot(p, p)/2 + dot(q, q)/2 + q[0]**2*q[1] - q[1]**3/3, q, p, [0, y, sp.sqrt(2*E - y**2 + 2*y**3/3), 0])
    x, v = phase(3)
    yield "../models/kepler.holo", Model(dot(v, v)/2 - 1/sp.sqrt(dot(x, x)), x, v, [1, 0, 0, 0, sp.sqrt(Q(9, 5)), 0])
    q, p = phase(6)
    m1, m2, by = Q(5, 100), Q(8, 100), lambda i, j: 1/sp.sqrt((q[2*i] - q[2*j])**2 + (q[2*i + 1] - q[2*j + 1])**2)
    yield "structure/two-planets.holo", Model(
        dot(p[:2], p[:2])/2 + dot(p[2:4], p[2:4])/(2*m1) + dot(p[4:], p[4:])/(2*m2) - m1*by(1, 0) - m2*by(2, 0) - m1*m2*by(2, 1)
        + sp.cos(2*t)*(q[2]**2 - q[5]*q[0])/50, q, p,
        [Q(-1, 10), Q(5, 100), Q(9, 10), Q(1, 10), Q(-4, 10), -2, Q(2, 100), Q(-1, 10), -m1/10, m1*Q(95, 100), m2*Q(7, 10), -m2/5])
    q, p = phase(2)
    stiff = 30*(q[0] - sp.sin(q[1]) - Q(1, 2))**2/2
    soft = (1 + Q(3, 10)*sp.sin(2*t))*(q[0]**4/4 + q[1]**2/2) + q[0]*q[1]**2/3
    yield "structure/sprung-masses.holo", Model(
        (sp.Matrix([p])*sp.Matrix([[Q(5, 2), 1], [1, 2]]).inv()*sp.Matrix(p))[0]/2 + stiff + soft, q, p,
        [Q(3, 5), Q(-1, 5), Q(3, 10), Q(2, 5)], stiff=stiff)
    q, p = phase(6)
    omega, walls = 50, (0, *q, 0)
    stiff = Q(omega**2, 4)*sum((q[2*j + 1] - q[2*j])**2 for j in range(3))
    soft = sum((walls[2*j + 1] - walls[2*j])**4 for j in range(4))
    r2 = sp.sqrt(2)
    yield "../models/fpu-stiff.holo", Model(dot(p, p)/2 + stiff + soft, q, p, [
        (1 - Q(1, omega))/r2, (1 + Q(1, omega))/r2, 0, 0, 0, 0, 0, r2, 0, 0, 0, 0], stiff=stiff)
    q, p = phase(1)
    l = Q(4, 5)
    yield "structure/plane-pendulum.holo", Model(p[0]**2/(2*l**2) - l*sp.cos(q[0]), q, p, [Q(6, 5), Q(3, 10)])
    yield "structure/sliding-oscillator.holo", Model(
        p[0]**2/2 + Q(3, 10)*p[0] + q[0]**2 + q[0]**4/4 - q[0]/5, q, p, [Q(7, 10), Q(2, 5)])
    mass, string = 1 + Q(2, 5)*sp.sin(2*t), 1 + sp.cos(3*t)/2
    yield "structure/forced-pendulum.holo", Model(mass*p[0]**2/2 - string*sp.cos(q[0]), q, p, [Q(7, 10), Q(2, 5)])
    q, p = phase(2)
    yield "structure/forced-metric.holo", Model(
        mass*(1 + q[0]**2/2)*dot(p, p)/2 + Q(3, 10)*sp.sin(t)*q[1]*p[0] - string*sp.cos(q[0])*sp.cos(q[1]), q, p,
        [Q(7, 10), Q(-1, 5), Q(2, 5), Q(3, 10)])
    c, L = sp.cos(q[0] - q[1]), [1, sp.sqrt(2)]
    M = sp.Matrix([[2*L[0]**2, L[0]*L[1]*c], [L[0]*L[1]*c, L[1]**2]])
    yield "../models/double-pendulum-angles.holo", Model(
        (sp.Matrix([p])*M.inv()*sp.Matrix(p))[0]/2 - (2*L[0]*sp.cos(q[0]) + L[1]*sp.cos(q[1])), q, p, [0, sp.pi/4, 0, 0])
    gamma = [0, -1]
    yield "models/hopf-pendulum.holo", Model(
        dot(p, p)/2 - dot(gamma, q), q, p, [Q(216, 289), Q(-116, 289), Q(135, 289), Q(72, 289)],
        [dot(q, q) + dot(p, p) - 1])
    yield "models/hopf-oscillator.holo", Model(
        dot(p, p)/2, q, p, [Q(4, 5), 0, 0, Q(3, 5)], [dot(q, q) + dot(p, p) - 1])
    a, w = Q(2, 5), Q(3, 2)
    yield "models/driven-pendulum.holo", Model(
        dot(p, p)/2 + q[1], q, p, [Q(3, 5), Q(-4, 5), a*w + Q(2, 5), Q(3, 10)],
        [(q[0] - a*sp.sin(w*t))**2 + q[1]**2 - 1])
    q, p = phase(4)
    g = [q[0]**2 + q[1]**2 - 1, (q[2] - q[0])**2 + (q[3] - q[1])**2 - 2]
    yield "../models/double-pendulum.holo", Model(dot(p, p)/2 + q[1] + q[3], q, p, [0, -1, 1, -2, 0, 0, 0, 0], g)
    g = [q[0]**2 + q[1]**2 + p[0]**2 + p[1]**2 - 1, 2*(q[2]**2 + q[3]**2) + (p[2]**2 + p[3]**2)/2 - 1]
    yield "structure/hopf-pair.holo", Model(
        dot(p, p)/2 + Q(3, 20)*(q[0]*q[2] + q[1]*q[3])**2 - q[0]/5 - q[3]/10, q, p,
        [Q(24, 25), 0, 0, Q(13, 20), 0, Q(7, 25), sp.sqrt(Q(31, 100)), 0], g)
    q, p = phase(3)
    yield "../models/spherical-pendulum.holo", Model(
        dot(p, p)/2 + q[2], q, p, [0, 1, 0, 1, 0, -1], [dot(q, q) - 1])
    yield "structure/metric-pendulum.holo", Model(
        (1 + q[0]**2/2)*dot(p, p)/2 + Q(7, 10)*(q[0]*p[1] - q[1]*p[0]) + Q(1, 5)*q[2]*p[0] + q[2], q, p,
        [Q(3, 5), 0, Q(-4, 5), Q(2, 5) + Q(16, 118), Q(1, 2), Q(3, 10)], [dot(q, q) - 1])
    surface = dot(q, q) + dot(p, p) + Q(3, 10)*q[0]**2*p[1]**2 + q[0]**3/5 + p[2]**3/10 - Q(89048, 100000)
    yield "structure/curved-fibre.holo", Model(
        dot(p, p)/2 - q[0]/2 + Q(3, 20)*q[1]**2 + q[1]*q[2]**2/5, q, p, [Q(4, 5), 0, 0, 0, Q(3, 10), Q(1, 5)], [surface])
    surface = dot(q, q) + dot(p, p) + (q[0]**2 + q[1]**2)**2/5 - Q(85192, 100000)
    yield "structure/twisted-pair.holo", Model(
        dot(p, p)/2 - q[0]/2 + q[1]*q[2]/5 + Q(3, 10)*q[2]**2, q, p, [Q(4, 5), 0, 0, 0, Q(3, 10), Q(1, 5)],
        [surface, q[0]*p[1] - q[1]*p[0] - Q(6, 25)])
    q, p = phase(6)
    spring = sum((x - y)**2 for x, y in zip(q[:3], q[3:]))/4
    yield "structure/two-spheres.holo", Model(
        dot(p[:3], p[:3])/2 + dot(p[3:], p[3:])/4 + q[2] + 2*q[5] + spring, q, p,
        [Q(3, 5), 0, Q(-4, 5), 0, Q(4, 5), 0, Q(2, 5), Q(1, 2), Q(3, 10), Q(3, 10), 0, Q(-7, 10)],
        [dot(q[:3], q[:3]) - 1, dot(q[3:], q[3:]) - Q(16, 25)])


def penalised():
    """Models whose constraints g are made a potential: path, omega, model with H + omega^2/2 |g|^2, all entries of g."""
    q, p = phase(4)
    g = [q[0]**2 + q[1]**2 - 1, (q[2] - q[0])**2 + (q[3] - q[1])**2 - 2]
    yield "../models/double-pendulum.holo", 20, Model(
        dot(p, p)/2 + q[1] + q[3] + 200*dot(g, g), q, p, [0, -1, 1, -2, 0, 0, 0, 0])
    q, p = phase(9)
    R, one = sp.Matrix(3, 3, q), sp.eye(3)
    g = list(R.T*R - one)
    spin = [0, Q(-1, 20), Q(1, 10), Q(1, 20), 0, Q(-1, 2), Q(-1, 10), Q(1, 2), 0]    # half the hat of (1, 0.2, 0.1)
    yield "../models/magnetic-body.holo", 10, Model(dot(p, p) + q[8] + 50*dot(g, g), q, p, list(one) + spin)


def methods(path, model):
    """Names and steps for a model."""
    if "fpu" in path:
        # Steps of several periods of the stiff springs, which other methods cannot take.
        yield from (NATURAL | STIFF).items()
        return
    flows = {"henon-heiles": oscillators(lambda q: [2*q[0]*q[1], q[0]**2 - q[1]**2]),
             "spherical-pendulum": spheres(1), "two-spheres": spheres(1, 2), "kepler": drift_kick(),
             "forced-pendulum": drift_kick(), "sliding-oscillator": drift_kick()}
    own, of_flows = flows.get(Path(path).stem, ({}, {}))
    orbits = {"kepler": lambda: (about_a_centre(),)*2,
              "two-planets": lambda: (two_planets(model.V_q), two_planets_of_the_star(model.V_q))}.get(Path(path).stem)
    coordinates = ("kepler-splitting", "democratic-kepler-splitting")
    for base, (of_orbits, of_orbits_composed) in zip(coordinates, orbits() if orbits else ()):
        yield base, of_orbits["strang-kdk"]
        for name in ("yoshida4", "kahan-li8"):
            yield f"{name}({base})", composed(COMPOSITIONS[name], of_orbits["strang-kdk"])
        yield from ((f"{name}({base})", step) for name, step in of_orbits_composed.items())
    if "two-planets" in path:
        return
    if not len(model.g(mpfr(0), model.start)):
        own |= MAPS | FIELD_MAPS
        symmetric_ones = ["stormer-verlet-a", "stormer-verlet-b", "implicit-midpoint"]
        if hasattr(model, "M"):
            own |= NATURAL | (STIFF if model.stiff is not None else {})
            symmetric_ones += ["zhang-skeel", "pushforward-newmark"]
    else:
        own["shake"], own["rattle"] = shake(verlet_a), rattle(verlet_a)
        for name, base in MAPS.items():
            own[f"shake:{name}"], own[f"rattle:{name}"] = shake(base), rattle(base)
        symmetric_ones = ["rattle", "rattle:stormer-verlet-b"]
    yield from own.items()
    if Path(path).stem in ("henon-heiles", "forced-pendulum", "double-pendulum-angles", "metric-pendulum", "spherical-pendulum", "hopf-oscillator", "driven-pendulum"):
        for name, gamma in COMPOSITIONS.items():
            for base in symmetric_ones + [name for name in ("strang", "strang-kdk") if name in own]:
                yield f"{name}({base})", composed(gamma, own[base])
        for name, step in of_flows.items():
            yield from ((f"{name}({base})", step) for base in ("strang", "strang-kdk"))


def steps_of_models():
    """Model, method, h, number of steps, state."""
    for path, model in models():
        for name, step in methods(path, model):
            h, count = mpfr(0.125), 1 if "(" in name else 50 if name in NATURAL | STIFF else 2
            x = model.start
            for k in range(count):
                x = step(model, k*h, h, x)
            if name == "rattle" and model.holonomic and "driven" not in path:
                again = model.start
                for k in range(count):
                    again = rattle_hlw(model, k*h, h, again)
                assert max(abs(a - b) for a, b in zip(x, again)) < mpfr("1e-35"), path
            yield path, name, h, count, x
        print(path, flush=True)


def steps_with_penalties():
    """The same with omega, from the model's own start."""
    own = NATURAL | {name: MAPS[name] for name in ("variational-euler", "velocity-verlet")}
    own |= {f"{name}({base})": composed(COMPOSITIONS[name], NATURAL[base])
            for name, base in (("yoshida4", "zhang-skeel"), ("suzuki4", "pushforward-newmark"))}
    for path, omega, model in penalised():
        for name, step in own.items():
            h, count, x = mpfr(1)/64, 20, model.start
            for k in range(count):
                x = step(model, k*h, h, x)
            yield path, name, h, count, x, omega
        print(path, omega, flush=True)


def main():
    out = ["# States after a few steps of a method, independent of the engine. Written by ../reference/steps.py; do not edit by hand.",
           "# `model` is a path from the folder above; the start is the model's own, at t = 0. With `penalty`, constraints are",
           "# a potential (penalty^2/2) |g|^2.", ""]
    rows = [*steps_of_models(), *rigid_bodies.steps(COMPOSITIONS, composed),
            *nonholonomic.steps(newton, solve, COMPOSITIONS), *brackets.steps(COMPOSITIONS), *steps_with_penalties()]
    for path, name, h, count, x, *penalty in rows:
        numbers = ", ".join(f"{c:.20g}" if "." in f"{c:.20g}" or "e" in f"{c:.20g}" else f"{c:.20g}.0" for c in x)
        stiff = ['stiff = "stiff"'] if "stiff" in name else []
        penalty = [f"penalty = {omega}.0" for omega in penalty]
        out += ["[[steps]]", f'model = "{path}"', f'method = "{name}"', *stiff, *penalty, f"h = {h:g}", f"count = {count}",
                f"state = [{numbers}]", ""]
    (Path(__file__).parent.parent/"structure/steps.toml").write_text("\n".join(out))


main()
