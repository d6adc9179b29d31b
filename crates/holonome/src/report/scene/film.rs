//! The motion of a scene, from the samples of a run.

use super::drawn::{Camera, Pictures};
use super::rotation::rotation;
use super::{Place, Position, Rotated, Scene};
use crate::error::Error;
use crate::problem::Problem;
use crate::report::sampling::{Rates, Sampling};
use crate::store::{RowReader, StoredRun};
use holonome_figures::{Drawn, DrawnNumbers, Motion};

/// Maximum number of frames: across the width of the page more cannot be distinguished.
const FRAMES: usize = 3000;

/// Size of a way, in that of the points that go it, from which on the camera goes with them.
const FAR: f64 = 20.0;

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

/// Motion of a model stored by a run, with about `numbers` numbers; `None` if there is none, or it
/// was not recorded. `rates` tell whether samples follow the motion.
pub(in crate::report) fn motion(
    run: &StoredRun,
    problem: &Problem,
    times: &[f64],
    rates: Option<&mut Rates>,
    numbers: usize,
) -> Result<Option<Motion>, Error> {
    Ok(views(run, problem, times, (rates, 1), numbers)?.into_iter().next())
}

/// [`motion`] in every view that a model has: those of the fields of a lattice.
pub(in crate::report) fn motions(
    run: &StoredRun,
    problem: &Problem,
    times: &[f64],
    rates: Option<&mut Rates>,
    numbers: usize,
) -> Result<Vec<Motion>, Error> {
    views(run, problem, times, (rates, usize::MAX), numbers)
}

/// At most `most` views.
fn views(
    run: &StoredRun,
    problem: &Problem,
    times: &[f64],
    (mut rates, most): (Option<&mut Rates>, usize),
    numbers: usize,
) -> Result<Vec<Motion>, Error> {
    let (pictures, reason) = Pictures::of(run, problem)?;
    let mut scenes = match &pictures {
        // What a model draws stands in the place of what could be guessed.
        Some(pictures) if pictures.draw() => {
            vec![Scene { dimension: pictures.dimension(), ..Scene::default() }]
        }
        _ => Scene::all(problem),
    };
    let recorded = run.arrays();
    let there = |place: &Place| recorded.iter().any(|array| array.name == place.array);
    scenes.retain(|scene| run.samples() > 1 && scene.places().all(there));
    scenes.truncate(most);
    let numbers = numbers / scenes.len().max(1);
    let (mut pictures, mut motions) = (pictures, Vec::new());
    for scene in scenes {
        let film = Film { scene, pictures: pictures.take(), times, numbers };
        let motion = film.take(run, rates.as_deref_mut())?;
        let note = format!("{} {reason}", motion.note).trim().to_string();
        motions.push(Motion { note, ..motion });
    }
    Ok(motions)
}

/// A scene that is filmed along a run.
struct Film<'p> {
    scene: Scene,
    pictures: Option<Pictures<'p>>,
    times: &'p [f64],
    numbers: usize,
}

impl Film<'_> {
    fn take(self, run: &StoredRun, rates: Option<&mut Rates>) -> Result<Motion, Error> {
        let Film { mut scene, mut pictures, times, numbers } = self;
        let drawn = pictures.as_ref().map_or(0, Pictures::width);
        let own = 3 * scene.points.len() + 9 * scene.bodies.len() + 7 * scene.spins.len();
        let width = own + drawn;
        let samples = run.samples();
        let most = (numbers / width.max(1)).clamp(2, FRAMES);
        let frames = Frames::of(samples, most, rates)?;
        let mut rows = Rows::new(run, scene.places())?;
        if pictures.is_some() {
            // What stands still moves past a camera.
            let fixed = scene.fixed.drain(..);
            scene.points.extend(fixed.map(Position::Fixed));
        }
        let note = match &pictures {
            Some(pictures) => format!("{} {}", scene.note, pictures.note()).trim().to_string(),
            None => scene.note.clone(),
        };
        let mut motion = Motion {
            view: scene.view.clone(),
            dimension: scene.dimension,
            moving: scene.points.len(),
            balls: scene.balls,
            fixed: scene.fixed.clone(),
            sticks: scene.sticks.clone(),
            springs: scene.springs.clone(),
            string: scene.string,
            kinds: scene.kinds.clone(),
            bodies: scene.bodies.iter().map(|rotated| rotated.body).collect(),
            drawn: match &pictures {
                Some(pictures) if pictures.draw() => pictures.forms(),
                _ => scene.arrows().into_iter().collect(),
            },
            seconds: run.time_unit().and_then(seconds),
            stroboscopic: frames.stroboscopic,
            note: format!("{note} {}", frames.note),
            ..Motion::default()
        };
        // A run backwards in time is seen forwards.
        let backwards = times[0] > times[samples - 1];
        for frame in 0..frames.count {
            let number = if backwards { frames.count - 1 - frame } else { frame };
            let sample = number * frames.stride;
            motion.times.push(times[sample]);
            rows.read(sample)?;
            let camera = match &mut pictures {
                Some(pictures) => {
                    Some(pictures.add_frame(sample, times[sample], &mut motion.drawn)?)
                }
                None => None,
            };
            scene.add_frame(&rows, camera, &mut motion);
            scene.add_arrows(&rows, &mut motion);
        }
        let all = motion.drawn.iter_mut();
        all.flat_map(|drawn| drawn.arguments.iter_mut().chain(&mut drawn.shades))
            .for_each(|numbers| numbers.settle());
        if let [Position::Apart(places)] = &scene.points[..] {
            even(&mut motion, places);
        }
        if scene.string {
            stretch(&mut motion, 1, scene.points.len());
        } else if let Some(columns) = scene.grid {
            stretch(&mut motion, 2, columns);
        } else if pictures.is_none() {
            follow(&mut motion);
        }
        Ok(motion)
    }
}

impl Scene {
    /// Arrows of spins, without numbers yet.
    fn arrows(&self) -> Option<Drawn> {
        (!self.spins.is_empty()).then(|| Drawn {
            form: "arrow",
            points: vec![1; self.spins.len()],
            arguments: vec![DrawnNumbers::default(); 2],
            shades: Some(DrawnNumbers::default()),
            ..Drawn::default()
        })
    }

    /// Adds the arrows of a frame, whose middles are at their sites.
    fn add_arrows(&self, rows: &Rows, motion: &mut Motion) {
        let [Drawn { arguments, shades: Some(shades), .. }] = &mut motion.drawn[..] else { return };
        if self.spins.is_empty() {
            return;
        }
        for (place, site) in &self.spins {
            let v = rows.numbers(place);
            arguments[0].values.extend((0..3).map(|k| site[k] - v[k] / 2.0));
            arguments[1].values.extend(v);
            shades.values.push(v[2]);
        }
        let count = self.spins.len();
        (arguments[0].width, arguments[1].width, shades.width) = (3 * count, 3 * count, count);
    }

    /// All places of numbers.
    fn places(&self) -> impl Iterator<Item = &Place> {
        let of_points = self.points.iter().flat_map(|position| match position {
            Position::Numbers(place) => std::slice::from_ref(place),
            Position::Apart(places) => places,
            Position::Of(..) | Position::Fixed(_) => &[],
        });
        let of_bodies = self.bodies.iter().map(|rotated| &rotated.place);
        of_points.chain(of_bodies).chain(self.spins.iter().map(|(place, _)| place))
    }

    fn add_frame(&self, rows: &Rows, camera: Option<Camera>, motion: &mut Motion) {
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
                Position::Fixed(place) => at = *place,
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
        let seen = |r: [f64; 9]| camera.map_or(r, |camera| camera.attitude(r));
        motion.rotations.extend(rotations.into_iter().flat_map(seen));
        if let Some(camera) = camera {
            for place in motion.positions[first..].chunks_exact_mut(3) {
                place.copy_from_slice(&camera.point([place[0], place[1], place[2]]));
            }
        }
    }
}

/// Seconds in a unit of time with a usual label.
fn seconds(unit: &str) -> Option<f64> {
    const UNITS: [(&[&str], f64); 9] = [
        (&["s", "sec", "second", "seconds"], 1.0),
        (&["ms"], 1e-3),
        (&["us", "µs"], 1e-6),
        (&["ns"], 1e-9),
        (&["ps"], 1e-12),
        (&["min", "minute", "minutes"], 60.0),
        (&["h", "hr", "hour", "hours"], 3600.0),
        (&["d", "day", "days"], 86_400.0),
        (&["yr", "year", "years"], 31_557_600.0),
    ];
    UNITS.iter().find(|(labels, _)| labels.contains(&unit)).map(|(_, seconds)| *seconds)
}

/// Moves the camera with the middle of the points if they are close to each other in relation to
/// their way, as bodies in an orbit: they would be seen as one.
fn follow(motion: &mut Motion) {
    let width = 3 * motion.moving;
    if motion.moving < 2 || !motion.fixed.is_empty() || motion.bodies.iter().any(|b| b.at.is_none())
    {
        return;
    }
    let size = |positions: &[f64]| -> f64 {
        let side = |axis: usize| {
            let all = positions.iter().skip(axis).step_by(3).filter(|x| x.is_finite());
            all.clone().fold(f64::MIN, |a, x| a.max(*x)) - all.fold(f64::MAX, |a, x| a.min(*x))
        };
        (0..3).map(side).fold(0.0, f64::max)
    };
    let apart = motion.positions.chunks(width).map(size).fold(0.0, f64::max);
    if apart == 0.0 || size(&motion.positions) < FAR * apart {
        return;
    }
    for frame in motion.positions.chunks_mut(width) {
        for axis in 0..3 {
            let middle = frame.iter().skip(axis).step_by(3).sum::<f64>() / motion.moving as f64;
            frame.iter_mut().skip(axis).step_by(3).for_each(|x| *x -= middle);
        }
    }
    motion.note.push_str(
        " The camera moves with the middle of the points, which are far from where they began.",
    );
}

/// Gives the axes of a point whose coordinates are not of one family scales of their own.
fn even(motion: &mut Motion, places: &[Place]) {
    let alike = places.windows(2).all(|pair| pair[0].array == pair[1].array);
    let size = |axis: usize| {
        let all = motion.positions.iter().skip(axis).step_by(3).filter(|x| x.is_finite());
        all.clone().fold(f64::MIN, |a, x| a.max(*x)) - all.fold(f64::MAX, |a, x| a.min(*x))
    };
    let sizes: Vec<f64> = (0..places.len()).map(size).collect();
    let largest = sizes.iter().copied().fold(0.0, f64::max);
    // Those of nearly one size need none.
    if alike || sizes.iter().all(|size| *size > 0.5 * largest) {
        return;
    }
    for (axis, size) in sizes.into_iter().enumerate().filter(|(_, size)| *size > 0.0) {
        let scale = largest / size;
        motion.positions.iter_mut().skip(axis).step_by(3).for_each(|x| *x *= scale);
    }
    motion.note.push_str(" The axes have scales of their own.");
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
