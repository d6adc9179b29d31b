//! Tsitouras' pair of orders 5 and 4, which satisfies the first column simplifying
//! assumption only. The error estimate takes the field at the end of the step,
//! which is the first stage of the next one (first same as last, FSAL). States
//! within a step are those of his dense output of order 4.

// The source gives more digits than f64 holds; they document which number is meant.
#![allow(clippy::excessive_precision)]

use std::sync::LazyLock;

use super::{Needs, Scheme, Step};
use crate::tableau::{Definition, DenseDefinition, Tableau};

pub(super) static SCHEME: Scheme = Scheme {
    name: "tsit5",
    other_names: &["tsitouras", "tsitouras5"],
    needs: Needs::Field,
    description: "Tsitouras 5(4): adaptive, smaller error constants than dopri5 at the same cost",
    citation: "Tsitouras, Comput. Math. Appl. 62 (2011) 770",
    file: include_str!("tsit5.rs"),
    step: Step::RungeKutta(&TABLEAU),
};

static TABLEAU: LazyLock<Tableau> = LazyLock::new(|| {
    Tableau::tested(&Definition {
        order: 5,
        a: &[
            &[],
            &[0.161],
            &[-0.008480655492356988544426874, 0.3354806554923569885444269],
            &[2.897153057105493432130433, -6.35944848997507484314816, 4.362295432869581411017727],
            &[
                5.325864828439256604428878,
                -11.74888356406282787774717,
                7.495539342889836208304605,
                -0.09249506636175524925650208,
            ],
            &[
                5.861455442946420028659251,
                -12.92096931784710929170612,
                8.159367898576158643180401,
                -0.07158497328140099722453054,
                -0.02826905039406838290900306,
            ],
            WEIGHTS,
        ],
        b: WEIGHTS,
        error: &[(
            &[
                0.001780011052225771443378551,
                0.0008164344596567469032236361,
                -0.007880878010261996010314728,
                0.1447110071732629075371651,
                -0.5823571654525552250199376,
                0.4580821059291869466616365,
                -0.01515151515151515151515152,
            ],
            4,
        )],
        // The leading coefficients of the quartics b_i(θ), carried to 25 digits by the order
        // conditions.
        lagged: None,
        dense: Some(DenseDefinition {
            order: 4,
            extra_a: &[],
            d: &[&[
                -1.053088497729021557236278,
                0.1016999999999999999959694,
                2.490627285651252793122451,
                -16.54810288924490271902171,
                47.37952196281928122155656,
                -34.87065786149660973849179,
                2.5000000000000000000748,
            ]],
        }),
    })
    .expect("published coefficients")
});

const WEIGHTS: &[f64] = &[
    0.09646076681806522951816731,
    0.01,
    0.4798896504144995747752495,
    1.379008574103741893192275,
    -3.290069515436080679901048,
    2.324710524099773982415356,
];
