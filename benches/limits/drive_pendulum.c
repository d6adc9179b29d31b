/* Runs one of the kernels of limit_pendulum.c and prints the seconds it took.
   use: drive_pendulum KERNEL STEP COUNT      (ensembles: COUNT steps of 4096 pendula) */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "limit_pendulum.c"

#define PENDULA 4096

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
    else return 2;
    double seconds = now() - start;
    /* The sum keeps the work from being optimised away. */
    double sum = mx[0];
    for (int c = 0; c < 6; c++) sum += y[c] + ensemble[c * PENDULA];
    printf("%.9e %.17g\n", seconds, sum);
    return 0;
}
