//! Curves of a run with few samples: the states between them, from the run in memory once more.

use crate::arrays::Arrays;
use crate::options::RunOptions;
use crate::simulation::{origin, prepare};
use crate::store::StoredRun;
use crate::summary::StoredSummary;

/// Number of samples from which on lines between them are smooth to the eye.
const SMOOTH: usize = 400;

/// Largest number of steps of a run that is made once more for a curve, times the numbers of its state:
/// some tenths of a second. A clock would give one run two pictures.
const MOST: u64 = 400_000;

/// Variables of a run at its samples and between them.
pub(super) struct Smooth {
    times: Vec<f64>,
    arrays: Arrays,
}

impl Smooth {
    /// States of a run whose samples follow its motion; `None` if there are enough samples, or the
    /// run takes long or cannot be made with an interpolant, as one that goes backwards in time.
    pub fn new(run: &StoredRun) -> Option<Smooth> {
        let samples = run.samples();
        if !(2..SMOOTH).contains(&samples) {
            return None;
        }
        let steps = StoredSummary::from(run.summary()).steps?;
        let stored = run.times().ok()?;
        let gaps = SMOOTH.div_ceil(samples - 1);
        let place = |k: usize| k as f64 / gaps as f64;
        let between = |pair: &[f64]| {
            let (from, way) = (pair[0], pair[1] - pair[0]);
            (0..gaps).map(move |k| place(k).mul_add(way, from))
        };
        let mut times: Vec<f64> = stored[..samples].windows(2).flat_map(between).collect();
        times.push(stored[samples - 1]);
        let (problem, options) = origin(run).ok()?;
        if steps.saturating_mul(problem.model.dimension() as u64) > MOST {
            return None;
        }
        let options = RunOptions { interpolant: true, error: false, out: None, ..options };
        let solution = prepare(problem, options).ok()?.solve().ok()?;
        let arrays = solution.at(&times).ok()?;
        Some(Smooth { times, arrays })
    }

    /// Columns at these places, an array and a component of it, the times where there is none;
    /// `None` if one is not a variable.
    pub fn columns(&self, places: &[Option<(&str, usize)>]) -> Option<Vec<Vec<f64>>> {
        let column = |place: &Option<(&str, usize)>| {
            let Some((array, component)) = *place else { return Some(self.times.clone()) };
            Some(self.arrays.get(array)?.rows().map(|row| row[component]).collect())
        };
        places.iter().map(column).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::StepSize;
    use crate::problem::Problem;
    use holonome_integrate::observer::Control;

    #[test]
    fn a_curve_through_few_samples_is_that_of_the_motion() {
        let folder = tempfile::tempdir().unwrap();
        let stored = |step: f64, name: &str| {
            let text = "coordinate q : R = 1\nmomentum p of q = 0\nhamiltonian (p^2 + q^2)/2";
            let path = folder.path().join(name);
            let (method, step) = ("gauss16".parse().unwrap(), StepSize::Fixed(step));
            let out = Some(path.clone());
            let options = RunOptions { method, step, until: 6.0, out, ..RunOptions::default() };
            let problem: Problem = text.parse().unwrap();
            prepare(problem, options).unwrap().run(&mut |_| Control::Continue).unwrap();
            StoredRun::open(&path).unwrap()
        };
        let run = stored(0.5, "few");
        assert_eq!(run.samples(), 13);
        let smooth = Smooth::new(&run).unwrap();
        let columns = smooth.columns(&[None, Some(("q", 0))]).unwrap();
        assert!(columns[0].len() > SMOOTH && columns[0].last() == Some(&6.0));
        for (t, q) in columns[0].iter().zip(&columns[1]) {
            assert!((q - t.cos()).abs() < 1e-13, "{q} at {t}");
        }
        assert!(smooth.columns(&[None, Some(("H", 0))]).is_none(), "no variable");
        assert!(Smooth::new(&stored(0.01, "many")).is_none());
    }
}
