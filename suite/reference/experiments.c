// The papers' experiments with explicit methods, as bare loops: what the numbers of ../references.toml mean.
// cc -O2 -o experiments experiments.c -lm && ./experiments      (about 20 s, most of it the rigid body)
// Fields are the printed ones: Dirac extension minus the gradient of V = sum of gain/2 |Delta F|^2.
#include <math.h>
#include <stdio.h>
#include <string.h>

typedef void Field(const double *x, double *f);
static double sq(double a) { return a * a; }
static double dot(const double *a, const double *b, int n) { double s = 0; for (int i = 0; i < n; i++) s += a[i] * b[i]; return s; }
static void cross(const double *a, const double *b, double *c) {
    c[0] = a[1] * b[2] - a[2] * b[1]; c[1] = a[2] * b[0] - a[0] * b[2]; c[2] = a[0] * b[1] - a[1] * b[0];
}
static double distance(const double *a, const double *b, int n) { double s = 0; for (int i = 0; i < n; i++) s += sq(a[i] - b[i]); return sqrt(s); }
static void euler(Field *X, double *x, int n, double h) {
    double f[12]; X(x, f);
    for (int i = 0; i < n; i++) x[i] += h * f[i];
}
static void rk4(Field *X, double *x, int n, double h) {
    double a[12], b[12], c[12], d[12], y[12];
    X(x, a); for (int i = 0; i < n; i++) y[i] = x[i] + h / 2 * a[i];
    X(y, b); for (int i = 0; i < n; i++) y[i] = x[i] + h / 2 * b[i];
    X(y, c); for (int i = 0; i < n; i++) y[i] = x[i] + h * c[i];
    X(y, d); for (int i = 0; i < n; i++) x[i] += h / 6 * (a[i] + 2 * (b[i] + c[i]) + d[i]);
}

// Pendulum in D = 2 or 3 dimensions, m = g = l = 1, gravity along the last axis (2022, eqs. 7, 8, 10, 11).
static int D; static double gain, F0[4];
static void invariants(const double *x, double *F) {
    const double *q = x, *p = x + D;
    F[0] = dot(q, q, D); F[1] = dot(q, p, D); F[2] = dot(p, p, D) / 2 + q[D - 1]; F[3] = D == 3 ? q[0] * p[1] - q[1] * p[0] : 0;
}
static void pendulum(const double *x, double *f) {
    const double *q = x, *p = x + D;
    double F[4]; invariants(x, F);
    double mult = (-dot(p, p, D) + q[D - 1]) / F[0];
    for (int i = 0; i < D; i++) {
        f[i] = p[i] - F[1] / F[0] * q[i];
        f[D + i] = -(i == D - 1) + F[1] / F[0] * p[i] + mult * q[i];
    }
    if (gain == 0) return;
    double d[4]; for (int i = 0; i < 4; i++) d[i] = gain * (F[i] - F0[i]);
    for (int i = 0; i < D; i++) {
        f[i] -= 2 * d[0] * q[i] + d[1] * p[i] + d[2] * (i == D - 1);
        f[D + i] -= d[1] * q[i] + d[2] * p[i];
    }
    if (D == 3) { f[0] -= d[3] * p[1]; f[1] += d[3] * p[0]; f[3] += d[3] * q[1]; f[4] -= d[3] * q[0]; }
}
static void run_pendulum(const char *name, int dim, double k, void (*step)(Field *, double *, int, double), int steps, double T, const double *x0, const double *end) {
    double x[6], F[4], max[4] = {0};
    D = dim; gain = k; memcpy(x, x0, sizeof(double) * 2 * D); invariants(x, F0);
    for (int i = 0; i < steps; i++) {
        step(pendulum, x, 2 * D, T / steps); invariants(x, F);
        for (int j = 0; j < 4; j++) max[j] = fmax(max[j], fabs(F[j] - F0[j]));
    }
    invariants(x, F);
    printf("%-34s error (q,p) %.4e, q alone %.4e; max |q|^2-1 %.3e, 2 q.p %.3e, H %.3e, J %.3e; final %.2e %.2e %.2e %.2e\n", name, distance(x, end, 2 * D), distance(x, end, D), max[0], 2 * max[1], max[2], max[3],
           F[0] - F0[0], 2 * (F[1] - F0[1]), F[2] - F0[2], F[3] - F0[3]);
}

// Kepler: gains L and A (2016); perturbed: gains L and H.
static double gL, gA, gH, delta, L0[3], A0[3], H0;
static void kepler_F(const double *x, double *L, double *A, double *H) {
    double r = sqrt(dot(x, x, 3)); cross(x, x + 3, L); cross(x + 3, L, A);
    for (int i = 0; i < 3; i++) A[i] -= x[i] / r;
    *H = dot(x + 3, x + 3, 3) / 2 - 1 / r - delta / (r * r * r);
}
static void kepler(const double *x, double *f) {
    const double *v = x + 3;
    double r = sqrt(dot(x, x, 3)), slope = 1 / (r * r * r) + 3 * delta / pow(r, 5);
    for (int i = 0; i < 3; i++) { f[i] = v[i]; f[3 + i] = -slope * x[i]; }
    if (gL == 0 && gA == 0 && gH == 0) return;
    double L[3], A[3], H, u[3], w[3], c[3];
    kepler_F(x, L, A, &H);
    for (int i = 0; i < 3; i++) { u[i] = gL * (L[i] - L0[i]); w[i] = gA * (A[i] - A0[i]); }
    // gradient of w.A, A = x |v|^2 - v (x.v) - x/r
    double vv = dot(v, v, 3), xv = dot(x, v, 3), wx = dot(w, x, 3), wv = dot(w, v, 3), e = gH * (H - H0);
    cross(v, u, c); for (int i = 0; i < 3; i++) f[i] -= c[i] + w[i] * vv - v[i] * wv - w[i] / r + x[i] * wx / (r * r * r) + e * slope * x[i];
    cross(u, x, c); for (int i = 0; i < 3; i++) f[3 + i] -= c[i] + 2 * v[i] * wx - w[i] * xv - x[i] * wv + e * v[i];
}
static void run_kepler(const char *name, const double *x0, double l, double a, double e, double d, double h, double T, const double *end) {
    double x[6], L[3], A[3], H = 0, mL = 0, mA = 0, mH = 0; long steps = ceil(T / h - 1e-9);
    gL = l; gA = a; gH = e; delta = d; memcpy(x, x0, sizeof x); kepler_F(x, L0, A0, &H0);
    for (long i = 0; i < steps; i++) {
        euler(kepler, x, 6, i < steps - 1 ? h : T - (steps - 1) * h);
        kepler_F(x, L, A, &H); mL = fmax(mL, distance(L, L0, 3)); mA = fmax(mA, distance(A, A0, 3)); mH = fmax(mH, fabs(H - H0));
    }
    printf("%-34s T=%g max dL %.3e dA %.3e dH %.3e; final %.3e %.3e %.3e; precession %.3e; at (%.6f, %.6f) distance to the exact state %.4e\n", name, T, mL, mA, mH, distance(L, L0, 3), distance(A, A0, 3), fabs(H - H0),
           atan2(A[1], A[0]), x[0], x[1], distance(x, end, 6));
}

// Free rigid body, I = diag(3, 2, 1); x = (R row by row, w).
static double k0, k1, k2, E0, P0[3];
static const double I[3] = {3, 2, 1};
static void body_F(const double *x, double *E, double *P) {
    const double *w = x + 9; double l[3] = {3 * w[0], 2 * w[1], w[2]};
    *E = dot(w, l, 3) / 2;
    for (int i = 0; i < 3; i++) P[i] = dot(x + 3 * i, l, 3);
}
static double orthogonality(const double *R, double S[3][3]) {
    double s = 0;
    for (int i = 0; i < 3; i++) for (int j = 0; j < 3; j++) {
        S[i][j] = R[i] * R[j] + R[3 + i] * R[3 + j] + R[6 + i] * R[6 + j] - (i == j); s += sq(S[i][j]);
    }
    return sqrt(s);
}
static void body(const double *x, double *f) {
    const double *R = x, *w = x + 9; double E, P[3], S[3][3], l[3] = {3 * w[0], 2 * w[1], w[2]}, c[3];
    for (int i = 0; i < 3; i++) cross(R + 3 * i, w, f + 3 * i);          // a row of R hat(w) is row x w
    cross(l, w, c); for (int i = 0; i < 3; i++) f[9 + i] = c[i] / I[i];
    if (k0 == 0) return;
    body_F(x, &E, P); orthogonality(R, S);
    double e = k1 * (E - E0), d[3]; for (int i = 0; i < 3; i++) d[i] = k2 * (P[i] - P0[i]);
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 3; j++) f[3 * i + j] -= k0 * dot(R + 3 * i, S[j], 3) + d[i] * l[j];     // V = k0/4 |S|^2 + ...
        f[9 + i] -= e * l[i] + I[i] * (R[i] * d[0] + R[3 + i] * d[1] + R[6 + i] * d[2]);
    }
}
static void run_body(const char *name, double a, double b, double c, double h, double T) {
    double x[12] = {1, 0, 0, 0, 1, 0, 0, 0, 1, 1, 1, 1}, E = 0, P[3], S[3][3], mE = 0, mP = 0, mS = 0; long steps = ceil(T / h - 1e-9);
    body_F(x, &E0, P0); k0 = a; k1 = b; k2 = c;
    for (long i = 0; i < steps; i++) {
        euler(body, x, 12, i < steps - 1 ? h : T - (steps - 1) * h);
        body_F(x, &E, P); mE = fmax(mE, fabs(E - E0)); mP = fmax(mP, distance(P, P0, 3)); mS = fmax(mS, orthogonality(x, S));
    }
    printf("%-34s h=%g T=%.4f max dE %.3e dPi %.3e orthogonality %.3e; final dE %.3e\n", name, h, T, mE, mP, mS, E - E0);
}

int main(void) {
    double s0[6] = {0, 1, 0, 1, 0, -1}, s1[6] = {0.289982352306, 0.546233983572, -0.785836287366, 1.788679864730, -0.079185067542, 0.605001356461};
    run_pendulum("spherical feedback:euler k=50", 3, 50, euler, 100000, 100, s0, s1);
    run_pendulum("spherical plain:euler", 3, 0, euler, 100000, 100, s0, s1);
    run_pendulum("spherical plain:rk4", 3, 0, rk4, 100000, 100, s0, s1);
    run_pendulum("spherical feedback:rk4 k=50", 3, 50, rk4, 100000, 100, s0, s1);
    double p0[4] = {1, 0, 0, 0}, period = 7.41629870920548767;
    const int planar_steps[] = {148, 296, 592, 742, 7416, 14832};
    for (int i = 0; i < 6; i++) {
        char name[64]; sprintf(name, "planar feedback:rk4 k=1 n=%d", planar_steps[i]);
        run_pendulum(name, 2, 1, rk4, planar_steps[i], period, p0, p0);
    }
    run_pendulum("planar feedback:euler k=1 n=7416", 2, 1, euler, 7416, period, p0, p0);
    run_pendulum("planar feedback:rk4 k=50 n=742", 2, 50, rk4, 742, period, p0, p0);
    double a0[6] = {1, 0, 0, 0, sqrt(1.8), 0}, T = 70.2481473104;
    run_kepler("kepler feedback:euler L=4 A=2", a0, 4, 2, 0, 0, 1e-3, T, a0);
    run_kepler("kepler feedback:euler L=4 A=2", a0, 4, 2, 0, 0, 1e-3, 10 * T, a0);
    run_kepler("kepler feedback:euler L=4 A=2", a0, 4, 2, 0, 0, 1e-3, 100 * T, a0);
    run_kepler("kepler feedback:euler h=5.5e-3", a0, 4, 2, 0, 0, 5.5e-3, 10 * T, a0);
    run_kepler("kepler feedback:euler h=6.5e-3", a0, 4, 2, 0, 0, 6.5e-3, 10 * T, a0);
    run_kepler("kepler plain:euler", a0, 0, 0, 0, 0, 1e-3, T, a0);
    double b0[6] = {0.4, 0, 0, 0, 2, 0}, b1[6] = {0.17235779, 1.36197609, 0, -0.60356465, -0.12787716, 0};
    run_kepler("perturbed feedback:euler L=3 H=2", b0, 3, 0, 2, 0.0025, 0.03, 200, b1);
    run_kepler("perturbed feedback:euler L=2 H=3", b0, 2, 0, 3, 0.0025, 0.03, 200, b1);
    run_body("body feedback:euler 50, 100, 50", 50, 100, 50, 1e-4, 155.7 * 6.42270308422569);
    run_body("body feedback:euler 50, 100, 50", 50, 100, 50, 1e-4, 6.42270308422569);
    run_body("body plain:euler", 0, 0, 0, 1e-4, 155.7 * 6.42270308422569);
    run_body("body feedback, h=9e-4", 50, 100, 50, 9e-4, 100);
    run_body("body feedback, h=1.05e-3", 50, 100, 50, 1.05e-3, 100);
}
