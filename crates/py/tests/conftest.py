"""Models that several tests use."""

from __future__ import annotations

import warnings

import matplotlib
import pytest

import holonome as ho

matplotlib.use("Agg")

OSCILLATOR = """
parameter k = 1
coordinate q : R = 1
momentum p of q = 0
hamiltonian (p^2 + k*q^2)/2
"""

# Two masses on rods in space: two constraints, members and components.
DOUBLE = """
parameter c = 0
parameter l = (1, 1)
coordinate r[i in 1..2] : R^3 = (0, 0, -l[1] - (i - 1)*l[2])
momentum   p of r = (0.3*i, 0.2, 0)
let swing = r[2] - r[1]
hamiltonian sum(i in 1..2 : dot(p[i], p[i])/2 + r[i].z + c*r[i].x^2/2)
constraint upper : dot(r[1], r[1]) = l[1]^2
constraint lower : dot(swing, swing) = l[2]^2
observe height[i in 1..2] = r[i].z
"""


@pytest.fixture(autouse=True)
def every_warning_is_an_error() -> object:
    """A test that expects a warning says so."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", ho.HolonomeWarning)
        yield


@pytest.fixture
def oscillator() -> ho.Model:
    return ho.Model(OSCILLATOR, name="oscillator")


@pytest.fixture
def double() -> ho.Model:
    return ho.Model(DOUBLE, name="double")
