//! Numbers stored as their bits, so that a stored state is restored exactly: a decimal text may
//! round, and JSON has no NaN or infinity at all.

/// One number, for `#[serde(with = "exact::number")]`.
pub mod number {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    /// Write the bits of `value`.
    pub fn serialize<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
        value.to_bits().serialize(serializer)
    }

    /// Read the output of [`serialize`].
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
        u64::deserialize(deserializer).map(f64::from_bits)
    }
}

/// A list of numbers, for `#[serde(with = "exact::list")]`: their bytes, as lists may be long.
pub mod list {
    use serde::de::{Error, SeqAccess, Visitor};
    use serde::{Deserializer, Serializer};
    use std::fmt;

    /// Write the bits of each value, the lowest first.
    pub fn serialize<S: Serializer>(values: &[f64], serializer: S) -> Result<S::Ok, S::Error> {
        if cfg!(target_endian = "little") {
            // In place: the state of a large model is tens of megabytes.
            return serializer.serialize_bytes(bytemuck::cast_slice(values));
        }
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        serializer.serialize_bytes(&bytes)
    }

    /// Read the output of [`serialize`].
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<f64>, D::Error> {
        deserializer.deserialize_bytes(Bytes)
    }

    struct Bytes;

    impl<'de> Visitor<'de> for Bytes {
        type Value = Vec<f64>;

        fn expecting(&self, out: &mut fmt::Formatter) -> fmt::Result {
            out.write_str("the bytes of 64-bit numbers")
        }

        fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Vec<f64>, E> {
            match bytes.as_chunks() {
                (numbers, []) => {
                    Ok(numbers.iter().map(|&bytes| f64::from_le_bytes(bytes)).collect())
                }
                (_, rest) => Err(E::custom(format!("{} bytes behind the last number", rest.len()))),
            }
        }

        /// Formats without bytes write a list of small integers.
        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<f64>, A::Error> {
            let mut bytes = Vec::new();
            while let Some(byte) = list.next_element::<u8>()? {
                bytes.push(byte);
            }
            self.visit_bytes(&bytes)
        }
    }
}

/// A list of numbers that several states share, for `#[serde(with = "exact::shared")]`: stored as
/// [`list`] does.
pub mod shared {
    use serde::{Deserializer, Serializer};
    use std::sync::Arc;

    /// Write the bits of each value, the lowest first.
    pub fn serialize<S: Serializer>(
        values: &Arc<Vec<f64>>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        super::list::serialize(values, serializer)
    }

    /// Read the output of [`serialize`].
    pub fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Arc<Vec<f64>>, D::Error> {
        super::list::deserialize(deserializer).map(Arc::new)
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
        for values in
            [vec![], vec![0.1], vec![-0.0, f64::INFINITY, odd, f64::MIN_POSITIVE / 8.0, 1e300]]
        {
            let bits = |values: &[f64]| values.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
            let packed = rmp_serde::to_vec(&Stored(values.clone())).unwrap();
            assert!(
                packed.len() <= 8 * values.len() + 6,
                "a number takes its eight bytes: {}",
                packed.len()
            );
            let Stored(back) = rmp_serde::from_slice(&packed).unwrap();
            assert_eq!(bits(&back), bits(&values));
            let text = serde_json::to_string(&Stored(values.clone())).unwrap();
            let Stored(back) = serde_json::from_str(&text).unwrap();
            assert_eq!(bits(&back), bits(&values));
        }
        for damaged in ["[1]", "[1,2,3,4,5,6,7,8,9]", "[1,2,3,4,5,6,7,256]", "\"AAAA\"", "7"] {
            assert!(serde_json::from_str::<Stored>(damaged).is_err(), "{damaged}");
        }
    }
}
