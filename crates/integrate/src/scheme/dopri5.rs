//! Dormand and Prince's pair of orders 5 and 4. The error estimate takes the field
//! at the end of the step, which is the first stage of the next one (first same as
//! last, FSAL). States within a step are those of Shampine's dense output of order
//! 4, with the coefficients of Hairer's `dopri5.f`.

use std::sync::LazyLock;

use super::{Needs, Scheme, Step};
use crate::tableau::{Definition, DenseDefinition, Tableau};

pub(super) static SCHEME: Scheme = Scheme {
    name: "dopri5",
    other_names: &["RK45", "ode45", "DP5", "dopri", "dopri45", "dopri54", "dormand-prince"],
    needs: Needs::Field,
    description: "Dormand-Prince 5(4): adaptive, for moderate tolerances",
    citation: "Dormand, Prince, J. Comput. Appl. Math. 6 (1980) 19; Hairer, Norsett, Wanner, Solving ODEs I, II.5",
    file: include_str!("dopri5.rs"),
    step: Step::RungeKutta(&TABLEAU),
};

static TABLEAU: LazyLock<Tableau> = LazyLock::new(|| {
    Tableau::tested(&Definition {
        order: 5,
        a: &[
            &[],
            &[1.0 / 5.0],
            &[3.0 / 40.0, 9.0 / 40.0],
            &[44.0 / 45.0, -56.0 / 15.0, 32.0 / 9.0],
            &[19372.0 / 6561.0, -25360.0 / 2187.0, 64448.0 / 6561.0, -212.0 / 729.0],
            &[9017.0 / 3168.0, -355.0 / 33.0, 46732.0 / 5247.0, 49.0 / 176.0, -5103.0 / 18656.0],
            &[35.0 / 384.0, 0.0, 500.0 / 1113.0, 125.0 / 192.0, -2187.0 / 6784.0, 11.0 / 84.0],
        ],
        b: &[35.0 / 384.0, 0.0, 500.0 / 1113.0, 125.0 / 192.0, -2187.0 / 6784.0, 11.0 / 84.0],
        error: &[(
            &[
                71.0 / 57600.0,
                0.0,
                -71.0 / 16695.0,
                71.0 / 1920.0,
                -17253.0 / 339200.0,
                22.0 / 525.0,
                -1.0 / 40.0,
            ],
            4,
        )],
        lagged: None,
        dense: Some(DenseDefinition {
            order: 4,
            extra_a: &[],
            d: &[&[
                -12715105075.0 / 11282082432.0,
                0.0,
                87487479700.0 / 32700410799.0,
                -10690763975.0 / 1880347072.0,
                701980252875.0 / 199316789632.0,
                -1453857185.0 / 822651844.0,
                69997945.0 / 29380423.0,
            ]],
        }),
    })
    .expect("published coefficients")
});
