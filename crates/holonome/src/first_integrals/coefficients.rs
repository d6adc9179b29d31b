//! Numbers as people write them: ratios of small integers, times parameters.

/// Relative distance up to which a number is taken for another one.
const CLOSE: f64 = 1e-10;

/// Largest denominator, and largest numerator of a number that is no integer.
const LARGEST_DENOMINATOR: u32 = 24;

/// Largest numerator and denominator beside parameters.
const LARGEST_BESIDE: f64 = 12.0;

/// Largest number of parameters of which products of two and of three are tried.
const MOST_TOGETHER: [usize; 2] = [16, 6];

/// A coefficient: its number, and how it is written: a sign, and factors above and below the
/// fraction line. A parameter among these may be negative itself.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Coefficient {
    pub value: f64,
    pub is_negative: bool,
    pub above: Vec<String>,
    pub below: Vec<String>,
}

impl Coefficient {
    /// True if both are written alike.
    pub fn is_alike(&self, other: &Coefficient) -> bool {
        self.is_negative == other.is_negative
            && self.above == other.above
            && self.below == other.below
    }

    /// Number of characters, and one more for a fraction.
    pub fn len(&self) -> usize {
        let characters =
            self.above.iter().chain(&self.below).map(|text| text.len() + 1).sum::<usize>();
        characters + usize::from(!self.below.is_empty())
    }
}

/// A ratio of small integers near a number.
fn ratio(value: f64) -> Option<(f64, u32)> {
    (1..=LARGEST_DENOMINATOR).find_map(|d| {
        let n = (value * f64::from(d)).round();
        let is_near = n != 0.0 && (n / f64::from(d) - value).abs() <= CLOSE * value.abs();
        (is_near && n.abs() < 1e6).then_some((n, d))
    })
}

/// The number as a ratio of small integers; `None` if it is none.
pub(super) fn rational(value: f64) -> Option<Coefficient> {
    let (n, d) = ratio(value)?;
    let (above, below) = (written(n.abs()), written(f64::from(d)));
    Some(Coefficient { value: n / f64::from(d), is_negative: n < 0.0, above, below })
}

/// A positive integer as a factor; 1 is none.
fn written(number: f64) -> Vec<String> {
    if number == 1.0 { Vec::new() } else { vec![number.to_string()] }
}

/// The number itself, in the digits that count.
pub(super) fn decimal(value: f64) -> Coefficient {
    let size = value.abs();
    let text =
        if (1e-4..1e6).contains(&size) { format!("{size:.12}") } else { format!("{size:.12e}") };
    let (mantissa, exponent) = text.split_once('e').map_or((&text[..], ""), |(m, e)| (m, e));
    let mantissa = mantissa.trim_end_matches('0').trim_end_matches('.');
    let text =
        if exponent.is_empty() { mantissa.to_string() } else { format!("{mantissa}e{exponent}") };
    let shown = text.parse::<f64>().map_or(value, |v| v.copysign(value));
    Coefficient { value: shown, is_negative: value < 0.0, above: vec![text], below: Vec::new() }
}

/// Parameters by which coefficients are written.
pub(super) struct Vocabulary {
    /// Powers of single parameters first, and then products of two and three of these: the value
    /// that a coefficient is compared with, and what is written for it.
    factors: Vec<(f64, Coefficient)>,
}

impl Vocabulary {
    /// Vocabulary of parameters, each given by its name, the value that it has in the coefficients,
    /// and the value for which they are wanted.
    pub fn new(parameters: &[(&str, f64, f64)]) -> Vocabulary {
        let powers: [(i32, &str); 4] = [(1, ""), (-1, ""), (2, "^2"), (-2, "^2")];
        let usable = || parameters.iter().filter(|(_, own, _)| *own != 0.0 && own.is_finite());
        let mut factors: Vec<(f64, Coefficient)> = Vec::new();
        for &(name, own, wanted) in usable() {
            for (power, suffix) in powers {
                let text = vec![format!("{name}{suffix}")];
                let (above, below) =
                    if power > 0 { (text, Vec::new()) } else { (Vec::new(), text) };
                factors.push((
                    own.powi(power),
                    Coefficient { value: wanted.powi(power), is_negative: false, above, below },
                ));
            }
        }
        let (singles, kinds) = (factors.len(), powers.len());
        let mut last = (0..singles).map(|k| (k, k)).collect::<Vec<_>>();
        for _ in MOST_TOGETHER.into_iter().take_while(|most| usable().count() <= *most) {
            let mut longer = Vec::new();
            for (product, end) in last {
                // Only parameters after its last one.
                for k in (end / kinds + 1) * kinds..singles {
                    let ((one, first), (two, second)) = (&factors[product], &factors[k]);
                    let value = first.value * second.value;
                    let above = [&first.above[..], &second.above].concat();
                    let below = [&first.below[..], &second.below].concat();
                    longer.push((factors.len(), k));
                    factors
                        .push((one * two, Coefficient { value, is_negative: false, above, below }));
                }
            }
            last = longer;
        }
        Vocabulary { factors }
    }

    /// The number as a small ratio times powers of up to three parameters; `None` if it is none.
    pub fn write(&self, value: f64) -> Option<Coefficient> {
        if let Some(rational) = rational(value) {
            return Some(rational);
        }
        self.factors.iter().find_map(|(own, Coefficient { value: wanted, above, below, .. })| {
            let (n, d) =
                ratio(value / own).filter(|(n, d)| n.abs().max(f64::from(*d)) <= LARGEST_BESIDE)?;
            let above = [&written(n.abs())[..], above].concat();
            let below = [&written(f64::from(d))[..], below].concat();
            Some(Coefficient {
                value: n / f64::from(d) * wanted,
                is_negative: n < 0.0,
                above,
                below,
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_people_do() {
        let shown = |c: Coefficient| {
            let sign = if c.is_negative { "-" } else { "" };
            (sign.to_string() + &c.above.join("*"), c.below.join("*"), c.value)
        };
        let parts = |above: &str, below: &str, value: f64| {
            Some((above.to_string(), below.to_string(), value))
        };
        let ratio = |value: f64| rational(value).map(shown);
        assert_eq!(ratio(-1.0), parts("-", "", -1.0));
        assert_eq!(ratio(2.0 / 3.0 + 1e-13), parts("2", "3", 2.0 / 3.0));
        assert_eq!(ratio(-7.0), parts("-7", "", -7.0));
        assert_eq!(ratio(std::f64::consts::PI), None);
        assert_eq!(decimal(-std::f64::consts::PI).above, ["3.14159265359"]);
        assert_eq!(decimal(1.5e-9).above, ["1.5e-9"]);
        // m and k are searched at other values than they have.
        let vocabulary = Vocabulary::new(&[
            ("m", 2.137, 2.0),
            ("k", 5.391, 5.0),
            ("none", 0.0, 0.0),
            ("g", -9.973, -9.81),
        ]);
        let found = |value: f64| vocabulary.write(value).map(shown);
        assert_eq!(found(5.391), parts("k", "", 5.0));
        assert_eq!(found(-5.391 / 2.137), parts("-k", "m", -2.5));
        assert_eq!(found(9.973), parts("-g", "", 9.81), "the sign is that of the text");
        assert_eq!(found(1.0 / 5.391), parts("", "k", 0.2));
        assert_eq!(found(3.0 * 2.137 * 5.391 / 2.0), parts("3*m*k", "2", 15.0));
        assert_eq!(found(0.5 / (2.137 * 5.391)), parts("", "2*m*k", 0.05));
        assert_eq!(found(0.123456789), None);
    }
}
