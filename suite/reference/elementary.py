"""Prints the constants of crates/model/src/graph/elementary: the parts of pi and ln 2, and the polynomials.

    pip install mpmath gmpy2;  python elementary.py [NAME ...]

Every polynomial P is the best one for a weighted error |w(x) (f(x) - P(x))| on an interval: Remez' exchange in 60
digits. Coefficients become doubles one at a time, the lowest first, and those that are left are fitted again to
make up for what the rounding did. For each polynomial the script prints the error before and after rounding, as a
power of two; the weights are such that this is the relative error of the function itself.
"""

import sys

from mpmath import mp, mpf

mp.dps = 60
POINTS = 1500


def chebyshev(a, b, n):
    """n points of [a, b], the ends among them, denser there."""
    return [(a + b)/2 - (b - a)/2*mp.cos(mp.pi*k/(n - 1)) for k in range(n)]


def remez(f, weight, a, b, powers):
    """Coefficients of the given powers that minimise max |weight (f - P)|, and that maximum."""
    grid = chebyshev(a, b, POINTS)
    # Weights vanish at 0, which takes no part in the exchange.
    grid = [x for x in grid if x != 0]
    values, weights = [f(x) for x in grid], [weight(x) for x in grid]
    count = len(powers) + 1
    # Where the weight is small the error cannot be large: the first guess stays away from there.
    heavy = [k for k, w in enumerate(weights) if w > max(weights)/10**5]
    chosen = [heavy[round((len(heavy) - 1)*(1 - mp.cos(mp.pi*k/(count - 1)))/2)] for k in range(count)]
    for _ in range(50):
        rows = mp.matrix(count, count)
        right = mp.matrix(count, 1)
        for i, k in enumerate(chosen):
            for j, p in enumerate(powers):
                rows[i, j] = weights[k]*grid[k]**p
            rows[i, count - 1] = (-1)**i
            right[i] = weights[k]*values[k]
        solution = mp.lu_solve(rows, right)
        level = abs(solution[count - 1])
        errors = [w*(v - sum(c*x**p for c, p in zip(solution, powers))) for x, v, w in zip(grid, values, weights)]
        # The largest error of each run of one sign.
        extrema = []
        for k, e in enumerate(errors):
            if extrema and (errors[extrema[-1]] > 0) == (e > 0):
                if abs(e) > abs(errors[extrema[-1]]):
                    extrema[-1] = k
            else:
                extrema.append(k)
        while len(extrema) > count:
            sizes = [abs(errors[k]) for k in extrema]
            least = sizes.index(min(sizes))
            if len(extrema) == count + 1 or least in (0, len(extrema) - 1):
                extrema.pop(0 if sizes[0] < sizes[-1] else -1)
            else:
                # With a neighbour, so that the signs still alternate.
                first = least - (sizes[least - 1] < sizes[least + 1])
                del extrema[first:first + 2]
        largest = max(abs(e) for e in errors)
        if len(extrema) < count or largest < level*(1 + mpf(2)**-10):
            break
        chosen = extrema
    return list(solution[:-1]), largest


def rounded(f, weight, a, b, count, parts=(1,)):
    """Doubles for `count` coefficients, the first few as sums of `parts[i]` doubles, and both errors."""
    coefficients, best = remez(f, weight, a, b, list(range(count)))
    # On an interval around 0, x P(x) has one sign change too few to alternate freely; x^2 P(x) has not.
    step = 2 if a < 0 else 1
    fixed = []
    total = lambda x: f(x) - sum(sum(mpf(p) for p in c)*x**i for i, c in enumerate(fixed))
    while len(fixed) < count:
        for c in coefficients[:step]:
            doubles = []
            for _ in range(parts[len(fixed)] if len(fixed) < len(parts) else 1):
                doubles.append(float(c))
                c -= doubles[-1]
            fixed.append(doubles)
        k = len(fixed)
        if k < count:
            coefficients, _ = remez(lambda x: total(x)/x**k, lambda x: weight(x)*x**k, a, b, list(range(count - k)))
    return fixed, best, max(abs(weight(x)*total(x)) for x in chebyshev(a, b, 4*POINTS))


def series(f, small):
    """f with its removable singularity at 0 filled by the series' first coefficients."""
    return lambda x: sum(c*x**i for i, c in enumerate(small)) if abs(x) < mpf(10)**-12 else f(x)


root, fraction = mp.sqrt, lambda p, q: mpf(p)/q
# A little more than the reduction leaves: its multiple is rounded from an inexact quotient.
quarter = mp.pi/4*(1 + mpf(2)**-12)
half_log = mp.log(2)/2*(1 + mpf(2)**-12)
s_log = (root(2) - 1)/(root(2) + 1)*(1 + mpf(2)**-12)

beyond_one = lambda t: 2*(1 + t)/(1 - t)

POLYNOMIALS = {
    # sin r = r + r z S(z), z = r^2
    "SINE": (series(lambda z: (mp.sin(root(z))/root(z) - 1)/z, [fraction(-1, 6), fraction(1, 120)]),
             lambda z: z*root(z)/mp.sin(root(z)) if z else mpf(0), 0, quarter**2, 6),
    # cos r = 1 - z/2 + z^2 C(z)
    "COSINE": (series(lambda z: (mp.cos(root(z)) - 1 + z/2)/z**2, [fraction(1, 24), fraction(-1, 720)]),
               lambda z: z**2/mp.cos(root(z)), 0, quarter**2, 6),
    # e^r = 1 + r + r^2 Q(r); the error is relative to e^r - 1
    "EXPONENTIAL": (series(lambda r: (mp.exp(r) - 1 - r)/r**2, [fraction(1, 2), fraction(1, 6)]),
                    lambda r: abs(r**2/mp.expm1(r)), -half_log, half_log, 10),
    # sinh r = r + r z S(z)
    "HYPERBOLIC_SINE": (series(lambda z: (mp.sinh(root(z))/root(z) - 1)/z, [fraction(1, 6), fraction(1, 120)]),
                        lambda z: z*root(z)/mp.sinh(root(z)) if z else mpf(0), 0, half_log**2, 5),
    # cosh r = 1 + z C(z)
    "HYPERBOLIC_COSINE": (series(lambda z: (mp.cosh(root(z)) - 1)/z, [fraction(1, 2), fraction(1, 24)]),
                          lambda z: z/mp.cosh(root(z)), 0, half_log**2, 5),
    # ln((1 + s)/(1 - s)) = 2 s + s z P(z), z = s^2; the error is relative to the logarithm
    "LOGARITHM": (series(lambda z: (2*mp.atanh(root(z))/root(z) - 2)/z, [fraction(2, 3), fraction(2, 5)]),
                  lambda z: z/2, 0, s_log**2, 7),
    # arctan t = t + t z P(z)
    "ARCTANGENT": (series(lambda z: (mp.atan(root(z))/root(z) - 1)/z, [fraction(-1, 3), fraction(1, 5)]),
                   lambda z: z*root(z)/mp.atan(root(z)) if z else mpf(0), 0, fraction(1, 4), 12),
    # arcsin t = t + t z P(z)
    "ARCSINE": (series(lambda z: (mp.asin(root(z))/root(z) - 1)/z, [fraction(1, 6), fraction(3, 40)]),
                lambda z: z*root(z)/mp.asin(root(z)) if z else mpf(0), 0, fraction(1, 4), 13),
    # ln((2 + s)/(2 - s)) = s + s z P(z): the same with twice the s, to more digits, for powers
    "POWER": (series(lambda z: (2*mp.atanh(root(z)/2)/root(z) - 1)/z, [fraction(1, 12), fraction(1, 80)]),
              lambda z: z, 0, (2*s_log)**2, 8, (2,)),
    # erf x = x F(z), z = x^2, to x = 1; the first coefficient in two doubles
    "ERROR_INNER": (series(lambda z: mp.erf(root(z))/root(z), [2/root(mp.pi), -2/(3*root(mp.pi))]),
                    lambda z: root(z)/mp.erf(root(z)) if z else root(mp.pi)/2, mpf(0), mpf(1), 13, (2,)),
    # erf x = 1 - e^(-x^2) Q(t), t = (x - 2)/(x + 2), from x = 1 to 6
    "ERROR_OUTER": (lambda t: mp.erfc(beyond_one(t))*mp.exp(beyond_one(t)**2),
                    lambda t: mp.exp(-beyond_one(t)**2)/mp.erf(beyond_one(t)), fraction(-1, 3), fraction(1, 2), 14),
}

NUMBERS = {"PI/2": mp.pi/2, "LN_2": mp.log(2), "1/LN_10": 1/mp.log(10)}


def power_of_two(x):
    return f"2^{mp.nstr(mp.log(x, 2), 4)}"


if __name__ == "__main__":
    names = sys.argv[1:]
    if not names:
        for name, value in NUMBERS.items():
            for part in range(3):
                print(f"{name} part {part}: {float(value)!r}")
                value -= float(value)
        # Of 42 bits, so that its multiples by exponents are exact.
        short = mp.floor(mp.log(2)*2**42)/2**42
        print(f"LN_2 short: {float(short)!r}, and {float(mp.log(2) - short)!r}")
    for name in names or POLYNOMIALS:
        coefficients, best, error = rounded(*POLYNOMIALS[name])
        print(f"{name}: {power_of_two(best)} in real numbers, {power_of_two(error)} in doubles")
        for parts in coefficients:
            print("    " + ", ".join(repr(p) for p in parts) + ",")
