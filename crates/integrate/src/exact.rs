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

/// A list of numbers, for `#[serde(with = "exact::list")]`.
pub mod list {
    use serde::{Deserialize, Deserializer, Serializer};

    /// Writes the bits of each value.
    pub fn serialize<S: Serializer>(values: &[f64], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(values.iter().map(|value| value.to_bits()))
    }

    /// Reads what [`serialize`] wrote.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<f64>, D::Error> {
        let bits = Vec::<u64>::deserialize(deserializer)?;
        Ok(bits.into_iter().map(f64::from_bits).collect())
    }
}
