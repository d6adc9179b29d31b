//! Figures for papers, drawn by `holonome plot`.

use super::comparison::work_precision;
use super::invariants::{DrawnRun, Invariant, charts, invariants};
use super::sampled::{self, ColumnPlace};
use super::sampling::Rates;
use super::scene::{self, Scene};
use super::smooth::Smooth;
use super::{Axes, Stored, events, lattice, sweep};
use crate::error::Error;
use crate::problem::Problem;
use crate::simulation::stored_problem;
use crate::store::{StoreError, StoredRun};
use crate::summary::StoredSummary;
use holonome_figures::{Axis, Chart, Curve, Figure, Style};
use holonome_model::syntax::diagnostic::did_you_mean;
use holonome_words::option;
use std::f64::consts::PI;
use std::path::Path;

/// Maximum number of points of a curve.
const POINTS: usize = 8000;

/// Sizes of columns that share a panel differ by at most this factor.
const ALIKE: f64 = 30.0;

/// Most paths of points in one chart.
const PATHS: usize = 6;

/// Largest number of columns and rows of a map.
const MAP: [usize; 2] = [240, 160];

/// Most numbers of the motion that a figure shows.
const NUMBERS: usize = 400_000;

/// Most curves over time in a chart that nobody asked for.
const CURVES: usize = 8;

/// Figure of the contents of folders. One run: its motion, beside the drifts over time. Several runs:
/// each drift with a line per run. Comparison: error over time and over work. Ensemble: its first
/// result over a varied quantity. Chosen columns whose sizes differ have panels of their own.
///
/// # Errors
/// If a folder holds no result or is damaged, or has no column of that name, or several folders are
/// not all runs.
pub fn figure(paths: &[&Path], axes: &Axes) -> Result<Figure, Error> {
    let stored = paths.iter().map(Stored::open).collect::<Result<Vec<_>, _>>()?;
    let shown =
        || paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ");
    let panels = match &stored[..] {
        [Stored::Comparison(_)] if axes.are_chosen() => {
            return Err(Error::option(format!(
                "{} and {} choose among a run's columns, but {} is a comparison: leave them out",
                option("x"),
                option("y"),
                shown()
            )));
        }
        [Stored::Comparison(value)] => {
            work_precision(value).into_iter().map(|(_, chart)| chart).collect()
        }
        [Stored::Sweep(run)] => sweep::charts(run, axes)?,
        all => {
            let runs = all.iter().zip(paths).map(|(one, path)| match one {
                Stored::Run(run) => Ok(run),
                _ => Err(Error::option(format!(
                    "only runs are drawn in one figure, and {} is not a run: draw it by itself",
                    path.display()
                ))),
            });
            of_runs(&runs.collect::<Result<Vec<_>, _>>()?, axes)?
        }
    };
    match panels.iter().any(|chart| !chart.is_empty()) {
        true => Ok(Figure {
            panels: panels.into_iter().map(|chart| axes.dress(chart)).collect(),
            title: axes.title.clone(),
            size: axes.size,
        }),
        false => Err(Error::option(format!(
            "{} has nothing to draw: name columns by {}",
            shown(),
            option("y")
        ))),
    }
}

/// Charts of the largest drifts so far of runs, or of their chosen columns.
fn of_runs(runs: &[&StoredRun], axes: &Axes) -> Result<Vec<Chart>, Error> {
    let names = names(runs);
    if let Some(event) = &axes.event {
        return match runs {
            [run] => Ok(vec![events::chart(run, event, axes)?]),
            _ => Err(Error::option(format!(
                "{} draws the events of one run",
                option("event").with(event)
            ))),
        };
    }
    let times =
        runs.iter().map(|run| run.times().map_err(Error::store)).collect::<Result<Vec<_>, _>>()?;
    let mut drifting: Vec<Vec<Invariant>> =
        runs.iter().map(|run| invariants(StoredSummary::from(run.summary()).drift)).collect();
    if axes.are_chosen() {
        let is_drift = |name: &String| {
            let recorded =
                runs.iter().all(|run| run.arrays().iter().any(|array| array.name == *name));
            recorded
                && drifting.iter().all(|all| all.iter().any(|invariant| invariant.array == *name))
        };
        let over_time = axes.x.as_deref().is_none_or(|x| x == "t");
        if !over_time || axes.y.is_empty() || !axes.y.iter().all(is_drift) {
            return of_chosen(runs, &names, axes);
        }
        drifting
            .iter_mut()
            .for_each(|all| all.retain(|invariant| axes.y.contains(&invariant.array)));
    }
    let sources: Vec<DrawnRun> = (0..runs.len())
        .map(|k| DrawnRun {
            name: &names[k],
            run: runs[k],
            times: &times[k],
            invariants: &drifting[k],
        })
        .collect();
    let mut drifts = charts(&sources)?;
    let mut panels: Vec<Chart> = Vec::new();
    if let [run] = runs {
        // The second chart has the drifts relative to the terms that cancel.
        drifts.truncate(1);
        panels.extend(if axes.are_chosen() { None } else { motion(run)? });
    }
    panels.extend(drifts.into_iter().map(|(key, mut chart)| {
        // In print the samples would hide the largest so far.
        chart.curves.retain(|curve| curve.style != Style::Faint);
        let of = match (runs, &chart.curves[..]) {
            ([_], [curve]) => format!(" of {}", curve.name),
            ([_], _) => String::new(),
            _ => format!(" of {key}"),
        };
        chart.y.label = format!("largest |drift{of}| so far");
        chart
    }));
    Ok(panels)
}

/// Charts of chosen columns, those of one size in one chart.
fn of_chosen(runs: &[&StoredRun], names: &[String], axes: &Axes) -> Result<Vec<Chart>, Error> {
    let joined = runs.iter().map(|run| joined(run, problem(run).as_ref()));
    let joined = joined.collect::<Result<Vec<_>, Error>>()?;
    let [run, ..] = runs else { return Ok(Vec::new()) };
    let wanted = axes.y.iter().map(|name| expanded(run, name));
    let wanted: Vec<String> = wanted.collect::<Result<Vec<_>, _>>()?.concat();
    let names_of: Vec<&str> = wanted.iter().map(String::as_str).collect();
    let mut groups: Vec<(f64, Option<String>, Vec<String>)> = Vec::new();
    for (name, values) in wanted.iter().zip(named(run, &names_of, None)?) {
        let size = values.iter().filter(|v| v.is_finite()).fold(0.0f64, |a, v| a.max(v.abs()));
        let unit = sampled::unit(run, name);
        let fits = |(other, unit_of, _): &&mut (f64, Option<String>, Vec<String>)| {
            let near = size <= ALIKE * *other && *other <= ALIKE * size;
            *unit_of == unit && (near || size == 0.0 || *other == 0.0)
        };
        match groups.iter_mut().find(fits) {
            Some((other, _, list)) => {
                *other = other.max(size);
                list.push(name.clone());
            }
            None => groups.push((size, unit, vec![name.clone()])),
        }
    }
    if groups.is_empty() {
        groups.push((0.0, None, Vec::new()));
    }
    let chart = |(_, _, y): (f64, Option<String>, Vec<String>)| {
        let axes = Axes { x: axes.x.clone(), y, ..Axes::default() };
        columns_of_runs(runs, names, &axes, (None, &joined))
    };
    groups.into_iter().map(chart).collect()
}

/// Columns of a run that a name stands for: itself, all of a quantity (`r`), or all that fit where a
/// `*` stands for the indices (`r[*].x`).
fn expanded(run: &StoredRun, name: &str) -> Result<Vec<String>, Error> {
    let arrays = run.arrays();
    let columns = arrays.iter().map(|array| Ok((&array.name, run.column_names(&array.name)?)));
    let columns = columns.collect::<Result<Vec<_>, StoreError>>().map_err(Error::store)?;
    let is_there = columns.iter().any(|(_, names)| names.iter().any(|known| known == name));
    if !is_there && let Some((_, names)) = columns.iter().find(|(array, _)| *array == name) {
        return Ok(names.clone());
    }
    let fits = |known: &&String| match name.split_once('*') {
        Some((before, after)) => {
            let middle = known.strip_prefix(before).and_then(|rest| rest.strip_suffix(after));
            middle.is_some_and(|middle| !middle.is_empty() && !middle.contains(']'))
        }
        None => false,
    };
    let all: Vec<String> =
        columns.iter().flat_map(|(_, names)| names).filter(fits).cloned().collect();
    Ok(if all.is_empty() { vec![name.to_string()] } else { all })
}

/// The model of a run, if it can be read again.
fn problem(run: &StoredRun) -> Option<Problem> {
    stored_problem(run.path(), run.attributes()).ok()
}

/// True if the samples of a run of a problem follow its motion; `None` if the model does not tell.
fn joined(run: &StoredRun, problem: Option<&Problem>) -> Result<Option<bool>, Error> {
    let Some(problem) = problem else { return Ok(None) };
    let rates = Rates::new(run, problem)?;
    rates.map(|mut rates| Ok(rates.sampling(1)?.follows())).transpose()
}

/// Style of a curve between samples of which it is known whether they follow the motion.
fn style(joined: Option<bool>) -> Option<Style> {
    joined.map(|joined| if joined { Style::Line } else { Style::Points })
}

/// Names of the runs' folders, or their paths if two have the same name.
fn names(runs: &[&StoredRun]) -> Vec<String> {
    let path = |run: &&StoredRun| run.path().display().to_string();
    let short = |run: &&StoredRun| {
        run.path().file_name().map_or_else(|| path(run), |n| n.to_string_lossy().into_owned())
    };
    let names: Vec<String> = runs.iter().map(short).collect();
    let distinct = names.iter().enumerate().all(|(k, name)| !names[..k].contains(name));
    if distinct { names } else { runs.iter().map(path).collect() }
}

/// Chart of columns of runs over another; of their differences from the run `from`, if given.
/// `joined` tells whether neighbouring samples of a run are to be joined, if that is known.
pub(super) fn columns_of_runs(
    runs: &[&StoredRun],
    names: &[String],
    axes: &Axes,
    (from, joined): (Option<&StoredRun>, &[Option<bool>]),
) -> Result<Chart, Error> {
    let mut all = Chart::default();
    let mut curves = Vec::new();
    for (k, (run, name)) in runs.iter().zip(names).enumerate() {
        let joined = joined.get(k).copied().flatten();
        let smooth = joined.filter(|joined| *joined && from.is_none());
        let smooth = smooth.and_then(|_| Smooth::new(run));
        all = of_columns(run, axes, (from, smooth.as_ref()))?;
        if let Some(style) = style(joined) {
            all.curves.iter_mut().for_each(|curve| curve.style = style);
        }
        for mut curve in all.curves.drain(..) {
            curve.colour = curves.len();
            match &axes.y[..] {
                [_] => curve.name.clone_from(name),
                _ if runs.len() > 1 => curve.name = format!("{name}: {}", curve.name),
                _ => {}
            }
            curves.push(curve);
        }
    }
    Ok(Chart { curves, ..all })
}

/// Chart of columns of a run over another, also between the samples if `smooth` has them; or of
/// their differences from another run's.
fn of_columns(
    run: &StoredRun,
    axes: &Axes,
    (from, smooth): (Option<&StoredRun>, Option<&Smooth>),
) -> Result<Chart, Error> {
    let x = axes.x.as_deref().unwrap_or("t");
    let names: Vec<&str> = std::iter::once(x).chain(axes.y.iter().map(String::as_str)).collect();
    if names.len() == 1 {
        return Err(Error::option(format!(
            "{} has nothing above it: name a column of the vertical axis by {}",
            option("x").with(x),
            option("y")
        )));
    }
    let mut columns = named(run, &names, smooth)?;
    if let Some(from) = from {
        let (times, others) =
            (run.times().map_err(Error::store)?, from.times().map_err(Error::store)?);
        let same = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-12 * a.abs().max(b.abs());
        if from.samples() < run.samples() || !times[..run.samples()].iter().zip(&others).all(same) {
            let (run, from) = (run.path().display(), from.path().display());
            return Err(Error::option(format!(
                "{run} and {from} differ in the times of their samples"
            )));
        }
        for (column, other) in columns.iter_mut().zip(named(from, &names, None)?).skip(1) {
            column.iter_mut().zip(other).for_each(|(value, other)| *value -= other);
        }
    }
    let all = columns[0].len();
    let kept = sampled::drawn(&columns, POINTS * columns.len());
    let mut columns = columns.iter().map(|column| sampled::at(column, &kept));
    let over = columns.next().unwrap_or_default();
    let deviations =
        axes.y.iter().all(|name| name.starts_with("drift.") || name.starts_with("residual."));
    let curves = columns.zip(&axes.y).enumerate();
    let curves = curves.map(|(colour, (values, name))| Curve {
        name: name.clone(),
        colour,
        x: over.clone(),
        style: match x == "t" || (kept.len() == all && follows(&over, &values)) {
            true => Style::Line,
            false => Style::Points,
        },
        y: if deviations { values.into_iter().map(f64::abs).collect() } else { values },
        bounds: Vec::new(),
    });
    let unit = |name: &str| sampled::unit(run, name);
    let first = axes.y.first().and_then(|name| unit(name));
    let shared = first.filter(|first| axes.y.iter().all(|name| unit(name).as_ref() == Some(first)));
    let label = sampled::with_unit(&label_of(&axes.y), shared.as_deref());
    let y = if deviations { Axis::log(label) } else { Axis::linear(label) };
    let equal = from.is_none()
        && x != "t"
        && !deviations
        && axes.y.iter().all(|name| stem(name) == stem(x));
    let label = sampled::with_unit(x, unit(x).as_deref());
    let x = if x == "t" { Axis { label, ..Axis::time() } } else { Axis::linear(label) };
    Ok(Chart { x, y, curves: curves.collect(), equal, ..Chart::default() })
}

/// Label of an axis for these columns: their names, or where these are long those of their quantities.
fn label_of(columns: &[String]) -> String {
    const LONGEST: usize = 32;
    let all = columns.join(", ");
    if all.chars().count() <= LONGEST {
        return all;
    }
    let mut quantities: Vec<&str> = Vec::new();
    for column in columns {
        let quantity = stem(column).split('[').next().unwrap_or(column);
        if !quantities.contains(&quantity) {
            quantities.push(quantity);
        }
    }
    let mut label = String::new();
    for (k, quantity) in quantities.iter().enumerate() {
        if label.chars().count() + quantity.chars().count() > LONGEST {
            return label + ", …";
        }
        label = if k == 0 { quantity.to_string() } else { format!("{label}, {quantity}") };
    }
    label
}

/// True if a line through the points follows their curve: on average it turns by less than a right
/// angle in six points. With fewer samples the line would be another curve, and points show more.
fn follows(x: &[f64], y: &[f64]) -> bool {
    let sides: Vec<f64> =
        x.windows(2).zip(y.windows(2)).map(|(x, y)| (y[1] - y[0]).atan2(x[1] - x[0])).collect();
    let turn = |a: &[f64]| (a[1] - a[0] + PI).rem_euclid(2.0 * PI) - PI;
    let sum: f64 = sides.windows(2).map(|a| turn(a).abs()).sum();
    sum <= sides.len() as f64 * PI / 12.0
}

/// Name of the quantity to which a component belongs.
fn stem(name: &str) -> &str {
    name.rsplit_once('.').map_or(name, |(stem, _)| stem)
}

/// Chart of the motion of a run: of a lattice its map in space and time; the paths of its points in their plane, or seen along their third
/// axis; the phase portrait of one degree of freedom; otherwise quantities over time.
fn motion(run: &StoredRun) -> Result<Option<Chart>, Error> {
    let label = sampled::with_unit("t", run.time_unit());
    if let Some(chart) = lattice::maps(run, &label, MAP)?.into_iter().next() {
        return Ok(Some(chart));
    }
    let problem = problem(run);
    let joined = joined(run, problem.as_ref())?;
    let smooth = joined.filter(|joined| *joined).and_then(|_| Smooth::new(run));
    let scene = problem.as_ref().and_then(Scene::of);
    let arrays = run.arrays();
    let of_role = |role: &str| -> Result<Vec<String>, Error> {
        let arrays = arrays.iter().filter(|array| array.has_role(role));
        let names = arrays.map(|array| run.column_names(&array.name).map_err(Error::store));
        Ok(names.collect::<Result<Vec<_>, _>>()?.concat())
    };
    if let Some(chart) = trails(run, problem.as_ref())? {
        return Ok(Some(chart));
    }
    let mut paths = scene.map(|scene| scene.paths()).unwrap_or_default();
    paths.retain(|(array, _)| arrays.iter().any(|known| known.name == *array));
    let mut chart = match &paths[..] {
        [_, ..] => {
            // Of many points the last one, which in a chain moves most.
            let first = if paths.len() > PATHS { paths.len() - 1 } else { 0 };
            let mut chart = Chart::default();
            for (k, (array, first)) in paths[first..].iter().enumerate() {
                let names = run.column_names(array).map_err(Error::store)?;
                let axes = Axes {
                    x: Some(names[*first].clone()),
                    y: vec![names[first + 1].clone()],
                    ..Axes::default()
                };
                let mut one = of_columns(run, &axes, (None, smooth.as_ref()))?;
                let name = stem(&names[*first]).to_string();
                one.curves.iter_mut().for_each(|curve| {
                    (curve.colour, curve.name) = (k, name.clone());
                });
                one.curves.splice(0..0, std::mem::take(&mut chart.curves));
                chart = one;
            }
            if chart.curves.len() > 1 {
                (chart.x, chart.y) = (Axis::linear("x"), Axis::linear("y"));
            }
            chart.equal = true;
            chart
        }
        [] => {
            let (q, p) = (of_role("coordinate")?, of_role("momentum")?);
            let observables = of_role("observable")?;
            let axes = match (&q[..], &p[..], &observables[..]) {
                ([q], [p], _) => Axes { x: Some(q.clone()), y: vec![p.clone()], ..Axes::default() },
                (_, _, [_, ..]) => Axes { y: observables, ..Axes::default() },
                ([_, ..], ..) => Axes { y: q, ..Axes::default() },
                _ => Axes { y: of_role("state")?, ..Axes::default() },
            };
            let y: Vec<String> = axes.y.iter().take(CURVES).cloned().collect();
            if y.is_empty() {
                return Ok(None);
            }
            of_columns(run, &Axes { y, ..axes }, (None, smooth.as_ref()))?
        }
    };
    if let [only] = &mut chart.curves[..] {
        // The only curve in its panel, named by the axes.
        only.name.clear();
    }
    if let Some(style) = style(joined) {
        chart.curves.iter_mut().for_each(|curve| curve.style = style);
    }
    Ok(Some(chart))
}

/// Ways of the points whose trails a model draws, or else of its spheres, in their plane or seen along
/// their third axis; `None` if it draws none.
fn trails(run: &StoredRun, problem: Option<&Problem>) -> Result<Option<Chart>, Error> {
    let Some(problem) = problem.filter(|problem| !problem.model.drawings.is_empty()) else {
        return Ok(None);
    };
    let times = run.times().map_err(Error::store)?;
    let mut rates = Rates::new(run, problem)?;
    let Some(motion) = scene::motion(run, problem, &times, rates.as_mut(), NUMBERS)? else {
        return Ok(None);
    };
    let mut curves: Vec<Curve> = Vec::new();
    for form in ["trail", "sphere"] {
        let all = motion.drawn.iter().filter(|drawn| drawn.form == form && curves.is_empty());
        let mut found = Vec::new();
        for drawn in all {
            let ways = &drawn.arguments[0];
            for member in 0..drawn.points.len() {
                let axis = |k: usize| -> Vec<f64> {
                    ways.values.iter().skip(3 * member + k).step_by(ways.width).copied().collect()
                };
                let (x, y) = (axis(0), axis(1));
                // What stands still has one frame.
                if x.len() > 1 {
                    let name = drawn.labels.get(member).cloned().unwrap_or_default();
                    found.push(Curve { name, colour: found.len(), x, y, ..Curve::default() });
                }
            }
        }
        curves.extend(found);
    }
    if curves.is_empty() {
        return Ok(None);
    }
    if motion.stroboscopic {
        curves.iter_mut().for_each(|curve| curve.style = Style::Points);
    }
    let (x, y) = (Axis::linear("x"), Axis::linear("y"));
    Ok(Some(Chart { x, y, curves, equal: true, ..Chart::default() }))
}

/// Columns of a run by their names: between the samples as well, if `smooth` has all of them.
fn named(run: &StoredRun, names: &[&str], smooth: Option<&Smooth>) -> Result<Vec<Vec<f64>>, Error> {
    let arrays = run.arrays();
    // The times come before the arrays.
    let mut all = vec![("t".to_string(), None)];
    for (k, array) in arrays.iter().enumerate() {
        let columns = run.column_names(&array.name).map_err(Error::store)?;
        all.extend(columns.into_iter().enumerate().map(|(place, name)| (name, Some((k, place)))));
    }
    let place = |name: &&str| -> Result<Option<ColumnPlace>, Error> {
        match all.iter().find(|(known, _)| known == name) {
            Some((_, place)) => Ok(*place),
            None => {
                let known = || all.iter().map(|(known, _)| known.as_str());
                let help = match did_you_mean(name, known()) {
                    Some(meant) => format!("did you mean '{meant}'?"),
                    None => format!("it has {}", known().take(20).collect::<Vec<_>>().join(", ")),
                };
                Err(Error::option(format!(
                    "{} has no column '{name}'; {help}",
                    run.path().display()
                )))
            }
        }
    };
    let places = names.iter().map(place).collect::<Result<Vec<_>, Error>>()?;
    let in_arrays = |(array, place): ColumnPlace| (arrays[array].name.as_str(), place);
    let by_name: Vec<_> = places.iter().map(|place| place.map(in_arrays)).collect();
    if let Some(columns) = smooth.and_then(|smooth| smooth.columns(&by_name)) {
        return Ok(columns);
    }
    let of_arrays: Vec<ColumnPlace> = places.iter().copied().flatten().collect();
    let mut columns = sampled::whole(run, &arrays, &of_arrays)?.into_iter();
    let mut times = run.times().map_err(Error::store)?;
    times.truncate(run.samples());
    Ok(places
        .iter()
        .map(|place| place.and_then(|_| columns.next()).unwrap_or_else(|| times.clone()))
        .collect())
}
