"""Flows."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import holonome as ho


def test_a_flow_is_the_end_of_a_run(double: ho.Model) -> None:
    options = {"method": "rattle", "step": 0.01}
    flow = double.flow(1.0, **options)  # type: ignore[arg-type]
    run = double.run(until=1.0, samples=2, **options)  # type: ignore[arg-type]
    end = double.pack({name: run[name][-1] for name in ("r", "p")})
    assert np.allclose(flow(double.state), end, atol=1e-15) and flow.names == double.names
    assert np.array_equal(flow(double.variables), flow(double.state))


def test_leading_axes_are_states(oscillator: ho.Model) -> None:
    flow = oscillator.flow(0.5, method="gauss8", step=0.1)
    states = np.random.default_rng(1).normal(size=(7, 11, 2))
    moved = flow(states)
    assert moved.shape == states.shape
    rotation = np.array([[np.cos(0.5), np.sin(0.5)], [-np.sin(0.5), np.cos(0.5)]])
    # The error of order 8 of five steps of 0.1 is far below rounding of its terms.
    assert np.allclose(moved, states @ rotation.T, atol=1e-12)
    assert np.array_equal(moved[3, 4], flow(states[3, 4]))
    for other in (np.asfortranarray(states), states[:, ::-1][:, ::-1], states.tolist()):
        assert np.array_equal(flow(other), moved), "whatever the order in memory"
    many = flow(np.tile(states[0, 0], (1000, 1)))
    assert (many == many[0]).all()


def test_wrong_states_are_refused(double: ho.Model) -> None:
    flow = double.flow(0.1, method="rattle", step=0.01)
    with pytest.raises(ho.OptionError, match="12 numbers"):
        flow([1.0, 2.0])
    off = double.state
    off[0] = 0.5
    with pytest.raises(ho.HolonomeError, match="upper"):
        flow(off)
    off[0] = np.nan
    with pytest.raises(ho.HolonomeError, match=r"r\[1\].x"):
        flow(off)
    with pytest.raises(TypeError, match="did you mean 'method'"):
        double.flow(0.1, metod="rattle")  # type: ignore[call-arg]


def test_flows_are_copied(double: ho.Model) -> None:
    flow = double.set(c=0.5).flow(0.1, method="rattle", step=0.01)
    assert np.array_equal(pickle.loads(pickle.dumps(flow))(double.state), flow(double.state))


def test_a_derivative_has_the_axes_of_its_states(double: ho.Model) -> None:
    flow = double.flow(0.2, method="rattle", step=0.01)
    x1, m = flow(double.state, derivative=True)
    assert np.array_equal(x1, flow(double.state)) and m.shape == (12, 12)
    states, many = flow(np.tile(double.state, (3, 2, 1)), derivative=True)
    assert states.shape == (3, 2, 12) and (many == m).all() and many.shape == (3, 2, 12, 12)
    assert np.array_equal(flow(double.variables, derivative=True)[1], m)
    nothing = flow(np.empty((0, 12)), derivative=True)
    assert [part.shape for part in nothing] == [(0, 12), (0, 12, 12)]
    # Half of the way and the other half: M of the whole is the product.
    half = double.flow(0.1, method="rattle", step=0.01)
    middle, first = half(double.state, derivative=True)
    assert np.allclose(half(middle, derivative=True)[1] @ first, m, atol=1e-11)
    with pytest.raises(ho.OptionError, match="equal steps"):
        double.flow(0.1)(double.state, derivative=True)


def test_the_derivative_is_that_of_the_flow(oscillator: ho.Model) -> None:
    flow = oscillator.flow(0.5, method="gauss8", step=0.1)
    _, m = flow([0.3, -0.4], derivative=True)
    rotation = [[np.cos(0.5), np.sin(0.5)], [-np.sin(0.5), np.cos(0.5)]]
    assert np.allclose(m, rotation, atol=1e-12)
    # A field that is not linear: M M' of the same step back is 1, as the method is symmetric.
    swing = ho.Model("coordinate q : R = 1\nmomentum p of q = 0.3\nhamiltonian p^2/2 - cos(q)")
    forth = swing.flow(0.6, method="stormer-verlet-a", step=0.1)
    x1, m = forth(swing.state, derivative=True)
    assert abs(np.linalg.det(m) - 1) < 1e-14
    mirror = np.diag([1.0, -1.0])
    _, back = forth(mirror @ x1, derivative=True)
    assert np.allclose(mirror @ back @ mirror @ m, np.eye(2), atol=1e-13)


def test_a_root_is_found_by_the_derivative() -> None:
    from scipy.optimize import root

    text = "coordinate q : R = 0\nmomentum p of q = 0\nhamiltonian p^2/2 - (1 + 0.6*cos(2*pi*t/5))*cos(q)"
    calls = []
    three = ho.Model(text).flow(15.0, method="suzuki4(stormer-verlet-a)", step=0.05)

    def residual(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        calls.append(x)
        x1, m = three(x, derivative=True)
        return x1 - x, m - np.eye(2)

    found = root(residual, [0.8, 0.0], jac=True, tol=1e-13)
    assert np.abs(three(found.x) - found.x).max() < 1e-12 and len(calls) < 20


def test_jax_differentiates_a_flow() -> None:
    jax = pytest.importorskip("jax")
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)
    swing = ho.Model("coordinate q : R = 1\nmomentum p of q = 0.3\nhamiltonian p^2/2 - cos(q)")
    flow = swing.flow(0.5, method="gauss4", step=0.1)

    @jax.custom_jvp
    def phi(x):  # type: ignore[no-untyped-def]
        shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
        return jax.pure_callback(lambda x: flow(np.asarray(x)), shape, x, vmap_method="expand_dims")

    @phi.defjvp
    def _(primals, tangents):  # type: ignore[no-untyped-def]
        (x,), (v,) = primals, tangents
        shapes = [jax.ShapeDtypeStruct(s, x.dtype) for s in (x.shape, (*x.shape, 2))]
        x1, m = jax.pure_callback(
            lambda x: flow(np.asarray(x), derivative=True), shapes, x, vmap_method="expand_dims"
        )
        return x1, jnp.einsum("...ij,...j->...i", m, v)

    x0 = np.array([0.5, 0.2])
    middle, first = flow(x0, derivative=True)
    end, second = flow(middle, derivative=True)
    gradient = jax.grad(lambda x: jnp.sum(phi(phi(x)) ** 2))(jnp.array(x0))
    assert np.allclose(gradient, 2 * end @ second @ first, atol=1e-14)
    states = np.random.default_rng(1).normal(size=(5, 2))
    assert np.allclose(jax.jit(jax.vmap(jax.jacrev(phi)))(states), flow(states, derivative=True)[1])
