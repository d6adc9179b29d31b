"""Projected Euler on Kepler and perturbed Kepler (2016): x = y + DF(y)^T mu with F(x) = F(x0), DF rank deficient.

Simplified Newton with the Jacobian at the unprojected y, in the least-norm sense, to round-off.
"""

import numpy as np

cross = np.cross


def invariants(x, apsis, delta):
    """F = (L, A, H) or (L, H) and its Jacobian."""
    q, v = x[:3], x[3:]
    r, I = np.linalg.norm(q), np.eye(3)
    hat = lambda w: np.array([[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]])
    F = [cross(q, v), [v@v/2 - 1/r - delta/r**3]]
    D = [np.hstack([-hat(v), hat(q)]), np.hstack([q/r**3 + 3*delta*q/r**5, v])[None]]
    if apsis:
        F.insert(1, q*(v@v) - v*(q@v) - q/r)
        D.insert(1, np.hstack([I*(v@v) - np.outer(v, v) - I/r + np.outer(q, q)/r**3, 2*np.outer(q, v) - I*(q@v) - np.outer(v, q)]))
    return np.concatenate(F), np.vstack(D)


def run(name, x, end, h, T, apsis, delta):
    x = np.array(x, float)
    F0 = invariants(x, apsis, delta)[0]
    worst, iterations, steps = 0, 0, int(np.ceil(T/h - 1e-9))
    for k in range(steps):
        r = np.linalg.norm(x[:3])
        step = h if k < steps - 1 else T - k*h
        x = x + step*np.hstack([x[3:], -x[:3]*(1/r**3 + 3*delta/r**5)])
        F, D = invariants(x, apsis, delta)
        P = np.linalg.pinv(D, rcond=1e-9)
        last = np.inf
        for i in range(50):
            size = np.linalg.norm(F - F0)
            if size < 4e-16 or (size >= last and i > 4):
                break
            last = size
            x = x - P@(F - F0)
            F = invariants(x, apsis, delta)[0]
            iterations += 1
        worst = max(worst, np.linalg.norm(F - F0))
    q, v = x[:3], x[3:]
    A = cross(v, cross(q, v)) - q/np.linalg.norm(q)
    print(f"{name}: max |F - F0| {worst:.2e}, {iterations/steps:.2f} iterations a step, "
          f"distance to the exact state {np.linalg.norm(x - end):.4e}, apsis angle {np.arctan2(A[1], A[0]):.5f}", flush=True)


run("perturbed Kepler", [.4, 0, 0, 0, 2, 0], [.17235779, 1.36197609, 0, -.60356465, -.12787716, 0], .03, 200, False, .0025)
run("Kepler", [1, 0, 0, 0, 1.8**.5, 0], [1, 0, 0, 0, 1.8**.5, 0], 1e-3, 2*np.pi*5**1.5, True, 0)
