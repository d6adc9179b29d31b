//! Large models: formulas evaluated row by row, in lanes, without unrolling.
//!
//! The derivatives of a [`Functional`], which sums over rows, are derived once for each template:
//! those of a chain of a million links are those of one link. The result is a [`RowProgram`], a
//! list of [`Piece`]s: some formulas over slots, the places from which each row's slots are
//! gathered, and those to which its results are added. [`RowField`](crate::templated::RowField)
//! derives the programs of a whole model, and [`RowKernel`] runs a program.
//!
//! Rows are taken in blocks of up to [`BLOCK`]: gather every slot, compute, add every output in the
//! order of the rows, one output after the other. These blocks fix the order of all sums, so no bit
//! of the result depends on the number of lanes that a kernel computes side by side. Rows in a line
//! need not be gathered; states are split into columns (see [`Layout`]) so that most are. The rows
//! of a sum over pairs fall into segments, one for each body: the entries of the body stay, and its
//! partners are in a line. Then every segment is a block. For few bodies the diagonals of the table
//! of all pairs are the blocks.

mod blocks;
mod diagonals;
mod kernel;
mod layout;
mod line;
mod members;
mod near;
mod parts;
mod segments;
mod table;

pub use kernel::RowKernel;
pub use layout::{Layout, StridedFamily};

use crate::functional::{Entries, Functional, Pairs, Side, Source, Stretch, Stretches, Term};
use crate::graph::calculus::Gradient;
use crate::graph::fuse::fuse;
use crate::graph::interpret::SEGMENT_LANES;
use crate::graph::optimise::optimise;
use crate::graph::tape::Tape;
use crate::graph::{Expression, Graph, Input, Node};
use blocks::Blocks;
use diagonals::Diagonals;
use line::Line;
use members::MemberNumbers;
use near::NearRows;
use segments::cut;
use std::ops::Range;
use std::sync::Arc;
pub(crate) use table::RowTable;
use table::{alike, placed};

/// Largest number of rows that are gathered and scattered together, except in segments.
pub const BLOCK: usize = 64;

/// Places of one slot's or one output's entries in the rows of a block.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Places {
    /// At `first`, `first + step`, and so on: families are laid out so that most sums read and
    /// write this way.
    Even { first: u32, step: i32 },
    /// At the entries of [`Piece::listed`] from this index on.
    Listed(usize),
}

impl Places {
    /// Entry of a row of the block.
    fn entry(self, listed: &[u32], row: usize) -> u32 {
        match self {
            Places::Even { first, step } => {
                (i64::from(first) + i64::from(step) * row as i64) as u32
            }
            Places::Listed(start) => listed[start + row],
        }
    }

    /// Distance from these places to others that are as far apart; `None` if these are not.
    fn distance(self, other: Places) -> Option<i32> {
        match (self, other) {
            (Places::Even { first, step }, Places::Even { first: to, step: same })
                if step == same =>
            {
                Some(to.wrapping_sub(first) as i32)
            }
            (Places::Listed(start), Places::Listed(to)) => {
                i32::try_from(to as i64 - start as i64).ok()
            }
            _ => None,
        }
    }

    /// These places, moved on by a distance.
    fn moved(self, distance: i32) -> Places {
        match self {
            Places::Even { first, step } => {
                Places::Even { first: first.wrapping_add_signed(distance), step }
            }
            Places::Listed(start) => Places::Listed(start.wrapping_add_signed(distance as isize)),
        }
    }
}

/// Formulas of one template for all of its rows, or for those that are alike.
#[derive(Clone, Debug)]
pub struct Piece {
    /// Formulas over `Input::Slot`, `Input::Parameter` and `Input::Time`. A number or parameter
    /// that is the same in all rows is not a slot.
    pub graph: Graph,
    /// Results of each row.
    pub outputs: Vec<Node>,
    /// Slots that the outputs depend on, in order, with their sources.
    pub slots: Vec<(u32, Source)>,
    /// Number of rows.
    pub rows: usize,
    numbers: Vec<f64>,
    /// Blocks of rows, with the places of the slots, then those of the outputs.
    blocks: Blocks,
    listed: Vec<u32>,
    /// Line of the rows, if they form one.
    line: Option<Line>,
    /// Rows of a sum over near pairs, in place of blocks.
    near: Option<NearRows>,
    /// Diagonals of a sum over all pairs of few bodies, whose outputs have arrays of their own
    /// first.
    diagonals: Option<Diagonals>,
    /// Whole piece, if this one has only some outputs of it: they are rounded and added up as with
    /// all of them.
    whole: Option<Whole>,
}

/// A piece of which another one has some outputs.
#[derive(Clone, Debug)]
struct Whole {
    outputs: Vec<Node>,
    /// Length of the range of places to which it adds.
    written: usize,
}

/// A vector-valued function of (t, x, parameters) as sums over rows.
#[derive(Clone, Debug)]
pub struct RowProgram {
    /// Length of the state.
    pub states: usize,
    /// Number of outputs.
    pub outputs: usize,
    /// Outputs to which the sums that are made apart are added in the end. Such sums are outputs
    /// after the others.
    pub apart: Arc<[u32]>,
    /// Sums of the program.
    pub pieces: Arc<[Piece]>,
    /// True for every piece to whose outputs no other row adds: these need not be added up.
    alone: Arc<[bool]>,
    /// Layout of the columns into which the state is split first, if the places of the pieces are
    /// in them.
    pub layout: Option<Arc<Layout>>,
    /// True if outputs that no row adds to are left as they are.
    gaps: bool,
}

impl RowProgram {
    /// True if an output depends on the state or on time.
    pub fn moves(&self) -> bool {
        let reads = |piece: &Piece| {
            let mut nodes = piece.graph.reachable(&piece.outputs).into_iter();
            piece.near.is_some()
                || piece.slots.iter().any(|(_, source)| *source == Source::State)
                || nodes.any(|node| piece.graph.expression(node) == Expression::Input(Input::Time))
        };
        self.layout.is_some() || self.pieces.iter().any(reads)
    }

    /// Values of a functional; `target` maps an output of the functional to one of the program, if
    /// any.
    pub fn values(functional: &Functional, target: &dyn Fn(usize) -> Option<u32>) -> Vec<Piece> {
        RowProgram::selected(functional, target, |_, root| root)
    }

    /// The partial derivatives of a functional with respect to time.
    pub fn time_derivatives(
        functional: &Functional,
        target: &dyn Fn(usize) -> Option<u32>,
    ) -> Vec<Piece> {
        RowProgram::selected(functional, target, |g, root| g.time_derivative(root))
    }

    fn selected(
        functional: &Functional,
        target: &dyn Fn(usize) -> Option<u32>,
        mut derive: impl FnMut(&mut Graph, Node) -> Node,
    ) -> Vec<Piece> {
        let mut pieces = Vec::new();
        for term in &functional.terms {
            let mut graph = term.graph.clone();
            let roots: Vec<Node> =
                term.roots.iter().map(|&root| derive(&mut graph, root)).collect();
            for (kept, rows) in wanted(term, target) {
                let kept: Vec<usize> = (0..roots.len()).filter(|&c| kept[c]).collect();
                let outputs = kept.iter().map(|&c| roots[c]).collect();
                let place =
                    |row: Entries, k: usize| target(row.last() as usize + kept[k]).unwrap_or(0);
                let table = placed(term, &rows, kept.len(), stays, place);
                let near = term.near(kept.iter().map(|_| term.output_side()));
                pieces.extend(Piece::new(&table, &graph, outputs, near));
            }
        }
        pieces
    }

    /// Entries of a functional's Jacobian. `target` is as for [`RowProgram::values`], and
    /// `position` is the place of the derivative of an output of the program with respect to a
    /// state component. `is_full` is true if the derivatives of such an output with respect to all
    /// components are contiguous.
    pub fn jacobian(
        functional: &Functional,
        target: &dyn Fn(usize) -> Option<u32>,
        position: &dyn Fn(u32, u32) -> u32,
        is_full: &dyn Fn(u32) -> bool,
    ) -> Vec<Piece> {
        let mut pieces = Vec::new();
        for term in &functional.terms {
            let (graph, gradients) = term.gradients();
            for (kept, rows) in wanted(term, target) {
                let entries: Vec<(usize, u32, Node)> = (0..gradients.len())
                    .filter(|&c| kept[c])
                    .flat_map(|c| gradients[c].iter().map(move |&(slot, d)| (c, slot, d)))
                    .collect();
                let outputs = entries.iter().map(|&(_, _, d)| d).collect();
                let output = |row: Entries, component: usize| {
                    target(row.last() as usize + component).unwrap_or(0)
                };
                let place = |row: Entries, k: usize| {
                    let (component, slot, _) = entries[k];
                    position(output(row, component), row.at(slot as usize))
                };
                let row_is_full = |row: Entries| {
                    (0..gradients.len()).all(|c| !kept[c] || is_full(output(row, c)))
                };
                let is_even = |stretch: &Stretch| stays(stretch) && row_is_full(stretch.row(0));
                let table = placed(term, &rows, entries.len(), is_even, place);
                let near = term.near(entries.iter().map(|&(_, slot, _)| term.side(slot)));
                pieces.extend(Piece::new(&table, &graph, outputs, near));
            }
        }
        pieces
    }

    /// Field X_H = (H_p, −H_q) of a Hamiltonian with `degrees` coordinates.
    pub fn hamiltonian_field(hamiltonian: &Functional, degrees: usize) -> Vec<Piece> {
        let n = degrees as u32;
        let mut pieces = Vec::new();
        for term in &hamiltonian.terms {
            let (mut graph, gradients) = term.gradients();
            let gradient = &gradients[0];
            // A slot may be a coordinate in one row and a momentum in another.
            let is_coordinate = |row: Entries, slot: u32| row.at(slot as usize) < n;
            let key = |row: Entries, key: &mut Vec<bool>| {
                key.extend(gradient.iter().map(|&(slot, _)| is_coordinate(row, slot)));
            };
            for (coordinates, rows) in alike(&term.table, |_| true, key) {
                let signed = |(&(_, d), &coordinate): (&(u32, Node), &bool)| {
                    if coordinate { graph.neg(d) } else { d }
                };
                let outputs: Vec<Node> = gradient.iter().zip(&coordinates).map(signed).collect();
                let place = |row: Entries, k: usize| {
                    let entry = row.at(gradient[k].0 as usize);
                    if coordinates[k] { entry + n } else { entry - n }
                };
                let table = placed(term, &rows, outputs.len(), |_| true, place);
                let near = term.near(gradient.iter().map(|&(slot, _)| term.side(slot)));
                pieces.extend(Piece::new(&table, &graph, outputs, near));
            }
        }
        pieces
    }

    /// Sums of ∂²H/∂p_i² over the momenta p_i that belong to one output; `target` is the output to
    /// which component i of the state belongs.
    pub fn momentum_curvature(
        hamiltonian: &Functional,
        degrees: usize,
        target: &dyn Fn(u32) -> u32,
    ) -> Vec<Piece> {
        let mut pieces = Vec::new();
        for term in &hamiltonian.terms {
            let (mut graph, gradients) = term.gradients();
            let mut curvature: Vec<(u32, Node)> = Vec::new();
            // Each further derivative of a sum of many positions would take as long as the sum.
            let may_be_momentum = |&&(slot, _): &&(u32, Node)| {
                let is_momentum = |row: Entries| row.at(slot as usize) as usize >= degrees;
                term.table.iter().any(|stretch| {
                    [0, stretch.rows - 1].into_iter().any(|k| is_momentum(stretch.row(k)))
                })
            };
            for &(slot, d) in gradients[0].iter().filter(may_be_momentum) {
                let second = graph.adjoint(d, |input| input == Input::Slot(slot));
                curvature.extend(second.into_iter().map(|(_, node)| (slot, node)));
            }
            for (momenta, rows) in momenta(term, &curvature, degrees) {
                let kept: Vec<(u32, Node)> = curvature
                    .iter()
                    .zip(&momenta)
                    .filter(|(_, momentum)| **momentum)
                    .map(|(&kept, _)| kept)
                    .collect();
                if kept.is_empty() {
                    continue;
                }
                let outputs = kept.iter().map(|&(_, node)| node).collect();
                let place = |row: Entries, k: usize| target(row.at(kept[k].0 as usize));
                let table = placed(term, &rows, kept.len(), |_| false, place);
                let near = term.near(kept.iter().map(|&(slot, _)| term.side(slot)));
                pieces.extend(Piece::new(&table, &graph, outputs, near));
            }
        }
        pieces
    }

    /// The functional p·∂H/∂p of a Hamiltonian with `degrees` positions: twice the kinetic energy
    /// if that is quadratic.
    pub fn momentum_work(hamiltonian: &Functional, degrees: usize) -> Functional {
        let mut terms = Vec::new();
        for term in &hamiltonian.terms {
            let (mut graph, gradients) = term.gradients();
            for (momenta, rows) in momenta(term, &gradients[0], degrees) {
                let mut work = None;
                for (&(slot, d), _) in
                    gradients[0].iter().zip(&momenta).filter(|(_, momentum)| **momentum)
                {
                    let p = graph.input(Input::Slot(slot));
                    let part = graph.mul(p, d);
                    work = Some(work.map_or(part, |sum| graph.add(sum, part)));
                }
                let Some(work) = work else { continue };
                terms.push(Term {
                    roots: vec![work],
                    graph: graph.clone(),
                    slots: term.slots.clone(),
                    table: rows.with_last(0),
                    numbers: term.numbers.clone(),
                    // Pairs from lists depend on positions only.
                    pairs: None,
                    spans: term.spans.clone(),
                });
            }
        }
        Functional { outputs: 1, terms }
    }

    /// The functional ∂H/∂p of a Hamiltonian with `degrees` positions: an output for each momentum.
    pub fn momentum_slopes(hamiltonian: &Functional, degrees: usize) -> Functional {
        let mut terms = Vec::new();
        for term in &hamiltonian.terms {
            let (graph, gradients) = term.gradients();
            for (momenta, rows) in momenta(term, &gradients[0], degrees) {
                for (&(slot, d), _) in
                    gradients[0].iter().zip(&momenta).filter(|(_, momentum)| **momentum)
                {
                    terms.push(Term {
                        roots: vec![d],
                        graph: graph.clone(),
                        slots: term.slots.clone(),
                        table: rows.clone().with_last_of(slot as usize, degrees as u32),
                        numbers: term.numbers.clone(),
                        // Pairs from lists depend on positions only.
                        pairs: None,
                        spans: term.spans.clone(),
                    });
                }
            }
        }
        Functional { outputs: degrees, terms }
    }

    /// The functional X_H = (H_p, −H_q) of a Hamiltonian with `degrees` positions.
    pub fn hamiltonian_slopes(hamiltonian: &Functional, degrees: usize) -> Functional {
        let mut terms = Vec::new();
        let n = degrees as u32;
        for term in &hamiltonian.terms {
            let (mut graph, gradients) = term.gradients();
            for (momenta, rows) in momenta(term, &gradients[0], degrees) {
                for (&(slot, d), &momentum) in gradients[0].iter().zip(&momenta) {
                    let (root, back) =
                        if momentum { (d, n) } else { (graph.neg(d), n.wrapping_neg()) };
                    terms.push(Term {
                        roots: vec![root],
                        graph: graph.clone(),
                        slots: term.slots.clone(),
                        table: rows.clone().with_last_of(slot as usize, back),
                        numbers: term.numbers.clone(),
                        pairs: term.pairs.clone(),
                        spans: term.spans.clone(),
                    });
                }
            }
        }
        Functional { outputs: 2 * degrees, terms }
    }

    /// Assemble a program of pieces.
    pub fn new(states: usize, outputs: usize, pieces: Vec<Piece>) -> RowProgram {
        let mut rows = vec![0u8; outputs];
        for piece in &pieces {
            piece.each_written(&mut |output| {
                rows[output as usize] = rows[output as usize].saturating_add(1)
            });
        }
        let is_alone = |piece: &Piece| {
            let mut alone = true;
            piece.each_written(&mut |output| alone &= rows[output as usize] == 1);
            alone
        };
        let alone = pieces.iter().map(is_alone).collect();
        RowProgram {
            states,
            outputs,
            apart: [].into(),
            pieces: pieces.into(),
            alone,
            layout: None,
            gaps: false,
        }
    }

    /// The program, whose last outputs are sums that are added to these others in the end.
    pub fn adding_last(self, apart: Vec<u32>) -> RowProgram {
        RowProgram { outputs: self.outputs - apart.len(), apart: apart.into(), ..self }
    }

    /// The program without the sums that are made apart.
    pub fn without_apart(&self) -> RowProgram {
        let is_apart = |piece: &Piece| piece.written().start >= self.outputs;
        let kept = || self.pieces.iter().zip(&*self.alone).filter(|(piece, _)| !is_apart(piece));
        RowProgram {
            apart: [].into(),
            pieces: kept().map(|(piece, _)| piece.clone()).collect(),
            alone: kept().map(|(_, &alone)| alone).collect(),
            layout: self.layout.clone(),
            ..*self
        }
    }

    /// Number of outputs, including the sums that are made apart.
    fn all_outputs(&self) -> usize {
        self.outputs + self.apart.len()
    }

    /// The program, which may leave outputs unchanged that no row adds to.
    pub fn leaving_gaps(self) -> RowProgram {
        RowProgram { gaps: true, ..self }
    }

    /// The program, run over the columns of the state.
    pub fn in_columns(&self, layout: &Arc<Layout>) -> RowProgram {
        if layout.is_plain() {
            return self.clone();
        }
        let pieces = self.pieces.iter().map(|piece| piece.in_columns(layout)).collect();
        let (apart, alone) = (Arc::clone(&self.apart), Arc::clone(&self.alone));
        RowProgram { apart, pieces, alone, layout: Some(Arc::clone(layout)), ..*self }
    }

    /// The program over a state that is split into these columns, with room after them for the last
    /// vector of a loop.
    pub fn over_columns(&self, layout: &Arc<Layout>) -> RowProgram {
        RowProgram { layout: None, states: self.states + SEGMENT_LANES, ..self.in_columns(layout) }
    }

    /// Places at which the rows of a piece store their outputs consecutively, without adding;
    /// `None` if they do not.
    fn straight(&self, piece: usize) -> Option<&Vec<u32>> {
        let line = self.pieces[piece].line.as_ref()?;
        line.outputs.as_ref().filter(|_| self.alone[piece])
    }

    /// Operations of one evaluation.
    pub fn operations(&self, parameters: usize) -> usize {
        self.pieces.iter().map(|piece| piece.tape(parameters).operations() * piece.rows).sum()
    }
}

impl Term {
    /// Outputs that a row adds to.
    pub(crate) fn outputs(&self, row: Entries) -> std::ops::Range<usize> {
        let first = row.last() as usize;
        first..first + self.roots.len()
    }

    /// Side of the entries of a slot, in a sum over pairs.
    pub(crate) fn side(&self, slot: u32) -> Side {
        self.pairs.as_ref().map_or(Side::Both, |pairs| pairs.sides[slot as usize])
    }

    /// Near pairs of the term, with the sides of the outputs; `None` if it has none.
    fn near(&self, outputs: impl Iterator<Item = Side>) -> Option<Near> {
        self.pairs
            .as_ref()
            .map(|pairs| Near { pairs: Pairs::clone(pairs), outputs: outputs.collect() })
    }

    /// The template with the gradients of its components with respect to the slots that read the
    /// state.
    pub(crate) fn gradients(&self) -> (Graph, Vec<Gradient>) {
        let mut graph = self.graph.clone();
        let is_state = |input: Input| match input {
            Input::Slot(k) => self.slots[k as usize] == Source::State,
            _ => false,
        };
        let mut gradient = |&root: &Node| -> Gradient {
            let derivatives = graph.adjoint(root, is_state).into_iter();
            derivatives
                .filter_map(
                    |(input, d)| if let Input::Slot(k) = input { Some((k, d)) } else { None },
                )
                .collect()
        };
        let gradients = self.roots.iter().map(&mut gradient).collect();
        (graph, gradients)
    }
}

/// True if the rows of a stretch add to the same outputs.
fn stays(stretch: &Stretch) -> bool {
    stretch.step.last() == Some(&0)
}

/// Rows of a term, grouped by the components that are outputs of a program, according to `target`.
fn wanted(term: &Term, target: &dyn Fn(usize) -> Option<u32>) -> Vec<(Vec<bool>, Stretches)> {
    alike(&term.table, stays, |row, key| {
        key.extend(term.outputs(row).map(|output| target(output).is_some()))
    })
}

/// Rows of a term by their momenta among the slots: a slot may be a coordinate in one row, a
/// momentum in another.
fn momenta(term: &Term, slots: &[(u32, Node)], degrees: usize) -> Vec<(Vec<bool>, Stretches)> {
    let is_momentum = |row: Entries, slot: u32| row.at(slot as usize) as usize >= degrees;
    alike(
        &term.table,
        |_| true,
        |row, key| key.extend(slots.iter().map(|&(slot, _)| is_momentum(row, slot))),
    )
}

/// Step from the first entry to the second.
fn first_step(entries: &[u32]) -> i64 {
    entries.get(1).map_or(0, |&second| i64::from(second) - i64::from(entries[0]))
}

/// Number of entries from the first on that follow each other in equal steps.
fn even_length(entries: &[u32]) -> usize {
    let step = first_step(entries);
    let uneven =
        entries.windows(2).position(|pair| i64::from(pair[1]) - i64::from(pair[0]) != step);
    uneven.map_or(entries.len(), |k| k + 1)
}

/// Near pairs, with formulas in some graph, and the sides of the outputs of a piece.
pub(crate) struct Near {
    pub pairs: Pairs,
    pub outputs: Vec<Side>,
}

/// Formulas over the slots of a table, with those slots in them that are the same in all rows:
/// constants fold, and products of parameters are computed once for a run.
fn folded(table: &RowTable, graph: &Graph, roots: &[Node]) -> (Graph, Vec<Node>) {
    let mut folded = Graph::new();
    let roots = folded.instantiate(graph, roots, |g, input| match input {
        Input::Slot(k) if table.is_same(k as usize) => match table.slots[k as usize] {
            Source::Number => g.constant(table.number(k as usize)),
            _ => g.parameter(table.rows.get(0).first[k as usize] as usize),
        },
        other => g.input(other),
    });
    (folded, roots)
}

/// Slots that formulas read, ascending, with their sources.
fn slots_read(graph: &Graph, roots: &[Node], sources: &[Source]) -> Vec<(u32, Source)> {
    let slot = |node| match graph.expression(node) {
        Expression::Input(Input::Slot(k)) => Some((k, sources[k as usize])),
        _ => None,
    };
    let mut slots: Vec<_> = graph.reachable(roots).into_iter().filter_map(slot).collect();
    slots.sort_unstable_by_key(|&(slot, _)| slot);
    slots
}

impl Piece {
    /// Create a piece of `outputs` of a graph over the slots of a table, whose rows include the
    /// places of the outputs. `None` if all outputs are 0. In a sum over near pairs, the rows are
    /// all members.
    pub(crate) fn new(
        table: &RowTable,
        graph: &Graph,
        outputs: Vec<Node>,
        near: Option<Near>,
    ) -> Option<Piece> {
        let (rows, sources, width) = (&table.rows, table.slots, outputs.len());
        debug_assert_eq!(rows.width(), sources.len() + width);
        let count = rows.rows();
        if count == 0 {
            return None;
        }
        let of_pairs = near.iter().flat_map(|near| near.pairs.nodes());
        let roots: Vec<Node> = outputs.into_iter().chain(of_pairs).collect();
        let (folded, mut outputs) = folded(table, graph, &roots);
        let of_pairs = outputs.split_off(width);
        let kept: Vec<usize> = (0..width).filter(|&k| !folded.is_zero(outputs[k])).collect();
        if kept.is_empty() {
            return None;
        }
        let roots: Vec<Node> = kept.iter().map(|&k| outputs[k]).chain(of_pairs).collect();
        // Formulas composed by the chain rule repeat themselves.
        let (folded, mut outputs) = optimise(&folded, &roots);
        let slots = slots_read(&folded, &outputs, sources);
        let of_pairs = outputs.split_off(kept.len());
        let mut numbers = Vec::new();
        if slots.iter().any(|(_, source)| *source == Source::Number) {
            numbers = table.numbers.to_vec();
            // Room for the last vector of a loop.
            numbers.extend([0.0; SEGMENT_LANES]);
        }
        // Their columns in the table: the slots, then the outputs.
        let read = slots.iter().map(|&(slot, _)| slot as usize);
        let columns: Vec<usize> = read.chain(kept.iter().map(|&k| sources.len() + k)).collect();
        let mut piece = Piece {
            graph: folded,
            outputs,
            rows: count,
            numbers,
            slots,
            blocks: Blocks::new(columns.len()),
            listed: Vec::new(),
            line: None,
            near: None,
            diagonals: None,
            whole: None,
        };
        if let Some(near) = near {
            debug_assert_eq!(count, near.pairs.which.members(), "rows of pairs are not divided");
            let of_slots = piece.slots.iter().map(|&(slot, _)| near.pairs.sides[slot as usize]);
            let sides: Vec<Side> = of_slots.chain(kept.iter().map(|&k| near.outputs[k])).collect();
            let split = piece.slots.len();
            piece.near = Some(NearRows::new(
                near.pairs.with_nodes(&of_pairs),
                rows,
                (&columns, &sides),
                split,
            ));
            return Some(piece);
        }
        // With any number of parameters.
        let operations = || piece.tape(usize::MAX).operations();
        let of_members = MemberNumbers::of(table, &piece.slots);
        let pairs = match &of_members {
            Some(MemberNumbers { rows, .. }) => rows,
            None => rows,
        };
        let is_of_row = of_members.is_none();
        if let Some((diagonals, blocks)) =
            Diagonals::of(pairs, &piece.slots, is_of_row, &columns, operations)
        {
            let numbers = of_members.map_or(Vec::new(), |members| members.numbers);
            return Some(Piece { diagonals: Some(diagonals), blocks, numbers, ..piece });
        }
        if let Some(lengths) = cut(pairs, &piece.slots, is_of_row, &columns) {
            piece.put_segments(table, of_members, &lengths, &columns);
            return Some(piece);
        }
        piece.put_blocks(rows, &columns);
        Some(piece)
    }

    /// Divide rows whose entries stand in these `columns` into blocks.
    fn put_blocks(&mut self, rows: &Stretches, columns: &[usize]) {
        let count = self.rows;
        let mut entries = vec![[0; BLOCK]; columns.len()];
        let mut places = Vec::with_capacity(columns.len());
        let (mut first, mut which) = (0, 0);
        while first < count {
            places.clear();
            let most = BLOCK.min(count - first);
            while rows.get(which).end() <= first {
                which += 1;
            }
            let stretch = rows.get(which);
            if first + most <= stretch.end() {
                let row = stretch.row(first - stretch.start);
                let step = |k: usize| if most > 1 { stretch.step[k] as i32 } else { 0 };
                let place = |&k: &usize| Places::Even { first: row.at(k), step: step(k) };
                places.extend(columns.iter().map(place));
                self.blocks.push(most as u32, &places);
                first += most;
                continue;
            }
            for (entries, &k) in entries.iter_mut().zip(columns) {
                rows.column(k, first, &mut entries[..most]);
            }
            let even = entries.iter().map(|entries| even_length(&entries[..most])).min();
            // A block may end where a line of a grid ends, if that leaves it long enough.
            let length = even.filter(|&len| len >= BLOCK / 2).unwrap_or(most);
            places.extend(entries.iter().map(|entries| self.place(&entries[..length])));
            self.blocks.push(length as u32, &places);
            first += length;
        }
        self.line = Line::of(self);
    }

    /// The sums of all rows to outputs from `first` on, which become those from `to` on. They get
    /// the same bits as with all outputs.
    pub(crate) fn sums(&self, first: u32, to: u32) -> Option<Piece> {
        let (slots, count) = (self.slots.len(), self.outputs.len());
        let place = |k: usize| match (&self.near, &self.diagonals) {
            (Some(near), _) => near.place(k),
            (None, Some(diagonals)) => diagonals.place(k),
            (None, None) => self.blocks.get(0).place(slots + k).entry(&self.listed, 0),
        };
        let kept: Vec<usize> = (0..count).filter(|&k| place(k) >= first).collect();
        if kept.is_empty() {
            return None;
        }
        let sum = |&k: &usize| Places::Even { first: place(k) - first + to, step: 0 };
        let sums: Vec<Places> = kept.iter().map(sum).collect();
        let diagonals = self.diagonals.as_ref().map(|diagonals| diagonals.sums(&kept, first, to));
        let mut blocks = Blocks::new(slots + kept.len());
        for block in self.blocks.iter() {
            let places: Vec<Places> = block.places().collect();
            let added = match &diagonals {
                Some(diagonals) => &diagonals.moved(&kept, &places[slots..]),
                None => &sums,
            };
            blocks.push(block.rows, &[&places[..slots], added].concat());
        }
        let mut piece = Piece {
            outputs: kept.iter().map(|&k| self.outputs[k]).collect(),
            blocks,
            near: self.near.as_ref().map(|near| near.sums(&kept, first, to)),
            diagonals: diagonals.clone(),
            whole: Some(Whole { outputs: self.outputs.clone(), written: self.written().len() }),
            ..self.clone()
        };
        piece.line = Line::of(&piece);
        Some(piece)
    }

    /// Visit all places to which rows add.
    fn each_written(&self, to: &mut impl FnMut(u32)) {
        if let Some(near) = &self.near {
            return near.each_written(to);
        }
        if let Some(diagonals) = &self.diagonals {
            return diagonals.each_written(to);
        }
        for block in self.blocks.iter() {
            let rows = block.rows;
            for places in block.places().skip(self.slots.len()) {
                match places {
                    // More often makes no difference.
                    Places::Even { first, step: 0 } => (0..rows.min(2)).for_each(|_| to(first)),
                    Places::Even { first, step } => {
                        let mut at = first;
                        for _ in 0..rows {
                            to(at);
                            at = at.wrapping_add_signed(step);
                        }
                    }
                    Places::Listed(start) => {
                        self.listed[start..start + rows as usize].iter().for_each(|&at| to(at))
                    }
                }
            }
        }
    }

    /// Range that contains all places to which rows add.
    fn written(&self) -> Range<usize> {
        let (mut first, mut end) = (u32::MAX, 0);
        let mut put = |at: u32| (first, end) = (first.min(at), end.max(at + 1));
        if self.near.is_some() || self.diagonals.is_some() {
            self.each_written(&mut put);
            return first.min(end) as usize..end as usize;
        }
        for block in self.blocks.iter() {
            let rows = block.rows;
            for places in block.places().skip(self.slots.len()) {
                match places {
                    Places::Even { .. } => {
                        [0, rows - 1].iter().for_each(|&row| put(places.entry(&[], row as usize)))
                    }
                    Places::Listed(start) => {
                        self.listed[start..start + rows as usize].iter().for_each(|&at| put(at))
                    }
                }
            }
        }
        first.min(end) as usize..end as usize
    }

    /// The piece over a state in columns.
    fn in_columns(&self, layout: &Layout) -> Piece {
        if let Some(near) = &self.near {
            return Piece { near: Some(near.in_columns(&self.slots, layout)), ..self.clone() };
        }
        let width = self.slots.len() + self.outputs.len();
        let mut piece = Piece { blocks: Blocks::new(width), listed: Vec::new(), ..self.clone() };
        let (mut entries, mut moved) = ([0; BLOCK], Vec::with_capacity(width));
        for block in self.blocks.iter() {
            let rows = block.rows;
            moved.clear();
            for (k, places) in block.places().enumerate() {
                let is_state =
                    self.slots.get(k).is_some_and(|&(_, source)| source == Source::State);
                match places {
                    Places::Even { .. } if !is_state => moved.push(places),
                    Places::Even { first, step }
                        if let Some((first, step)) = layout.line(first, step, rows) =>
                    {
                        moved.push(Places::Even { first, step });
                    }
                    _ => {
                        for (row, entry) in entries[..rows as usize].iter_mut().enumerate() {
                            let component = places.entry(&self.listed, row);
                            *entry = if is_state { layout.place(component) } else { component };
                        }
                        moved.push(piece.place(&entries[..rows as usize]));
                    }
                }
            }
            piece.blocks.push(rows, &moved);
        }
        piece.line = Line::of(&piece);
        piece
    }

    /// Places of one slot or output in a block, listed if they are not even.
    fn place(&mut self, entries: &[u32]) -> Places {
        match i32::try_from(first_step(entries)) {
            Ok(step) if even_length(entries) == entries.len() => {
                Places::Even { first: entries[0], step }
            }
            _ => {
                let start = self.listed.len();
                self.listed.extend_from_slice(entries);
                Places::Listed(start)
            }
        }
    }

    /// Number of rows of the longest block.
    fn longest(&self) -> usize {
        self.blocks.rows().max().map_or(0, |rows| rows as usize)
    }

    /// Formulas as code whose states are the slots.
    pub fn tape(&self, parameters: usize) -> Tape {
        self.tape_of(&self.outputs, self.all_outputs(), parameters)
    }

    /// Outputs of the whole that it is part of, or its own.
    fn all_outputs(&self) -> &[Node] {
        self.whole.as_ref().map_or(&self.outputs, |whole| &whole.outputs)
    }

    /// Code of some of the formulas `all`, fused as in all of them.
    fn tape_of(&self, outputs: &[Node], all: &[Node], parameters: usize) -> Tape {
        let mut g = Graph::new();
        let formulas = g.instantiate(&self.graph, all, |g, input| match input {
            Input::Slot(k) => g.state(self.slots.partition_point(|&(slot, _)| slot < k)),
            other => g.input(other),
        });
        let (g, formulas) = fuse(&g, &formulas);
        let place = |output: &Node| {
            all.iter().position(|other| other == output).expect("it is one of them")
        };
        let outputs: Vec<Node> = outputs.iter().map(|output| formulas[place(output)]).collect();
        Tape::for_rows(&g, &outputs, self.slots.len(), parameters)
    }

    /// Operations of a row of the whole; `tape` is that of the piece itself.
    fn whole_operations(&self, tape: &Tape, parameters: usize) -> usize {
        let whole = self
            .whole
            .as_ref()
            .map(|whole| self.tape_of(&whole.outputs, &whole.outputs, parameters));
        whole.as_ref().unwrap_or(tape).operations()
    }

    /// Length of the range of places to which the rows of the whole add.
    fn whole_written(&self) -> usize {
        self.whole.as_ref().map_or_else(|| self.written().len(), |whole| whole.written)
    }
}
