"""Four-bar linkage of crates/holonome/tests/redundant.rs: its state at t = 3 in minimal coordinates.

One angle moves; the others follow from the loop. Energy gives M(a) a'' + M'(a) a'^2/2 + V'(a) = 0, which the
classical Runge-Kutta method follows with N and 2N steps, and Richardson's extrapolation improves. Derivatives are
central differences in 30 digits. Usage: python3 redundant.py N
"""
import sys
from mpmath import acos, atan2, cos, lu_solve, matrix, mp, mpf, nstr, sin, sqrt

mp.dps = 30
LENGTHS, GROUND, GRAVITY, THICK = [mpf("0.5"), mpf("1.2"), mpf(1)], mpf("1.3"), mpf("9.81"), mpf("1e-4")
# Second moments of a bar are its mass, which is its length, times diag(l^2/12, THICK, THICK).
INERTIA = [l * (l * l / 12 + THICK) for l in LENGTHS]


def angles(a):
    """Angles of the coupler and of the rocker."""
    x, y = LENGTHS[0] * cos(a), LENGTHS[0] * sin(a)
    dx, dy = GROUND - x, -y
    d = sqrt(dx * dx + dy * dy)
    b = atan2(dy, dx) + acos((LENGTHS[1] ** 2 + d * d - LENGTHS[2] ** 2) / (2 * LENGTHS[1] * d))
    return b, atan2(y + LENGTHS[1] * sin(b), x + LENGTHS[1] * cos(b) - GROUND)


def configuration(a):
    """Centres of the three bars."""
    b, c = angles(a)
    l = LENGTHS
    return [(l[0] / 2 * cos(a), l[0] / 2 * sin(a)),
            (l[0] * cos(a) + l[1] / 2 * cos(b), l[0] * sin(a) + l[1] / 2 * sin(b)),
            (GROUND + l[2] / 2 * cos(c), l[2] / 2 * sin(c))]


def mass(a):
    """M(a): twice the kinetic energy at unit rate of a."""
    b, c = angles(a)
    l = LENGTHS
    loop = matrix([[l[1] * sin(b), -l[2] * sin(c)], [l[1] * cos(b), -l[2] * cos(c)]])
    rates = lu_solve(loop, matrix([-l[0] * sin(a), -l[0] * cos(a)]))
    x = -l[0] * sin(a) - l[1] / 2 * sin(b) * rates[0]
    y = l[0] * cos(a) + l[1] / 2 * cos(b) * rates[0]
    return (l[0] * (l[0] / 2) ** 2 + INERTIA[0] + l[1] * (x * x + y * y) + INERTIA[1] * rates[0] ** 2
            + (l[2] * (l[2] / 2) ** 2 + INERTIA[2]) * rates[1] ** 2)


def potential(a):
    return GRAVITY * sum(l * y for l, (_, y) in zip(LENGTHS, configuration(a)))


def acceleration(a, w):
    h = mpf("1e-9")
    slope = lambda f: (f(a + h) - f(a - h)) / (2 * h)
    return -(slope(mass) * w * w / 2 + slope(potential)) / mass(a)


def followed(end, count):
    h, a, w = mpf(end) / count, mpf("1.2"), mpf(0)
    for _ in range(count):
        v1, k1 = w, acceleration(a, w)
        v2, k2 = w + h / 2 * k1, acceleration(a + h / 2 * v1, w + h / 2 * k1)
        v3, k3 = w + h / 2 * k2, acceleration(a + h / 2 * v2, w + h / 2 * k2)
        v4, k4 = w + h * k3, acceleration(a + h * v3, w + h * k3)
        a += h / 6 * (v1 + 2 * v2 + 2 * v3 + v4)
        w += h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return a


if __name__ == "__main__":
    count = int(sys.argv[1])
    coarse, fine = followed(3, count), followed(3, 2 * count)
    best = fine + (fine - coarse) / 15
    print("difference", nstr(fine - coarse, 3))
    print([nstr(v, 15) for centre in configuration(best) for v in centre])
