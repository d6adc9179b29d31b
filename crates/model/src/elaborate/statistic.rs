//! Statistics that a `measure` takes of a quantity along a run, and `analyse` of stored samples.

/// Largest number of bins.
const MOST_BINS: usize = 100_000;

/// A statistic of a quantity, over the samples of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Statistic {
    /// `mean(Q)`: of every component.
    Mean,
    /// `histogram(Q, a, b, bins)`: density of all its numbers together.
    Histogram {
        /// Start of the first bin and end of the last one.
        range: (f64, f64),
        /// Number of bins.
        bins: usize,
    },
    /// `rdf(Q, b, bins)` or, in a periodic cube of that side, `rdf(Q, b, bins, side)`: distances of
    /// its members.
    Distances {
        /// End of the last bin.
        reach: f64,
        /// Number of bins.
        bins: usize,
        /// Side of the cube.
        side: Option<f64>,
    },
    /// `msd(Q)`: mean squared displacement of its members over the time between two samples.
    Displacement,
    /// `autocorrelation(Q)`: of the deviation from its mean, over the time between two samples.
    Autocorrelation,
    /// `temperature()`: kT of the momenta, p·∂H/∂p over the degrees of freedom.
    Temperature,
}

/// Forms of all statistics, for error messages.
pub const FORMS: &str = "mean(Q), histogram(Q, a, b, bins), rdf(Q, b, bins), rdf(Q, b, bins, side), msd(Q), autocorrelation(Q) or temperature()";

/// Words that name a statistic.
pub const STATISTICS: [&str; 6] =
    ["mean", "histogram", "rdf", "msd", "autocorrelation", "temperature"];

impl Statistic {
    /// The statistic called `word` with the `numbers` that follow its quantity.
    ///
    /// # Errors
    /// A message that says what is wrong with them.
    pub fn new(word: &str, numbers: &[f64]) -> Result<Statistic, String> {
        if !numbers.iter().all(|number| number.is_finite()) {
            return Err("a number is not finite".to_string());
        }
        let count =
            |bins: f64| match bins.fract() == 0.0 && (1.0..=MOST_BINS as f64).contains(&bins) {
                true => Ok(bins as usize),
                false => Err(format!("bins are a whole number from 1 to {MOST_BINS}")),
            };
        match (word, numbers) {
            ("mean", []) => Ok(Statistic::Mean),
            ("msd", []) => Ok(Statistic::Displacement),
            ("autocorrelation", []) => Ok(Statistic::Autocorrelation),
            ("temperature", []) => Ok(Statistic::Temperature),
            ("histogram", &[a, b, bins]) if a < b => {
                Ok(Statistic::Histogram { range: (a, b), bins: count(bins)? })
            }
            ("rdf", &[reach, bins, ref side @ ..]) if reach > 0.0 && side.len() <= 1 => {
                let side = side.first().copied();
                if side.is_some_and(|side| side < 2.0 * reach) {
                    return Err(
                        "distances in a periodic cube are known up to half of its side".to_string()
                    );
                }
                Ok(Statistic::Distances { reach, bins: count(bins)?, side })
            }
            _ => Err("these numbers make no measure".to_string()),
        }
    }

    /// Word that names the statistic.
    pub fn word(&self) -> &'static str {
        match self {
            Statistic::Mean => "mean",
            Statistic::Histogram { .. } => "histogram",
            Statistic::Distances { .. } => "rdf",
            Statistic::Displacement => "msd",
            Statistic::Autocorrelation => "autocorrelation",
            Statistic::Temperature => "temperature",
        }
    }

    /// The statistic of `of` in the language's notation.
    pub fn of(&self, of: &str) -> String {
        let numbers: Vec<f64> = match *self {
            Statistic::Histogram { range: (a, b), bins } => vec![a, b, bins as f64],
            Statistic::Distances { reach, bins, side } => {
                [reach, bins as f64].into_iter().chain(side).collect()
            }
            _ => Vec::new(),
        };
        let words = std::iter::once(of.to_string()).chain(numbers.iter().map(f64::to_string));
        format!("{}({})", self.word(), words.collect::<Vec<_>>().join(", "))
    }
}
