"""States after a few steps of the methods for rolling constraints, for steps.py.

Each method is typed from its source, in velocities where the source has them, and all its unknowns are found at once. Models:
the Hamiltonian, g(q) = 0 and the rolling constraints A(q, t) v + b(q, t) = 0 with v = H_p.
"""

import sympy as sp
from gmpy2 import mpfr

from formulations import function, t

Q = sp.Rational
dot = lambda a, b: sum(x*y for x, y in zip(a, b))
sub = lambda a, b: [x - y for x, y in zip(a, b)]
moved = lambda x, h, v: [a + h*b for a, b in zip(x, v)]
number = lambda c: mpfr(str(sp.N(c, 45)))


class Rolling:
    def __init__(self, H, q, p, start, A, b, g=()):
        x, self.n, self.m, self.k = list(q) + list(p), len(q), len(g), len(A)
        self.start = [number(c) for c in start]
        diff = lambda f, v: [sp.diff(f, c) for c in v]
        v = diff(H, p)
        rates = [dot(diff(f, q), v) + sp.diff(f, t) for f in g]
        rolling = [dot(row, v) + c for row, c in zip(A, b)]
        self.H_q, self.v, self.g = function((t, x), diff(H, q)), function((t, x), v), function((t, x), list(g))
        self.velocities = function((t, x), rates + rolling)
        # Rates of G v + g_t and A v + b along H, and the forces of all multipliers.
        whole = rates + rolling
        self.free = function((t, x), [dot(diff(f, q), v) - dot(diff(f, p), diff(H, q)) + sp.diff(f, t) for f in whole])
        rows = [diff(f, q) for f in g] + [list(row) for row in A]
        self.rows = function((t, x), rows)
        self.pushes = function((t, x), [[dot(diff(f, p), row) for row in rows] for f in whole])
        assert all(abs(c) < mpfr("1e-40") for c in self.g(mpfr(0), self.start) + self.velocities(mpfr(0), self.start))

    def force(self, time, q, multipliers):
        """-G^T lambda - A^T mu; neither depends on momenta."""
        rows = self.rows(time, list(q) + [mpfr(0)]*self.n)
        return [-sum(c*row[i] for c, row in zip(multipliers, rows)) for i in range(self.n)]


def all_at_once(newton, model, equations, guess):
    """Unknowns q1, p1 and others behind them."""
    u = newton(equations, guess)
    return u[:2*model.n], u[2*model.n:]


def leapfrog(newton):
    """McLachlan, Perlmutter 2006, (4.18): v1 = v0 + h (f(q') + A(q')^T mu), A(q1) v1 = 0, drifts around it; RATTLE's
    multipliers of g at both ends. Unknowns q1, p1, q', p before and after the kick, lambda, mu, nu."""
    def step(m, time, h, x, memory):
        n, none, middle = m.n, [mpfr(0)]*m.k, time + h/2
        q0, p0 = x[:n], x[n:]

        def equations(u):
            q1, p1, q, a, b = (u[i*n:(i + 1)*n] for i in range(5))
            rest = u[5*n:]
            lam, nu, mu = rest[:m.m], rest[m.m:2*m.m], rest[2*m.m:]
            kicks = [c + d for c, d in zip(m.H_q(middle, q + a), m.H_q(middle, q + b))]
            return (sub(a, moved(p0, h/2, m.force(time, q0, lam + none)))
                    + sub(q, moved(q0, h/2, m.v(middle, q + a)))
                    + sub(b, moved(moved(a, -h/2, kicks), h, m.force(middle, q, [mpfr(0)]*m.m + mu)))
                    + sub(q1, moved(q, h/2, m.v(middle, q + b)))
                    + sub(p1, moved(b, h/2, m.force(time + h, q1, nu + none)))
                    + m.g(time + h, q1 + p1) + m.velocities(time + h, q1 + p1))

        guess = x + q0 + p0 + p0 + [mpfr(0)]*(2*m.m + m.k)
        return all_at_once(newton, m, equations, guess)[0], None
    return step


def gni(newton, solve):
    """Ferraro, Iglesias, Martin de Diego 2008: p+ - p- = -h V_q - h A^T mu and A(q)(v- + v+) + 2b = 0 at every q. The
    state has p half way; `memory` is mu, at the start that of the continuous motion. Unknowns q1, p1, p before and
    after the drift, lambda, nu, mu."""
    def step(m, time, h, x, memory):
        n, last = m.n, time + h
        q0, p0 = x[:n], x[n:]
        if memory is None:
            memory = solve(m.pushes(time, x), m.free(time, x))[m.m:]

        def equations(u):
            q1, p1, half = (u[i*n:(i + 1)*n] for i in range(3))
            lam, rest = u[3*n:3*n + m.m], u[3*n + m.m:]
            drift = [a + b for a, b in zip(m.v(time, q0 + half), m.v(last, q1 + half))]
            return (sub(half, moved(moved(p0, -h/2, m.H_q(time, q0 + half)), h/2, m.force(time, q0, lam + memory)))
                    + sub(q1, moved(q0, h/2, drift))
                    + sub(p1, moved(moved(half, -h/2, m.H_q(last, q1 + half)), h/2, m.force(last, q1, rest)))
                    + m.g(last, q1 + p1) + m.velocities(last, q1 + p1))

        x1, rest = all_at_once(newton, m, equations, x + p0 + [mpfr(0)]*(2*m.m + m.k))
        return x1, rest[n + 2*m.m:]
    return step


def dla(newton):
    """Cortes, Martinez 2001, (4): D1 L_d + D2 L_d = A^T mu at every q for L_d = h L(middle, (q1 - q0)/h), whose Legendre
    transform is the midpoint rule; A v + b = 0 at the middle. Unknowns q1, p1, p after the start and before the end,
    multipliers at both."""
    def step(m, time, h, x, memory):
        n, middle, last = m.n, time + h/2, time + h
        q0, p0 = x[:n], x[n:]

        def equations(u):
            q1, p1, a, b = (u[i*n:(i + 1)*n] for i in range(4))
            rest = u[4*n:]
            first, second = rest[:m.m + m.k], rest[m.m + m.k:]
            mean = [(c + d)/2 for c, d in zip(q0 + a, q1 + b)]
            return (sub(a, moved(p0, h/2, m.force(time, q0, first)))
                    + sub(q1, moved(q0, h, m.v(middle, mean))) + sub(b, moved(a, -h, m.H_q(middle, mean)))
                    + sub(p1, moved(b, h/2, m.force(last, q1, second)))
                    + m.g(last, q1 + p1) + m.velocities(middle, mean)[m.m:] + m.velocities(last, q1 + p1))

        return all_at_once(newton, m, equations, x + p0 + p0 + [mpfr(0)]*(2*(m.m + m.k)))[0], None
    return step


def models():
    q, p = sp.symbols("q:3"), sp.symbols("p:3")
    m, J, cos, sin = 2, Q(1, 2), sp.cos(Q(2, 5)), sp.sin(Q(2, 5))
    yield "structure/knife-edge.holo", Rolling(
        (p[0]**2 + p[1]**2)/(2*m) + p[2]**2/(2*J) + q[0]**2 + q[1]**2 - Q(3, 5)*sp.cos(q[2]), q, p,
        [Q(4, 5), Q(-3, 10), Q(2, 5), m*cos/2, m*sin/2, J*Q(7, 10)], [[sp.sin(q[2]), -sp.cos(q[2]), 0]], [0])
    q, p = sp.symbols("q:4"), sp.symbols("p:4")
    metric = Q(118, 100)
    yield "structure/edge-on-a-sphere.holo", Rolling(
        (1 + q[0]**2/2)*dot(p[:3], p[:3])/2 + p[3]**2/2 + q[2]*p[0]/5 + q[2] - Q(2, 5)*sp.cos(q[3]), q, p,
        [Q(3, 5), 0, Q(-4, 5), Q(3, 10), Q(56, 100)/metric, -Q(42, 100)/sp.cos(Q(3, 10))/metric, Q(3, 10)/metric,
         Q(9, 10)], [[q[2], -sp.cos(q[3]), 0, 0]], [-Q(3, 10)*sp.sin(t) - Q(1, 10)], [dot(q[:3], q[:3]) - 1])


def steps(newton, solve, compositions):
    """Model, method, h, number of steps, state."""
    own = {"nonholonomic-leapfrog": leapfrog(newton), "gni": gni(newton, solve), "dla": dla(newton)}
    h = mpfr(0.125)
    for path, model in models():
        for name, step in own.items():
            x, memory = model.start, None
            for k in range(4):
                x, memory = step(model, k*h, h, x, memory)
            yield path, name, h, 4, x
            if name == "gni":
                continue
            for composition, gamma in compositions.items():
                x, made = model.start, mpfr(0)
                for c in gamma:
                    x, made = step(model, made*h, c*h, x, None)[0], made + c
                yield path, f"{composition}({name})", h, 1, x
        print(path, flush=True)
