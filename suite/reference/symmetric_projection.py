"""Symmetric projection (Hairer, Lubich, Wanner, GNI, V.4.1) in 60 digits: the full Newton iteration for (x1, mu).

    x1 = Phi_h(x0 + DF(x0)^T mu) + DF(x1)^T mu,  F(x1) = F(x0),

with Phi_h the classical Runge-Kutta step, and all derivatives by difference quotients. Kepler's F is a basis of its seven
functions L, A, H of rank five: multiples of gradients are what counts.
"""

from mpmath import lu_solve, matrix, mp, mpf, sqrt

mp.dps = 60
DELTA = mpf(10)**-20     # quotients are good to DELTA^2


def dot(a, b):
    return sum(x*y for x, y in zip(a, b))


def cross(a, b):
    return [a[1]*b[2] - a[2]*b[1], a[2]*b[0] - a[0]*b[2], a[0]*b[1] - a[1]*b[0]]


def add(x, c, y):
    return [a + c*b for a, b in zip(x, y)]


def jacobian(f, x):
    """Columns of f' at x."""
    units = [[DELTA*(i == j) for i in range(len(x))] for j in range(len(x))]
    return [[(a - b)/(2*DELTA) for a, b in zip(f(add(x, 1, e)), f(add(x, -1, e)))] for e in units]


def rk4(field, x, h):
    k1 = field(x)
    k2 = field(add(x, h/2, k1))
    k3 = field(add(x, h/2, k2))
    k4 = field(add(x, h, k3))
    return [y + h/6*(a + 2*b + 2*c + d) for y, a, b, c, d in zip(x, k1, k2, k3, k4)]


def step(field, F, F0, x0, h):
    n, m = len(x0), len(F0)
    transposed = lambda x, mu: [dot(column, mu) for column in jacobian(F, x)]

    def equations(z):
        x1, mu = z[:n], z[n:]
        reached = add(rk4(field, add(x0, 1, transposed(x0, mu)), h), 1, transposed(x1, mu))
        return add(x1, -1, reached) + add(F(x1), -1, F0)

    z = rk4(field, x0, h) + [mpf(0)]*m
    for i in range(20):
        r = equations(z)
        if max(map(abs, r)) < mpf(10)**-35:
            return z[:n], max(map(abs, z[n:]))
        z = add(z, -1, lu_solve(matrix(jacobian(equations, z)).T, matrix(r)))
    raise ArithmeticError(f"no convergence: {r}")


def run(name, field, F, x, h, steps):
    x, h = [mpf(c) for c in x], mpf(h)
    F0, plain = F(x), x
    for k in range(steps):
        x, mu = step(field, F, F0, x, h)
        plain = rk4(field, plain, h)
        print(f"{name}, step {k + 1}: |mu| {float(mu):.1e}, off RK4's {float(max(map(abs, add(x, -1, plain)))):.1e}")
    for c in x:
        print("  ", mp.nstr(c, 20))


def pendulum(x):     # the Dirac field of |q|^2 = 1 and 2 q.p = 0
    q, p = x[:3], x[3:]
    s, pull = dot(q, p)/dot(q, q), (q[2] - dot(p, p))/dot(q, q)
    return add(p, -s, q) + [s*b + pull*a - (i == 2) for i, (a, b) in enumerate(zip(q, p))]


def pendulum_invariants(x):
    q, p = x[:3], x[3:]
    return [dot(q, q) - 1, 2*dot(q, p), dot(p, p)/2 + q[2], q[0]*p[1] - q[1]*p[0]]


def kepler(x):
    return x[3:] + [-c/sqrt(dot(x[:3], x[:3]))**3 for c in x[:3]]


def kepler_invariants(x):
    q, v = x[:3], x[3:]
    L = cross(q, v)
    A = add(cross(v, L), -1/sqrt(dot(q, q)), q)
    return L + A[:2]


run("spherical pendulum", pendulum, pendulum_invariants, [0, 1, 0, 1, 0, -1], "0.1", 5)
run("Kepler", kepler, kepler_invariants, [1, 0, 0, 0, sqrt(mpf("1.8")), 0], "0.1", 5)
