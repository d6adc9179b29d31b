"""Values of special functions with 40 digits: the table special.csv of function, order, argument, value.

Needs mpmath. Run: python3 special.py > special.csv
"""

from mpmath import besselj, gamma, gammainc, hyp2f1, loggamma, mp, mpf, pi, polygamma

mp.dps = 40


def elliptic(first, n, m):
    """Derivative of order n of π/2 · ₂F₁(first, 1/2; 1; m)."""
    value = mpf(1)
    for k in range(n):
        value *= (first + k) * (mpf(1) / 2 + k) / (1 + k)
    return pi / 2 * value * hyp2f1(first + n, mpf(1) / 2 + n, 1 + n, m)


def doubles(*numbers):
    """The numbers as doubles, exactly."""
    return [mpf(float(number)) for number in numbers]


def rows():
    for n in range(5):
        for x in doubles(0, 1e-6, 0.3, 1, 2.404, 5, 17.25, 60, -3.5):
            yield "besselj", n, x, besselj(n, x)
    for n in range(4):
        for m in doubles(-30, -2, -0.51, -0.5, -0.2, -1e-9, 0, 1e-9, 0.2, 0.5, 0.51, 0.8, 0.99, 0.999999):
            yield "ellipk", n, m, elliptic(mpf(1) / 2, n, m)
            yield "ellipe", n, m, elliptic(-mpf(1) / 2, n, m)
    for x in doubles(-5.5, -0.3, 1e-3, 0.5, 1, 1.5, 4.75, 20.5, 100.25):
        yield "gamma", 0, x, gamma(x)
        yield "lgamma", 0, x, loggamma(abs(x)) if x > 0 else mp.log(abs(gamma(x)))
        for n in range(4):
            yield "polygamma", n, x, polygamma(n, x)
    for a in doubles(0.3, 1, 2.5, 40):
        for x in doubles(0, 1e-3, 0.7, 2, 6, 45):
            yield "gammainc", a, x, gammainc(a, 0, x, regularized=True)


print("function,order,x,value")
for name, order, x, value in rows():
    print(f"{name},{mp.nstr(mpf(order), 17)},{mp.nstr(x, 20)},{mp.nstr(mp.re(value), 25)}")
