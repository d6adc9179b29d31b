//! Numbers as text.

/// A drift or residual: two digits.
pub fn small(value: f64) -> String {
    if value == 0.0 { "0".to_string() } else { format!("{value:.1e}") }
}

/// A number to six significant digits, without trailing zeros.
pub fn number(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return if value == 0.0 { "0".to_string() } else { value.to_string() };
    }
    let scientific = format!("{value:.5e}");
    let (mantissa, exponent) =
        scientific.split_once('e').expect("a scientific number has an exponent");
    let trim = |digits: &str| match digits.contains('.') {
        true => digits.trim_end_matches('0').trim_end_matches('.').to_string(),
        false => digits.to_string(),
    };
    match exponent.parse::<i32>() {
        // The rounded number, not the value: 999999.7 has seven digits before the point.
        Ok(exponent @ -4..=5) => trim(&format!("{value:.*}", (5 - exponent) as usize)),
        _ => format!("{}e{exponent}", trim(mantissa)),
    }
}

/// A number in full, as short as possible.
pub fn exact(value: f64) -> String {
    let size = value.abs();
    if size == 0.0 || (1e-5..1e16).contains(&size) {
        format!("{}", value + 0.0)
    } else {
        format!("{value:e}")
    }
}

/// A count with thin groups of three: 1 234 567.
pub fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut out = String::new();
    for (k, digit) in digits.chars().enumerate() {
        if k > 0 && (digits.len() - k).is_multiple_of(3) {
            out.push(' ');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{exact, number, small};

    #[test]
    fn numbers_have_significant_digits() {
        for (value, shown) in [
            (0.0, "0"),
            (-0.0, "0"),
            (1.0, "1"),
            (-1.5, "-1.5"),
            (5e-32, "5e-32"),
            (-5.390_625e-1, "-0.539062"),
            (1.0 / 3.0, "0.333333"),
            (123_456.78, "123457"),
            (999_999.7, "1e6"),
            (1_234_567.8, "1.23457e6"),
            (100_000.0, "100000"),
            (0.000_123_456_7, "0.000123457"),
            (9.999_999e-5, "1e-4"),
            (-2.5e300, "-2.5e300"),
            (f64::NAN, "NaN"),
        ] {
            let shown_now = number(value);
            let same = shown_now == shown || shown_now.parse() == shown.parse::<f64>();
            assert!(same, "{value:e}: {shown_now}, not {shown}");
        }
        assert_eq!(number(9.999_999e-5).parse(), Ok(1e-4));
        assert_eq!([small(-0.0), small(1.24e-16)], ["0", "1.2e-16"]);
        assert_eq!(
            [exact(-0.0), exact(0.1), exact(1e300), exact(2.5e-9)],
            ["0", "0.1", "1e300", "2.5e-9"]
        );
    }
}
