//! Choice between the ways of computing a model: unrolled as straight-line code, or templated, over
//! the rows of its templates. The size alone decides, never the machine. All sizes that decide are
//! here, with what was measured; those from which threads share a sum are in `rows/parts.rs`, and
//! those up to which it is taken by diagonals in `rows/diagonals.rs`.

use crate::elaborate::model::{Model, Quantity};
use crate::functional::{Functional, Source, Term};
use crate::treatment::unrolled::{LARGEST_UNROLLED, MOST_CONSTRAINTS};
use std::fmt::{Display, Formatter, Result};

/// Stack in bytes of a thread that handles a model, enough for the stated limits of nesting.
pub const DEEP_STACK: usize = 256 << 20;

/// Largest number of operations of a model, derivatives not counted, whose field is unrolled
/// whatever its form. Beyond, straight-line code takes longer to make than it saves: for a
/// sine-Gordon lattice of 1000 sites, 22 000 operations, the code takes 0.15 s to make, and a run
/// of 7000 evaluations half as long templated; of 8000 sites, 1.6 s and a quarter.
pub const LARGEST_UNROLLED_FIELD: usize = 20_000;

/// [`LARGEST_UNROLLED_FIELD`] of a model with constraints: unrolled, the elimination for their
/// forces fills in.
const LARGEST_CONSTRAINED: usize = 5_000;

/// [`LARGEST_UNROLLED_FIELD`] of a sum over pairs without constraints, in fields and in steps that
/// an ensemble takes in lanes: its rows fill vectors from some thirty bodies on, and every unrolled
/// formula takes time to make.
const LARGEST_DENSE: usize = 10_000;

/// [`LARGEST_DENSE`] in steps of a single run, where only the pairs can fill vectors. Templated,
/// Störmer–Verlet takes 0.7 of the unrolled time with 12 bodies, 0.4 with 20 and 0.3 with 30; in
/// lanes of an ensemble, 4, 2 and 1.4 of it.
const LARGEST_DENSE_STEP: usize = 1_000;

/// Largest number of operations of the right-hand side and the constraints for which a step is
/// unrolled: of a method that solves equations, and of an explicit method, whose step is a fraction
/// as long. A loop of machine code has no calls in its steps; in templated steps calls matter.
/// RATTLE takes 28 to 31 ns per link unrolled, on chains of 20 to 40 links, and some 26 ns
/// templated, on chains of 50 to 100. Störmer–Verlet takes 5 to 8 ns per mass unrolled, on FPU
/// chains of 32 to 200 masses, and 8 ns templated, on chains of 300 to 1000. But making the code
/// takes a millisecond per link, and a tenth of it per mass. Substeps are unrolled one after the
/// other.
const LARGEST_LOOPED_STEP: [usize; 2] = [1_300, 6_000];

/// [`LARGEST_LOOPED_STEP`] of steps that are not made in a loop, as with many substeps.
const LARGEST_SINGLE_STEP: [usize; 2] = [500, 2_000];

/// [`LARGEST_LOOPED_STEP`] of steps that an ensemble takes in lanes, where eight trajectories fill a
/// vector whatever the model's form: up to the largest field that is unrolled. A trajectory by
/// RATTLE takes 0.15 of the templated time for a chain of 50 links, 0.26 for 100 and 0.4 for 180, and
/// 0.07 for a net of 7 by 7 knots; by `gauss4` it takes 0.2 for an FPU chain of 80 to 160 masses, by
/// Störmer–Verlet 0.3 for 240 and 0.5 for 400. Making the code takes two to three milliseconds per
/// link: a thousand steps of 50 to 100 trajectories pay it back. A loop that is too long with its
/// noise is not made.
const LARGEST_LANE_STEP: [usize; 2] = [LARGEST_CONSTRAINED, LARGEST_UNROLLED_FIELD];

/// Number of operations of friction and noise per momentum: a logarithm, a cosine, a hyperbolic
/// tangent, two roots.
const NOISE: usize = 100;

/// Average number of rows of a template that read the same state component in the same slot, from
/// which on a model is a sum over pairs: a dozen bodies and more.
const DENSE: usize = 5;

/// Average number of rows per template from which on rows pay.
const ROWS_PER_TEMPLATE: usize = 16;

/// [`ROWS_PER_TEMPLATE`] of a step that is [`LONG`] times longer than the largest unrolled one: no
/// loop of machine code holds it, and rows fill the vectors anyway. Templated, 7 rigid waters take
/// 0.4 of the time, and 6 as much as in a loop.
const ROWS_OF_LONG: usize = 8;
const LONG: f64 = 2.5;

/// Number of contributions of one formula to one output from which on the output is added up over
/// rows. Fewer are added up in a register, in a formula that equal members share; nodes of a net
/// have up to six.
pub(crate) const PILE: usize = 8;

/// [`PILE`] if hardly two members have equal formulas, as in a sum over few pairs: no vector holds
/// several of them. 7 rigid waters take three times as long otherwise.
pub(crate) const OWN_PILE: usize = 3;

/// Way of computing a function of a model, with the reason for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    /// True if it is templated, evaluated over the rows of its templates; false if it is unrolled.
    pub templated: bool,
    /// Number of operations of the model, derivatives not counted.
    pub size: usize,
    /// Largest number of operations that is unrolled.
    pub largest: usize,
    /// Reason, if another one than [`Way::largest`] decides.
    why: Option<&'static str>,
}

impl Way {
    /// Way of the field and the invariants.
    pub fn of_field(model: &Model) -> Way {
        let way = Way::by_size(
            model,
            model.unrolled_size(),
            [LARGEST_UNROLLED_FIELD, LARGEST_CONSTRAINED],
            LARGEST_DENSE,
        );
        let scalars: usize = model.constraints.iter().map(Quantity::scalars).sum();
        let on_positions = model.is_hamiltonian() && model.is_holonomic();
        if !model.constraints.is_empty() && !on_positions {
            return way
                .unrolled("its constraints are not those of a Hamiltonian model on its positions");
        }
        if way.size > LARGEST_UNROLLED || scalars > MOST_CONSTRAINTS {
            let why = "no model of this size, or with so many constraints, can be unrolled";
            return Way { templated: true, why: Some(why).filter(|_| !way.templated), ..way };
        }
        way
    }

    /// Way of a structure-preserving step of a Hamiltonian model, by a method that may be
    /// `explicit` and makes `substeps` substeps, in a single run or `in_lanes` of an ensemble.
    pub fn of_step(model: &Model, explicit: bool, substeps: usize, in_lanes: bool) -> Way {
        let of = |sizes: [usize; 2]| sizes[usize::from(explicit)];
        // Lanes monitor an unrolled field.
        let in_lanes = in_lanes && !Way::of_field(model).templated;
        let looped = if in_lanes { LARGEST_LANE_STEP } else { LARGEST_LOOPED_STEP };
        let largest = (of(looped) / substeps).max(of(LARGEST_SINGLE_STEP));
        let counts_noise = model.heat_bath.is_some() && !in_lanes;
        let noise = if counts_noise { NOISE * model.degrees() } else { 0 };
        let dense = if in_lanes { LARGEST_DENSE } else { LARGEST_DENSE_STEP };
        let way = Way::by_size(model, model.unrolled_dynamics() + noise, [largest, largest], dense);
        match model.is_hamiltonian() && model.is_holonomic() {
            true => way,
            false => {
                way.unrolled("it is not a Hamiltonian model whose constraints are on positions")
            }
        }
    }

    /// Way by the size alone, with the limits without and with constraints, and that of a sum over
    /// pairs without constraints.
    fn by_size(model: &Model, size: usize, [free, constrained]: [usize; 2], dense: usize) -> Way {
        let between = free.min(dense)..free.max(dense);
        let largest = match model.constraints.is_empty() {
            // Outside this range both limits decide alike.
            true if size > between.start
                && size <= between.end
                && is_dense(model.moved_by(), model) =>
            {
                dense
            }
            true => free,
            false => constrained,
        };
        let way = Way { templated: size > largest, size, largest, why: None };
        let rows =
            if size as f64 > LONG * largest as f64 { ROWS_OF_LONG } else { ROWS_PER_TEMPLATE };
        match size / rows >= model.template_size() {
            true => way,
            false => way.unrolled("its formulas hardly repeat themselves"),
        }
    }

    fn unrolled(self, why: &'static str) -> Way {
        Way { templated: false, why: Some(why).filter(|_| self.templated), ..self }
    }
}

impl Display for Way {
    fn fmt(&self, f: &mut Formatter) -> Result {
        let Way { templated, size, largest, why } = self;
        let way = if *templated { "templated" } else { "unrolled" };
        let compared = if size > largest { "more than" } else { "no more than" };
        write!(f, "{way} ({size} operations, {compared} {largest}")?;
        why.map_or(Ok(()), |why| write!(f, ", but {why}"))?;
        write!(f, ")")
    }
}

/// True if quantities of the model that samples evaluate are unrolled beside an unrolled field.
pub fn unrolls(model: &Model, quantities: &[&Functional]) -> bool {
    let size =
        quantities.iter().map(|quantity| quantity.unrolled_size()).fold(0, usize::saturating_add);
    size <= LARGEST_DENSE
        || size <= LARGEST_UNROLLED_FIELD
            && !quantities.iter().any(|quantity| is_dense(quantity, model))
}

/// True if a sum of the functional is over pairs: most rows of a template share each of their
/// inputs with others.
fn is_dense(functional: &Functional, model: &Model) -> bool {
    let shared = |term: &Term| {
        let states = (0..term.slots.len()).filter(|&k| term.slots[k] == Source::State);
        let distinct = |slot: usize| {
            let mut seen = vec![false; model.following().end(model.degrees())];
            let entries = term.table.each().map(|row| row.at(slot) as usize);
            entries.filter(|&entry| !std::mem::replace(&mut seen[entry], true)).count()
        };
        states.map(|slot| term.rows() / distinct(slot).max(1)).min()
    };
    functional
        .terms
        .iter()
        .any(|term| term.pairs.is_some() || shared(term).is_some_and(|rows| rows >= DENSE))
}
