#!/bin/sh
# Draws the pictures of this folder from real runs.
#
# Usage, in the repository's folder: sh docs/figures/draw.sh [HOLONOME]
# HOLONOME is the program, by default target/release/holonome.
set -eu
holonome=$(realpath "${1:-target/release/holonome}")
model=$PWD/models/spherical-pendulum.holo
figures=$PWD/docs/figures
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
cd "$folder"

run() {
    "$holonome" run "$model" --quiet "$@"
}
run --method euler --step 1e-3 --out euler
run --method feedback:euler --step 1e-3 --gain rod=50,rod.hidden=12.5,H=50,J=50 --out feedback:euler
run --method corrected:euler --step 1e-3 --out corrected:euler
run --method corrected:dop853 --out corrected:dop853
"$holonome" plot euler feedback:euler corrected:euler corrected:dop853 --y drift.H --svg "$figures/drift.svg"

"$holonome" compare "$model" --method rk4,corrected:rk4,rattle,corrected:dop853 --step 0.02,0.01,0.005,0.002 \
    --rtol 1e-6,1e-8,1e-10,1e-12,1e-14 --quiet --out compared
cp compared/work-precision.svg "$figures/"
