//! Instruction sets: number and width of their registers, and detection on this processor.

/// Instruction set for which machine code is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Isa {
    /// AVX2 with FMA: 16 registers of up to 4 numbers.
    Avx2,
    /// AVX-512 (F, DQ, VL): 32 registers of up to 8 numbers, and a form of every operation on one
    /// number.
    Avx512,
}

impl Isa {
    /// Every instruction set, the better ones last.
    pub const ALL: [Isa; 2] = [Isa::Avx2, Isa::Avx512];

    /// The best instruction set of this processor.
    ///
    /// # Errors
    /// On other processors and on those without AVX2 and FMA, with the missing features.
    pub fn detect() -> Result<Isa, String> {
        match Isa::Avx512.missing() {
            None => Ok(Isa::Avx512),
            Some(_) => Isa::Avx2.missing().map_or(Ok(Isa::Avx2), Err),
        }
    }

    /// True if code for it runs here.
    pub fn is_available(self) -> bool {
        self.missing().is_none()
    }

    /// Reason why code for it does not run here; `None` if it does.
    #[cfg(target_arch = "x86_64")]
    pub fn missing(self) -> Option<String> {
        let mut absent = Vec::new();
        // The macro takes literals only.
        macro_rules! need {
            ($($feature:tt)*) => {
                $(if !std::is_x86_feature_detected!($feature) {
                    absent.push($feature);
                })*
            };
        }
        need!("avx2" "fma");
        if self == Isa::Avx512 {
            need!("avx512f" "avx512dq" "avx512vl");
        }
        let absent = absent.join(" and ").to_uppercase();
        (!absent.is_empty())
            .then(|| format!("machine code needs {absent}, which this processor does not have"))
    }

    /// Reason why code for it does not run here.
    #[cfg(not(target_arch = "x86_64"))]
    pub fn missing(self) -> Option<String> {
        Some(format!(
            "machine code is made for x86-64 processors only, and this one is {}",
            std::env::consts::ARCH
        ))
    }

    /// Number of vector registers.
    pub(crate) fn registers(self) -> usize {
        match self {
            Isa::Avx2 => 16,
            Isa::Avx512 => 32,
        }
    }

    /// Numbers in the widest vector.
    pub fn widest(self) -> usize {
        match self {
            Isa::Avx2 => 4,
            Isa::Avx512 => 8,
        }
    }

    /// The widest vector whose length divides `lanes`.
    pub(crate) fn width(self, lanes: usize) -> Width {
        [Width::Eight, Width::Four]
            .into_iter()
            .find(|w| w.numbers() <= self.widest() && lanes.is_multiple_of(w.numbers()))
            .unwrap_or(Width::One)
    }
}

/// Numbers that an instruction works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Width {
    /// One number, in the lowest lane of a register; the lanes above are ignored.
    One,
    /// 256 bits.
    Four,
    /// 512 bits.
    Eight,
}

impl Width {
    pub(crate) fn numbers(self) -> usize {
        match self {
            Width::One => 1,
            Width::Four => 4,
            Width::Eight => 8,
        }
    }
}
