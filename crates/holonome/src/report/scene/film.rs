//! The motion of a scene, from the samples of a run.

use super::{Attitude, Place, Position, Rotated, Scene};
use crate::error::Error;
use crate::report::sampling::{Rates, Sampling};
use crate::store::{RowReader, StoredRun};
use holonome_figures::Motion;

/// Maximum number of frames: across the width of the page more cannot be distinguished.
const FRAMES: usize = 3000;

/// Numbers of a run's arrays, sample by sample.
struct Rows {
    readers: Vec<(String, RowReader)>,
    rows: Vec<Vec<f64>>,
}

impl Rows {
    fn new<'p>(run: &StoredRun, places: impl Iterator<Item = &'p Place>) -> Result<Rows, Error> {
        let mut readers: Vec<(String, RowReader)> = Vec::new();
        for place in places {
            if !readers.iter().any(|(array, _)| *array == place.array) {
                let reader = run.rows(&place.array).map_err(Error::store)?;
                readers.push((place.array.clone(), reader));
            }
        }
        Ok(Rows { readers, rows: Vec::new() })
    }

    fn read(&mut self, sample: usize) -> Result<(), Error> {
        self.rows.clear();
        for (_, reader) in &mut self.readers {
            self.rows.push(reader.row(sample).map_err(Error::store)?.to_vec());
        }
        Ok(())
    }

    fn numbers(&self, place: &Place) -> &[f64] {
        let array = self.readers.iter().position(|(array, _)| *array == place.array);
        &self.rows[array.expect("every place has a reader")][place.first..place.first + place.count]
    }
}

/// Samples that become frames.
struct Frames {
    count: usize,
    stride: usize,
    stroboscopic: bool,
    /// Words on them.
    note: String,
}

impl Frames {
    /// Frames for at most `most` of them. Every sample, or every few; but where these would not
    /// follow the motion although samples do, the first ones.
    fn of(samples: usize, most: usize, rates: Option<&mut Rates>) -> Result<Frames, Error> {
        let stride = (samples - 1).div_ceil(most - 1).max(1);
        let every = |stride: usize, note: String, of: Sampling| Frames {
            count: (samples - 1) / stride + 1,
            stride,
            stroboscopic: !of.follows(),
            note: match of.note() {
                Some(strobe) => format!("{note} {strobe}"),
                None => format!("{note} Between them the picture is interpolated."),
            },
        };
        let spaced = match stride {
            1 => "Every sample is shown.".to_string(),
            2 => "Every second sample is shown.".to_string(),
            3 => "Every third sample is shown.".to_string(),
            _ => format!("One sample in {stride} is shown."),
        };
        let Some(rates) = rates else { return Ok(every(stride, spaced, Sampling::default())) };
        let of = rates.sampling(stride)?;
        if of.follows() || stride == 1 || !rates.sampling(1)?.follows() {
            return Ok(every(stride, spaced, of));
        }
        let count = most.min(samples);
        let note = format!("The first {count} of {samples} samples are shown.");
        Ok(Frames { count, ..every(1, note, Sampling::default()) })
    }
}

impl Scene {
    /// Motion stored by a run, with about `numbers` numbers; `None` if it was not recorded. `rates`
    /// tell whether samples follow the motion.
    pub fn motion(
        &self,
        run: &StoredRun,
        times: &[f64],
        rates: Option<&mut Rates>,
        numbers: usize,
    ) -> Result<Option<Motion>, Error> {
        let width = 3 * self.points.len() + 9 * self.bodies.len();
        let samples = run.samples();
        let recorded = run.arrays();
        let there = |place: &&Place| recorded.iter().any(|array| array.name == place.array);
        if samples < 2 || !self.places().all(|place| there(&place)) {
            return Ok(None);
        }
        let most = (numbers / width.max(1)).clamp(2, FRAMES);
        let frames = Frames::of(samples, most, rates)?;
        let mut rows = Rows::new(run, self.places())?;
        let mut motion = Motion {
            dimension: self.dimension,
            moving: self.points.len(),
            balls: self.balls,
            fixed: self.fixed.clone(),
            sticks: self.sticks.clone(),
            string: self.string,
            kinds: self.kinds.clone(),
            bodies: self.bodies.iter().map(|rotated| rotated.body).collect(),
            stroboscopic: frames.stroboscopic,
            note: format!("{} {}", self.note, frames.note),
            ..Motion::default()
        };
        for frame in 0..frames.count {
            let sample = frame * frames.stride;
            motion.times.push(times[sample]);
            rows.read(sample)?;
            self.add_frame(&rows, &mut motion);
        }
        if self.string {
            stretch(&mut motion, 1, self.points.len());
        }
        if let Some(columns) = self.grid {
            stretch(&mut motion, 2, columns);
        }
        Ok(Some(motion))
    }

    /// All places of numbers.
    fn places(&self) -> impl Iterator<Item = &Place> {
        let of_points = self.points.iter().flat_map(|position| match position {
            Position::Numbers(place) => std::slice::from_ref(place),
            Position::Apart(places) => places,
            Position::Of(..) => &[],
        });
        of_points.chain(self.bodies.iter().map(|rotated| &rotated.place))
    }

    fn add_frame(&self, rows: &Rows, motion: &mut Motion) {
        let rotated =
            |Rotated { place, attitude, .. }: &Rotated| rotation(*attitude, rows.numbers(place));
        let rotations: Vec<[f64; 9]> = self.bodies.iter().map(rotated).collect();
        let first = motion.positions.len();
        for (k, position) in self.points.iter().enumerate() {
            let mut at = [0.0; 3];
            match position {
                Position::Numbers(place) if self.string => {
                    (at[0], at[1]) = (k as f64, rows.numbers(place)[0]);
                }
                Position::Numbers(place) if let Some(columns) = self.grid => {
                    let (i, j) = (k / columns, k % columns);
                    at = [i as f64, j as f64, rows.numbers(place)[0]];
                }
                Position::Numbers(place) => {
                    at[..place.count].copy_from_slice(rows.numbers(place));
                }
                Position::Apart(places) => {
                    at.iter_mut().zip(places).for_each(|(x, place)| *x = rows.numbers(place)[0]);
                }
                Position::Of(body, offset) => {
                    let centre = self.bodies[*body].body.at.expect("bodies with arms have places");
                    let r = &rotations[*body];
                    let turned = |i: usize| (0..3).map(|j| r[3 * i + j] * offset[j]).sum::<f64>();
                    let centre = &motion.positions[first + 3 * centre as usize..][..3];
                    at = std::array::from_fn(|i| centre[i] + turned(i));
                }
            }
            motion.positions.extend(at);
        }
        motion.rotations.extend(rotations.into_iter().flatten());
    }
}

/// Scale the heights along an axis to a third of a length.
fn stretch(motion: &mut Motion, axis: usize, length: usize) {
    let heights = || motion.positions.iter().skip(axis).step_by(3).filter(|y| y.is_finite());
    let largest = heights().fold(0.0f64, |a, y| a.max(y.abs()));
    if largest > 0.0 {
        let scale = length as f64 / 6.0 / largest;
        motion.positions.iter_mut().skip(axis).step_by(3).for_each(|y| *y *= scale);
        motion.note.push_str(" Heights are scaled to be seen.");
    }
}

/// A rotation by rows. The first number of a quaternion is the scalar part.
pub(super) fn rotation(attitude: Attitude, numbers: &[f64]) -> [f64; 9] {
    match attitude {
        Attitude::Matrix => std::array::from_fn(|k| numbers[k]),
        Attitude::Quaternion => {
            let size = numbers.iter().map(|x| x * x).sum::<f64>().sqrt();
            let [w, x, y, z] = std::array::from_fn(|k| numbers[k] / size);
            [
                1.0 - 2.0 * (y * y + z * z),
                2.0 * (x * y - w * z),
                2.0 * (x * z + w * y),
                2.0 * (x * y + w * z),
                1.0 - 2.0 * (x * x + z * z),
                2.0 * (y * z - w * x),
                2.0 * (x * z - w * y),
                2.0 * (y * z + w * x),
                1.0 - 2.0 * (x * x + y * y),
            ]
        }
    }
}
