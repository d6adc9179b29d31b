//! Forces at the end of a step that are those at the start of the next.

use super::symbols::ColumnSymbols;
use crate::structured::recorder::{Calls, System, Trace};
use crate::structured::symbols::Symbols;
use holonome_model::columns::Column;
use holonome_model::graph::op::Binary;
use rustc_hash::FxHashMap;

/// Lets a step take over the sums over pairs that it needs at its start and finds at its end, whatever its length; gives the
/// recording of how they are found where no step came before, if there are any.
pub fn take_over(trace: &mut Trace<ColumnSymbols>) -> Option<Trace<ColumnSymbols>> {
    let Trace { symbols, x, t, h, result, systems, carried, multipliers, drawn, .. } = trace;
    let (x, t, h) = (x.clone(), *t, *h);
    let roots: Vec<Column> = systems
        .iter()
        .flat_map(|system| [&system.sizes, &system.guesses, &system.residuals].into_iter().flatten())
        .chain(result.iter().map(|(column, _)| column))
        .chain(carried.iter().map(|(_, next)| next))
        .chain(&multipliers.0)
        .copied()
        .collect();
    let needed = symbols.reached(&roots);
    let columns = &symbols.mechanics.columns;
    let is_given = |column: &Column| x.contains(column) || *column == t;
    let mut found: Vec<Column> = needed.iter().copied().filter(|&column| columns.is_accumulated(column)).collect();
    found.retain(|&column| columns.arguments(column).iter().all(is_given));
    found.sort_unstable();
    let t1 = symbols.binary(Binary::Add, t, h);
    let mut moved: FxHashMap<Column, Column> =
        x.iter().copied().zip(result.iter().map(|&(column, _)| column)).collect();
    moved.insert(t, t1);
    let pairs = found.iter().map(|&column| (column, symbols.substituted(column, &mut moved))).collect::<Vec<_>>();
    let pairs: Vec<(Column, Column)> = pairs.into_iter().filter(|(_, end)| needed.contains(end)).collect();
    if pairs.is_empty() {
        return None;
    }
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
        takes_over: false,
        watched: None,
        drawn: None,
        calls: Calls { gradient: 1, ..Calls::default() },
    };
    let mut replaced = taken.clone();
    let mut replace = |column: &mut Column| *column = symbols.substituted(*column, &mut replaced);
    for system in systems.iter_mut() {
        let System { sizes, guesses, residuals, .. } = system;
        [sizes, guesses, residuals].into_iter().flatten().for_each(&mut replace);
    }
    result.iter_mut().for_each(|(column, _)| replace(column));
    carried.iter_mut().for_each(|(_, next)| replace(next));
    multipliers.0.iter_mut().for_each(&mut replace);
    let places = drawn.iter_mut().flat_map(|drawn| {
        let uniform = drawn.uniform.iter_mut().flat_map(|(pair, _)| pair);
        uniform.chain([&mut drawn.number])
    });
    multipliers.1.iter_mut().chain(places).for_each(|place| *place += pairs.len());
    let handed: Vec<(Column, Column)> = pairs
        .iter()
        .map(|&(start, mut end)| {
            replace(&mut end);
            (taken[&start], end)
        })
        .collect();
    carried.splice(0..0, handed);
    trace.takes_over = true;
    trace.calls.gradient -= 1;
    Some(find)
}
