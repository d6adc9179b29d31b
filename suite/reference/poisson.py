"""Writes ../poisson.toml: states of Poisson systems, independent of the engine.

    pip install mpmath scipy;  python poisson.py

The equations of motion are typed as they stand in textbooks, not as brackets, and integrated twice: by mpmath's Taylor series in
30 digits, and by SciPy's DOP853 at 1e-13, which has to agree. The free rigid body is Jacobi's solution by elliptic functions.
"""

from itertools import product
from pathlib import Path

import numpy as np
from mpmath import atan2, cos, ellipf, ellipfun, mp, mpf, odefun, sin, sqrt
from scipy.integrate import solve_ivp

mp.dps = 30
dot = lambda a, b: sum(x*y for x, y in zip(a, b))
cross = lambda a, b: [a[1]*b[2] - a[2]*b[1], a[2]*b[0] - a[0]*b[2], a[0]*b[1] - a[1]*b[0]]
R = lambda text: mpf(text)


def spin_chain(t, x):
    """s_i' = s_i x (-J (s_{i-1} + s_{i+1}) - 2 D s_i.z e_z), an open chain of 4, J = 1.3, D = 0.1 i."""
    s = [x[3*i:3*i + 3] for i in range(4)]
    out = []
    for i in range(4):
        field = [0, 0, -2*(i + 1)*s[i][2]/10]
        for j in (i - 1, i + 1):
            if 0 <= j < 4:
                field = [f - 13*c/10 for f, c in zip(field, s[j])]
        out += cross(s[i], field)
    return out


def sphere_vortices(t, x):
    """r_i' = sum_j w c_j r_i x r_j with w = 2/(3 |r_i - r_j|^2), the chord on a sphere of radius 1."""
    c = [1, -R("0.6"), R("1.7")]
    r = [x[3*i:3*i + 3] for i in range(3)]
    out = []
    for i in range(3):
        rate = [0, 0, 0]
        for j in range(3):
            if j != i:
                w = 2*c[j]/(3*(2 - 2*dot(r[i], r[j])))
                rate = [a + w*b for a, b in zip(rate, cross(r[i], r[j]))]
        out += rate
    return out


def plane_vortices(t, x):
    """Kirchhoff: c_i x_i' = dH/dy_i, c_i y_i' = -dH/dx_i with H = -sum c_i c_j log|r_i - r_j|/2."""
    c = [1, -1, R("1.7")]
    out = []
    for i in range(3):
        u, v = 0, 0
        for j in range(3):
            if j != i:
                dx, dy = x[2*i] - x[2*j], x[2*i + 1] - x[2*j + 1]
                r2 = dx*dx + dy*dy
                u, v = u - c[j]*dy/(2*r2), v + c[j]*dx/(2*r2)
        out += [u, v]
    return out


def three_species(t, x):
    """x_i' = x_i sum_j a_ij x_j dH/dx_j with dH/dx = (1 - 1/x, 1 - 1/(2y), 1)."""
    a, b, c = R("1.5"), -R("0.8"), R("1.1")
    p, q, r = x[0] - 1, x[1] - R("0.5"), x[2]
    return [x[0]*(a*q + b*r), x[1]*(-a*p + c*r), x[2]*(-b*p - c*q)]


def flaschka(t, x):
    """a_i' = 2 a_i (b_{i+1} - b_i), b_i' = 4 (a_i^2 - a_{i-1}^2)."""
    a, b = x[:2], x[2:]
    return [2*a[0]*(b[1] - b[0]), 2*a[1]*(b[2] - b[1]), 4*a[0]**2, 4*(a[1]**2 - a[0]**2), -4*a[1]**2]


def top_by_brackets(t, x):
    """Euler and Poisson: m' = m x w + g x dV/dg, g' = g x w, V = (1 + 0.3 sin 2t) g_z + 0.4 g_x g_y."""
    m, g = x[:3], x[3:]
    w = [m[0]/2, m[1]*2/3, m[2]]
    slope = [2*g[1]/5, 2*g[0]/5, 1 + 3*(sin(2*t) if isinstance(t, mpf) else np.sin(2*t))/10]
    return [a + b for a, b in zip(cross(m, w), cross(g, slope))] + cross(g, w)


S = [["0.6", "0", "0.8"], ["0", "0.8", "-0.6"], ["-0.48", "-0.6", "0.64"]]
FLAT = [c for s in S for c in s]


def chain_start():
    return [c for i in range(1, 5) for c in (cos(7*mpf(i)/10), sin(7*mpf(i)/10), 3*mpf(i)/10)]


CASES = [
    ("models/spin-chain.holo", spin_chain, chain_start, 5),
    ("structure/sphere-vortices.holo", sphere_vortices, lambda: [R(c) for c in FLAT], 5),
    ("structure/plane-vortices.holo", plane_vortices, lambda: [R(c) for c in ("1", "0", "-0.2", "0.9", "-0.7", "-0.6")], 5),
    ("structure/three-species.holo", three_species, lambda: [R(c) for c in ("1", "0.6", "1.5")], 5),
    ("structure/flaschka.holo", flaschka, lambda: [R(c) for c in ("0.5", "0.4", "0.3", "-0.2", "0.5")], 3),
    ("structure/top-by-brackets.holo", top_by_brackets, lambda: [R(c) for c in ("0.6", "0.3", "1.5", "0.6", "0", "-0.8")], 5),
]


def rigid_body(t):
    """Free rigid body m' = m x I^-1 m with I = (1, 2, 3), m(0) = (0.8, 0.3, -0.5): m_1 = A dn, m_2 = B sn, m_3 = C cn.

    With 2H = sum m_k^2/I_k and |m|^2 = M, M > 2H I_2 or not decides which of m_1 and m_3 keeps its sign
    (Landau, Lifshitz, Mechanics, section 37)."""
    i1, i2, i3 = mpf(1), mpf(2), mpf(3)
    m1, m2, m3 = R("0.8"), R("0.3"), -R("0.5")
    e, m = m1**2/i1 + m2**2/i2 + m3**2/i3, m1**2 + m2**2 + m3**2
    assert m < e*i2, "m_1 keeps its sign"
    # Lengths in units of the angular momentum, axes numbered from the one that m goes around.
    a1 = sqrt(i1*(i3*e - m)/(i3 - i1))
    a2 = sqrt(i2*(m - i1*e)/(i2 - i1))
    a3 = sqrt(i3*(m - i1*e)/(i3 - i1))
    rate = sqrt((i3*e - m)*(i2 - i1)/(i1*i2*i3))
    k2 = (i3 - i2)*(m - i1*e)/((i2 - i1)*(i3*e - m))
    sn, cn, dn = (ellipfun(name) for name in ("sn", "cn", "dn"))
    # The signs of m_1, m_3 and m_2' at the start choose among the solutions.
    for s1, s3, direction in product((1, -1), repeat=3):
        phase = ellipf(atan2(m2/a2, s3*m3/a3), k2)

        def at(t):
            u = phase + direction*rate*t
            return [s1*a1*dn(u, m=k2), a2*sn(u, m=k2), s3*a3*cn(u, m=k2)]

        h = mpf(10)**-10
        turns = (at(h)[1] - at(-h)[1])/(2*h) - m3*m1*(1/i1 - 1/i3)
        if max(abs(x - y) for x, y in zip(at(0), (m1, m2, m3))) < 1e-20 and abs(turns) < 1e-15:
            return at(t)


def rigid_field(t, x):
    return cross(x, [x[0], x[1]/2, x[2]/3])


def written(state):
    return "[" + ", ".join(mp.nstr(c, 20) for c in state) + "]"


def main():
    lines = ["# States of Poisson systems at `until`, independent of the engine. Written by reference/poisson.py; do not edit by hand.", ""]
    closed = rigid_body(mpf(10))
    cases = CASES + [("models/free-body.holo", rigid_field, lambda: [R("0.8"), R("0.3"), -R("0.5")], 10)]
    for path, field, start, until in cases:
        x0 = start()
        state = odefun(lambda t, x: field(t, x), 0, x0)(until)
        if path.endswith("free-body.holo"):
            assert max(abs(a - b) for a, b in zip(state, closed)) < 1e-20, (state, closed)
            state = closed
        double = solve_ivp(lambda t, x: [float(c) for c in field(t, [float(c) for c in x])], (0, until), [float(c) for c in x0],
                           method="DOP853", rtol=1e-13, atol=1e-14).y[:, -1]
        gap = max(abs(a - b) for a, b in zip(state, double))
        assert gap < 1e-10, (path, gap)
        print(path, mp.nstr(gap, 2))
        lines += ["[[case]]", f'model = "{path}"', f"until = {until}.0", f"state = {written(state)}", ""]
    (Path(__file__).parent.parent / "poisson.toml").write_text("\n".join(lines))


main()
