//! Panels of the events that a run has recorded: how often and when each was met, and the states there,
//! which of a section are its points.

use super::{Axes, NUMBERS, sampled};
use crate::error::Error;
use crate::store::StoredRun;
use holonome_figures::numbers::{count, number};
use holonome_figures::{Chart, Panel, Preset, Samples, Table};
use std::collections::BTreeMap;

/// Least number of events whose states are drawn.
const FEW: usize = 3;

/// Largest number of columns of an event.
const COLUMNS: usize = 24;

/// Part of a quantity's largest number along the run by which it varies, at least: what an event holds
/// fixed varies by rounding.
const VARIES: f64 = 1e-9;

/// Events of a run.
pub(super) struct Events(Vec<Recorded>);

/// Events of one name.
struct Recorded {
    name: String,
    /// Times of all.
    t: Vec<f64>,
    /// Columns by their names, the time first, thinned to what is drawn.
    columns: Vec<(String, Vec<f64>)>,
    /// Labels of their units.
    units: BTreeMap<String, String>,
    presets: Vec<Preset>,
}

impl Events {
    /// Read the events of a run with these samples, about `numbers` numbers of the states at each.
    ///
    /// # Errors
    /// If the run is damaged.
    pub fn read(run: &StoredRun, samples: &Samples, numbers: usize) -> Result<Events, Error> {
        let names = run.groups("events").into_iter();
        let events = names.map(|name| Recorded::read(run, name, (samples, numbers)));
        Ok(Events(events.collect::<Result<_, Error>>()?))
    }

    /// Panels of them, of a run whose name stands in `prefix`.
    pub fn panels(&self, prefix: String) -> Vec<Panel> {
        if self.0.is_empty() {
            return Vec::new();
        }
        let mut rows =
            vec![["event", "times met", "first at", "last at"].map(str::to_string).to_vec()];
        rows.extend(self.0.iter().map(|of| {
            let at = |t: Option<&f64>| t.map_or(String::new(), |t| number(*t));
            vec![of.name.clone(), count(of.t.len() as u64), at(of.t.first()), at(of.t.last())]
        }));
        let title = format!("{prefix}Events");
        let table = Panel::Table(Table { title, rows, ..Table::default() });
        let drawn = self.0.iter().filter(|of| of.t.len() >= FEW && !of.presets.is_empty());
        let drawn = drawn.map(|of| Panel::Explorer {
            title: format!("{prefix}Where {} happens", of.name),
            runs: vec![Samples {
                name: of.name.clone(),
                columns: of.columns.clone(),
                units: of.units.clone(),
                of: of.t.len(),
                ..Samples::default()
            }],
            presets: of.presets.clone(),
        });
        std::iter::once(table).chain(drawn).collect()
    }
}

/// Chart of the states at an event of a run, by default over the axes that show most.
///
/// # Errors
/// If there is no such event, or no such column.
pub(super) fn chart(run: &StoredRun, event: &str, axes: &Axes) -> Result<Chart, Error> {
    let names = run.groups("events");
    let quoted = || names.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
    let Some(name) = names.iter().find(|name| *name == event) else {
        return Err(Error::option(format!(
            "{} has no events '{event}'{}",
            run.path().display(),
            if names.is_empty() { String::new() } else { format!("; it has {}", quoted()) }
        )));
    };
    let samples = sampled::samples(run, name, NUMBERS)?;
    let of = Recorded::read(run, name.clone(), (&samples, NUMBERS))?;
    let begin = of.presets.first().cloned();
    sampled::points(&of.columns, (axes, begin), |name, known| {
        Error::option(format!(
            "events '{event}' have no column '{name}' that varies; they have {known}"
        ))
    })
}

impl Recorded {
    fn read(
        run: &StoredRun,
        name: String,
        (samples, numbers): (&Samples, usize),
    ) -> Result<Recorded, Error> {
        let of = |array: &str| run.of_group(("events", &name), array).map_err(Error::store);
        let t = of("t")?.unwrap_or_default();
        let (mut columns, mut pairs) = (vec![("t".to_string(), t.clone())], Pairs::default());
        for array in run.arrays() {
            let Some(values) = of(&array.name)? else { continue };
            let names = run.column_names(&array.name).map_err(Error::store)?;
            let varying = names.iter().enumerate().filter_map(|(k, name)| {
                let column: Vec<f64> =
                    values.iter().skip(k).step_by(names.len()).copied().collect();
                varies(&column, samples.column(name)).then(|| (name.clone(), k, column))
            });
            let varying: Vec<_> = varying.take(COLUMNS.saturating_sub(columns.len())).collect();
            let list = match () {
                () if array.has_role("coordinate") => &mut pairs.positions,
                () if array.has_role("momentum") => &mut pairs.momenta,
                () if array.has_role("state") => &mut pairs.states,
                () => &mut pairs.others,
            };
            let first = list.0;
            list.0 += names.len();
            for (name, k, column) in varying {
                list.1.push((first + k, name.clone()));
                columns.push((name, column));
            }
        }
        let all: Vec<&Vec<f64>> = columns.iter().map(|(_, column)| column).collect();
        let kept = sampled::drawn(&all, numbers);
        let thinned =
            |(name, column): &(String, Vec<f64>)| (name.clone(), sampled::at(column, &kept));
        let columns = columns.iter().map(thinned).collect();
        let (units, presets) = (samples.units.clone(), pairs.presets());
        Ok(Recorded { name, t, columns, units, presets })
    }
}

/// Columns that vary, by what they are, with their places among all of that kind; and the number of
/// these.
#[derive(Default)]
struct Pairs {
    positions: Places,
    momenta: Places,
    states: Places,
    others: Places,
}

type Places = (usize, Vec<(usize, String)>);

impl Pairs {
    /// Choices of axes: a momentum over its position, two states, and quantities over the time.
    fn presets(&self) -> Vec<Preset> {
        let over = |x: &str, y: &str| Preset {
            name: format!("{y} over {x}"),
            x: x.to_string(),
            y: y.to_string(),
            section: None,
        };
        let momentum_of = |(place, x): &(usize, String)| {
            let own = self.momenta.1.iter().find(|(other, _)| other == place);
            own.map(|(_, y)| over(x, y))
        };
        let mut presets: Vec<Preset> = self.positions.1.iter().filter_map(momentum_of).collect();
        for list in [&self.states, &self.positions] {
            presets.extend(list.1.windows(2).map(|pair| over(&pair[0].1, &pair[1].1)).take(3));
        }
        let quantities = [&self.others, &self.positions, &self.momenta, &self.states];
        let named = quantities.into_iter().flat_map(|list| &list.1);
        presets.extend(named.map(|(_, name)| over("t", name)).take(6));
        presets
    }
}

/// True if a column varies by more than rounding; `along` is the quantity along the run, if it is known.
fn varies(column: &[f64], along: Option<&[f64]>) -> bool {
    let range = |of: &[f64]| {
        of.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), x| (a.min(*x), b.max(*x)))
    };
    let (low, high) = range(column);
    let [least, most] = <[f64; 2]>::from(range(along.unwrap_or(column)));
    let largest = [low, high, least, most].into_iter().map(f64::abs).fold(0.0, f64::max);
    column.iter().all(|x| x.is_finite()) && high - low > VARIES * largest
}
