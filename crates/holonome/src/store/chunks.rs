//! Chunk files of one array: names, the chunk being filled, and chunks read back.

use super::blocks::Blocks;
use super::checksum;
use super::error::StoreError;
use super::files;
use super::schema::{CHUNK_NUMBERS_MAX, Grid, Series};
use crate::regular;
use holonome_integrate::system::all_finite;
use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

const NUMBER_BYTES: usize = size_of::<f64>();

/// Path of a chunk, rebuilt in place: appending must not allocate.
#[derive(Clone, Debug)]
struct ChunkPath {
    target: PathBuf,
    temporary: PathBuf,
    name: String,
    /// `.0` for each dimension besides time: there is one chunk in those directions.
    suffix: String,
    /// Blocks that the chunks of an ensemble are.
    blocks: Option<Blocks>,
}

impl ChunkPath {
    fn new(run: &Path, series: &Series) -> ChunkPath {
        let folder = run.join(&series.stored);
        let (target, temporary) = (folder.join("c"), folder.join("c"));
        ChunkPath {
            target,
            temporary,
            name: String::new(),
            suffix: ".0".repeat(series.grid.lengths.len()),
            blocks: series.grid.blocks.clone(),
        }
    }

    fn set(&mut self, chunk: usize) {
        self.name.clear();
        // Writing to a String cannot fail.
        let _ = match &self.blocks {
            None => write!(self.name, ".tmp-c.{chunk}{}", self.suffix),
            Some(blocks) => write!(self.name, ".tmp-{}{}", block_key(blocks, chunk), self.suffix),
        };
        self.temporary.set_file_name(&self.name);
        self.target.set_file_name(&self.name[".tmp-".len()..]);
    }
}

/// Name of a block's chunk in an array without dimensions of its own.
fn block_key(blocks: &Blocks, block: usize) -> String {
    let index = blocks.index(block as u64);
    index.iter().fold("c".to_string(), |key, place| format!("{key}.{place}"))
}

/// Name of the file of a block in an array. `bytes` become those of its rows, which stand one after
/// the other in `rows`.
pub(super) fn block_file(
    series: &Series,
    blocks: &Blocks,
    block: u64,
    rows: &[f64],
    bytes: &mut Vec<u8>,
) -> String {
    let mut name = block_key(blocks, block as usize);
    name.push_str(&".0".repeat(series.grid.lengths.len()));
    let numbers = rows.iter().map(|&number| stored(number));
    seal(numbers, f64::NAN.to_le_bytes(), &series.grid, bytes);
    name
}

/// Name of the file of a block in the array of the trajectories' numbers, whose bytes `bytes` become.
pub(super) fn block_of_numbers(
    blocks: &Blocks,
    block: u64,
    first: u64,
    bytes: &mut Vec<u8>,
) -> String {
    let numbers = blocks.range(block).map(|k| ((first + k) as i64).to_le_bytes());
    seal(numbers, [0; NUMBER_BYTES], &Grid::in_blocks(blocks, Vec::new()), bytes);
    block_key(blocks, block as usize)
}

/// Put a chunk of numbers and its checksum into `bytes`; the rest of the chunk is filled.
fn seal(
    numbers: impl Iterator<Item = [u8; NUMBER_BYTES]>,
    fill: [u8; NUMBER_BYTES],
    grid: &Grid,
    bytes: &mut Vec<u8>,
) {
    let content = grid.chunk_bytes();
    bytes.resize(content + checksum::LEN, 0);
    let mut places = bytes[..content].chunks_exact_mut(NUMBER_BYTES);
    numbers.zip(&mut places).for_each(|(number, place)| place.copy_from_slice(&number));
    places.for_each(|place| place.copy_from_slice(&fill));
    checksum::seal(bytes);
}

/// Number of the chunk with a file name; `None` if it is not a chunk's.
fn chunk_number(name: &str) -> Option<usize> {
    let (number, _) =
        name.strip_prefix("c.").map(|rest| rest.split_once('.').unwrap_or((rest, "")))?;
    number.parse().ok()
}

/// Content of a chunk, and its file.
#[derive(Debug)]
pub(super) struct Page {
    path: ChunkPath,
    chunk: usize,
    /// Bytes of its rows, and room for the checksum.
    bytes: Vec<u8>,
}

impl Page {
    /// Write the page to its file.
    pub(super) fn write(&mut self) -> Result<(), StoreError> {
        self.path.set(self.chunk);
        checksum::seal(&mut self.bytes);
        files::replace_through(&self.path.temporary, &self.path.target, &self.bytes)
    }
}

/// The second page of an array, beside the one that is being filled.
#[derive(Debug)]
enum Other {
    /// Not created yet.
    None,
    /// A page whose content is in a file.
    Idle(Page),
    /// Away, being written.
    Away,
    /// A page whose writing failed.
    Failed(Page),
}

/// Writer that collects rows and writes them chunk by chunk.
#[derive(Debug)]
pub(super) struct ChunkWriter {
    /// The chunk being filled; after its rows it has old content. It holds nothing if rows are
    /// [large](is_large).
    page: Page,
    other: Other,
    row: usize,
    chunk_rows: usize,
    filled: usize,
    /// True if the page has content that the file lacks.
    dirty: bool,
}

impl ChunkWriter {
    /// Writer at the first row.
    pub(super) fn new(run: &Path, series: &Series) -> ChunkWriter {
        let bytes =
            if is_large(series.grid.row()) { 0 } else { series.grid.chunk_bytes() + checksum::LEN };
        ChunkWriter {
            page: Page { path: ChunkPath::new(run, series), chunk: 0, bytes: vec![0; bytes] },
            other: Other::None,
            row: series.grid.row(),
            chunk_rows: series.grid.chunk_rows,
            filled: 0,
            dirty: false,
        }
    }

    /// Writer after `rows` stored rows. Checks that they are complete and removes rows beyond. The
    /// array's folder must be one: a link would let others be written to.
    pub(super) fn behind(
        run: &Path,
        series: &Series,
        rows: usize,
    ) -> Result<ChunkWriter, StoreError> {
        let mut writer = ChunkWriter::new(run, series);
        let chunk = rows / writer.chunk_rows;
        writer.page.chunk = chunk;
        writer.filled = rows % writer.chunk_rows;
        let folder = run.join(&series.stored);
        if folder.symlink_metadata().is_ok_and(|metadata| !metadata.is_dir()) {
            return Err(StoreError::damaged(&folder, "it is not a folder"));
        }
        files::remove_temporaries(&folder)?;
        let keep = chunk + usize::from(writer.filled > 0);
        files::remove_where(&folder, |name| chunk_number(name).is_some_and(|chunk| chunk >= keep))?;
        if writer.row == 0 {
            return Ok(writer);
        }
        let mut reader = ChunkReader::new(run, series);
        for chunk in 0..chunk {
            reader.load(chunk)?;
        }
        if writer.filled > 0 {
            reader.load(chunk)?;
            let stored = writer.filled * writer.row * NUMBER_BYTES;
            writer.page.bytes[..stored].copy_from_slice(&reader.bytes[..stored]);
            // The file may have rows beyond: the next checkpoint replaces them by NaN.
            writer.dirty = true;
        }
        Ok(writer)
    }

    /// Length of a row.
    pub(super) fn row(&self) -> usize {
        self.row
    }

    /// True if the chunk is full.
    pub(super) fn is_full(&self) -> bool {
        self.filled == self.chunk_rows
    }

    /// Make room for a row: write the chunk if it is full. After an error it is still full, and
    /// nothing is lost.
    pub(super) fn make_room(&mut self) -> Result<(), StoreError> {
        if self.is_full() {
            self.flush()?;
            self.page.chunk += 1;
            self.filled = 0;
        }
        Ok(())
    }

    /// True if a page is [away](ChunkWriter::give).
    pub(super) fn is_away(&self) -> bool {
        matches!(self.other, Other::Away)
    }

    /// Give the full chunk away for writing, and begin the next one in another page. `None` if the
    /// chunk is a single row, or rows are empty.
    pub(super) fn give(&mut self) -> Option<Page> {
        if self.chunk_rows == 1 || self.row == 0 {
            return None;
        }
        let Page { path, chunk, bytes } = &self.page;
        let mut next = match std::mem::replace(&mut self.other, Other::Away) {
            Other::Idle(page) => page,
            _ => Page { path: path.clone(), chunk: 0, bytes: vec![0; bytes.len()] },
        };
        next.chunk = chunk + 1;
        (self.filled, self.dirty) = (0, false);
        Some(std::mem::replace(&mut self.page, next))
    }

    /// Take a page back.
    pub(super) fn take(&mut self, page: Page, written: bool) {
        self.other = if written { Other::Idle(page) } else { Other::Failed(page) };
    }

    /// Write a page that came back unwritten, if there is one; no page is away.
    pub(super) fn retry(&mut self) -> Result<(), StoreError> {
        match std::mem::replace(&mut self.other, Other::None) {
            Other::Failed(mut page) => {
                let written = page.write();
                self.take(page, written.is_ok());
                written
            }
            Other::Away => {
                let ended = io::Error::other("the thread that writes it has ended");
                Err(StoreError::write(&self.page.path.target, ended))
            }
            other => {
                self.other = other;
                Ok(())
            }
        }
    }

    /// Number of rows for which there is room.
    pub(super) fn room(&self) -> usize {
        self.chunk_rows - self.filled
    }

    /// Write the next row to its file if it is [large](is_large); there is room for it. It is not
    /// counted before [`ChunkWriter::push`].
    pub(super) fn write_large(&mut self, row: &[f64]) -> Result<(), StoreError> {
        if !is_large(self.row) {
            return Ok(());
        }
        self.page.path.set(self.page.chunk);
        files::replace_by(&self.page.path.target, |sink| {
            for number in &row[..self.row] {
                sink.write_all(&stored(*number))?;
            }
            let sum = files::checksum(sink)?;
            sink.write_all(&sum.to_le_bytes())
        })
    }

    /// Add the first `count` rows of [`ChunkWriter::row`] numbers each; there is room for them, and
    /// large ones [are in their files](ChunkWriter::write_large).
    pub(super) fn push(&mut self, count: usize, rows: &[f64]) {
        if is_large(self.row) {
            self.filled += count;
            return;
        }
        let numbers = count * self.row;
        let start = self.filled * self.row * NUMBER_BYTES;
        let bytes = &mut self.page.bytes[start..start + numbers * NUMBER_BYTES];
        let (rows, bytes) = (&rows[..numbers], bytes.as_chunks_mut::<NUMBER_BYTES>().0.iter_mut());
        if all_finite(rows) {
            bytes.zip(rows).for_each(|(bytes, number)| *bytes = number.to_le_bytes());
        } else {
            bytes.zip(rows).for_each(|(bytes, &number)| *bytes = stored(number));
        }
        self.filled += count;
        self.dirty = true;
    }

    /// Write the chunk as it is, unless the file has the same content.
    pub(super) fn flush(&mut self) -> Result<(), StoreError> {
        if self.dirty && self.row > 0 {
            let content = self.page.bytes.len() - checksum::LEN;
            for bytes in
                self.page.bytes[self.filled * self.row * NUMBER_BYTES..content].as_chunks_mut().0
            {
                *bytes = f64::NAN.to_le_bytes();
            }
            self.page.write()?;
        }
        self.dirty = false;
        Ok(())
    }
}

/// True if rows of so many numbers are chunks of their own in any case. A copy may be most of the
/// memory, so that such a row goes straight to its file.
fn is_large(row: usize) -> bool {
    row > CHUNK_NUMBERS_MAX / 2
}

/// Bytes of a number. The NaN that an operation gives differs between processors; a store holds one
/// of them.
fn stored(number: f64) -> [u8; NUMBER_BYTES] {
    if number.is_nan() { f64::NAN } else { number }.to_le_bytes()
}

/// Reader of rows, with one chunk in memory.
#[derive(Debug)]
pub(super) struct ChunkReader {
    path: ChunkPath,
    /// Name of the array in the model.
    name: String,
    row: usize,
    grid: Grid,
    /// Length of a file.
    file_bytes: usize,
    loaded: Option<usize>,
    /// Content of the last file that was read.
    bytes: Vec<u8>,
    numbers: Vec<f64>,
}

impl ChunkReader {
    /// Reader of one array.
    pub(super) fn new(run: &Path, series: &Series) -> ChunkReader {
        ChunkReader {
            path: ChunkPath::new(run, series),
            name: series.name.clone(),
            row: series.grid.row(),
            grid: series.grid.clone(),
            file_bytes: series.grid.chunk_bytes() + checksum::LEN,
            loaded: None,
            bytes: Vec::new(),
            numbers: Vec::new(),
        }
    }

    /// Row `sample`, which has been stored.
    pub(super) fn row(&mut self, sample: usize) -> Result<&[f64], StoreError> {
        if self.row == 0 {
            return Ok(&[]);
        }
        let (chunk, place) = self.grid.place(sample);
        if self.loaded != Some(chunk) {
            self.loaded = None;
            self.load(chunk)?;
            self.numbers.clear();
            self.numbers
                .extend(self.bytes.as_chunks().0.iter().map(|&bytes| f64::from_le_bytes(bytes)));
            self.loaded = Some(chunk);
        }
        Ok(&self.numbers[place * self.row..][..self.row])
    }

    /// Read the file of a chunk and check that it is as written.
    fn load(&mut self, chunk: usize) -> Result<(), StoreError> {
        self.path.set(chunk);
        // The length first: a damaged file may have any length.
        let length = fs::metadata(&self.path.target).map(|metadata| metadata.len());
        self.judge(chunk, length)?;
        let read = regular::read(&self.path.target).map(|bytes| self.bytes = bytes);
        self.judge(chunk, read.map(|()| self.bytes.len() as u64))?;
        checksum::opened(&self.path.target, &self.bytes, &self.describe(chunk)).map(|_| ())
    }

    fn judge(&self, chunk: usize, length: io::Result<u64>) -> Result<(), StoreError> {
        let (path, what) = (&self.path.target, self.describe(chunk));
        match length {
            Ok(length) if length == self.file_bytes as u64 => Ok(()),
            Ok(length) => Err(StoreError::damaged(
                path,
                format!("{what} take {length} bytes instead of {}", self.file_bytes),
            )),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(StoreError::damaged(path, format!("{what} are missing")))
            }
            Err(error) => Err(StoreError::read(path, error)),
        }
    }

    /// Description of a chunk's content.
    fn describe(&self, chunk: usize) -> String {
        let rows = match &self.grid.blocks {
            Some(blocks) => {
                blocks.range(chunk as u64).start as usize..blocks.range(chunk as u64).end as usize
            }
            None => {
                let first = chunk * self.grid.chunk_rows;
                first..self.grid.rows.min(first + self.grid.chunk_rows)
            }
        };
        format!("rows {} to {} of {}", rows.start, rows.end - 1, self.name)
    }
}

/// Write the numbers of an array of so many dimensions, in one chunk.
pub(super) fn write_numbers(
    folder: &Path,
    dimensions: usize,
    numbers: &[f64],
) -> Result<(), StoreError> {
    let mut bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    bytes.resize(bytes.len() + checksum::LEN, 0);
    checksum::seal(&mut bytes);
    files::write_unread(&folder.join(format!("c{}", ".0".repeat(dimensions))), &bytes)
}

/// Read the numbers of an array of so many dimensions, in one chunk.
pub(super) fn read_numbers(folder: &Path, dimensions: usize) -> Result<Vec<f64>, StoreError> {
    let path = folder.join(format!("c{}", ".0".repeat(dimensions)));
    let bytes = regular::read(&path).map_err(|error| StoreError::damaged(&path, error))?;
    let bytes = checksum::opened(&path, &bytes, "these numbers")?;
    Ok(bytes.as_chunks().0.iter().map(|&bytes| f64::from_le_bytes(bytes)).collect())
}

/// Write integers that label a dimension.
pub(super) fn write_integers(
    folder: &Path,
    values: impl IntoIterator<Item = i64>,
    chunk_rows: usize,
) -> Result<(), StoreError> {
    let (mut values, mut chunk) = (values.into_iter(), 0);
    loop {
        let mut bytes: Vec<u8> =
            values.by_ref().take(chunk_rows).flat_map(i64::to_le_bytes).collect();
        if bytes.is_empty() {
            return Ok(());
        }
        bytes.resize(chunk_rows * size_of::<i64>() + checksum::LEN, 0);
        checksum::seal(&mut bytes);
        files::write_unread(&folder.join(format!("c.{chunk}")), &bytes)?;
        chunk += 1;
    }
}

/// Read `length` integers that label a dimension.
pub(super) fn read_integers(
    folder: &Path,
    length: usize,
    chunk_rows: usize,
) -> Result<Vec<i64>, StoreError> {
    let mut values = Vec::new();
    for chunk in 0..length.div_ceil(chunk_rows) {
        let (path, bytes) = read_labels(folder, chunk)?;
        let bytes = checksum::opened(&path, &bytes, "these labels")?;
        if bytes.len() != chunk_rows * size_of::<i64>() {
            return Err(StoreError::damaged(&path, format!("it has {} bytes", bytes.len())));
        }
        values.extend(bytes.as_chunks().0.iter().map(|&bytes| i64::from_le_bytes(bytes)));
    }
    values.truncate(length);
    Ok(values)
}

fn read_labels(folder: &Path, chunk: usize) -> Result<(PathBuf, Vec<u8>), StoreError> {
    let path = folder.join(format!("c.{chunk}"));
    let bytes = regular::read(&path).map_err(|error| StoreError::damaged(&path, error))?;
    Ok((path, bytes))
}

/// Write texts that label a dimension, in one chunk with the codec `vlen-utf8`: their number, and
/// each text after its length, all as 32-bit integers.
pub(super) fn write_texts(folder: &Path, values: &[&str]) -> Result<(), StoreError> {
    let mut bytes = texts(values);
    bytes.extend_from_slice(&checksum::of(&bytes));
    files::write_unread(&folder.join("c.0"), &bytes)
}

/// Check that the labels of a dimension are those that [`write_texts`] wrote.
pub(super) fn check_texts(folder: &Path, values: &[&str]) -> Result<(), StoreError> {
    let (path, bytes) = read_labels(folder, 0)?;
    if checksum::opened(&path, &bytes, "these labels")? != texts(values) {
        return Err(StoreError::damaged(
            &path,
            format!("its labels are not {}", values.join(", ")),
        ));
    }
    Ok(())
}

fn texts(values: &[&str]) -> Vec<u8> {
    let mut bytes = (values.len() as u32).to_le_bytes().to_vec();
    for value in values {
        bytes.extend_from_slice(&(value.len() as u32).to_le_bytes());
        bytes.extend_from_slice(value.as_bytes());
    }
    bytes
}
