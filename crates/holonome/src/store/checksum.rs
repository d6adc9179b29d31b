//! CRC-32C (Castagnoli), the checksum of Zarr's codec `crc32c`: after a chunk or a checkpoint in
//! four bytes, the lowest first; in JSON in hexadecimal digits.

use super::error::StoreError;
use std::path::Path;

/// Length of a checksum in bytes.
pub(super) const LEN: usize = 4;

/// Checksum of `bytes`, as appended to them.
pub(super) fn of(bytes: &[u8]) -> [u8; LEN] {
    crc32c::crc32c(bytes).to_le_bytes()
}

/// Checksum of a text, as written in JSON.
pub(super) fn of_text(text: &str) -> String {
    format!("{:08x}", crc32c::crc32c(text.as_bytes()))
}

/// Put the checksum of all but the last four of `bytes` into those four.
pub(super) fn seal(bytes: &mut [u8]) {
    let (content, checksum) = bytes.split_at_mut(bytes.len() - LEN);
    checksum.copy_from_slice(&of(content));
}

/// Content of bytes that [`seal`] sealed, without the checksum. `what` names the content in an
/// error.
pub(super) fn opened<'b>(path: &Path, bytes: &'b [u8], what: &str) -> Result<&'b [u8], StoreError> {
    match bytes.split_last_chunk::<LEN>() {
        Some((content, checksum)) if of(content) == *checksum => Ok(content),
        Some(_) => Err(StoreError::damaged(path, format!("the checksum of {what} does not match"))),
        None => Err(StoreError::damaged(path, format!("it has {} bytes", bytes.len()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_those_of_rfc_3720() {
        // Appendix B.4: the bytes 0 to 31; and the common check value of "123456789".
        let ascending: Vec<u8> = (0..32).collect();
        assert_eq!(of(&ascending), 0x46dd_794e_u32.to_le_bytes());
        assert_eq!(of_text("123456789"), "e3069283");
    }
}
