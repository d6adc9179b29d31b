"""Steps of rigid bodies from what defines them: Cayley methods from their discrete Lagrangian, the splitting from the three
parts' equations of motion. No formula of a Cayley map's derivative, of a rotation or of a torque is typed."""

import math

from gmpy2 import mpfr, sin

from formulations import integrate, solve

AXES = ((0, 1, 2), (1, 2, 0), (2, 0, 1))
one = [[mpfr(i == j) for j in range(3)] for i in range(3)]
add = lambda A, B, c=1: [[a + c*b for a, b in zip(r, s)] for r, s in zip(A, B)]
mul = lambda A, B: [[sum(a*b for a, b in zip(r, c)) for c in zip(*B)] for r in A]
transposed = lambda A: [list(r) for r in zip(*A)]
times = lambda A, v: [sum(a*b for a, b in zip(r, v)) for r in A]
dot = lambda a, b: sum(x*y for x, y in zip(a, b))
vee = lambda A: [A[k][j] for _, j, k in AXES]
flat = lambda A: [a for r in A for a in r]


def hat(v):
    A = [[mpfr(0)]*3 for _ in range(3)]
    for i, j, k in AXES:
        A[k][j], A[j][k] = v[i], -v[i]
    return A


def inverse(A):
    return transposed([solve(A, e) for e in one])


def cay(v):
    """(1 - v^/2)^-1 (1 + v^/2)"""
    half = [[a/2 for a in r] for r in hat(v)]
    return mul(inverse(add(one, half, -1)), add(one, half))


def uncay(W):
    """The v of which W is cay(v): 2 (W - 1)(W + 1)^-1."""
    return [2*c for c in vee(mul(add(W, one, -1), inverse(add(W, one))))]


def gradient(f):
    """df(eta)/deta at 0, by the central formula of order 8: with 1e-5, its error and the rounding are 1e-40."""
    d, weights = mpfr("1e-5"), [mpfr(4)/5, -mpfr(1)/5, mpfr(4)/105, -mpfr(1)/280]
    return [sum(w*(f([k*d*c for c in e]) - f([-k*d*c for c in e])) for k, w in enumerate(weights, 1))/d for e in one]


class Body:
    """I, V(t, R), R and the angular momentum M in the body's frame at the start; `state` lists R and M as the model has them."""

    def __init__(self, inertia, R, omega, state, V=None):
        self.I, self.V, self.state = inertia, V or (lambda t, R: mpfr(0)), state
        self.free, self.start = V is None, (R, times(inertia, omega))


def cayley(weights):
    """The discrete Lagrangian h (w I w/2 - a V(t0, R0) - b V(t1, R1)), R1 = R0 cay(h w): M0 = -dL/dR0, M1 = dL/dR1."""
    def step(body, t, h, x):
        (R, M), (a, b) = x, weights

        def L(R0, R1):
            v = uncay(mul(transposed(R0), R1))
            return dot(v, times(body.I, v))/(2*h) - h*(a*body.V(t, R0) + (b*body.V(t + h, R1) if b else 0))

        def residual(v):
            R1 = mul(R, cay(v))
            return [g + m for g, m in zip(gradient(lambda eta: L(mul(R, cay(eta)), R1)), M)]

        # Newton's method; forward differences make it converge by 20 digits in each iteration.
        v = [h*c for c in solve(body.I, M)]
        for _ in range(8):
            r = residual(v)
            d = mpfr("1e-18")
            columns = [[(c - s)/d for c, s in zip(residual([y + d*e for y, e in zip(v, unit)]), r)] for unit in one]
            v = [y - c for y, c in zip(v, solve(transposed(columns), r))]
        assert max(abs(c) for c in residual(v)) < mpfr("1e-34")
        R1 = mul(R, cay(v))
        return R1, gradient(lambda eta: L(R, mul(R1, cay(eta))))
    return step


def part(k):
    """The flow of M_k^2/2I_k: R' = R hat(w), M' = M x w with w = M_k/I_k e_k."""
    def flow(body, h, x):
        def field(_, y):
            R, M = [y[0:3], y[3:6], y[6:9]], y[9:]
            w = hat([c*M[k]/body.I[k][k] for c in one[k]])
            return flat(mul(R, w)) + [-c for c in times(w, M)]
        y = integrate(field, flat(x[0]) + x[1], h, 1)
        return [y[0:3], y[3:6], y[6:9]], y[9:]
    return flow


def splitting(body, t, h, x):
    """HLW VII.5"""
    for k, c in ((0, h/2), (1, h/2), (2, h), (1, h/2), (0, h/2)):
        x = part(k)(body, c, x)
    return x


def numbers(text):
    return [mpfr(c) for c in text.split()]


def rows(text):
    c = numbers(text)
    return [c[0:3], c[3:6], c[6:9]]


diagonal = lambda text: [[c if i == j else mpfr(0) for j in range(3)] for i, c in enumerate(numbers(text))]


def bodies():
    def with_momentum(I):
        """R and P = R hat(w) J with J = tr(I)/2 - I"""
        J = add([[c*sum(I[i][i] for i in range(3))/2 for c in r] for r in one], I, -1)
        return lambda R, M: flat(R) + flat(mul(mul(R, hat(solve(I, M))), J))

    def with_velocity(I):
        return lambda R, M: flat(R) + solve(I, M)

    I = diagonal("3 2 1")
    yield "../models/rigid-body.holo", Body(I, one, numbers("1 1 1"), with_velocity(I))
    I = diagonal("3 4 5")
    yield "models/matrix-rigid-body.holo", Body(I, one, numbers("0.5 1 -0.7"), with_momentum(I))
    I = diagonal("1 2 3")
    yield "structure/euler-top.holo", Body(I, one, numbers("1 0.5 -0.7"), lambda R, M: solve(I, M))
    spherical = diagonal("1 1 1")
    yield "../models/magnetic-body.holo", Body(
        spherical, one, numbers("1 0.2 0.1"), with_momentum(spherical), lambda t, R: R[2][2])
    top, R = diagonal("2 1.5 1"), rows("0.6 0 0.8 0 1 0 -0.8 0 0.6")
    height = lambda t, R: R[2][2]
    yield "../models/heavy-top.holo", Body(top, R, numbers("0.3 0.2 2"), with_momentum(top), height)
    yield "structure/top-by-momentum.holo", Body(top, R, numbers("0.3 0.2 2"), lambda R, M: M + flat(R), height)
    J = rows("1.2 0.2 -0.1 0.2 0.9 0.3 -0.1 0.3 0.7")
    tilted = add([[c*mpfr("2.8") for c in r] for r in one], J, -1)
    swung = lambda t, R: ((1 + sin(2*t)/2)*R[2][0] + mpfr("0.3")*R[0][1]*R[1][2] - mpfr("0.4")*R[2][2]**2)
    yield "structure/tilted-top.holo", Body(
        tilted, rows("0.36 0.48 -0.8 -0.8 0.6 0 0.48 0.64 0.6"), numbers("0.4 -0.3 0.8"), with_momentum(tilted), swung)


def steps(compositions, composed):
    """Model, method, h, number of steps, state."""
    half = mpfr(1)/2
    for path, body in bodies():
        own = {"cayley-variational-euler": cayley((mpfr(1), mpfr(0))), "cayley-symmetric": cayley((half, half))}
        if body.free:
            own["rotation-splitting"] = splitting
        if "heavy" in path or "matrix" in path:
            base = "rotation-splitting" if body.free else "cayley-symmetric"
            own |= {f"{name}({base})": composed(gamma, own[base]) for name, gamma in compositions.items()}
        for name, step in own.items():
            h, count, x = mpfr(0.125), 1 if "(" in name else 2, body.start
            for k in range(count):
                x = step(body, k*h, h, x)
            yield path, name, h, count, body.state(*x)
        print(path, flush=True)


def largest_energy_error(I, w, h, count):
    """Of the splitting, over some steps, in double precision: the rotations of the angular momentum alone."""
    M = [i*c for i, c in zip(I, w)]
    energy = lambda: sum(m*m/i for m, i in zip(M, I))/2
    start, largest = energy(), 0.0
    for _ in range(count):
        for k, c in ((0, h/2), (1, h/2), (2, h), (1, h/2), (0, h/2)):
            i, j, angle = (k + 1) % 3, (k + 2) % 3, c*M[k]/I[k]
            c, s = math.cos(angle), math.sin(angle)
            M[i], M[j] = M[i]*c + M[j]*s, M[j]*c - M[i]*s
        largest = max(largest, abs(energy() - start))
    return largest


if __name__ == "__main__":      # for experiments.toml: one period of w
    for h, count in ((1e-2, 643), (1e-3, 6423), (1e-4, 64227)):
        print("rotation-splitting", h, largest_energy_error([3, 2, 1], [1, 1, 1], h, count))
