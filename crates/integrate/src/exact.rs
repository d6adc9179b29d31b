//! Numbers stored as their bits, so that a stored state comes back exactly: a decimal text may round, and JSON has no
//! NaN or infinity at all.

/// One number, for `#[serde(with = "exact::number")]`.
pub mod number {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    /// Writes the bits of `value`.
    pub fn serialize<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
        value.to_bits().serialize(serializer)
    }

    /// Reads what [`serialize`] wrote.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
        u64::deserialize(deserializer).map(f64::from_bits)
    }
}

/// A list of numbers, for `#[serde(with = "exact::list")]`: a text of their bytes in base 64, as lists may be long.
pub mod list {
    use base64::display::Base64Display;
    use base64::prelude::{BASE64_STANDARD, Engine};
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    /// Writes the bits of each value, the lowest first.
    pub fn serialize<S: Serializer>(values: &[f64], serializer: S) -> Result<S::Ok, S::Error> {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        serializer.collect_str(&Base64Display::new(&bytes, &BASE64_STANDARD))
    }

    /// Reads what [`serialize`] wrote.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<f64>, D::Error> {
        let text = String::deserialize(deserializer)?;
        let bytes = BASE64_STANDARD.decode(text).map_err(D::Error::custom)?;
        match bytes.as_chunks() {
            (numbers, []) => Ok(numbers.iter().map(|&bytes| f64::from_le_bytes(bytes)).collect()),
            (_, rest) => Err(D::Error::custom(format!("{} bytes behind the last number", rest.len()))),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde::{Deserialize, Serialize};

    #[derive(Serialize, Deserialize)]
    struct Stored(#[serde(with = "super::list")] Vec<f64>);

    #[test]
    fn lists_come_back_bit_by_bit() {
        let odd = f64::from_bits(0x7ff8_0000_dead_beef);
        for values in [vec![], vec![0.1], vec![-0.0, f64::INFINITY, odd, f64::MIN_POSITIVE / 8.0, 1e300]] {
            let text = serde_json::to_string(&Stored(values.clone())).unwrap();
            let Stored(back) = serde_json::from_str(&text).unwrap();
            let bits = |values: &[f64]| values.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
            assert_eq!(bits(&back), bits(&values));
        }
        for damaged in ["\"AAAAAAAA8D8", "\"AAAAAAAA8D8=?\"", "\"AAAA\"", "[1]"] {
            assert!(serde_json::from_str::<Stored>(damaged).is_err(), "{damaged}");
        }
    }
}
