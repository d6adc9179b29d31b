"""Time and error of methods of high order beside heyoka and REBOUND (PyPI), as far as they are installed, in one run.

    python3 benches/peer.py target/release/holonome [CASE ...] [--best-of N]

Times are those of the loop over time, the best of several. Compilation is not counted: ours precedes the loop, unless
HOLONOME_BACKEND says otherwise. Errors are those of the last position of the worst body, where bodies attract each other,
and else of the last state: against the first method at a tolerance of 1e-15, whose distance from heyoka at 1e-18 is printed
as the floor; of Kepler's problem against the start, after 1000 periods. The program ends if a peer begins with another
energy. Where there are peers, the times for the same errors follow, each read off between two settings, and in brackets the
ratio to our least time; errors below the floor tell little.

heyoka: `taylor_adaptive`, unrolled (not `compact_mode`), for bodies with its model `nbody`, with the same tolerances as ours
and three smaller ones; `taylor_adaptive_batch` for the ensemble. REBOUND, in Jacobi coordinates, with the same equal steps
as ours, which divide the time exactly: `whfast` with symplectic correctors of order 11 and 17 and `saba` of type (10,6,4),
both with `safe_mode=0`, integrated with `exact_finish_time=1` and synchronized; `whfast512`, where the processor has
AVX-512, with corrector 17, in its units of time, in which G = 1, and with all steps in one call; `ias15` as it comes.
"""
import argparse, csv, json, math, os, subprocess, sys, tempfile, time
from pathlib import Path

try:
    import heyoka as hy
    import numpy as np
except ImportError:
    hy = None
try:
    import rebound
except ImportError:
    rebound = None

ROOT = Path(__file__).parent.parent
G = 2.95912208286e-4
RTOLS = [10.0**-k for k in range(4, 16)]
SMALLER = [1e-16, 1e-17, 1e-18]
ERRORS = [10.0**-k for k in range(4, 13)]
TRAJECTORIES = 16384
ENVIRONMENT = {"HOLONOME_BACKEND": "machine", **os.environ}
SPLITTINGS = ["kepler-splitting", "wisdom5(kepler-splitting)", "saba1064(kepler-splitting)"]
REBOUND = {
    "whfast corrector 11": {"integrator": "whfast", "corrector": 11, "safe_mode": 0, "coordinates": "JACOBI"},
    "whfast corrector 17": {"integrator": "whfast", "corrector": 17, "safe_mode": 0, "coordinates": "JACOBI"},
    "saba (10,6,4)": {"integrator": "saba", "type": "10_6_4", "safe_mode": 0},
    "whfast512 corrector 17": {"integrator": "whfast512", "corrector": 17},
    "ias15": {"integrator": "ias15"},
}


class Case:
    """A model to a time by methods with tolerances, and its field for heyoka. Attracting bodies have the largest step of
    splittings, and a table beside their model."""
    def __init__(self, model, until, methods, field=None, step=None, rtols=RTOLS, period=False):
        self.model, self.until, self.methods, self.field, self.period = ROOT/model, until, methods, field, period
        self.rtols, self.table = rtols, (ROOT/model).with_suffix(".csv") if step else None
        self.steps = [step*part/25*2.0**-k for k in range(5) for part in (25, 20, 16)] if step else []


class Field:
    """The field and the start of a case for heyoka, the names of positions and momenta, and the energy to compare."""
    def __init__(self, equations, start, names, energy=None):
        self.equations, self.start, self.names, self.energy = equations, start, names, energy

    def state(self, x):
        """The state in the form of our answers; of bodies their positions."""
        if self.names is None:
            return {"q": [x[k:k + 3] for k in range(0, len(x), 6)]}
        half = len(x)//2
        return dict(zip(self.names, (x[:half], x[half:])))

    def initial_energy(self):
        return hy.cfunc([self.energy], [variable for variable, _ in self.equations])(self.start)[0]


def flat(x):
    return [x] if isinstance(x, float | int) else [y for part in x for y in flat(part)]


def norm(a, b):
    return sum((x - y)**2 for x, y in zip(flat(a), flat(b), strict=True))**0.5


def distance(case, a, b):
    if case.table:
        return max(map(norm, a["q"], b["q"]))
    return norm([a[name] for name in sorted(a)], [b[name] for name in sorted(a)])


def holonome(*arguments):
    done = subprocess.run([sys.argv[1], *map(str, arguments)], capture_output=True, text=True, env=ENVIRONMENT)
    if done.returncode:
        sys.exit(done.stderr)
    return json.loads(done.stdout)


def run(case, method, option, value):
    """The answer of a run with `--rtol` or `--step`."""
    with tempfile.TemporaryDirectory() as folder:
        return holonome("run", case.model, "--method", method, option, repr(value), "--until", repr(case.until),
                        "--samples", 2, "--json", "--out", f"{folder}/run")


def pendulum(case):
    """The Dirac extension of the spherical pendulum (Chang, Perlmutter, Vankerschaver 2022, section 2.3), for unit mass and
    length. The field without the terms in q.p, which vanish on the sphere, leaves it when nothing corrects."""
    q, p = hy.make_vars("x", "y", "z"), hy.make_vars("u", "v", "w")
    g = (0.0, 0.0, 1.0)
    qq, pp, qp, gq = (sum(a*b for a, b in zip(*pair)) for pair in ((q, q), (p, p), (q, p), (g, q)))
    field = [(a, b - qp/qq*a) for a, b in zip(q, p)]
    field += [(b, qp/qq*b + (gq - pp)/qq*a - c) for a, b, c in zip(q, p, g)]
    return Field(field, [0.0, 1.0, 0.0, 1.0, 0.0, -1.0], ("q", "p"))


def kepler(case):
    q, v = hy.make_vars("x", "y", "z"), hy.make_vars("u", "v", "w")
    square = sum(a*a for a in q)
    field = [(a, b) for a, b in zip(q, v)] + [(b, -a*square**-1.5) for a, b in zip(q, v)]
    return Field(field, [1.0, 0.0, 0.0, 0.0, math.sqrt(1.8), 0.0], ("x", "v"))


def bodies(case):
    """The mass, position and velocity of each body."""
    with open(case.table) as file:
        return [[float(row[name]) for name in ("mass", "x", "y", "z", "vx", "vy", "vz")] for row in csv.DictReader(file)]


def gravity(case):
    """heyoka's own model of bodies that attract each other."""
    table = bodies(case)
    masses = [body[0] for body in table]
    model = {"masses": masses, "Gconst": G}
    return Field(hy.model.nbody(len(table), **model), [x for body in table for x in body[1:]], None,
                 hy.model.nbody_energy(len(table), **model))


def galaxy(case):
    v0, rc, b, c, omega = 1.0, 0.2, 0.9, 0.8, 0.1
    (x, y, z), (u, v, w) = hy.make_vars("x", "y", "z"), hy.make_vars("u", "v", "w")
    square = rc**2 + x*x + y*y/b**2 + z*z/c**2
    pull = v0**2/square
    field = [(x, u + omega*y), (y, v - omega*x), (z, w),
             (u, omega*v - pull*x), (v, -omega*u - pull*y/b**2), (w, -pull*z/c**2)]
    energy = (u*u + v*v + w*w)/2 + v0**2/2*hy.log(square) - omega*(x*v - y*u)
    return Field(field, [1.0, 0.1, 0.2, 0.1, 0.9, 0.3], ("q", "p"), energy)


def rotors(case, n=10):
    q, p = ([hy.expression(f"{name}{i}") for i in range(n)] for name in "qp")
    pull = [0.0, *(hy.sin(b - a) for a, b in zip(q, q[1:])), 0.0]
    field = [*zip(q, p), *((p[i], pull[i + 1] - pull[i]) for i in range(n))]
    start = [0.5*math.sin(2*i) for i in range(1, n + 1)] + [0.5*math.cos(3*i) for i in range(1, n + 1)]
    return Field(field, start, ("q", "p"), sum(b*b for b in p)/2 + sum(1 - hy.cos(b - a) for a, b in zip(q, q[1:])))


def best(times, work):
    """The least seconds of so many, with what the last one gave."""
    least = math.inf
    for _ in range(times):
        seconds, given = work()
        least = min(least, seconds)
    return given, least


def ours(case, method, option, value, times):
    def work():
        answer = run(case, method, option, value)
        return answer["cost"]["wall_seconds"], answer["state"]
    return best(times, work)


def heyoka(case, rtol, times, compact=False):
    field = case.field(case)
    integrator = hy.taylor_adaptive(field.equations, field.start, tol=rtol, compact_mode=compact)

    def work():
        integrator.time, integrator.state[:] = 0.0, field.start
        begun = time.perf_counter()
        integrator.propagate_until(case.until)
        return time.perf_counter() - begun, integrator.state.tolist()
    x, seconds = best(times, work)
    return field.state(x), seconds


def simulation(case, rate=1.0, integrator="ias15", **options):
    """The bodies at the start; velocities are divided by a rate, which is √G where REBOUND asks for G = 1."""
    sim = rebound.Simulation()
    sim.G = G if rate == 1.0 else 1.0
    for m, x, y, z, vx, vy, vz in bodies(case):
        sim.add(m=m, x=x, y=y, z=z, vx=vx/rate, vy=vy/rate, vz=vz/rate)
    sim.integrator = integrator
    for name, value in options.items():
        setattr(sim.integrator, name, value)
    return sim


def run_rebound(case, options, step, times):
    together = options["integrator"] == "whfast512"
    rate = math.sqrt(G) if together else 1.0

    def work():
        sim = simulation(case, rate, **options)
        if step:
            sim.dt = step*rate
        if together:
            sim.exact_finish_time, sim.integrator.concatenate_steps = 0, round(case.until/step)
        begun = time.perf_counter()
        if together:
            sim.steps(1)
        else:
            sim.integrate(case.until, exact_finish_time=1)
        sim.synchronize()
        seconds = time.perf_counter() - begun
        if abs(sim.t/rate - case.until) > 1e-12*case.until:
            sys.exit(f"REBOUND ended at {sim.t/rate}")
        return seconds, {"q": [[body.x, body.y, body.z] for body in sim.particles]}
    return best(times, work)


def measurements(case):
    """What is measured, in turn: is it a peer, its name, its setting, and a function of the number of repetitions."""
    for method in case.methods:
        for rtol in case.rtols:
            yield False, method, rtol, lambda times: ours(case, method, "--rtol", rtol, times)
    for method in SPLITTINGS if case.table else []:
        for step in case.steps:
            yield False, method, step, lambda times: ours(case, method, "--step", step, times)
    if hy and case.field:
        for rtol in [*case.rtols, *SMALLER]:
            yield True, "heyoka", rtol, lambda times: heyoka(case, rtol, times)
    for name, options in REBOUND.items() if rebound and case.table else []:
        if name.startswith("whfast512") and not rebound.avx512_available:
            print("  whfast512: the processor has no AVX-512")
            continue
        for step in case.steps if name != "ias15" else [None]:
            yield True, name, step, lambda times: run_rebound(case, options, step, times)


def compare_starts(case, energy):
    """Stops where the peers begin with other energies."""
    field = case.field(case) if hy and case.field else None
    energies = {"heyoka": field.initial_energy()} if field and field.energy is not None else {}
    if rebound and case.table:
        energies["REBOUND"] = simulation(case).energy()
    for name, other in energies.items():
        if abs(other/energy - 1) > 1e-13:
            sys.exit(f"the initial energy is {energy!r}, that of {name} {other!r}")


def single(name, case, times):
    print(f"\n{name}, T = {case.until:g}", flush=True)
    answer = run(case, case.methods[0], "--rtol", 1e-15)
    reference = answer["state"]
    if case.period:
        reference = {"v": [0.0, math.sqrt(1.8), 0.0], "x": [1.0, 0.0, 0.0]}
    compare_starts(case, answer["drift"]["hamiltonian"]["initial"])
    floor = 0.0
    if hy and case.field:
        floor = distance(case, heyoka(case, 1e-18, 1, compact=True)[0], reference)
        print(f"  floor {floor:.1e}")
    curves, peers = {}, set()
    for peer, method, setting, measure in measurements(case):
        x, seconds = measure(times)
        curves.setdefault(method, []).append((distance(case, x, reference), seconds))
        if peer:
            peers.add(method)
        print(f"  {method:26} {setting or 0:8.3g} {1e3*seconds:10.3f} ms   error {curves[method][-1][0]:.1e}", flush=True)
    compare(curves, peers, floor)


def sweep(method, rtol, times):
    model, model_start = ROOT/"models/spherical-pendulum.holo", "p=(1+0.5*i/N,0,-1)"

    def work():
        with tempfile.TemporaryDirectory() as folder:
            answer = holonome("sweep", model, "--trajectories", TRAJECTORIES, "--vary", model_start, "--until", 20,
                              "--samples", 2, "--json", "--threads", 1, "--method", method, "--rtol", rtol,
                              "--record", "q,p", "--out", f"{folder}/sweep")
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
    field = pendulum(None).equations
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
    compare(curves, {"heyoka"})


def least_time(curve, error):
    """The least time in which a method comes to an error, between two settings by a line through logarithms."""
    times = [seconds for own, seconds in curve if 0.0 < own <= error]
    for (large, fast), (small, slow) in zip(curve, curve[1:]):
        if large >= error >= small > 0.0 and large > small:
            part = math.log(large/error)/math.log(large/small)
            times.append(fast*(slow/fast)**part)
    return min(times, default=None)


def compare(curves, peers, floor=0.0):
    if not peers:
        return
    for error in ERRORS:
        times = {method: least_time(curve, error) for method, curve in curves.items()}
        own = {method: seconds for method, seconds in times.items() if seconds and method not in peers}
        if own:
            line = ", ".join(f"{method} {1e3*seconds:.3f}" for method, seconds in own.items())
            others = ", ".join(f"{method} {1e3*times[method]:.3f} ({times[method]/min(own.values()):.2f})"
                               for method in curves if method in peers and times[method])
            print(f"  error {error:.0e}{' (below the floor)'*(error < floor)}: {line} ms; {others or 'no peer'}")


CASES = {
    "pendulum100": Case("models/spherical-pendulum.holo", 100.0,
                        ["corrected:taylor", "corrected:gauss16", "corrected:dop853"], pendulum),
    "pendulum1000": Case("models/spherical-pendulum.holo", 1000.0,
                         ["corrected:taylor", "corrected:gauss16", "corrected:dop853"], pendulum),
    "kepler": Case("models/kepler.holo", 1000*2*math.pi/0.2**1.5,
                   ["corrected:taylor", "corrected:gauss16", "corrected:dop853"], kepler, period=True),
    "planets": Case("suite/models/outer-planets.holo", 200000.0, ["taylor", "gauss16", "dop853"], gravity, step=500.0),
    "double-pendulum": Case("models/double-pendulum.holo", 30.0,
                            ["corrected:taylor", "corrected:gauss16", "corrected:dop853"]),
    "solar-system": Case("benches/models/solar-system.holo", 200000.0, ["gauss16"], gravity, step=25.0, rtols=RTOLS[4:]),
    "circumbinary": Case("benches/models/circumbinary.holo", 100000.0, ["gauss16"], gravity, step=12.5, rtols=RTOLS[4:]),
    "galilean": Case("benches/models/galilean.holo", 4000.0, ["gauss16"], gravity, step=0.390625, rtols=RTOLS[4:]),
    "galaxy": Case("benches/models/triaxial-galaxy.holo", 1000.0, ["gauss16", "dop853", "taylor"], galaxy),
    "rotors": Case("benches/models/rotors.holo", 200.0, ["gauss16", "dop853", "taylor"], rotors),
    "henon-heiles": Case("models/henon-heiles.holo", 200.0, ["taylor", "gauss16", "dop853"]),
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("holonome")
    parser.add_argument("cases", nargs="*", default=[*CASES, "ensemble"])
    parser.add_argument("--best-of", type=int, default=7)
    options = parser.parse_args()
    print(f"heyoka {hy.__version__}" if hy else "heyoka is not installed", end="; ")
    print(f"REBOUND {rebound.__version__}" if rebound else "REBOUND is not installed")
    for name in options.cases:
        if name == "ensemble":
            ensemble(options.best_of)
        else:
            single(name, CASES[name], options.best_of)


main()
