"""Penalised motions, computed with mpmath alone: `python3 penalty.py > ../penalty.toml`.

Systems of unit masses in the plane joined by rods, g_k = |r_i - r_j|^2 - L^2, and the two springs of Tao and Owhadi
2016, sec. 3. Nothing here knows how the engine does it: the multipliers of the constrained motion are solved from
g'' = 0 by a singular value decomposition (least norm where rods are redundant), their rate is a derivative along that
motion's Taylor expansion, and the slow manifold's start is found by Newton's iteration in 40 digits.
"""

from mpmath import diff, matrix, mp, mpf, sin, sqrt, svd_r

mp.dps = 40


class Rods:
    """Unit masses; a rod is (i, j, squared length) with j = None for the origin. V = weight * sum of y."""

    def __init__(self, masses, rods, weight):
        self.n, self.rods, self.weight = masses, rods, mpf(weight)

    def ends(self, q, rod):
        i, j, _ = rod
        a = [q[2*i], q[2*i + 1]]
        b = [0, 0] if j is None else [q[2*j], q[2*j + 1]]
        return [a[0] - b[0], a[1] - b[1]]

    def g(self, q):
        return [sum(d*d for d in self.ends(q, rod)) - rod[2] for rod in self.rods]

    def jacobian(self, q):
        rows = matrix(len(self.rods), 2*self.n)
        for k, rod in enumerate(self.rods):
            d = self.ends(q, rod)
            for c in range(2):
                rows[k, 2*rod[0] + c] += 2*d[c]
                if rod[1] is not None:
                    rows[k, 2*rod[1] + c] -= 2*d[c]
        return rows

    def multipliers(self, q, p):
        """g'' = 2 |v_i - v_j|^2 + G (F - G^T lambda) = 0."""
        G = self.jacobian(q)
        force = matrix([0 if k % 2 == 0 else -self.weight for k in range(2*self.n)])
        bend = matrix([2*sum(d*d for d in self.ends(p, rod)) for rod in self.rods])
        return least_norm(G*G.T, bend + G*force)

    def gradient(self, q, omega):
        """Of V + omega^2/2 |g|^2."""
        pull = self.jacobian(q).T*matrix(self.g(q))
        return [omega**2*pull[k] + (self.weight if k % 2 else 0) for k in range(2*self.n)]

    def slow_start(self, q, p, omega):
        q, p = list(q), list(p)
        q = self.to(q, [mpf(0)]*len(self.rods))
        p = self.rate_to(q, p, [mpf(0)]*len(self.rods))
        lam = self.multipliers(q, p)
        pull = self.jacobian(q).T*lam
        force = [-pull[k] - (self.weight if k % 2 else 0) for k in range(2*self.n)]

        def along(component):
            def at(t):
                there = [x + t*v for x, v in zip(q, p)]
                then = [x + t*f for x, f in zip(p, force)]
                return self.multipliers(there, then)[component]
            return diff(at, 0)

        slope = [along(k) for k in range(len(self.rods))]
        q1 = self.to(q, [v/omega**2 for v in lam])
        return q1, self.rate_to(q1, p, [v/omega**2 for v in slope])

    def to(self, q, target):
        for _ in range(12):
            G = self.jacobian(q)
            move = G.T*least_norm(G*G.T, matrix([a - b for a, b in zip(self.g(q), target)]))
            q = [x - d for x, d in zip(q, move)]
        return q

    def rate_to(self, q, p, target):
        G = self.jacobian(q)
        move = G.T*least_norm(G*G.T, G*matrix(p) - matrix(target))
        return [x - d for x, d in zip(p, move)]

    def verlet(self, q, p, omega, h, steps):
        """Kick, drift, kick."""
        for _ in range(steps):
            p = [x - h/2*d for x, d in zip(p, self.gradient(q, omega))]
            q = [x + h*v for x, v in zip(q, p)]
            p = [x - h/2*d for x, d in zip(p, self.gradient(q, omega))]
        return q, p


def least_norm(A, b):
    """The solution of least norm; directions with singular values below 1e-20 are left out."""
    U, S, V = svd_r(A)
    y = matrix(len(b), 1)
    for k in range(len(S)):
        if S[k] > mpf("1e-20")*S[0]:
            part = sum(U[i, k]*b[i] for i in range(len(b)))/S[k]
            for i in range(len(b)):
                y[i] += part*V[k, i]
    return y


def numbers(values):
    return "[" + ", ".join(mp.nstr(v, 18, min_fixed=-4, max_fixed=4) for v in values) + "]"


DOUBLE = Rods(2, [(0, None, mpf(1)), (1, 0, mpf(2))], 1)
SQUARE = Rods(4, [(i, j, mpf(2 if j - i == 2 else 1)) for i in range(4) for j in range(i + 1, 4)], 1)
CORNERS = [(0, 0), (1, 0), (1, 1), (0, 1)]
SPIN = [mpf(v) for x, y in CORNERS for v in (1 - (mpf(y) - mpf(1)/2), 2 + (mpf(x) - mpf(1)/2))]
CASES = [
    ("../models/double-pendulum.holo", DOUBLE, [0, -1, 1, -2], [0, 0, 0, 0], 20, "0.01", 200),
    ("../models/double-pendulum.holo", DOUBLE, [0, -1, 1, -2], [mpf(3)/10, 0, mpf(7)/10, mpf(2)/5], 35, "0.005", 200),
    ("../models/braced-square.holo", SQUARE, [mpf(c) for xy in CORNERS for c in xy], SPIN, 50, "0.005", 200),
]


def two_springs(omega, window):
    """The mean of omega^2 q1 over the window from (0, 1) at rest, exactly: two modes of a linear system."""
    omega = mpf(omega)
    a, b = 1 + omega**2, mpf(1)
    # Squared frequencies of matrix (a, -1; -1, b).
    middle, half = (a + b)/2, sqrt(((a - b)/2)**2 + 1)
    modes = []
    for square in (middle + half, middle - half):
        x, y = mpf(1), a - square
        norm = x*x + y*y
        modes.append((sqrt(square), x*y/norm))
    first, last = (mpf(t) for t in window)
    means = [share*(sin(w*last) - sin(w*first))/w/(last - first) for w, share in modes]
    return omega**2*sum(means), (sin(last) - sin(first))/(last - first)


print("# Written by reference/penalty.py; see there.\n")
for model, rods, q, p, omega, h, steps in CASES:
    q, p = [mpf(v) for v in q], [mpf(v) for v in p]
    omega, h = mpf(omega), mpf(h)
    off = rods.verlet(q, p, omega, h, steps)
    start = rods.slow_start(q, p, omega)
    on = rods.verlet(*start, omega, h, steps)
    print("[[steps]]")
    print(f'model = "{model}"\nomega = {mp.nstr(omega, 5)}\nh = {mp.nstr(h, 5)}\ncount = {steps}')
    print(f"initial = {numbers(q + p)}")
    print(f"off = {numbers(off[0] + off[1])}")
    print(f"start = {numbers(start[0] + start[1])}")
    print(f"on = {numbers(on[0] + on[1])}\n")
mean, exact = two_springs(50, ("1", "1.2"))
print(f"[springs]\nomega = 50\nwindow = [1, 1.2]\nmean = {mp.nstr(mean, 15)}\nexact = {mp.nstr(exact, 15)}")
