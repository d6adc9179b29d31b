//! Runs as comma-separated values: a header, then one line for each stored sample; for an ensemble,
//! one for each sample of each trajectory, whose number comes first.
//!
//! Columns are named as in the model: `t`, `q.x`, `r[2].y`, `x[1,2].z`; vectors of more than three
//! components and matrices are written with indices, `Q[4]`, `R[1,2]`, `A[3][1,2]`. Names with a
//! comma stand in quotes (RFC 4180). Numbers are the shortest decimals that read back as the same
//! bits; `NaN` and `inf` are spelt so.

use super::table::{TableRow, each_row};
use super::{Fail, Format, Stream};
use crate::store::error::StoreError;
use crate::store::reader::StoredRun;
use crate::store::schema::Series;
use rayon::prelude::*;
use std::io::Write;

/// Comma-separated values.
pub const FORMAT: Format = Format { name: "csv", about: "CSV", write };

fn write(run: &StoredRun, output: &mut Stream, fail: Fail) -> Result<(), StoreError> {
    let schema = run.schema();
    output
        .write_all(if schema.trajectories.is_some() { b"trajectory,t" } else { b"t" as &[u8] })
        .map_err(fail)?;
    let all = run.all_series();
    for series in &all {
        write_columns(run, series, output, fail)?;
    }
    output.write_all(b"\n").map_err(fail)?;
    let mut block = Block::default();
    each_row(run, &mut |row| {
        block.append(&row);
        if block.numbers.len() >= NUMBERS { block.write(output, fail) } else { Ok(()) }
    })?;
    block.write(output, fail)
}

/// Numbers of a block of rows that is written at once, and of each part of it that a thread turns
/// into text: some hundred kilobytes of text, and some ten.
const NUMBERS: usize = 1 << 14;
const NUMBERS_OF_PART: usize = 1 << 11;

/// Rows that become text together. The text does not depend on the threads, which take parts of it.
#[derive(Default)]
struct Block {
    /// Number of the trajectory of each row, for an ensemble.
    trajectories: Vec<u64>,
    /// Numbers of each row, its time first.
    numbers: Vec<f64>,
    /// Numbers of a row.
    width: usize,
    /// Texts of the parts.
    texts: Vec<Vec<u8>>,
}

impl Block {
    fn append(&mut self, row: &TableRow) {
        self.trajectories.extend(row.trajectory);
        self.numbers.push(row.t);
        self.numbers.extend_from_slice(row.numbers);
        self.width = 1 + row.numbers.len();
    }

    /// Write the rows, which leaves the block empty.
    fn write(&mut self, output: &mut Stream, fail: Fail) -> Result<(), StoreError> {
        let Block { trajectories, numbers, width, texts } = self;
        let rows = NUMBERS_OF_PART.div_ceil((*width).max(1));
        let parts = numbers.len().div_ceil(rows * (*width).max(1));
        texts.resize_with(parts.max(texts.len()), Vec::new);
        texts[..parts].par_iter_mut().enumerate().for_each(|(part, text)| {
            text.clear();
            let mut digits = zmij::Buffer::new();
            let first = part * rows;
            let of_part = numbers[first * *width..].chunks_exact(*width).take(rows);
            for (row, numbers) in of_part.enumerate() {
                if let Some(trajectory) = trajectories.get(first + row) {
                    text.extend_from_slice(trajectory.to_string().as_bytes());
                    text.push(b',');
                }
                for (column, &number) in numbers.iter().enumerate() {
                    if column > 0 {
                        text.push(b',');
                    }
                    put_number(text, &mut digits, number);
                }
                text.push(b'\n');
            }
        });
        for text in &texts[..parts] {
            output.write_all(text).map_err(fail)?;
        }
        trajectories.clear();
        numbers.clear();
        Ok(())
    }
}

/// Put the shortest decimal that reads back as the same bits, in debug format: it switches to an
/// exponent where Display would write hundreds of zeros.
fn put_number(text: &mut Vec<u8>, digits: &mut zmij::Buffer, number: f64) {
    match number.abs() {
        // The faster formatter has another form here: 0.00001 for 1e-5, 1e+16 for 1e16.
        1e-5..1e-4 | 1e16.. => text.extend_from_slice(format!("{number:?}").as_bytes()),
        _ => text.extend_from_slice(digits.format(number).as_bytes()),
    }
}

/// Write the names of an array's columns.
fn write_columns(
    run: &StoredRun,
    series: &Series,
    output: &mut Stream,
    fail: Fail,
) -> Result<(), StoreError> {
    for title in run.columns(series)? {
        let written = if title.contains([',', '"']) {
            write!(output, ",\"{}\"", title.replace('"', "\"\""))
        } else {
            write!(output, ",{title}")
        };
        written.map_err(fail)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::put_number;

    /// Every power of ten and of two within reach, with its neighbours: all changes of form are
    /// there. Between two shortest decimals that are equally near, the even one is written, not the
    /// larger one: 2⁻²⁵ ends in 2 instead of 3.
    #[test]
    fn numbers_are_in_debug_format() {
        let tens = (-324..=308).map(|k| format!("1e{k}").parse::<f64>().unwrap());
        let twos = (0..2046).map(|k| f64::from_bits(k << 52));
        let special = [0.0, f64::MAX, f64::INFINITY, f64::NAN, 1.0 / 3.0, 123456.789];
        for number in tens.chain(twos).chain(special) {
            let near = [number, number.next_up(), number.next_down(), 3.0 * number];
            for number in near.into_iter().flat_map(|number| [number, -number]) {
                let mut text = Vec::new();
                put_number(&mut text, &mut zmij::Buffer::new(), number);
                let (text, expected) = (String::from_utf8(text).unwrap(), format!("{number:?}"));
                let form = |text: &str| text.replace(|c: char| c.is_ascii_digit(), "0");
                assert_eq!(form(&text), form(&expected), "{text}, not {expected}");
                let read: f64 = text.parse().unwrap();
                assert!(read.to_bits() == number.to_bits() || number.is_nan(), "{text}");
            }
        }
    }
}
