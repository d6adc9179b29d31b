//! Compositions of a symmetric method of order 2: its steps of the lengths γ₁h, …,
//! γ_s h one after the other, with Σ γ_i = 1. The γ_i are the same forwards and
//! backwards, so that the composition is symmetric, too, and such that errors of
//! the lower orders cancel. Some are negative in every composition of an order
//! above 2.

// The sources give more digits than f64 holds; they document which number is meant.
#![allow(clippy::excessive_precision)]

/// Facts and substeps of a composition.
#[derive(Debug)]
pub struct Composition {
    /// Name on the command line.
    pub name: &'static str,
    /// Order of a composition of a symmetric method of order 2.
    pub order: u32,
    /// One line on the composition.
    pub description: &'static str,
    /// Source.
    pub citation: &'static str,
    substeps: fn() -> Vec<f64>,
}

impl Composition {
    /// γ₁ … γ_s, symmetric, with the sum 1.
    pub fn substeps(&self) -> Vec<f64> {
        (self.substeps)()
    }

    /// The composition of this name.
    pub fn named(name: &str) -> Option<&'static Composition> {
        COMPOSITIONS.iter().find(|composition| composition.name == name)
    }
}

impl PartialEq for Composition {
    /// Names are unique in the table.
    fn eq(&self, other: &Composition) -> bool {
        self.name == other.name
    }
}

/// Every composition of this version.
pub static COMPOSITIONS: &[Composition] = &[
    Composition {
        name: "yoshida4",
        order: 4,
        description: "three substeps, the middle one backwards: the fewest, with a large error constant",
        citation: "Yoshida, Phys. Lett. A 150 (1990) 262; Hairer, Lubich, Wanner, GNI, II.4 (4.4)",
        substeps: || symmetric(&[1.0 / (2.0 - 2f64.cbrt())]),
    },
    Composition {
        name: "suzuki4",
        order: 4,
        description: "five substeps, each shorter than h/2: a far smaller error constant than three",
        citation: "Suzuki, Phys. Lett. A 146 (1990) 319; Hairer, Lubich, Wanner, GNI, II.4 (4.5)",
        substeps: || symmetric(&[1.0 / (4.0 - 4f64.cbrt()); 2]),
    },
    Composition {
        name: "yoshida6",
        order: 6,
        description: "seven substeps",
        citation: "Yoshida, Phys. Lett. A 150 (1990) 262, solution A; Hairer, Lubich, Wanner, GNI, V.3 (3.11)",
        substeps: || {
            symmetric(&[
                0.784_513_610_477_557_263_819_497_633_75,
                0.235_573_213_359_358_133_684_793_182_98,
                -1.177_679_984_178_871_006_946_415_680_96,
            ])
        },
    },
    Composition {
        name: "yoshida8",
        order: 8,
        description: "fifteen substeps",
        citation: "Suzuki, Umeno 1993 and McLachlan, SIAM J. Sci. Comput. 16 (1995) 151; Hairer, Lubich, Wanner, GNI, V.3 (3.12)",
        substeps: || {
            symmetric(&[
                0.741_670_364_350_613_295_344_822_780_17,
                -0.409_100_825_800_031_593_997_309_748_34,
                0.190_754_710_296_238_379_953_876_264_88,
                -0.573_862_471_116_082_266_656_387_731_98,
                0.299_064_181_303_655_923_844_467_537_01,
                0.334_624_918_245_298_183_784_950_629_87,
                0.315_293_092_396_766_595_869_626_668_77,
            ])
        },
    },
    Composition {
        name: "kahan-li8",
        order: 8,
        description: "seventeen substeps, the longest 0.6 h: a far smaller error constant than fifteen",
        citation: "Kahan, Li, Math. Comp. 66 (1997) 1089; Hairer, Lubich, Wanner, GNI, V.3 (3.14)",
        substeps: || {
            symmetric(&[
                0.130_202_483_088_890_080_878_817_63,
                0.561_162_981_775_108_384_561_964_41,
                -0.389_474_962_644_847_286_408_078_60,
                0.158_841_906_555_155_600_896_210_75,
                -0.395_903_894_133_237_577_336_231_54,
                0.184_539_640_978_315_707_091_832_54,
                0.258_374_387_686_322_047_293_979_11,
                0.295_011_723_609_310_298_870_966_24,
            ])
        },
    },
    Composition {
        name: "sofroniou-spaletta10",
        order: 10,
        description: "thirty-five substeps, the longest 0.41 h",
        citation: "Sofroniou, Spaletta, Optim. Methods Softw. 20 (2005) 597; Hairer, Lubich, Wanner, GNI, V.3 (3.15)",
        substeps: || {
            symmetric(&[
                0.078_795_722_521_686_419_263_907_68,
                0.313_096_103_415_108_527_764_812_47,
                0.027_918_383_235_078_066_109_520_27,
                -0.229_592_841_593_907_094_151_213_40,
                0.130_962_061_077_164_863_174_656_86,
                -0.269_733_405_654_510_714_344_609_73,
                0.074_973_343_155_891_435_666_137_11,
                0.111_993_423_999_810_204_889_575_08,
                0.366_133_449_546_226_751_193_148_12,
                -0.399_105_630_136_035_897_878_629_81,
                0.103_087_398_527_471_077_315_802_77,
                0.411_430_873_955_890_237_820_704_12,
                -0.004_866_360_583_135_261_762_195_66,
                -0.392_033_353_708_639_906_448_081_94,
                0.051_942_502_962_449_647_037_182_90,
                0.050_665_090_759_924_496_335_874_34,
                0.049_674_370_639_729_879_054_568_80,
            ])
        },
    },
];

/// γ from its first half; the middle substep makes the sum 1.
fn symmetric(half: &[f64]) -> Vec<f64> {
    let middle = 1.0 - 2.0 * half.iter().sum::<f64>();
    half.iter().copied().chain([middle]).chain(half.iter().rev().copied()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn substeps_are_symmetric_and_cancel_errors() {
        for composition in COMPOSITIONS {
            let gamma = composition.substeps();
            assert!(gamma.iter().eq(gamma.iter().rev()), "{}", composition.name);
            // Σ γ^k = 0 for odd k below the order: necessary conditions (HLW III.5). Each term
            // rounds by about 2e-16.
            let power = |k: i32| gamma.iter().map(|g| g.powi(k)).sum::<f64>();
            assert!((power(1) - 1.0).abs() < 1e-15, "{}", composition.name);
            for k in (3..composition.order as i32).step_by(2) {
                assert!(power(k).abs() < 2e-15, "{}: {}", composition.name, power(k));
            }
            assert!(
                power(composition.order as i32 + 1).abs() > 1e-7,
                "{} is of a higher order",
                composition.name
            );
        }
    }
}
