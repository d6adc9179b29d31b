"""Prints the vertical and the angular velocity of the rattleback of ../models/rattleback.holo, in the body, for
crates/holonome/tests/rolling.rs.

    pip install numpy scipy;  python rattleback.py

By hand, without multipliers: with r from the centre of mass to the contact and v = -w x r, the force of the contact is
F = M (v' + w x v + g n), and I w' + w x I w = r x F is linear in w'; n' = n x w.
"""

import numpy as np
from scipy.integrate import solve_ivp

a, b, c, d, M, g = 0.2, 0.03, 0.02, 0.01, 1.0, 9.81
I = np.array([[2e-4, -2e-5, 0], [-2e-5, 1.6e-3, 0], [0, 0, 1.7e-3]])
E = np.diag([a*a, b*b, c*c])


def field(t, y):
    n, w = y[:3], y[3:]
    s = np.sqrt(n @ E @ n)
    r = np.array([0, 0, d]) - E @ n/s
    rate = np.cross(n, w)
    moved = -E @ rate/s + E @ n*(n @ E @ rate)/s**3
    X = np.array([[0, -r[2], r[1]], [r[2], 0, -r[0]], [-r[1], r[0], 0]])
    rest = -np.cross(w, moved) + np.cross(w, -np.cross(w, r)) + g*n
    return np.r_[rate, np.linalg.solve(I + M*X @ X.T, -np.cross(w, I @ w) + M*np.cross(r, rest))]


for end in (1, 5, 10):
    found = solve_ivp(field, (0, end), [0, 0, 1, 0.01, -0.02, -5], method="DOP853", rtol=1e-13, atol=1e-15)
    print(end, found.y[:, -1].tolist())
