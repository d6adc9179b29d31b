#!/bin/sh
# Draws the pictures of this folder from real runs, and notes in drawn.txt what of: a test compares.
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
# A model's picture in the gallery: its name, the horizontal and the vertical axis, options of the run.
gallery() {
    run "$1" "$1" "$4"
    "$holonome" plot "$1" --x "$2" --y "$3" --svg "$root/$figures/gallery/$1.svg"
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

gallery alkane t ends "--method velocity-verlet --step 0.005 --until 20 --samples 400"
gallery argon t temperature "--set N=256 --method stormer-verlet-a --step 0.004 --until 8 --samples 400"
gallery braced-square "r[1].x" "r[1].y" "--method stormer-verlet-a --penalty 100 --step 1e-3 --until 4 --samples 500"
gallery chain tip.x tip.y "--method rattle --step 0.01 --until 20 --samples 500"
gallery cloth corner.y corner.z "--method rattle --step 0.01 --until 15 --samples 600"
gallery dna t mean "--method zhang-skeel --beta 0.3 --step 2 --until 1000"
gallery double-pendulum r2.x r2.y "--until 30 --samples 900"
gallery double-pendulum-angles theta phi "--until 30 --samples 900"
gallery fpu t "Q[1],Q[2],Q[3]" "--method velocity-verlet --step 0.1 --until 4000 --samples 800"
gallery fpu-stiff t "I[1],I[2],I[3],Isum" "--method stormer-verlet-a --step 1e-3 --until 200 --samples 500"
gallery heavy-top centre.x centre.y "--method rattle --step 0.01 --until 30 --samples 1200"
gallery henon-heiles q.x q.y "--method stormer-verlet-a --step 0.02 --until 100 --samples 1200"
gallery kepler x.x x.y "--until 70.2481473104 --samples 400"
gallery magnetic-body magnet.x magnet.y "--method cayley-symmetric --step 0.01 --until 60 --samples 1200"
gallery perturbed-kepler x.x x.y "--until 40 --samples 1200"
gallery planar-pendulum q.x p.x "--until 7.41629870920548767 --samples 300"
gallery ring "r[1].x" "r[1].y" "--method rattle --step 0.01 --until 20 --samples 600"
gallery rigid-body axis.x axis.y "--until 40 --samples 1200"
gallery spherical-pendulum q.x q.y "--until 60 --samples 1200"
gallery two-springs t q2 "--until 20 --samples 300"
gallery water "x[1,2].x" "x[1,2].y" "--method rattle --step 0.05 --until 200 --samples 600"

cd "$root"
cksum $figures/draw.sh models/*.holo models/*.csv $figures/*.svg $figures/gallery/*.svg > $figures/drawn.txt
