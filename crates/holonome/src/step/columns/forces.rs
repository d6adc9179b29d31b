//! Forces at the end of a step that are reused at the start of the next (FSAL).

use super::symbols::ColumnSymbols;
use crate::step::recorder::{Calls, System, Trace};
use crate::step::symbols::Symbols;
use holonome_model::columns::Column;
use holonome_model::graph::op::Binary;
use holonome_model::templated::Together;
use rustc_hash::{FxHashMap, FxHashSet};

/// Make a step reuse the sums over pairs that it needs at its start and finds at its end, whatever
/// its length. Return the recording that finds them where no step came before; `None` if there are
/// no such sums. The sums of H come with them, for H is monitored where it stays constant.
pub fn carry_forces(trace: &mut Trace<ColumnSymbols>) -> Option<Trace<ColumnSymbols>> {
    let Trace { symbols, x, t, h, result, systems, carried, multipliers, sums, drawn, .. } = trace;
    let (x, t, h) = (x.clone(), *t, *h);
    let roots: Vec<Column> = systems
        .iter()
        .flat_map(|system| {
            [&system.sizes, &system.guesses, &system.residuals].into_iter().flatten()
        })
        .chain(result.iter().map(|(column, _)| column))
        .chain(carried.iter().map(|(_, next)| next))
        .chain(&multipliers.0)
        .copied()
        .collect();
    let needed = symbols.reached(&roots);
    let columns = &symbols.mechanics.columns;
    let is_given = |column: &Column| x.contains(column) || *column == t;
    let mut found: Vec<Column> =
        needed.iter().copied().filter(|&column| columns.is_accumulated(column)).collect();
    found.retain(|&column| columns.arguments(column).iter().all(is_given));
    found.sort_unstable();
    let t1 = symbols.binary(Binary::Add, t, h);
    let mut moved: FxHashMap<Column, Column> =
        x.iter().copied().zip(result.iter().map(|&(column, _)| column)).collect();
    moved.insert(t, t1);
    let pairs = found
        .iter()
        .map(|&column| (column, symbols.substituted(column, &mut moved)))
        .collect::<Vec<_>>();
    let mut pairs: Vec<(Column, Column)> =
        pairs.into_iter().filter(|(_, end)| needed.contains(end)).collect();
    if pairs.is_empty() {
        return None;
    }
    let of_energy = sums_of_energy(symbols, (t, &x), &pairs, &needed, &mut moved);
    *sums = pairs.len()..pairs.len() + of_energy.len();
    pairs.extend(of_energy);
    let mut taken: FxHashMap<Column, Column> = FxHashMap::default();
    for &(start, _) in &pairs {
        let length = symbols.length(start);
        taken.insert(start, symbols.input(length));
    }
    let find = Trace {
        symbols: symbols.clone(),
        x,
        t,
        h,
        result: pairs.iter().map(|&(start, _)| (start, symbols.length(start))).collect(),
        systems: Vec::new(),
        carried: Vec::new(),
        multipliers: (Vec::new(), Vec::new()),
        has_fsal: false,
        extends_state: false,
        monitored: None,
        sums: 0..0,
        encounter: None,
        drawn: None,
        calls: Calls { gradient: 1, ..Calls::default() },
    };
    let mut replaced = taken.clone();
    let mut replace = |column: &mut Column| *column = symbols.substituted(*column, &mut replaced);
    for system in systems.iter_mut() {
        let System { sizes, sweep_sizes, guesses, residuals, .. } = system;
        [sizes, sweep_sizes, guesses, residuals].into_iter().flatten().for_each(&mut replace);
    }
    result.iter_mut().for_each(|(column, _)| replace(column));
    carried.iter_mut().for_each(|(_, next)| replace(next));
    multipliers.0.iter_mut().for_each(&mut replace);
    let places = drawn.iter_mut().flat_map(|drawn| {
        let uniform = drawn.uniform.iter_mut().flat_map(|(pair, _)| pair);
        uniform.chain([&mut drawn.number])
    });
    multipliers.1.iter_mut().chain(places).for_each(|place| *place += pairs.len());
    let fsal: Vec<(Column, Column)> = pairs
        .iter()
        .map(|&(start, mut end)| {
            replace(&mut end);
            (taken[&start], end)
        })
        .collect();
    carried.splice(0..0, fsal);
    trace.has_fsal = true;
    trace.calls.gradient -= 1;
    Some(find)
}

/// Sums of H at the start of a step and at its end; empty unless all of them come with these
/// forces, from calls that compute nothing else.
fn sums_of_energy(
    symbols: &mut ColumnSymbols,
    (t, x): (Column, &[Column]),
    forces: &[(Column, Column)],
    needed: &FxHashSet<Column>,
    moved: &mut FxHashMap<Column, Column>,
) -> Vec<(Column, Column)> {
    let mut sums = Vec::new();
    for Together { slopes, values, .. } in symbols.mechanics.sums(t, x) {
        let end =
            |slope: &Column| forces.iter().find(|(start, _)| start == slope).map(|&(_, end)| end);
        let Some(ends) = slopes.iter().map(end).collect::<Option<Vec<Column>>>() else {
            return Vec::new();
        };
        let columns = &symbols.mechanics.columns;
        if needed.iter().filter(|&&column| columns.share_call(column, ends[0])).count()
            != ends.len()
        {
            return Vec::new();
        }
        sums.extend(values.into_iter().map(|value| (value, symbols.substituted(value, moved))));
    }
    sums
}
