//! Which way a model is computed: with its formulas written out as straight-line code, or over the rows of their templates.
//! Its size alone decides, never the machine. All sizes that do are here, with what was measured; those from which on
//! threads share a sum are in `rows/parts.rs`, and those up to which it is taken by diagonals in `rows/diagonals.rs`.

use crate::elaborate::model::{Dynamics, Model};
use crate::functional::{Source, Term};
use crate::treatment::unrolled::{LARGEST_UNROLLED, MOST_CONSTRAINTS};
use std::fmt::{Display, Formatter, Result};

/// Operations of a model, derivatives not counted, up to which its field is written out whatever its form: straight-line
/// code runs as fast as rows do or faster up to about here, and beyond takes longer to make than it saves.
pub const LARGEST_STRAIGHT: usize = 200_000;

/// The same of a model with constraints, whose forces take an elimination that fills up when it is written out.
const LARGEST_CONSTRAINED: usize = 5_000;

/// The same of a sum over pairs without constraints, in fields and in steps that an ensemble takes in lanes: its rows fill
/// vectors, from some thirty bodies on, and every formula written out takes its time to make.
const LARGEST_DENSE: usize = 10_000;

/// The same in steps of a single run, where only the pairs can fill vectors: Störmer–Verlet takes 0.7 of the time written out
/// with 12 bodies, 0.4 with 20 and 0.3 with 30, and in lanes of an ensemble 4, 2 and 1.4 of it.
const LARGEST_DENSE_STEP: usize = 1_000;

/// Operations of the right-hand side and the constraints up to which a step is written out, of a method that solves
/// equations and of an explicit one, whose step is a fraction as long: a loop of machine code has no calls in its steps,
/// which count for those by rows. RATTLE takes 28 to 31 ns a link on chains of 20 to 40 links, written out, and by rows some
/// 26 ns on those of 50 to 100; Störmer–Verlet 5 to 8 ns a mass on FPU chains of 32 to 200 masses, and by rows 8 ns on those
/// of 300 to 1000. But making the code takes a millisecond a link, and a tenth of it a mass. Substeps are written one behind
/// the other.
const LARGEST_LOOPED_STEP: [usize; 2] = [1_300, 6_000];

/// The same of steps that no loop makes, as with many substeps.
const LARGEST_SINGLE_STEP: [usize; 2] = [500, 2_000];

/// Operations that friction and noise take for each momentum: a logarithm, a cosine, a hyperbolic tangent, two roots.
const NOISE: usize = 100;

/// How many rows of a template read the same component of the state in the same place, on the average, where a model is a
/// sum over pairs: those of a dozen bodies and more.
const DENSE: usize = 5;

/// Rows pay where a template has this many of them on the average.
const ROWS_PER_TEMPLATE: usize = 16;

/// The same of what is so many times as long as it may be, written out: of a step no loop of machine code holds that, and
/// rows fill the vectors anyway. By rows 7 rigid waters take 0.4 of the time, 6 of them as much as in a loop.
const ROWS_OF_LONG: usize = 8;
const LONG: f64 = 2.5;

/// Contributions of one formula to one output from which on the output is added up over rows. Fewer are added up in a
/// register, in a formula that equal members share; nodes of a net have up to six.
pub(crate) const PILE: usize = 8;

/// The same where hardly two members have a formula alike, as in a sum over few pairs: no vector holds several of them.
/// 7 rigid waters take three times as long otherwise.
pub(crate) const OWN_PILE: usize = 3;

/// How some function of a model is computed, and what decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    /// Over the rows of templates.
    pub by_rows: bool,
    /// Operations of the model, derivatives not counted.
    pub size: usize,
    /// Those up to which it is written out.
    pub largest: usize,
    /// Why another size than [`Way::largest`] decides.
    why: Option<&'static str>,
}

impl Way {
    /// That of the field and the invariants.
    pub fn of_field(model: &Model) -> Way {
        let way = Way::by_size(model, model.unrolled_size(), [LARGEST_STRAIGHT, LARGEST_CONSTRAINED], LARGEST_DENSE);
        let scalars: usize = model.constraints.iter().map(|q| q.members * q.components.len()).sum();
        let on_positions = model.is_hamiltonian() && model.is_holonomic();
        if !model.constraints.is_empty() && !on_positions {
            return way.written_out("its constraints are not those of a Hamiltonian model on its positions");
        }
        if way.size > LARGEST_UNROLLED || scalars > MOST_CONSTRAINTS {
            let why = "no model of this size, or with so many constraints, can be written out";
            return Way { by_rows: true, why: Some(why).filter(|_| !way.by_rows), ..way };
        }
        way
    }

    /// That of a step that keeps the structure of a Hamiltonian model, by a method that may be `explicit` and makes so many
    /// substeps, of a single run or `in_lanes` of an ensemble.
    pub fn of_step(model: &Model, explicit: bool, substeps: usize, in_lanes: bool) -> Way {
        let of = |sizes: [usize; 2]| sizes[usize::from(explicit)];
        let largest = (of(LARGEST_LOOPED_STEP) / substeps).max(of(LARGEST_SINGLE_STEP));
        let noise = if model.heat_bath.is_some() { NOISE * model.degrees() } else { 0 };
        let dense = if in_lanes { LARGEST_DENSE } else { LARGEST_DENSE_STEP };
        let way = Way::by_size(model, model.unrolled_dynamics() + noise, [largest, largest], dense);
        match model.is_hamiltonian() && model.is_holonomic() {
            true => way,
            false => way.written_out("it is no Hamiltonian model whose constraints are on positions"),
        }
    }

    /// Decided by the size, without constraints and with, and of a sum over pairs without.
    fn by_size(model: &Model, size: usize, [free, constrained]: [usize; 2], dense: usize) -> Way {
        let between = free.min(dense)..free.max(dense);
        let largest = match model.constraints.is_empty() {
            // Elsewhere it makes no difference.
            true if size > between.start && size <= between.end && is_dense(model) => dense,
            true => free,
            false => constrained,
        };
        let way = Way { by_rows: size > largest, size, largest, why: None };
        let rows = if size as f64 > LONG * largest as f64 { ROWS_OF_LONG } else { ROWS_PER_TEMPLATE };
        match size / rows >= model.template_size() {
            true => way,
            false => way.written_out("its formulas hardly repeat themselves"),
        }
    }

    fn written_out(self, why: &'static str) -> Way {
        Way { by_rows: false, why: Some(why).filter(|_| self.by_rows), ..self }
    }
}

impl Display for Way {
    fn fmt(&self, f: &mut Formatter) -> Result {
        let Way { by_rows, size, largest, why } = self;
        let way = if *by_rows { "by rows" } else { "written out" };
        let compared = if size > largest { "more than" } else { "no more than" };
        write!(f, "{way} ({size} operations, {compared} {largest}")?;
        why.map_or(Ok(()), |why| write!(f, ", but {why}"))?;
        write!(f, ")")
    }
}

/// Whether a sum of a model goes over pairs: most rows of a template share each of their inputs with others.
fn is_dense(model: &Model) -> bool {
    let (Dynamics::Hamiltonian(functional, _) | Dynamics::Field(functional)) = &model.dynamics;
    let shared = |term: &Term| {
        let states = (0..term.slots.len()).filter(|&k| term.slots[k] == Source::State);
        let distinct = |slot: usize| {
            let mut seen = vec![false; model.dimension()];
            let entries = term.table.each().map(|row| row.at(slot) as usize);
            entries.filter(|&entry| !std::mem::replace(&mut seen[entry], true)).count()
        };
        states.map(|slot| term.rows() / distinct(slot).max(1)).min()
    };
    functional.terms.iter().any(|term| term.pairs.is_some() || shared(term).is_some_and(|rows| rows >= DENSE))
}
