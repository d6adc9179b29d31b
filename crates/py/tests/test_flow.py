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
