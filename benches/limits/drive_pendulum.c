/* Runs one of the kernels of limit_pendulum.c and prints the seconds it took.
   use: drive_pendulum KERNEL STEP COUNT      (ensembles: COUNT steps of 4096 pendula) */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "limit_pendulum.c"

#define PENDULA 4096

/* RATTLE for |q|^2 = 1 and H = |p|^2/2 + z, in closed form: the multiplier of the positions is the smaller root of a
   quadratic equation. The largest deviations of H and J are monitored, as in the other kernels with diagnostics. */
#include <math.h>
static void rattle(double *y, double H0, double J0, double h, long n, double *mx)
{
    for (long s = 0; s < n; s++) {
        double a[3] = {y[3], y[4], y[5] - 0.5 * h}, q[3];
        for (int c = 0; c < 3; c++) q[c] = y[c] + h * a[c];
        double b = q[0] * y[0] + q[1] * y[1] + q[2] * y[2];
        double r = q[0] * q[0] + q[1] * q[1] + q[2] * q[2] - 1;
        double l = r / (b + sqrt(b * b - r)), ih = 1 / h;
        for (int c = 0; c < 3; c++) {
            double x = q[c] - l * y[c];
            a[c] -= ih * l * y[c];
            y[c] = x;
        }
        a[2] -= 0.5 * h;
        double along = a[0] * y[0] + a[1] * y[1] + a[2] * y[2];
        for (int c = 0; c < 3; c++) y[3 + c] = a[c] - along * y[c];
        double H = 0.5 * (y[3] * y[3] + y[4] * y[4] + y[5] * y[5]) + y[2];
        double J = y[0] * y[4] - y[1] * y[3];
        mx[0] = fmax(mx[0], fabs(H - H0));
        mx[1] = fmax(mx[1], fabs(J - J0));
    }
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

int main(int argc, char **argv)
{
    if (argc != 4) return 2;
    const char *kernel = argv[1];
    double h = atof(argv[2]);
    long n = atol(argv[3]);
    double y[6] = {0, 1, 0, 1, 0, -1}, mx[4] = {0, 0, 0, 0};
    const double gain = 50, H0 = 1, J0 = -1;
    static double ensemble[6 * PENDULA], H[PENDULA], J[PENDULA];
    for (int i = 0; i < PENDULA; i++) {
        for (int c = 0; c < 6; c++) ensemble[c * PENDULA + i] = y[c];
        H[i] = H0;
        J[i] = J0;
    }
    double start = now();
    if (!strcmp(kernel, "euler")) w1_euler(y, gain, H0, J0, h, n);
    else if (!strcmp(kernel, "rk4")) w1_rk4(y, gain, H0, J0, h, n);
    else if (!strcmp(kernel, "euler-diag")) w1_euler_diag(y, gain, H0, J0, h, n, mx);
    else if (!strcmp(kernel, "rk4-diag")) w1_rk4_diag(y, gain, H0, J0, h, n, mx);
    else if (!strcmp(kernel, "ensemble-vec")) w3_vec(ensemble, H, J, gain, h, n, PENDULA);
    else if (!strcmp(kernel, "ensemble-soa")) w3_soa(ensemble, H, J, gain, h, n, PENDULA);
    else if (!strcmp(kernel, "rattle-diag")) rattle(y, H0, J0, h, n, mx);
    else return 2;
    double seconds = now() - start;
    /* The sum keeps the work from being optimised away. */
    double sum = mx[0];
    for (int c = 0; c < 6; c++) sum += y[c] + ensemble[c * PENDULA];
    printf("%.9e %.17g\n", seconds, sum);
    return 0;
}
