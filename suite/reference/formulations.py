"""High-precision reference solutions: two formulations of a mechanical system, one integrator.

`minimal`  equations of motion in minimal coordinates u, from an embedding x = x(u, t);
`dirac`    the Dirac extension in all of phase space, from H and a full set of second-class functions f.

The two share nothing but the integrator, whose results are compared for two step sizes.
"""

import gmpy2
import sympy as sp
from gmpy2 import mpfr
from sympy.printing.pycode import MpmathPrinter

gmpy2.get_context().precision = 150     # 45 digits


def integrate(field, y, until, steps, columns=14, t=mpfr(0)):
    """Gragg's midpoint rule extrapolated to order 2*columns (HNW II.9), in fixed big steps."""
    H = (until - t)/steps
    for step in range(steps):
        t0, table = t + step*H, []
        f0 = field(t0, y)
        for k in range(columns):
            n = 2*(k + 1)
            h = H/n
            a, b = y, [c + h*f for c, f in zip(y, f0)]
            for i in range(1, n):
                a, b = b, [c + 2*h*f for c, f in zip(a, field(t0 + i*h, b))]
            row = [b]
            for j in range(k):      # Aitken-Neville in h^2
                ratio = (mpfr(k + 1)/(k - j))**2 - 1
                row.append([r + (r - s)/ratio for r, s in zip(row[j], table[j])])
            table = row
        y = table[-1]
    return y


def solve(A, b):
    """Gaussian elimination with row pivoting, on lists of float or mpfr (integers among them become one or the other)."""
    n = len(b)
    kind = float if any(isinstance(c, float) for c in b) else mpfr
    A = [[kind(c) for c in row] + [kind(d)] for row, d in zip(A, b)]
    for k in range(n):
        pivot = max(range(k, n), key=lambda i: abs(A[i][k]))
        A[k], A[pivot] = A[pivot], A[k]
        for i in range(k + 1, n):
            if A[i][k]:
                factor = A[i][k]/A[k][k]
                A[i] = [c - factor*d for c, d in zip(A[i], A[k])]
    x = [0]*n
    for k in reversed(range(n)):
        x[k] = (A[k][n] - sum(A[k][j]*x[j] for j in range(k + 1, n)))/A[k][k]
    return x


PRECISE = dict({name: getattr(gmpy2, name) for name in ("sin", "cos", "exp", "log", "sqrt")}, mpf=mpfr)


def function(arguments, expressions, precise=True):
    """A function of numbers: mpfr if `precise`, otherwise float. Matrices become lists of rows."""
    plain = [e.tolist() if isinstance(e, sp.MatrixBase) else e for e in expressions]
    if not precise:
        return sp.lambdify(arguments, plain, modules="math", cse=True)
    printer = MpmathPrinter({"fully_qualified_modules": False, "inline": True})
    return sp.lambdify(arguments, plain, modules=[PRECISE], printer=printer, cse=True)


t = sp.Symbol("t")


def minimal(u, x, mass, V, X):
    """The field of (u, u') for masses M on x = x(u, t) in the potential V(X, t), X the symbols for x.

    J^T M J u'' = J^T (-V_x - M a), a what is left of x'' without u''.
    `mass` is a list (diagonal) or a matrix. Also returns (u, u') -> (x, M x') and the start (u, x') -> u'.
    """
    w = sp.symbols(f"w:{len(u)}")
    x = sp.Matrix(x)
    J = x.jacobian(u)
    velocity = J*sp.Matrix(w) + x.diff(t)
    a = velocity.jacobian(u)*sp.Matrix(w) + velocity.diff(t)
    M = sp.Matrix(mass) if isinstance(mass, sp.MatrixBase) else sp.diag(*mass)
    weight = [[mpfr(str(sp.N(c, 45))) for c in row] for row in M.tolist()]
    force = function((t, X), [[-sp.diff(V, c) for c in X]])
    parts = function((t, u, w), [J, list(x), list(a)])
    out = function((t, u, w), [list(x), list(M*velocity)])
    start = function((t, u), [J.T*J, J.T, list(x.diff(t))])
    n = len(u)

    def field(time, y):
        J, x, a = parts(time, y[:n], y[n:])
        F = force(time, x)[0]
        rest = [f - sum(m*c for m, c in zip(row, a) if m) for f, row in zip(F, weight)]
        MJ = [[sum(m*r[k] for m, r in zip(row, J) if m) for k in range(n)] for row in weight]
        columns = list(zip(*J))
        A = [[sum(c*r[k] for c, r in zip(column, MJ) if c) for k in range(n)] for column in columns]
        return list(y[n:]) + solve(A, [sum(c*r for c, r in zip(column, rest) if c) for column in columns])

    def begin(u0, v0):
        A, Jt, drift = start(0, u0)
        r = [c - d for c, d in zip(v0, drift)]
        return list(u0) + solve(A, [sum(a*b for a, b in zip(row, r)) for row in Jt])

    return field, begin, lambda time, y: sum(out(time, y[:n], y[n:]), [])


def dirac(q, p, H, f, precise=True):
    """X = X_H + sum c_j X_{f_j} with c such that every f_i is constant along X."""
    q, p = list(q), list(p)
    grad = lambda g, v: sp.Matrix([sp.diff(g, c) for c in v])
    bracket = lambda a, b: (grad(a, q).T*grad(b, p) - grad(a, p).T*grad(b, q))[0]
    C = [[bracket(a, b) for b in f] for a in f]
    r = [-bracket(a, H) - sp.diff(a, t) for a in f]
    X = lambda g: list(grad(g, p)) + list(-grad(g, q))
    parts = function((t, q + p), [C, r, X(H), [X(a) for a in f]], precise)
    energy = function((t, q + p), [H], precise)

    def field(time, y):
        C, r, XH, Xf = parts(time, y)
        c = solve(C, r) if r else []
        return [h + sum(cj*Xj[i] for cj, Xj in zip(c, Xf)) for i, h in enumerate(XH)]

    field.energy = lambda y: energy(0, y)[0]
    return field


def natural(q, p, H, g):
    """The constraints g(q, t) and their hidden constraints G H_p + g_t."""
    return list(g) + [sum(sp.diff(a, c)*sp.diff(H, d) for c, d in zip(q, p)) + sp.diff(a, t) for a in g]
