#!/bin/sh
# Draws the pictures of this folder from real runs, and notes in drawn.txt what of: a test compares.
# Those of the gallery are drawn by the commands of its page, in a test.
#
# Usage, in the repository's folder: sh docs/figures/draw.sh [HOLONOME]
# HOLONOME is the program, by default target/release/holonome.
set -eu
holonome=$(realpath "${1:-target/release/holonome}")
root=$PWD
figures=docs/figures
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
cd "$folder"

run() {
    "$holonome" run "$root/models/$1.holo" --quiet --out "$2" $3
}

run spherical-pendulum euler "--method euler --step 1e-3"
run spherical-pendulum feedback:euler "--method feedback:euler --step 1e-3 --gain rod=50,rod.hidden=12.5,H=50,J=50"
run spherical-pendulum corrected:euler "--method corrected:euler --step 1e-3"
run spherical-pendulum corrected:dop853 ""
"$holonome" plot euler feedback:euler corrected:euler corrected:dop853 --y drift.H --svg "$root/$figures/drift.svg"
run spherical-pendulum first "--until 60 --samples 1200"
"$holonome" plot first --svg "$root/$figures/first.svg"

"$holonome" compare "$root/models/spherical-pendulum.holo" --method rk4,corrected:rk4,rattle,corrected:dop853 \
    --step 0.02,0.01,0.005,0.002 --rtol 1e-6,1e-8,1e-10,1e-12,1e-14 --quiet --out compared
cp compared/work-precision.svg "$root/$figures/"
"$holonome" reproduce planar-pendulum-2022 --quiet --out reproduced > printed
cp reproduced/planar-pendulum-2022/fig-6.svg "$root/$figures/"

"$holonome" reproduce nonholonomic-2020 --quiet --out reproduced > printed
cp reproduced/nonholonomic-2020/fig-1.svg "$root/$figures/nonholonomic.svg"

cd "$root"
cksum $figures/draw.sh models/spherical-pendulum.holo $figures/*.svg > $figures/drawn.txt
