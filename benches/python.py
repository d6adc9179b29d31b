"""The Python package beside heyoka (PyPI), if that is installed, in one run: times of what surrounds steps.

    python3 benches/python.py [--best-of N]

Both integrate a pendulum in an angle. Times are the best of several, in microseconds unless they say otherwise. "Again" sets
other values and runs to t = 0.01, one step; "a state" is the cost of one of 100 000 states that flow to t = 0.01 by one step
of rk4, or by heyoka's ensemble-free loop over one integrator. Imports are timed in processes of their own, numpy loaded.
"""

import argparse
import subprocess
import sys
import time

import numpy as np

import holonome as ho

try:
    import heyoka as hy
except ImportError:
    hy = None

PENDULUM = "coordinate x : R = 0.5\nmomentum p of x = 0\nhamiltonian p^2/2 - cos(x)"


def best(act, of, times=1):
    """Least time of one of `times` calls, in microseconds."""
    found = []
    for _ in range(of):
        start = time.perf_counter()
        for _ in range(times):
            act()
        found.append((time.perf_counter() - start) / times * 1e6)
    return min(found)


def imported(module, of):
    """Least time of an import, in milliseconds."""
    code = f"import numpy, time; t = time.perf_counter(); import {module}; print(time.perf_counter() - t)"
    return min(float(subprocess.check_output([sys.executable, "-c", code])) for _ in range(of)) * 1e3


def ours(of):
    model = ho.Model(PENDULUM)
    options = {"until": 0.01, "method": "rk4", "step": 0.01}
    flow, state, states = model.flow(0.01, method="rk4", step=0.01), model.state, np.tile(model.state, (100_000, 1))
    return {
        "import, ms": imported("holonome", of),
        "construct, ms": best(lambda: ho.Model(PENDULUM), of, 20) / 1e3,
        "first run, ms": best(lambda: ho.Model(PENDULUM).run(until=10.0), of, 5) / 1e3,
        "again": best(lambda: model.set(x=0.6, p=0.1).run(**options), of, 1000),
        "flow of a state": best(lambda: flow(state), of, 5000),
        "a state of many": best(lambda: flow(states), of) / len(states),
        "field": best(lambda: model.field(0.0, state), of, 5000),
        "to t = 1000 at 1e-9, ms": best(lambda: model.run(until=1000.0, samples=2), of) / 1e3,
    }


def theirs(of):
    x, v = hy.make_vars("x", "v")
    system = [(x, v), (v, -hy.sin(x))]
    made = hy.taylor_adaptive(system, [0.5, 0.0], tol=1e-9)

    def again(until=0.01):
        made.time = 0.0
        made.state[:] = [0.6, 0.1]
        made.propagate_until(until)

    return {
        "import, ms": imported("heyoka", of),
        # Another number every time: heyoka remembers what it has compiled.
        "construct, ms": best(lambda: hy.taylor_adaptive([(x, v), (v, -hy.sin(x) * hy.expression(time.time()))], [0.5, 0.0]), of) / 1e3,
        "first run, ms": best(lambda: hy.taylor_adaptive([(x, v), (v, -hy.sin(x) * hy.expression(time.time()))], [0.5, 0.0], tol=1e-9).propagate_until(10.0), of) / 1e3,
        "again": best(again, of, 1000),
        "flow of a state": best(again, of, 1000),
        "a state of many": best(again, of, 1000),
        "field": float("nan"),
        "to t = 1000 at 1e-9, ms": best(lambda: again(1000.0), of) / 1e3,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--best-of", type=int, default=5)
    of = parser.parse_args().best_of
    rows = [ours(of), theirs(of) if hy else {}]
    print(f"{'':28}{'holonome':>12}{'heyoka':>12}{'ratio':>8}")
    for name, own in rows[0].items():
        other = rows[1].get(name, float("nan"))
        print(f"{name:28}{own:12.3f}{other:12.3f}{other / own:8.1f}")


if __name__ == "__main__":
    main()
