"""Reference values of crates/holonome/tests/classes.rs: models with constraints of mixed classes, in
coordinates without constraints, by mpmath's Taylor series with 30 digits."""

from mpmath import acos, cos, matrix, mp, mpf, odefun, sin

mp.dps = 30


def at(field, start, until):
    """State at the time `until`."""
    return odefun(field, 0, [mpf(x) for x in start])(until)


def show(name, values):
    print(name, [mp.nstr(value, 16) for value in values])


# Angle from below; x = sin a, y = -cos a, with gravity 1 and the potential 0.3 x^2.
a, w = at(lambda t, s: [s[1], -sin(s[0]) - mpf("0.6") * sin(s[0]) * cos(s[0])], [acos(-1), 1], 5)
show("flat: x, y, p_x, p_y", [sin(a), -cos(a), w * cos(a), w * sin(a)])

# Multiplier as a coordinate: m = 1.3, g = 0.7, l = 1, from (0.6, -0.8) at rest.
m, g = mpf("1.3"), mpf("0.7")
a, w = at(lambda t, s: [s[1], -g * sin(s[0])], [mp.asin(mpf("0.6")), 0], 20)
show("lock: x, y, u", [sin(a), -cos(a), m * (w**2 + g * cos(a)) / 2])


# Double pendulum, both masses and lengths and gravity 1, from (1, 0), (1, -1) at rest.
def double(t, s):
    a, b, v, w = s
    c, d = cos(a - b), sin(a - b)
    mass = matrix([[2, c], [c, 1]])
    force = matrix([-d * w**2 - 2 * sin(a), d * v**2 - sin(b)])
    rates = mp.lu_solve(mass, force)
    return [v, w, rates[0], rates[1]]


a, b, v, w = at(double, [mp.pi / 2, 0, 0, 0], 5)
show("double: x1, y1, x2, y2", [sin(a), -cos(a), sin(a) + sin(b), -cos(a) - cos(b)])


# Point vortices: G x' = H_y, G y' = -H_x.
strength = [1, 2, -1]


def vortices(t, s):
    x, y = s[:3], s[3:]
    dx, dy = [mpf(0)] * 3, [mpf(0)] * 3
    for i in range(3):
        for j in range(3):
            if i != j:
                r = (x[i] - x[j]) ** 2 + (y[i] - y[j]) ** 2
                dx[i] -= strength[j] * (y[i] - y[j]) / r / (2 * mp.pi)
                dy[i] += strength[j] * (x[i] - x[j]) / r / (2 * mp.pi)
    return dx + dy


s = at(vortices, [0, 1, "0.3", 0, "0.2", 1], 5)
show("vortices: x, y", s)
