"""Models from SymPy."""

from __future__ import annotations

import numpy as np
import pytest
import sympy
from scipy.integrate import solve_ivp
from sympy.physics.mechanics import (
    LagrangesMethod,
    Lagrangian,
    Particle,
    Point,
    ReferenceFrame,
    dynamicsymbols,
)

import holonome as ho


def test_a_double_pendulum_of_sympy_physics() -> None:
    q1, q2 = dynamicsymbols("q1 q2")
    m, l, g = sympy.symbols("m l g")
    N = ReferenceFrame("N")
    A, B = N.orientnew("A", "Axis", (q1, N.z)), N.orientnew("B", "Axis", (q2, N.z))
    O = Point("O")
    P, R = O.locatenew("P", l * A.x), O.locatenew("P", l * A.x).locatenew("R", l * B.x)
    O.set_vel(N, 0)
    P.set_vel(N, P.pos_from(O).dt(N))
    R.set_vel(N, R.pos_from(O).dt(N))
    bodies = [Particle("a", P, m), Particle("b", R, m)]
    for body in bodies:
        body.potential_energy = -m * g * body.point.pos_from(O).dot(N.x)
    L = Lagrangian(N, *bodies)
    start = {q1: 1.5, q2: 1, q1.diff(): 0.3, q2.diff(): -0.2}
    model = ho.from_sympy(L, [q1, q2], values={m: 2, l: 1.5, g: 9.81, **start})
    run = model.run(until=3, rtol=1e-12, samples=31)
    assert run.drift["H"].relative_largest is not None and run.drift["H"].relative_largest < 1e-12

    # The equations of SymPy's own method, by SciPy.
    method = LagrangesMethod(L, [q1, q2])
    method.form_lagranges_equations()
    u = sympy.symbols("u1:5")
    names = dict(zip([q1.diff(), q2.diff(), q1, q2], [u[2], u[3], u[0], u[1]]))
    rates = method.rhs().subs({m: 2, l: 1.5, g: 9.81}).subs(names)
    field = sympy.lambdify([u], list(rates))
    other = solve_ivp(
        lambda t, x: field(x),
        (0, 3),
        [1.5, 1, 0.3, -0.2],
        method="DOP853",
        rtol=1e-12,
        atol=1e-13,
        t_eval=run.t,
    )
    # Both solve to 1e-12 a step; the motion is regular for so short a time.
    assert np.allclose(run["q1"], other.y[0], atol=1e-9)
    assert np.allclose(run["q2"], other.y[1], atol=1e-9)


def test_a_hamiltonian_of_symbols_with_constraints_and_integrals() -> None:
    x, y, z, px, py, pz, m, g, l = sympy.symbols("x y z p_x p_y p_z m g l")
    model = ho.from_sympy(
        (px**2 + py**2 + pz**2) / (2 * m) + m * g * z,
        [x, y, z],
        [px, py, pz],
        constraints={"rod": sympy.Eq(x**2 + y**2 + z**2, l**2)},
        integrals={"J": x * py - y * px},
        observe={"height": z / l},
        values={m: 1, g: 1, l: 1, y: 1, px: 1, pz: -1},
        name="spherical",
    )
    reference = ho.Model(
        """parameter l = 1
        coordinate q : R^3 = (0, 1, 0)
        momentum p of q = (1, 0, -1)
        hamiltonian dot(p, p)/2 + q.z
        constraint rod : dot(q, q) = l^2"""
    ).run(until=20, samples=21)
    run = model.run(until=20, samples=21)
    assert np.allclose(run["z"], reference["q.z"], atol=1e-6)
    assert run.drift["J"].largest < 1e-13 and run.drift["rod"].largest < 1e-13
    assert model.set(l=2, y=2).run(until=1)["height"].shape


def test_a_lagrangian_with_velocity_terms_and_time() -> None:
    # A charge in a magnetic field, driven: x'' = y' + cos(t), y'' = -x'.
    x, y = dynamicsymbols("x y")
    t = dynamicsymbols._t
    L = (
        (x.diff() ** 2 + y.diff() ** 2) / 2
        + (x * y.diff() - y * x.diff()) / 2
        + x * sympy.cos(2 * t)
    )
    model = ho.from_sympy(L, [x, y], values={x.diff(): 1}, observe={"v": x.diff()})
    run = model.run(until=4, samples=5, rtol=1e-12)
    other = solve_ivp(
        lambda t, s: [s[2], s[3], s[3] + np.cos(2 * t), -s[2]],
        (0, 4),
        [0, 0, 1, 0],
        method="DOP853",
        rtol=1e-12,
        atol=1e-13,
        t_eval=run.t,
    )
    assert np.allclose(run["x"], other.y[0], atol=1e-9) and np.allclose(
        run["v"], other.y[2], atol=1e-9
    )


def test_more_velocities_than_an_inverse_has_rows() -> None:
    n = 8
    angles = dynamicsymbols(f"a1:{n + 1}")
    L, x, y = 0, 0, 0
    for angle in angles:
        x, y = x + sympy.sin(angle), y - sympy.cos(angle)
        L += (x.diff(dynamicsymbols._t) ** 2 + y.diff(dynamicsymbols._t) ** 2) / 2 - y
    model = ho.from_sympy(L, angles, values={angle: 0.1 for angle in angles})
    chain = ho.Model(
        f"""size n = {n}
        coordinate r[i in 1..n] : R^2 = (i*sin(0.1), -i*cos(0.1))
        momentum p of r
        hamiltonian sum(i in 1..n : dot(p[i], p[i])/2 + r[i].y)
        constraint first : dot(r[1], r[1]) = 1
        constraint link[i in 2..n] : dot(r[i] - r[i-1], r[i] - r[i-1]) = 1"""
    ).run(until=2, samples=3, rtol=1e-11)
    run = model.run(until=2, samples=3, rtol=1e-11)
    end = sum(np.sin(run[f"a{k + 1}"]) for k in range(n))
    assert np.allclose(end, chain[f"r[{n}].x"], atol=1e-8)


def test_the_functions_of_the_language() -> None:
    q, p, a = sympy.symbols("q p a")
    V = (
        sympy.Abs(q - 3)
        + sympy.Max(q, a, 0)
        + sympy.Piecewise((q**2, q < 1), (2 * q - 1, True))
        + sympy.exp(-q)
        + sympy.sqrt(q**2 + 1)
        + sympy.Rational(1, 3) * q
        + sympy.atan2(q, 2)
        + q ** sympy.Rational(4, 3) / sympy.cosh(q)
        + sympy.log(q + 2)
        + sympy.sec(q / 9)
        + sympy.pi * q
        + sympy.Float("1e-3") * q
        + sympy.E * q
        + (q + 1) ** -2
        + (q**2 + 1) ** sympy.Rational(-3, 2)
    )
    model = ho.from_sympy(p**2 / 2 + V, [q], [p], values={a: 0.25, q: 0.7, p: 0.1})
    h = sympy.lambdify([q, p, a], p**2 / 2 + V)
    x = sympy.Symbol("x", positive=True)
    force = sympy.lambdify([x, a], -sympy.diff(V.subs(q, x), x))
    with_h = model.run(until=0.1, samples=2)
    # Rounding of some twenty terms of size 1 to 10.
    assert abs(with_h["H"][0] - h(0.7, 0.1, 0.25)) < 1e-14 * 100
    assert abs(model.field(0.0, [0.7, 0.1])[1] - float(force(0.7, 0.25))) < 1e-13 * 10


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda q, p, k: ho.from_sympy(p**2 / 2 + k * q, [q], [p]), "k have no value"),
        (lambda q, p, k: ho.from_sympy(p**2 / 2, [q], [p], values={k: 1}), "k is in no formula"),
        (lambda q, p, k: ho.from_sympy(p**2 / 2 + sympy.zeta(q), [q], [p]), "zeta"),
        (lambda q, p, k: ho.from_sympy(p**4, [q], velocities=[p]), "degree 2"),
        (lambda q, p, k: ho.from_sympy(q**2 * p, [q], velocities=[p]), "singular"),
        (lambda q, p, k: ho.from_sympy(p**2, [q]), "velocities"),
        (lambda q, p, k: ho.from_sympy(p**2, [q, k], [p]), "2 coordinates"),
    ],
)
def test_what_is_no_model_is_refused(build: object, words: str) -> None:
    with pytest.raises(ho.OptionError, match=words):
        build(*sympy.symbols("q p k"))  # type: ignore[operator]


def test_names_that_the_language_uses_otherwise() -> None:
    sum_, p, lam = sympy.symbols("sum p_{1} lambda")
    model = ho.from_sympy(p**2 / 2 + lam * sum_**2, [sum_], [p], values={lam: 2, sum_: 1})
    assert list(model.variables) == ["sum_", "p_1"] and list(model.parameters) == ["lambda_"]
