"""Models: values, immutability, errors, copies."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import numpy as np
import pytest

import holonome as ho

from .conftest import DOUBLE, OSCILLATOR


def test_values_have_the_shapes_of_the_model(double: ho.Model) -> None:
    assert double.parameters["l"].shape == (2,) and double.parameters["c"].shape == ()
    assert double.variables["r"].shape == (2, 3)
    assert double.names[:4] == ["r[1].x", "r[1].y", "r[1].z", "r[2].x"]
    assert np.array_equal(
        double.state, np.concatenate([a.ravel() for a in double.variables.values()])
    )
    assert np.array_equal(double.unpack(double.state)["p"], double.variables["p"])
    states = np.tile(double.state, (4, 5, 1))
    assert double.unpack(states)["r"].shape == (4, 5, 2, 3)
    assert np.array_equal(double.pack(double.unpack(states)), states)


def test_set_gives_another_model_and_what_follows_follows(double: ho.Model) -> None:
    longer = double.set(l=[2, 3])
    assert np.array_equal(longer.variables["r"][:, 2], [-2, -5])
    assert np.array_equal(double.variables["r"][:, 2], [-1, -2])
    assert np.array_equal(longer.run(until=1)["r"][0, :, 2], [-2, -5])
    assert longer.set({"p[2].y": 0.5}).variables["p"][1, 1] == 0.5
    assert double.set(c="2^2/8").parameters["c"] == 0.5
    # Given numbers stay beside formulas, and a later value counts.
    both = double.set(p=np.zeros((2, 3))).set(c="1/4").set(c=0.75)
    assert both.parameters["c"] == 0.75 and not both.variables["p"].any()
    parts = double.set(p=np.zeros((2, 3))).set({"p[2].y": 3}).set({"p[1]": [1, 2, 0]})
    assert parts.variables["p"].tolist() == [[1, 2, 0], [0, 3, 0]]
    parts = double.set({"p[2].y": 3}).set({"p[2]": [1, 2, 0]}).set({"p[2].x": 7})
    assert parts.variables["p"][1].tolist() == [7, 2, 0]
    assert not parts.set(p="(0, 0, 0)").variables["p"].any()
    assert double.set(l="(2, 2)").set({"l[1]": 5}).parameters["l"].tolist() == [5, 2]


def test_inputs_are_copied(oscillator: ho.Model) -> None:
    q = np.array(0.5)
    model = oscillator.set(q=q)
    q[...] = 7
    assert model.variables["q"] == 0.5
    model.variables["q"][...] = 9
    assert model.variables["q"] == 0.5


def test_a_size_is_set_like_a_value() -> None:
    text = "size n = 3\ncoordinate q[i in 1..n] = i\nmomentum p of q\nhamiltonian sum(i in 1..n : p[i]^2/2)"
    model = ho.Model(text)
    assert model.set(n=5).variables["q"].tolist() == [1, 2, 3, 4, 5] and model.sizes == {"n": 3}
    larger = ho.Model(text, values={"n": np.int64(4), "q": [4, 3, 2, 1]})
    assert larger.variables["q"].tolist() == [4, 3, 2, 1]
    with pytest.raises(ho.OptionError, match="integer"):
        model.set(n=2.5)


@pytest.mark.parametrize(
    ("name", "value", "error", "words"),
    [
        ("cc", 1, TypeError, "did you mean 'c'"),
        ("p[3].x", 1, TypeError, "no 'p\\[3\\].x'"),
        ("r", [1, 2, 3], ho.OptionError, r"r has shape \(2, 3\)"),
        ("c", [1, 2], ho.OptionError, r"c has shape \(\)"),
        ("c", "1 +", ho.ModelError, "expected"),
    ],
)
def test_wrong_values_are_refused(
    double: ho.Model, name: str, value: object, error: type, words: str
) -> None:
    with pytest.raises(error, match=words):
        double.set({name: value})  # type: ignore[dict-item]


def test_a_value_that_is_not_finite_or_off_the_constraints_is_refused(double: ho.Model) -> None:
    with pytest.raises(ho.OptionError, match="not finite|nan|NaN"):
        double.set(c=np.nan).run(until=1)
    with pytest.raises(ho.HolonomeError, match="upper"):
        double.set({"r[1].x": 0.5}).run(until=1)


def test_mistakes_have_their_places() -> None:
    with pytest.raises(ho.ModelError) as caught:
        ho.Model("coordinate q : R = 1\nmomentum p of q = 0\nhamiltonian p^2/2 + k*q^2 + gg")
    error = caught.value
    assert [(d.line, d.column) for d in error.diagnostics] == [(3, 21), (3, 29)]
    assert "^" in str(error) and "not declared" in str(error)
    assert error.diagnostics[0].help is not None and "declare" in error.diagnostics[0].help
    assert isinstance(error, ho.HolonomeError) and isinstance(error, ValueError)


def test_load_reads_a_file_and_its_tables(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("x\n1.5\n2.5\n")
    text = 'table data = "data.csv"\ncoordinate q[i in 1..2] = data.x[i]\nmomentum p of q\n'
    (tmp_path / "two.holo").write_text(text + "hamiltonian sum(i in 1..2 : p[i]^2/2)")
    model = ho.load(tmp_path / "two.holo")
    assert model.name == "two" and model.variables["q"].tolist() == [1.5, 2.5]
    (tmp_path / "data.csv").unlink()
    assert model.set(p=[1, 1]).run(until=1)["q"][-1].tolist() == [2.5, 3.5]
    with pytest.raises(ho.OptionError, match="cannot read"):
        ho.load(tmp_path / "none.holo")


def test_models_are_copied_as_text_and_values(double: ho.Model) -> None:
    model = double.set(c=0.25, l="(1, 2)")
    for other in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model), copy.copy(model)):
        assert other.text == model.text and other.name == "double"
        run, same = model.run(until=2), other.run(until=2)
        assert np.array_equal(run["r"], same["r"])


def test_check_and_integrals(double: ho.Model, oscillator: ho.Model) -> None:
    check = double.check()
    assert check.degrees_of_freedom == 4 and "degrees of freedom" in check.text
    found = oscillator.set(k=4).integrals()
    assert len(found) == len(list(found))
    assert double.set(c=1).check().facts["model"] == "double"


def test_the_field_is_that_of_the_motion(double: ho.Model) -> None:
    run = double.run(until=2, samples=3)
    x = double.pack({name: run[name] for name in ("r", "p")})
    rates = double.pack(run.at(run.t, derivative=1))
    for t, state, rate in zip(run.t, x, rates):
        assert np.allclose(double.field(float(t), state), rate, atol=1e-12)
    with pytest.raises(ValueError, match="12 numbers"):
        double.field(0.0, [1.0])
    # SciPy's vectorised form: columns are states.
    columns = double.field(0.0, x.T)
    assert columns.shape == x.T.shape and np.array_equal(columns[:, 1], double.field(0.0, x[1]))


def test_names_of_options_are_those_of_the_compiled_half() -> None:
    from holonome import _holonome

    assert set(_holonome.OPTIONS) == set(ho.RunOptions.__annotations__) | {"out"}


def test_methods_are_listed() -> None:
    assert {"rattle", "gauss16", "dop853"} <= set(ho.methods())


def test_what_decides_the_structure_can_be_set() -> None:
    # The number of steps of a loop, found at the first values, does not change results.
    model = ho.Model(OSCILLATOR + "\nobserve E = H")
    first = model.set(k=100).run(until=5, method="gauss4", step=0.01)["q"]
    model.set(k=0.01).run(until=5, method="gauss4", step=0.01)
    again = ho.Model(OSCILLATOR + "\nobserve E = H").set(k=100)
    assert np.array_equal(again.run(until=5, method="gauss4", step=0.01)["q"], first)
    assert np.array_equal(model.set(k=100).run(until=5, method="gauss4", step=0.01)["q"], first)


def test_every_model_shows_itself(double: ho.Model) -> None:
    assert "double" in repr(double)
    html = double._repr_html_()
    assert "dot(swing, swing)" in html and "degrees of freedom" in html and len(html) < 1e6
    assert DOUBLE.strip() == double.text.strip()


def test_a_check_shows_the_rest_where_it_says_so(double: ho.Model) -> None:
    short, long = repr(double.check()), repr(double.check(verbose=True))
    assert "verbose tells the rest" in short and len(long) > len(short)
    assert "verbose tells the rest" not in long


def test_a_start_off_the_set_is_refused_when_it_is_to_run() -> None:
    text = (
        "coordinate q : R^2 = (1, 0)\nmomentum p of q = (0.5, 0.5)\nhamiltonian dot(p, p)/2 + q.y\n"
    )
    model = ho.Model(text + "constraint rod : dot(q, q) = 1")
    assert "project_initial" in model.warnings[0] and "rod" in model._repr_html_()
    for act in (
        lambda: model.run(until=1),
        lambda: model.flow(1.0, method="rattle", step=0.1),
        lambda: model.sweep(until=1, over={"q.x": [1.0]}),
        model.check,
    ):
        with pytest.raises(ho.ModelError, match="hidden constraint of 'rod'"):
            act()
    assert model.run(until=1, project_initial=True).drift["rod"].largest < 1e-14
    assert model.set(p=[0, 0.5]).run(until=1).drift["rod"].largest < 1e-14
    assert np.array_equal(model.field(0.0, model.state)[:2], [0.0, 0.5])
    with pytest.raises(ho.ModelError, match="component"):
        ho.Model(text + "constraint rod : q.z = 1")
