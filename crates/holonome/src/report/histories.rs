//! Quantities of an ensemble over time: quantiles with some trajectories, and how many trajectories
//! have which value when.

use super::sampled;
use crate::error::Error;
use crate::recording::TIME;
use crate::store::{ArrayLayout, RowReader, StoredRun};
use holonome_figures::numbers::{count, number};
use holonome_figures::{Axis, Chart, Curve, Map, Style};

/// Largest number of trajectories of which quantiles are taken: an estimate of a probability has a
/// standard error of at most 1 % then.
const MOST: usize = 2500;

/// Largest number of trajectories that are curves of their own.
const FEW: usize = 8;

/// Number of trajectories that are drawn behind quantiles.
const BEHIND: usize = 20;

/// Largest numbers of times and of quantities.
const TIMES: usize = 200;
const QUANTITIES: usize = 6;

/// Least and largest number of bins of values; the rule of Rice, 2 n^(1/3), lies between.
const BINS: [usize; 2] = [16, 80];

/// Quantiles that are drawn, with the numbers of their colours.
const QUANTILES: [(f64, &str, usize); 5] =
    [(0.95, "95 %", 5), (0.75, "75 %", 0), (0.5, "median", 1), (0.25, "25 %", 0), (0.05, "5 %", 5)];

/// A quantity of the trajectories that are looked at, over time.
pub(super) struct History {
    name: String,
    label: String,
    /// Label of the axis of time.
    time: String,
    times: Vec<f64>,
    /// Values of each trajectory, NaN behind its end.
    values: Vec<Vec<f64>>,
    /// Number of all trajectories.
    of: usize,
    /// Names of the trajectories, if they are few.
    names: Vec<String>,
    /// Distance of the trajectories that are looked at.
    stride: usize,
}

/// Histories of an ensemble whose trajectories have samples between start and end: of the columns
/// that `wanted` accepts, at most `most` of them, observables first.
pub(super) fn histories(
    run: &StoredRun,
    most: usize,
    wanted: &dyn Fn(&str) -> bool,
) -> Result<Vec<History>, Error> {
    let times = run.times().map_err(Error::store)?;
    let rows = run.samples();
    if times.len() < 3 || rows == 0 {
        return Ok(Vec::new());
    }
    let arrays = run.arrays();
    let order = ["observable", "coordinate", "state", "momentum", "hamiltonian", "integral"];
    let mut found: Vec<(&ArrayLayout, usize, String)> = Vec::new();
    for role in order {
        for array in arrays.iter().filter(|array| array.has_role(role) && !array.once) {
            let names = run.column_names(&array.name).map_err(Error::store)?;
            let named = names.into_iter().enumerate();
            found.extend(named.filter(|(_, name)| wanted(name)).map(|(k, name)| (array, k, name)));
        }
    }
    found.truncate(most);
    let stride = rows.div_ceil(MOST);
    let names = if rows <= FEW { trajectories(run)? } else { Vec::new() };
    let kept: Vec<usize> = spread(times.len(), TIMES);
    let mut all = Vec::new();
    for (array, place, name) in found {
        let width = run.column_names(&array.name).map_err(Error::store)?.len();
        let mut reader: RowReader = run.rows(&array.name).map_err(Error::store)?;
        let mut values = Vec::new();
        for trajectory in (0..rows).step_by(stride) {
            let row = reader.row(trajectory).map_err(Error::store)?;
            values.push(kept.iter().map(|&k| row[k * width + place]).collect());
        }
        all.push(History {
            label: sampled::with_unit(&name, array.unit()),
            name,
            time: sampled::with_unit(TIME, run.time_unit()),
            times: kept.iter().map(|&k| times[k]).collect(),
            values,
            of: rows,
            names: names.clone(),
            stride,
        });
    }
    Ok(all)
}

/// Names of the varied quantities.
pub(super) fn varied(run: &StoredRun) -> Vec<&str> {
    let sweep = run.attributes().get("sweep");
    let list = |key: &str| sweep.and_then(|sweep| sweep[key].as_array()).into_iter().flatten();
    let formulas = list("vary").filter_map(|pair| pair[0].as_str());
    let numbers = list("over").chain(list("each")).filter_map(|given| given["name"].as_str());
    formulas.chain(numbers).collect()
}

/// Names of all trajectories: what varies with its value, or their numbers.
fn trajectories(run: &StoredRun) -> Result<Vec<String>, Error> {
    let arrays = run.arrays();
    let varied = varied(run);
    let mut values: Vec<(String, Vec<f64>)> = Vec::new();
    for name in varied.into_iter().map(String::from) {
        if arrays.iter().any(|array| array.once && array.name == name) {
            let all = run.read(&name).map_err(Error::store)?;
            values.extend((all.len() == run.samples()).then_some((name, all)));
        }
    }
    let first = run.trajectories().map_or(0, |range| range.start);
    let name = |k: usize| match values.is_empty() {
        true => format!("trajectory {}", first + k as u64),
        false => {
            let value = |(name, all): &(String, Vec<f64>)| format!("{name} = {}", number(all[k]));
            values.iter().map(value).collect::<Vec<_>>().join(", ")
        }
    };
    Ok((0..run.samples()).map(name).collect())
}

/// [`histories`] as a page shows them.
pub(super) fn of_page(run: &StoredRun) -> Result<Vec<History>, Error> {
    histories(run, QUANTITIES, &|_| true)
}

/// Up to `most` of `count` places, with both ends.
fn spread(count: usize, most: usize) -> Vec<usize> {
    let kept = count.min(most);
    (0..kept).map(|k| k * (count - 1) / (kept - 1).max(1)).collect()
}

impl History {
    /// Name of the quantity.
    pub fn name(&self) -> &str {
        &self.name
    }

    fn curve(&self, trajectory: usize, style: Style, colour: usize) -> Curve {
        let name = self.names.get(trajectory).cloned().unwrap_or_default();
        let (x, y) = (self.times.clone(), self.values[trajectory].clone());
        Curve { name, colour, style, x, y, ..Curve::default() }
    }

    /// Words on the trajectories that are looked at.
    fn counted(&self) -> String {
        let looked = count(self.values.len() as u64);
        match self.stride {
            1 => format!("{looked} trajectories"),
            _ => format!("{looked} of {} trajectories", count(self.of as u64)),
        }
    }

    /// A fan: quantiles at every time, before some trajectories; of few trajectories all of them.
    pub fn fan(&self) -> Chart {
        let few = self.values.len() <= FEW;
        let curves: Vec<Curve> = match few {
            true => (0..self.values.len()).map(|k| self.curve(k, Style::Line, k)).collect(),
            false => {
                let behind = spread(self.values.len(), BEHIND);
                let behind = behind.into_iter().map(|k| self.curve(k, Style::Faint, 6));
                behind.chain(self.quantiles()).collect()
            }
        };
        let note = match few {
            true => format!("{} of {} over time.", self.name, self.counted()),
            false => format!(
                "Between 5 % and 95 % lie nine tenths of {} at each time, between 25 % and 75 % half of them; {} of them are drawn faintly.",
                self.counted(),
                self.values.len().min(BEHIND)
            ),
        };
        Chart {
            title: format!("{} over time", self.name),
            note,
            x: Axis { label: self.time.clone(), ..Axis::time() },
            y: Axis::linear(self.label.clone()),
            curves,
            ..Chart::default()
        }
    }

    fn quantiles(&self) -> Vec<Curve> {
        let mut curves = QUANTILES.map(|(_, name, colour)| Curve {
            name: name.to_string(),
            colour,
            x: self.times.clone(),
            ..Curve::default()
        });
        for time in 0..self.times.len() {
            let mut at: Vec<f64> = self.values.iter().map(|row| row[time]).collect();
            at.retain(|value| value.is_finite());
            at.sort_by(f64::total_cmp);
            for (curve, (share, ..)) in curves.iter_mut().zip(QUANTILES) {
                curve.y.push(quantile(&at, share));
            }
        }
        curves.into()
    }

    /// Number of trajectories by time and value: a histogram at every time. `None` for few
    /// trajectories.
    pub fn density(&self) -> Option<Chart> {
        let all = self.values.iter().flatten().filter(|value| value.is_finite());
        let (low, high) = all.fold((f64::MAX, f64::MIN), |(a, b), x| (a.min(*x), b.max(*x)));
        if self.values.len() <= FEW || low >= high {
            return None;
        }
        let rule = (2.0 * (self.values.len() as f64).cbrt()).ceil() as usize;
        let bins = rule.clamp(BINS[0], BINS[1]);
        let width = (high - low) / bins as f64;
        let columns = self.times.len();
        let mut counts = vec![0.0; bins * columns];
        for row in &self.values {
            for (time, value) in row.iter().enumerate().filter(|(_, value)| value.is_finite()) {
                let bin = (((value - low) / width) as usize).min(bins - 1);
                counts[bin * columns + time] += 1.0;
            }
        }
        // Where most of them meet they would outshine all else.
        let shade = |count: f64| if count > 0.0 { count.log10() } else { f64::NAN };
        Some(Chart {
            title: format!("How many have which {}", self.name),
            note: format!("A histogram of {} at each time.", self.counted()),
            x: Axis { label: self.time.clone(), ..Axis::time() },
            y: Axis::linear(self.label.clone()),
            map: Some(Map {
                name: "log₁₀ of trajectories".to_string(),
                x: self.times.clone(),
                y: (0..bins).map(|k| low + (k as f64 + 0.5) * width).collect(),
                values: counts.into_iter().map(shade).collect(),
            }),
            ..Chart::default()
        })
    }
}

/// Quantile of ascending numbers, by interpolation between neighbours; NaN if there are none.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return f64::NAN };
    let at = share * last as f64;
    let (k, part) = (at as usize, at.fract());
    sorted[k] + part * (sorted[(k + 1).min(last)] - sorted[k])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Trajectories a·t for a = 0, 1, …
    fn rays(count: usize) -> History {
        let times: Vec<f64> = (0..5).map(f64::from).collect();
        let ray = |a: usize| times.iter().map(|t| a as f64 * t).collect();
        History {
            name: "q".into(),
            label: "q (m)".into(),
            time: "t (s)".into(),
            values: (0..count).map(ray).collect(),
            times,
            of: count,
            names: (0..count).map(|k| format!("trajectory {k}")).collect(),
            stride: 1,
        }
    }

    #[test]
    fn a_fan_has_the_quantiles_at_every_time() {
        let chart = rays(101).fan();
        let named = |name: &str| chart.curves.iter().find(|curve| curve.name == name).unwrap();
        // Of 0, t, …, 100 t.
        assert_eq!(named("median").y, [0.0, 50.0, 100.0, 150.0, 200.0]);
        assert_eq!(named("5 %").y, [0.0, 5.0, 10.0, 15.0, 20.0]);
        assert_eq!(named("95 %").y[4], 380.0);
        assert_eq!(chart.curves.iter().filter(|c| c.style == Style::Faint).count(), BEHIND);
        assert_eq!(quantile(&[], 0.5).to_bits(), f64::NAN.to_bits());
        assert_eq!(quantile(&[1.0, 2.0], 0.25), 1.25);
        // Those that failed are left out from their end on.
        let mut failed = rays(101);
        failed.values[100][3..].fill(f64::NAN);
        let median = failed.quantiles()[2].y.clone();
        assert_eq!(median[2..], [100.0, 148.5, 198.0]);
        let few = rays(3).fan();
        assert_eq!(few.curves[2].name, "trajectory 2");
        assert_eq!(few.curves[2].y[4], 8.0);
    }

    #[test]
    fn a_density_counts_every_trajectory_at_every_time() {
        let map = rays(101).density().unwrap().map.unwrap();
        let bins = map.y.len();
        assert_eq!((map.x.len(), bins), (5, 16));
        let counts = |time: usize| -> Vec<f64> {
            let shades = (0..bins).map(|bin| map.values[bin * 5 + time]);
            shades.map(|shade| if shade.is_nan() { 0.0 } else { 10f64.powf(shade) }).collect()
        };
        for time in 0..5 {
            assert!((counts(time).iter().sum::<f64>() - 101.0).abs() < 1e-9);
        }
        assert!((counts(0)[0] - 101.0).abs() < 1e-12, "all begin at 0");
        // At the end they are spread evenly: 101 over 16 bins.
        assert!(counts(4).iter().all(|&count| count > 5.9 && count < 7.1), "{:?}", counts(4));
        assert!(rays(3).density().is_none());
    }
}
