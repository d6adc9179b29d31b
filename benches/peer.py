"""Time and error of methods of high order beside heyoka (PyPI), if that is installed, in one run.

    python3 benches/peer.py target/release/holonome [CASE ...] [--best-of N]

Cases: pendulum100 pendulum1000 kepler planets double-pendulum henon-heiles ensemble. Times are those of the loop over time, the
best of several; errors are those of the last state: against `taylor` near round-off, whose step the suite compares with
independent programs; of Kepler's problem against the start, after 1000 periods. heyoka is given the same tolerances and
compares by its own clock; its compilation is not counted. Where it is measured, the times for the same errors follow, each
read off between two tolerances.
"""
import argparse, csv, json, math, subprocess, sys, tempfile, time
from pathlib import Path

try:
    import heyoka as hy
    import numpy as np
except ImportError:
    hy = None

ROOT = Path(__file__).parent.parent
RTOLS = [10.0**-k for k in range(4, 16)]
ERRORS = [10.0**-k for k in range(4, 13)]
TRAJECTORIES = 16384


class Case:
    """A model to a time by some methods, and its field and start for heyoka, whose state is the positions, then the momenta."""
    def __init__(self, model, until, methods, field=None, period=False):
        self.model, self.until, self.methods, self.field, self.period = ROOT/model, until, methods, field, period


def last_state(answer):
    return [x for name in sorted(answer["state"]) for x in flat(answer["state"][name])]


def flat(x):
    return [x] if isinstance(x, float | int) else [y for part in x for y in flat(part)]


def distance(a, b):
    return sum((x - y)**2 for x, y in zip(a, b, strict=True))**0.5


def holonome(*arguments):
    done = subprocess.run([sys.argv[1], *map(str, arguments)], capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    return json.loads(done.stdout)


def run(case, method, rtol):
    """The last state, the seconds of the loop and the number of steps."""
    with tempfile.TemporaryDirectory() as folder:
        answer = holonome("run", case.model, "--method", method, "--rtol", rtol, "--until", repr(case.until),
                          "--samples", 2, "--json", "--out", f"{folder}/run")
    return last_state(answer), answer["cost"]["wall_seconds"], answer["steps"]


def pendulum():
    """The Dirac extension of the spherical pendulum (Chang, Perlmutter, Vankerschaver 2022, section 2.3), for unit mass and
    length. The field without the terms in q.p, which vanish on the sphere, leaves it when nothing corrects."""
    q, p = hy.make_vars("x", "y", "z"), hy.make_vars("u", "v", "w")
    g = (0.0, 0.0, 1.0)
    qq, pp, qp, gq = (sum(a*b for a, b in zip(*pair)) for pair in ((q, q), (p, p), (q, p), (g, q)))
    field = [(a, b - qp/qq*a) for a, b in zip(q, p)]
    return field + [(b, qp/qq*b + (gq - pp)/qq*a - c) for a, b, c in zip(q, p, g)], [0.0, 1.0, 0.0, 1.0, 0.0, -1.0]


def kepler():
    q, v = hy.make_vars("x", "y", "z"), hy.make_vars("u", "v", "w")
    square = sum(a*a for a in q)
    field = [(a, b) for a, b in zip(q, v)] + [(b, -a*square**-1.5) for a, b in zip(q, v)]
    return field, [1.0, 0.0, 0.0, 0.0, math.sqrt(1.8), 0.0]


def planets():
    """heyoka's own model of bodies that attract each other; positions and momenta."""
    with open(ROOT/"suite/models/outer-planets.csv") as file:
        bodies = [{name: float(number) for name, number in row.items() if name in ("mass", "x", "y", "z", "vx", "vy", "vz")}
                  for row in csv.DictReader(file)]
    masses = [body["mass"] for body in bodies]
    field = hy.model.nbody(len(bodies), masses=masses, Gconst=2.95912208286e-4)
    start = [body[name] for body in bodies for name in ("x", "y", "z", "vx", "vy", "vz")]

    def state(x):
        bodies = [x[6*k:6*k + 6] for k in range(len(masses))]
        momenta = [m*v for m, body in zip(masses, bodies) for v in body[3:]]
        return momenta + [q for body in bodies for q in body[:3]]
    return field, start, state


def best(times, work):
    """The least seconds of so many, with what the last one gave."""
    least = math.inf
    for _ in range(times):
        seconds, given = work()
        least = min(least, seconds)
    return given, least


def heyoka(case, rtol, times):
    field, start, *state = case.field()
    integrator = hy.taylor_adaptive(field, start, tol=rtol)

    def work():
        integrator.time, integrator.state[:] = 0.0, start
        begun = time.perf_counter()
        integrator.propagate_until(case.until)
        return time.perf_counter() - begun, list(integrator.state)
    x, seconds = best(times, work)
    return (state[0](x) if state else x), seconds


def single(name, case, times):
    print(f"\n{name}, T = {case.until:g}: milliseconds (error; steps)", flush=True)
    reference, *_ = run(case, case.methods[0], 1e-15)
    names = sorted(holonome("run", case.model, "--until", 1e-9, "--samples", 2, "--json", "--out",
                            tempfile.mkdtemp() + "/run")["state"])
    if case.period:
        reference = {"v": [0.0, math.sqrt(1.8), 0.0], "x": [1.0, 0.0, 0.0]}
        reference = [x for name in names for x in reference[name]]
    curves = {method: [] for method in case.methods}
    for rtol in RTOLS:
        line = f"  rtol {rtol:.0e}"
        for method in case.methods:
            runs = [run(case, method, rtol) for _ in range(times)]
            seconds, error = min(seconds for _, seconds, _ in runs), distance(runs[0][0], reference)
            curves[method].append((error, seconds))
            line += f"   {method} {1e3*seconds:.3f} ({error:.1e}; {runs[0][2]})"
        if hy and case.field:
            x, seconds = heyoka(case, rtol, times)
            # Of two families of three each, in the order of their names.
            if len(x) == 6:
                x = x[:3] + x[3:] if names[0] in ("q", "x") else x[3:] + x[:3]
            curves.setdefault("heyoka", []).append((distance(x, reference), seconds))
            line += f"   heyoka {1e3*seconds:.3f} ({curves['heyoka'][-1][0]:.1e})"
        print(line, flush=True)
    compare(curves)


def sweep(method, rtol, times):
    model, model_start = ROOT/"models/spherical-pendulum.holo", "p=(1+0.5*i/N,0,-1)"

    def work():
        with tempfile.TemporaryDirectory() as folder:
            answer = holonome("sweep", model, "--trajectories", TRAJECTORIES, "--vary", model_start, "--until", 20, "--samples",
                              2, "--json", "--threads", 1, "--method", method, "--rtol", rtol, "--record", "q,p", "--out",
                              f"{folder}/sweep")
            subprocess.run([sys.argv[1], "export", f"{folder}/sweep", "--csv", f"{folder}/sweep.csv"], check=True,
                           capture_output=True)
            with open(f"{folder}/sweep.csv") as file:
                rows = [row for row in csv.DictReader(file) if float(row["t"]) == 20.0]
        names = ["q.x", "q.y", "q.z", "p.x", "p.y", "p.z"]
        return answer["cost"]["wall_seconds"], np.array([[float(row[name]) for row in rows] for name in names])
    return best(times, work)


def ensemble(times):
    if not hy:
        return print("\nensemble: heyoka and numpy are not installed")
    print(f"\n{TRAJECTORIES} pendula, T = 20, one thread: milliseconds (root mean square of the error)")
    reference, _ = sweep("corrected:taylor", 1e-15, 1)
    field, _ = pendulum()
    lanes, start = hy.recommended_simd_size(), np.zeros((6, TRAJECTORIES))
    start[1], start[3], start[5] = 1.0, 1.0 + 0.5*np.arange(TRAJECTORIES)/TRAJECTORIES, -1.0
    curves = {"corrected:taylor": [], "corrected:dop853": [], "heyoka": []}
    for rtol in RTOLS:
        line = f"  rtol {rtol:.0e}"
        integrator = hy.taylor_adaptive_batch(field, np.zeros((6, lanes)), tol=rtol)

        def work():
            end, begun = np.empty_like(start), time.perf_counter()
            for first in range(0, TRAJECTORIES, lanes):
                integrator.set_time(0.0)
                integrator.state[:] = start[:, first:first + lanes]
                integrator.propagate_until(20.0)
                end[:, first:first + lanes] = integrator.state
            return time.perf_counter() - begun, end
        for method, curve in curves.items():
            x, seconds = best(times, work) if method == "heyoka" else sweep(method, rtol, times)
            curve.append((float(np.sqrt(np.mean(np.sum((x - reference)**2, axis=0)))), seconds))
            line += f"   {method} {1e3*seconds:.1f} ({curve[-1][0]:.1e})"
        print(line, flush=True)
    compare(curves)


def least_time(curve, error):
    """The least time in which a method comes to an error, between two tolerances by a line through logarithms."""
    times = [seconds for own, seconds in curve if own <= error]
    for (large, fast), (small, slow) in zip(curve, curve[1:]):
        if large >= error >= small > 0.0 and large > small:
            part = math.log(large/error)/math.log(large/small)
            times.append(fast*(slow/fast)**part)
    return min(times, default=None)


def compare(curves):
    if "heyoka" not in curves:
        return
    for error in ERRORS:
        times = {method: least_time(curve, error) for method, curve in curves.items()}
        if times["heyoka"]:
            ratios = [f"{method} {times['heyoka']/own:.2f}" for method, own in times.items() if own and method != "heyoka"]
            print(f"  error {error:.0e}: heyoka {1e3*times['heyoka']:.3f} ms, times faster: " + ", ".join(ratios))


CASES = {
    "pendulum100": Case("models/spherical-pendulum.holo", 100.0, ["corrected:taylor", "corrected:gauss16", "corrected:dop853"],
                        pendulum),
    "pendulum1000": Case("models/spherical-pendulum.holo", 1000.0,
                         ["corrected:taylor", "corrected:gauss16", "corrected:dop853"], pendulum),
    "kepler": Case("models/kepler.holo", 1000*2*math.pi/0.2**1.5,
                   ["corrected:taylor", "corrected:gauss16", "corrected:dop853"], kepler, period=True),
    "planets": Case("suite/models/outer-planets.holo", 200000.0, ["taylor", "gauss16", "dop853"], planets),
    "double-pendulum": Case("models/double-pendulum.holo", 30.0,
                            ["corrected:taylor", "corrected:gauss16", "corrected:dop853"]),
    "henon-heiles": Case("models/henon-heiles.holo", 200.0, ["taylor", "gauss16", "dop853"]),
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("holonome")
    parser.add_argument("cases", nargs="*", default=[*CASES, "ensemble"])
    parser.add_argument("--best-of", type=int, default=7)
    options = parser.parse_args()
    print(f"heyoka {hy.__version__}" if hy else "heyoka is not installed")
    for name in options.cases:
        if name == "ensemble":
            ensemble(options.best_of)
        else:
            single(name, CASES[name], options.best_of)


main()
