"""Time and error of `taylor` beside other methods and, if it is installed, heyoka (PyPI), in one run.

    python3 benches/taylor.py target/release/holonome [--quick]

Times are those of the loop over time, best of several; errors are those of the last state, against `taylor` at a
tolerance near round-off, which the suite compares with independent programs. heyoka is given the same tolerances,
compares by its own clock, and its compilation is not counted.
"""
import json, subprocess, sys, tempfile, time
from pathlib import Path

MODELS = Path(__file__).parent.parent / "models"
METHODS = ["dop853", "gauss16", "taylor"]
CASES = [("spherical-pendulum", 100.0, []), ("spherical-pendulum", 1000.0, []), ("kepler", 702.481473104, []),
         ("double-pendulum", 30.0, []), ("henon-heiles", 200.0, [])]
RTOLS = [1e-6, 1e-8, 1e-9, 1e-10, 1e-12, 1e-14]


def run(holonome, model, method, rtol, until):
    """The last state and the seconds of the loop."""
    with tempfile.TemporaryDirectory() as folder:
        command = [holonome, "run", str(MODELS / f"{model}.holo"), "--method", method, "--rtol", str(rtol), "--until",
                   repr(until), "--samples", "2", "--json", "--out", f"{folder}/run"]
        answer = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    state = answer["state"]
    numbers = [x for name in sorted(state) for x in flat(state[name])]
    return numbers, answer["cost"]["wall_seconds"], answer["steps"]


def flat(x):
    return [x] if isinstance(x, float | int) else [y for part in x for y in flat(part)]


def distance(a, b):
    return sum((x - y)**2 for x, y in zip(a, b, strict=True))**0.5


def heyoka_pendulum(rtol, until):
    """The pendulum's Dirac extension as heyoka integrates it: its last state and seconds."""
    import heyoka as hy
    q, p = hy.make_vars("x", "y", "z"), hy.make_vars("u", "v", "w")
    g = (0.0, 0.0, 1.0)
    # Chang, Perlmutter, Vankerschaver 2022, section 2.3, for unit mass and length. The field without the terms in q.p, which
    # vanish on the sphere, leaves it when nothing corrects.
    qq, pp, qp, gq = (sum(a*b for a, b in zip(*pair)) for pair in ((q, q), (p, p), (q, p), (g, q)))
    field = [(a, b - qp/qq*a) for a, b in zip(q, p)]
    field += [(b, qp/qq*b + (gq - pp)/qq*a - c) for a, b, c in zip(q, p, g)]
    start = [0.0, 1.0, 0.0, 1.0, 0.0, -1.0]
    integrator = hy.taylor_adaptive(field, start, tol=rtol)
    best = float("inf")
    for _ in range(5):
        integrator.time, integrator.state[:] = 0.0, start
        begun = time.perf_counter()
        integrator.propagate_until(until)
        best = min(best, time.perf_counter() - begun)
    x = list(integrator.state)
    return x[3:] + x[:3], best


def main():
    holonome, quick = sys.argv[1], "--quick" in sys.argv
    try:
        import heyoka
        print(f"heyoka {heyoka.__version__}")
    except ImportError:
        heyoka = None
    for model, until, _ in CASES:
        reference, *_ = run(holonome, model, "corrected:taylor", 1e-15, until)
        print(f"\n{model}, T = {until:g}: microseconds (error; steps)")
        for rtol in RTOLS:
            line = f"  rtol {rtol:.0e}"
            for method in METHODS:
                runs = [run(holonome, model, f"corrected:{method}", rtol, until) for _ in range(2 if quick else 7)]
                seconds = min(seconds for _, seconds, _ in runs)
                error, steps = distance(runs[0][0], reference), runs[0][2]
                line += f"   {method} {1e6*seconds:8.0f} ({error:.1e}; {steps})"
            if heyoka and model == "spherical-pendulum":
                x, seconds = heyoka_pendulum(rtol, until)
                line += f"   heyoka {1e6*seconds:8.0f} ({distance(x, reference):.1e})"
            print(line, flush=True)


main()
