"""Steps of the methods for Poisson systems, in 45 digits: for `steps.py`.

A splitting of the three species composes the growth by each part of H, which depends on one species alone. The averaged vector
field of the Toda lattice, whose H is quadratic, has the gradient in the middle: it is iterated as it stands.
"""

from gmpy2 import exp, mpfr

Q = lambda text: mpfr(text)


def species(h, x):
    """x_i' = x_i sum_j a_ij x_j H_j'(x_j), with x_j H_j' = x - 1, y - 1/2, z."""
    a = [[0, Q("1.5"), -Q("0.8")], [-Q("1.5"), 0, Q("1.1")], [Q("0.8"), -Q("1.1"), 0]]
    slope = [lambda x: x - 1, lambda y: y - Q("0.5"), lambda z: z]

    def grow(j, time, x):
        return [c*exp(time*a[i][j]*slope[j](x[j])) for i, c in enumerate(x)]

    for j, part in ((0, h/2), (1, h/2), (2, h), (1, h/2), (0, h/2)):
        x = grow(j, part, x)
    return x


def lattice(h, x):
    """a_i' = a_i (H_b(i+1) - H_b(i)), b_i' = a_i H_a(i) - a_(i-1) H_a(i-1), signs as brackets have them."""
    def rate(m):
        a, b = m[:2], m[2:]
        force = [a[i]*4*a[i] for i in range(2)]
        return ([a[i]*2*(b[i + 1] - b[i]) for i in range(2)]
                + [force[0], force[1] - force[0], -force[1]])

    y = x
    for _ in range(200):
        y = [c + h*r for c, r in zip(x, rate([(c + d)/2 for c, d in zip(x, y)]))]
    return y


def steps(compositions):
    """Model, method, h, number of steps, state."""
    h = mpfr(0.125)
    for path, name, step, start in (
        ("structure/three-species.holo", "poisson-splitting", species, ["1", "0.6", "1.5"]),
        ("structure/flaschka.holo", "discrete-gradient", lattice, ["0.5", "0.4", "0.3", "-0.2", "0.5"]),
    ):
        start = [Q(c) for c in start]
        x = step(h, step(h, start))
        yield path, name, h, 2, x
        for composition, gamma in compositions.items():
            x = start
            for c in gamma:
                x = step(c*h, x)
            yield path, f"{composition}({name})", h, 1, x
