//! Compositions of a symmetric method of order 2: its steps of the lengths γ₁h, …,
//! γ_s h one after the other, with Σ γ_i = 1. The γ_i are the same forwards and
//! backwards, so that the composition is symmetric, too, and such that errors of
//! the lower orders cancel. Some are negative in every composition of an order
//! above 2.
//!
//! Compositions of the two flows of a splitting, φ_M(a₁h) φ_V(b₁h) φ_M(a₂h) …
//! φ_M(a₁h), with Σ a_i = Σ b_i = 1, symmetric as well. They are for a kick that
//! is smaller than the motion by a factor ε: saba1064 has an error of the size
//! ε h¹⁰ + ε² h⁶ + ε³ h⁴, and the others likewise. Methods abah are for a kick
//! whose flow is known to order 2 only.
//!
//! Steps with a symplectic corrector χ of such a splitting: χ⁻¹ ψ_hⁿ χ, with the
//! kicks at both ends of a step ψ. It is made of flows as well and acts before the
//! first step, its inverse where a state is wanted. wisdom17 leaves an error of
//! the size ε h¹⁸ + ε² h² at the cost of one kick and one motion a step.

// The sources give more digits than f64 holds; they document which number is meant.
#![allow(clippy::excessive_precision)]

use super::splitting::{Flow, Flows};

/// Facts and coefficients of a composition.
#[derive(Debug)]
pub struct Composition {
    /// Name on the command line.
    pub name: &'static str,
    /// Order of a composition of a symmetric method of order 2, or of two flows.
    pub order: u32,
    /// One line on the composition.
    pub description: &'static str,
    /// Source.
    pub citation: &'static str,
    of: Of,
}

/// What is composed, and the coefficients.
#[derive(Clone, Copy, Debug)]
enum Of {
    /// Steps γ₁h, …, γ_s h.
    Steps(fn() -> Vec<f64>),
    /// Flows of the two parts of a splitting: the first halves of a_i and b_i.
    Flows(&'static [f64], &'static [f64]),
    /// Kick, motion and kick with a symplectic corrector: its b_k.
    Corrected(&'static [f64]),
}

/// Unit of the motions of a symplectic corrector, √(7/40) (Wisdom, Holman, Touma 1996).
const CORRECTING_MOTION: f64 = 0.418_330_013_267_037_773_989_086_012_892_6;

impl Composition {
    /// γ₁ … γ_s, symmetric, with the sum 1; 1 alone if it composes flows.
    pub fn substeps(&self) -> Vec<f64> {
        match self.of {
            Of::Steps(substeps) => substeps(),
            Of::Flows(..) | Of::Corrected(_) => vec![1.0],
        }
    }

    /// Flows of the two parts of a splitting, symmetric; `None` if it composes steps.
    pub fn flows(&self) -> Option<Flows> {
        let (motions, kicks) = match self.of {
            Of::Steps(_) => return None,
            Of::Flows(motions, kicks) => (motions, kicks),
            Of::Corrected(kicks) => {
                let step = vec![Flow::Kick(0.5), Flow::Motion(1.0), Flow::Kick(0.5)];
                return Some(Flows { step, corrector: corrector(kicks) });
            }
        };
        // The one in the middle stands once: a kick if there are as many numbers of both.
        let kick_in_the_middle = motions.len() == kicks.len();
        let (motions, kicks) =
            (mirrored(motions, !kick_in_the_middle), mirrored(kicks, kick_in_the_middle));
        let mut flows = vec![Flow::Motion(motions[0])];
        for (&kick, &motion) in kicks.iter().zip(&motions[1..]) {
            flows.extend([Flow::Kick(kick), Flow::Motion(motion)]);
        }
        Some(flows.into())
    }

    /// True if a step that is the same forwards and backwards stays so.
    pub fn symmetric(&self) -> bool {
        !matches!(self.of, Of::Corrected(_))
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
        of: Of::Steps(|| symmetric(&[1.0 / (2.0 - 2f64.cbrt())])),
    },
    Composition {
        name: "suzuki4",
        order: 4,
        description: "five substeps, each shorter than h/2: a far smaller error constant than three",
        citation: "Suzuki, Phys. Lett. A 146 (1990) 319; Hairer, Lubich, Wanner, GNI, II.4 (4.5)",
        of: Of::Steps(|| symmetric(&[1.0 / (4.0 - 4f64.cbrt()); 2])),
    },
    Composition {
        name: "yoshida6",
        order: 6,
        description: "seven substeps",
        citation: "Yoshida, Phys. Lett. A 150 (1990) 262, solution A; Hairer, Lubich, Wanner, GNI, V.3 (3.11)",
        of: Of::Steps(|| {
            symmetric(&[
                0.784_513_610_477_557_263_819_497_633_75,
                0.235_573_213_359_358_133_684_793_182_98,
                -1.177_679_984_178_871_006_946_415_680_96,
            ])
        }),
    },
    Composition {
        name: "yoshida8",
        order: 8,
        description: "fifteen substeps",
        citation: "Suzuki, Umeno 1993 and McLachlan, SIAM J. Sci. Comput. 16 (1995) 151; Hairer, Lubich, Wanner, GNI, V.3 (3.12)",
        of: Of::Steps(|| {
            symmetric(&[
                0.741_670_364_350_613_295_344_822_780_17,
                -0.409_100_825_800_031_593_997_309_748_34,
                0.190_754_710_296_238_379_953_876_264_88,
                -0.573_862_471_116_082_266_656_387_731_98,
                0.299_064_181_303_655_923_844_467_537_01,
                0.334_624_918_245_298_183_784_950_629_87,
                0.315_293_092_396_766_595_869_626_668_77,
            ])
        }),
    },
    Composition {
        name: "kahan-li8",
        order: 8,
        description: "seventeen substeps, the longest 0.6 h: a far smaller error constant than fifteen",
        citation: "Kahan, Li, Math. Comp. 66 (1997) 1089; Hairer, Lubich, Wanner, GNI, V.3 (3.14)",
        of: Of::Steps(|| {
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
        }),
    },
    Composition {
        name: "sofroniou-spaletta10",
        order: 10,
        description: "thirty-five substeps, the longest 0.41 h",
        citation: "Sofroniou, Spaletta, Optim. Methods Softw. 20 (2005) 597; Hairer, Lubich, Wanner, GNI, V.3 (3.15)",
        of: Of::Steps(|| {
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
        }),
    },
    Composition {
        name: "saba2",
        order: 2,
        description: "two kicks at Gauss' nodes: errors ε h⁴ + ε² h²",
        citation: "Laskar, Robutel, Celest. Mech. Dyn. Astron. 80 (2001) 39; McLachlan, BIT 35 (1995) 258",
        of: Of::Flows(
            &[
                0.211_324_865_405_187_117_745_425_609_749_02,
                0.577_350_269_189_625_764_509_148_780_501_96,
            ],
            &[0.5],
        ),
    },
    Composition {
        name: "saba3",
        order: 2,
        description: "three kicks at Gauss' nodes: errors ε h⁶ + ε² h²",
        citation: "Laskar, Robutel, Celest. Mech. Dyn. Astron. 80 (2001) 39",
        of: Of::Flows(
            &[
                0.112_701_665_379_258_311_482_073_460_021_76,
                0.387_298_334_620_741_688_517_926_539_978_24,
            ],
            &[5.0 / 18.0, 4.0 / 9.0],
        ),
    },
    Composition {
        name: "saba4",
        order: 2,
        description: "four kicks at Gauss' nodes: errors ε h⁸ + ε² h²",
        citation: "Laskar, Robutel, Celest. Mech. Dyn. Astron. 80 (2001) 39",
        of: Of::Flows(
            &[
                0.069_431_844_202_973_712_388_026_755_553_60,
                0.260_577_634_004_598_155_210_640_364_894_78,
                0.339_981_043_584_856_264_802_665_759_103_24,
            ],
            &[
                0.173_927_422_568_726_928_686_531_974_611_00,
                0.326_072_577_431_273_071_313_468_025_389_00,
            ],
        ),
    },
    Composition {
        name: "saba104",
        order: 4,
        description: "seven kicks: errors ε h¹⁰ + ε² h⁴",
        citation: "Blanes, Casas, Farrés, Laskar, Makazaga, Murua, Appl. Numer. Math. 68 (2013) 58, table 2",
        of: Of::Flows(
            &[
                0.047_067_100_645_972_506_129_478_876_372_44,
                0.184_756_935_417_088_106_924_737_619_370_26,
                0.282_706_005_679_836_205_324_361_656_554_15,
                -0.014_530_041_742_896_818_378_578_152_296_84,
            ],
            &[
                0.118_881_917_368_197_019_945_350_395_085_39,
                0.241_050_460_551_501_565_744_166_786_590_17,
                -0.273_286_666_705_323_806_054_311_398_166_45,
                0.826_708_577_571_250_440_729_588_432_981_80,
            ],
        ),
    },
    Composition {
        name: "saba864",
        order: 4,
        description: "seven kicks: errors ε h⁸ + ε² h⁶ + ε³ h⁴",
        citation: "Blanes, Casas, Farrés, Laskar, Makazaga, Murua, Appl. Numer. Math. 68 (2013) 58, table 3",
        of: Of::Flows(
            &[
                0.071_133_426_498_223_117_777_938_730_006_15,
                0.241_153_427_956_640_098_736_487_795_326_29,
                0.521_411_761_772_814_789_212_136_078_067_99,
                -0.333_698_616_227_678_005_726_562_603_400_44,
            ],
            &[
                0.183_083_687_472_197_221_961_703_757_166_43,
                0.310_782_859_898_574_869_507_522_291_054_26,
                -0.026_564_618_511_958_800_697_212_137_916_50,
                0.065_396_142_282_373_418_455_972_179_391_13,
            ],
        ),
    },
    Composition {
        name: "saba1064",
        order: 4,
        description: "eight kicks: errors ε h¹⁰ + ε² h⁶ + ε³ h⁴, the best for planets",
        citation: "Blanes, Casas, Farrés, Laskar, Makazaga, Murua, Appl. Numer. Math. 68 (2013) 58, table 3",
        of: Of::Flows(
            &[
                0.038_094_497_422_412_195_456_975_322_308_64,
                0.145_298_716_116_913_749_294_020_072_660_66,
                0.207_627_695_725_541_250_716_205_611_324_99,
                0.435_909_703_651_526_159_223_154_862_401_07,
                -0.653_861_225_832_786_709_380_711_737_390_71,
            ],
            &[
                0.095_858_880_837_075_210_610_771_503_771_46,
                0.204_446_153_142_998_780_680_507_783_916_43,
                0.217_070_347_978_991_101_714_338_592_430_63,
                -0.017_375_381_959_065_093_005_617_880_118_53,
            ],
        ),
    },
    Composition {
        name: "abah844",
        order: 4,
        description: "six kicks, whose flow may be known to order 2 only: errors ε h⁸ + ε² h⁴",
        citation: "Blanes, Casas, Farrés, Laskar, Makazaga, Murua, Appl. Numer. Math. 68 (2013) 58, table 4",
        of: Of::Flows(
            &[
                0.274_140_268_943_401_876_164_056_544_037_86,
                -0.107_568_438_440_164_230_625_110_529_706_32,
                -0.048_018_502_590_601_692_691_195_417_150_85,
                0.762_893_344_174_728_094_304_498_805_638_61,
            ],
            &[
                0.640_885_795_162_512_717_732_249_116_471_60,
                -0.858_575_448_956_782_856_588_128_324_635_60,
                0.717_689_653_794_270_138_855_879_208_163_99,
            ],
        ),
    },
    Composition {
        name: "abah864",
        order: 4,
        description: "eight kicks, whose flow may be known to order 2 only: errors ε h⁸ + ε² h⁶ + ε³ h⁴",
        citation: "Blanes, Casas, Farrés, Laskar, Makazaga, Murua, Appl. Numer. Math. 68 (2013) 58, table 4",
        of: Of::Flows(
            &[
                0.068_102_356_516_583_720_847_239_766_820_61,
                0.251_136_038_722_103_323_307_282_958_045_54,
                -0.075_072_649_572_165_625_160_068_217_676_02,
                -0.009_544_719_701_745_007_811_488_218_957_22,
                0.530_757_948_070_447_177_634_067_423_534_17,
            ],
            &[
                0.168_443_259_361_895_453_431_038_269_775_69,
                0.424_317_717_374_267_722_430_035_165_740_72,
                -0.585_810_969_468_175_681_230_901_535_540_40,
                0.493_049_992_732_012_505_369_828_100_023_99,
            ],
        ),
    },
    Composition {
        name: "abah1064",
        order: 4,
        description: "nine kicks, whose flow may be known to order 2 only: errors ε h¹⁰ + ε² h⁶ + ε³ h⁴",
        citation: "Blanes, Casas, Farrés, Laskar, Makazaga, Murua, Appl. Numer. Math. 68 (2013) 58, table 4",
        of: Of::Flows(
            &[
                0.047_319_086_976_533_822_704_043_717_963_21,
                0.265_110_523_574_878_515_953_948_003_618_57,
                -0.009_976_522_883_811_240_843_267_468_164_81,
                -0.059_929_199_734_941_551_263_952_479_877_30,
                0.257_476_112_067_340_453_449_228_226_460_33,
            ],
            &[
                0.119_688_462_458_532_203_531_286_429_748_99,
                0.375_295_585_537_937_425_042_012_853_768_75,
                -0.468_459_341_832_599_378_365_082_040_980_54,
                0.335_139_734_275_589_701_039_309_894_294_96,
                0.276_671_119_121_080_097_504_945_726_356_83,
            ],
        ),
    },
    corrected(
        "wisdom3",
        "a corrector of two kicks around steps of one: errors ε h⁴ + ε² h²",
        &[0.099_602_384_111_199_469_997_401_431_641_094],
    ),
    corrected(
        "wisdom5",
        "a corrector of four kicks around steps of one: errors ε h⁶ + ε² h²",
        &[
            0.151_775_061_502_780_144_757_945_038_691_19,
            -0.026_086_338_695_790_337_380_271_803_525_048,
        ],
    ),
    corrected(
        "wisdom7",
        "a corrector of six kicks around steps of one: errors ε h⁸ + ε² h²",
        &[
            0.186_685_906_856_948_536_898_271_682_369_73,
            -0.054_015_014_979_125_051_092_533_118_467_883,
            0.006_982_169_070_833_678_428_065_328_735_708_7,
        ],
    ),
    corrected(
        "wisdom11",
        "a corrector of ten kicks around steps of one: errors ε h¹² + ε² h²",
        &[
            0.234_276_359_455_114_533_862_308_992_272_83,
            -0.104_645_372_385_811_832_829_617_255_536_3,
            0.031_937_934_539_971_711_429_365_845_156_437,
            -0.005_932_572_049_826_796_617_827_401_916_554_7,
            0.000_506_650_801_420_130_795_507_804_527_552_38,
        ],
    ),
    corrected(
        "wisdom17",
        "a corrector of sixteen kicks around steps of one: errors ε h¹⁸ + ε² h²",
        &[
            0.282_290_043_583_072_566_651_429_364_449_22,
            -0.168_106_556_513_927_125_283_398_103_589_3,
            0.079_009_431_783_230_329_238_453_070_907_887,
            -0.028_628_934_853_513_029_090_647_233_246_674,
            0.007_737_936_251_491_576_618_919_143_875_923_5,
            -0.001_471_213_140_479_755_929_321_306_216_803_3,
            0.000_175_692_888_754_578_910_303_828_163_162_05,
            -0.000_009_919_376_939_889_666_349_585_573_428_411_9,
        ],
    ),
];

/// Steps with a symplectic corrector.
const fn corrected(
    name: &'static str,
    description: &'static str,
    kicks: &'static [f64],
) -> Composition {
    Composition {
        name,
        order: 2,
        description,
        citation: "Wisdom, Astron. J. 131 (2006) 2294; Wisdom, Holman, Touma, Fields Inst. Commun. 10 (1996) 217",
        of: Of::Corrected(kicks),
    }
}

/// Flows of a corrector: for each b_k those of a_k, b_k, −2a_k, −b_k, a_k, with a_k = k √(7/40). To
/// first order in the kick they are the flow of 2 Σ b_k sinh(a_k x), where x is h times the bracket with
/// the motion, and the error of a step is x/2 coth x/2 − 1: the b_k are those for which the first powers
/// in both agree, Σ b_k a_k²ʲ⁻¹ = B₂ⱼ/4j with Bernoulli's numbers.
fn corrector(kicks: &[f64]) -> Vec<Flow> {
    let (mut flows, mut before) = (Vec::new(), 0.0);
    for (k, &kick) in kicks.iter().enumerate() {
        let motion = (k + 1) as f64 * CORRECTING_MOTION;
        let first = Flow::Motion(before + motion);
        flows.extend([first, Flow::Kick(kick), Flow::Motion(-2.0 * motion), Flow::Kick(-kick)]);
        before = motion;
    }
    flows.push(Flow::Motion(before));
    flows
}

/// γ from its first half; the middle substep makes the sum 1.
fn symmetric(half: &[f64]) -> Vec<f64> {
    let middle = 1.0 - 2.0 * half.iter().sum::<f64>();
    half.iter().copied().chain([middle]).chain(half.iter().rev().copied()).collect()
}

/// Coefficients that are the same forwards and backwards, from their first half; the last one stands
/// once if it is `in_the_middle`.
fn mirrored(half: &[f64], in_the_middle: bool) -> Vec<f64> {
    half.iter().chain(half.iter().rev().skip(usize::from(in_the_middle))).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn substeps_are_symmetric_and_cancel_errors() {
        for composition in COMPOSITIONS.iter().filter(|composition| composition.flows().is_none()) {
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

    #[test]
    fn flows_are_symmetric_and_cancel_errors() {
        // The order in h of the error that is linear in the kick.
        let orders = [
            ("saba2", 4),
            ("saba3", 6),
            ("saba4", 8),
            ("saba104", 10),
            ("saba864", 8),
            ("saba1064", 10),
            ("abah844", 8),
            ("abah864", 8),
            ("abah1064", 10),
        ];
        let with_flows = COMPOSITIONS.iter().filter_map(|known| Some((known, known.flows()?)));
        for ((known, flows), (name, order)) in with_flows.zip(orders) {
            assert_eq!(known.name, name);
            assert!(flows.corrector.is_empty());
            let flows = flows.step;
            assert!(flows.iter().eq(flows.iter().rev()), "{name}");
            // To first order in the kick a step is a quadrature with the weights b_i at the nodes
            // c_i, which is exact for polynomials below the order: Σ b c^k = 1/(k + 1), up to the
            // rounding of about ten terms.
            let error = |k: i32| {
                let (mut node, mut sum) = (0.0, -1.0 / f64::from(k + 1));
                for flow in &flows {
                    match *flow {
                        Flow::Motion(a) => node += a,
                        Flow::Kick(b) => sum += b * f64::powi(node, k),
                    }
                }
                f64::abs(sum)
            };
            for k in 0..order {
                assert!(error(k) < 2e-15, "{name}, {k}: {}", error(k));
            }
            assert!(error(order) > 1e-8, "{name} is of a higher order: {}", error(order));
        }
    }

    #[test]
    fn correctors_cancel_what_is_linear_in_the_kick() {
        const BERNOULLI: [f64; 8] = [
            1.0 / 6.0,
            -1.0 / 30.0,
            1.0 / 42.0,
            -1.0 / 30.0,
            5.0 / 66.0,
            -691.0 / 2730.0,
            7.0 / 6.0,
            -3617.0 / 510.0,
        ];
        let mut orders = Vec::new();
        for known in COMPOSITIONS {
            let Of::Corrected(kicks) = known.of else { continue };
            for (j, number) in (1..).zip(&BERNOULLI[..kicks.len()]) {
                let terms = (1..)
                    .zip(kicks)
                    .map(|(k, kick)| kick * (f64::from(k) * CORRECTING_MOTION).powi(2 * j - 1));
                let (sum, size) =
                    terms.fold((0.0, 0.0), |(sum, size), term| (sum + term, size + term.abs()));
                let wanted = number / f64::from(4 * j);
                // Powers up to the fifteenth and the sum round by some 20 units.
                assert!((sum - wanted).abs() < 20.0 * f64::EPSILON * size, "{}, {j}", known.name);
            }
            orders.push((known.name, 2 * kicks.len() + 1));
            // Neither the motion nor the kick is made on the whole.
            let flows = known.flows().expect("it has flows").corrector;
            let made = |wanted: fn(Flow) -> Option<f64>| -> f64 {
                flows.iter().filter_map(|&flow| wanted(flow)).sum()
            };
            let motion = made(|f| if let Flow::Motion(a) = f { Some(a) } else { None });
            let kick = made(|f| if let Flow::Kick(b) = f { Some(b) } else { None });
            assert!(motion.abs() < 1e-14 && kick == 0.0, "{}: {motion} {kick}", known.name);
        }
        let expected =
            [("wisdom3", 3), ("wisdom5", 5), ("wisdom7", 7), ("wisdom11", 11), ("wisdom17", 17)];
        assert_eq!(orders, expected);
    }
}
