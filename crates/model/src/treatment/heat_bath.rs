//! Heat bath: a Hamiltonian model whose momenta feel friction and noise,
//!
//! dp = (−H_q − Gᵀλ) dt − γ H_p dt + √(2γkT) dW,
//!
//! keeps the distribution exp(−H/kT), and neither H nor its integrals. Friction, temperature and
//! the number of the trajectory, which keys its random numbers, become parameter values of the
//! model.
//!
//! With constraints the positions of that distribution have the density exp(−V/kT) √det A, A = G
//! M⁻¹Gᵀ, on the constraint set. The limit of stiff springs in place of the constraints has
//! exp(−V/kT)/√(det GGᵀ). Fixman's potential ½kT ln det A, added to H, turns the first into the
//! second (Fixman, Proc. Natl. Acad. Sci. 71 (1974) 3050).

use super::join::{Instances, Join, Part};
use crate::elaborate::expression::MOMENTUM;
use crate::elaborate::lower::LARGEST_TEMPLATE;
pub use crate::elaborate::model::HeatBath;
use crate::elaborate::model::{Dynamics, ENERGY_BALANCE, Model};
use crate::functional::{Entries, Functional, Source, Term};
use crate::graph::linear::{Factors, Matrix};
use crate::graph::op::Unary;
use crate::graph::{Expression, Graph, Input, Node};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// Largest number of constraints that share coordinates whose determinant is unrolled.
const MOST_JOINED_CONSTRAINTS: usize = 64;

/// Reason why a model has no heat bath.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum NotHeated {
    /// The model is a vector field.
    #[error("the model is a vector field, and a heat bath acts on the momenta of a Hamiltonian")]
    Field,
    /// H is not quadratic in the momenta.
    #[error(
        "the kinetic energy is not quadratic in the momenta, so no friction with Gaussian noise keeps its temperature"
    )]
    NotQuadratic,
    /// A constraint depends on momenta.
    #[error(
        "constraint '{name}' holds momenta, and a heat bath knows constraints on positions only"
    )]
    PhaseSpace {
        /// Name of the constraint.
        name: String,
    },
    /// Fixman's potential of a mass matrix that is not diagonal.
    #[error("Fixman's potential is known for diagonal mass matrices only, and this one is not")]
    FullMass,
    /// Fixman's potential of too many constraints.
    #[error(
        "Fixman's potential is the determinant of all constraints that share coordinates: {count} with constraint '{name}', and the limit is {MOST_JOINED_CONSTRAINTS}"
    )]
    Joined {
        /// Number of constraints in one block.
        count: usize,
        /// Name of the first of them.
        name: String,
    },
    /// A template would be too large.
    #[error(
        "Fixman's potential takes {size} operations in one formula, and the limit is {LARGEST_TEMPLATE}"
    )]
    TooLarge {
        /// Size of the template.
        size: usize,
    },
}

/// The model in a heat bath at temperature kT, with friction as force per velocity, and with
/// Fixman's potential if `fixman` is true. Its integrals become observables.
///
/// # Errors
/// If there are no momenta to act on, if friction and noise do not keep their temperature, or if
/// Fixman's potential is not known.
pub fn heat(
    model: &Model,
    (friction, temperature): (f64, f64),
    seed: u64,
    fixman: bool,
) -> Result<Model, NotHeated> {
    let Dynamics::Hamiltonian(own, span) = &model.dynamics else { return Err(NotHeated::Field) };
    if let Some(constraint) = model.stated_constraints().iter().find(|c| c.depends & MOMENTUM != 0)
    {
        return Err(NotHeated::PhaseSpace { name: constraint.name.clone() });
    }
    let diagonal = has_diagonal_mass(own, model.degrees())?;
    let mut heated = model.clone();
    let first = heated.parameter_values.len();
    heated.parameter_values.extend([friction, temperature, 0.0]);
    let (friction, temperature, trajectory) = (first, first + 1, first + 2);
    let mut hamiltonian = None;
    if fixman {
        let terms = fixman_terms(model, own, diagonal, temperature as u32)?;
        let sum =
            Functional { outputs: 1, terms: own.terms.iter().cloned().chain(terms).collect() };
        heated.dynamics = Dynamics::Hamiltonian(sum, *span);
        hamiltonian = Some(own.clone());
    }
    let mut integrals = std::mem::take(&mut heated.integrals);
    integrals.retain(|integral| integral.name != ENERGY_BALANCE); // heat is no work
    heated.observables.splice(0..0, integrals);
    heated.heat_bath =
        Some(Arc::new(HeatBath { friction, temperature, trajectory, seed, diagonal, hamiltonian }));
    Ok(heated)
}

/// True if H is a sum of squares of single momenta, with factors that may depend on the positions,
/// and of terms without momenta.
///
/// # Errors
/// If it is not quadratic in the momenta.
fn has_diagonal_mass(hamiltonian: &Functional, degrees: usize) -> Result<bool, NotHeated> {
    let mut diagonal = true;
    for term in &hamiltonian.terms {
        let (mut graph, gradients) = term.gradients();
        // A slot may be a coordinate in one row and a momentum in another.
        let momenta = |row: Entries| -> Vec<u32> { momentum_slots(term, row, degrees).collect() };
        let kinds: FxHashSet<Vec<u32>> =
            term.table.each().map(momenta).filter(|momenta| !momenta.is_empty()).collect();
        for momenta in kinds {
            let is_momentum =
                |input: Input| matches!(input, Input::Slot(k) if momenta.contains(&k));
            let zero = graph.zero();
            let still: FxHashMap<Node, Node> =
                momenta.iter().map(|&k| (graph.input(Input::Slot(k)), zero)).collect();
            for &(slot, d) in gradients[0].iter().filter(|(slot, _)| momenta.contains(slot)) {
                let second = graph.adjoint(d, is_momentum);
                let entries: Vec<Node> = second.iter().map(|&(_, entry)| entry).collect();
                let reads = |&node: &Node| matches!(graph.expression(node), Expression::Input(i) if is_momentum(i));
                if graph.reachable(&entries).iter().any(reads) {
                    return Err(NotHeated::NotQuadratic);
                }
                diagonal &= second.iter().all(|&(input, _)| input == Input::Slot(slot));
                let at_rest = graph.substituted(&[d], &still)[0];
                diagonal &= graph.is_zero(at_rest);
            }
        }
    }
    Ok(diagonal)
}

fn momentum_slots(term: &Term, row: Entries, degrees: usize) -> impl Iterator<Item = u32> {
    let entries = term.slots.iter().zip(row.iter()).enumerate();
    entries
        .filter(move |(_, (source, entry))| **source == Source::State && *entry as usize >= degrees)
        .map(|(slot, _)| slot as u32)
}

/// Disjoint sets, joined if they have something in common.
struct Joined(Vec<usize>);

impl Joined {
    fn root(&mut self, mut of: usize) -> usize {
        while self.0[of] != of {
            self.0[of] = self.0[self.0[of]];
            of = self.0[of];
        }
        of
    }

    fn join(&mut self, a: usize, b: usize) {
        // The first element represents the set.
        let (a, b) = (self.root(a), self.root(b));
        self.0[a.max(b)] = a.min(b);
    }
}

/// Code for no scalar constraint, or no coordinate, of a block.
const NONE: u32 = u32::MAX;

/// ½ kT ln det G M⁻¹Gᵀ, with a row for every block of constraints that share coordinates. Equal
/// blocks, as those of equal molecules, share a template.
fn fixman_terms(
    model: &Model,
    hamiltonian: &Functional,
    diagonal: bool,
    temperature: u32,
) -> Result<Vec<Term>, NotHeated> {
    if !diagonal {
        return Err(NotHeated::FullMass);
    }
    let constraints = ConstraintRows::of(model, hamiltonian);
    let mut join = Join::new(constraints.terms.clone());
    for (first, block) in constraints.blocks().iter().enumerate() {
        if !block.is_empty() {
            let (parts, shape) = constraints.template(first, block)?;
            join.push(&parts, &shape, 0);
        }
    }
    let mut size = join.largest();
    let made = join.terms(Some(temperature), |g, instances, temperature| {
        let temperature = temperature.expect("a parameter was asked for");
        let root = half_log_determinant(g, instances);
        vec![g.mul(temperature, root)]
    });
    size = made.iter().map(|term| term.graph.reachable(&term.roots).len()).fold(size, usize::max);
    if size > LARGEST_TEMPLATE { Err(NotHeated::TooLarge { size }) } else { Ok(made) }
}

/// Rows of the constraints, and the rows of H that move the positions in them.
struct ConstraintRows<'a> {
    degrees: usize,
    /// Terms of the constraints, then those of H.
    terms: Vec<&'a Term>,
    /// Name of each scalar constraint.
    scalars: Vec<&'a str>,
    /// Rows of constraints, each with the scalar constraints of its outputs, or [`NONE`].
    rows: Vec<(Part, Vec<u32>)>,
    /// For each coordinate, the rows of H that contain its momentum.
    feeders: Vec<Vec<Part>>,
}

impl<'a> ConstraintRows<'a> {
    fn of(model: &'a Model, hamiltonian: &'a Functional) -> ConstraintRows<'a> {
        let degrees = model.degrees();
        let (mut scalars, mut rows): (Vec<&str>, Vec<(Part, Vec<u32>)>) = (Vec::new(), Vec::new());
        let mut terms = Vec::<&Term>::new();
        for quantity in &model.constraints {
            let (first, width, kept) =
                (scalars.len(), quantity.shape.len(), quantity.components.len());
            let scalar = |output: usize| {
                let component = quantity.components.iter().position(|c| c.offset == output % width);
                component
                    .map_or(NONE, |component| (first + output / width * kept + component) as u32)
            };
            scalars.extend(std::iter::repeat_n(quantity.name.as_str(), quantity.members * kept));
            for term in &quantity.functional.terms {
                for (row, entries) in (0..).zip(term.table.each()) {
                    let of_roots = term.outputs(entries).map(scalar).collect();
                    rows.push(((terms.len() as u32, row), of_roots));
                }
                terms.push(term);
            }
        }
        let mut feeders = vec![Vec::<Part>::new(); degrees];
        for (number, term) in (terms.len() as u32..).zip(&hamiltonian.terms) {
            for (row, entries) in (0..).zip(term.table.each()) {
                for slot in momentum_slots(term, entries, degrees) {
                    feeders[entries.at(slot as usize) as usize - degrees].push((number, row));
                }
            }
        }
        terms.extend(&hamiltonian.terms);
        ConstraintRows { degrees, terms, scalars, rows, feeders }
    }

    /// Entries of a row with their sources.
    fn entries(&self, (term, row): Part) -> impl Iterator<Item = (u32, Source)> {
        let term = self.terms[term as usize];
        let entries = term.row(row as usize);
        (0..).zip(&term.slots).map(move |(slot, &source)| (entries.at(slot), source))
    }

    /// Components of the state that a row reads.
    fn states(&self, part: Part) -> impl Iterator<Item = u32> {
        self.entries(part).filter(|(_, source)| *source == Source::State).map(|(entry, _)| entry)
    }

    /// Numbers of the rows that belong together because they share positions, by the number of
    /// their first scalar constraint; most are empty.
    fn blocks(&self) -> Vec<Vec<usize>> {
        let mut joined = Joined((0..self.scalars.len()).collect());
        let mut of_coordinate = vec![Vec::<usize>::new(); self.degrees];
        let known = |scalars: &[u32]| -> Vec<usize> {
            scalars.iter().filter(|&&s| s != NONE).map(|&s| s as usize).collect()
        };
        for (part, of_roots) in &self.rows {
            for entry in self.states(*part) {
                of_coordinate[entry as usize].extend(known(of_roots));
            }
        }
        for together in of_coordinate.iter().filter(|together| together.len() > 1) {
            together.windows(2).for_each(|pair| joined.join(pair[0], pair[1]));
        }
        let mut blocks: Vec<Vec<usize>> = vec![Vec::new(); self.scalars.len()];
        for (number, (_, of_roots)) in self.rows.iter().enumerate() {
            if let Some(&scalar) = known(of_roots).first() {
                blocks[joined.root(scalar)].push(number);
            }
        }
        blocks
    }

    /// Parts of the template of a block, whose first scalar constraint is `first`, and its shape:
    /// the scalar of each root, and the coordinate, or momentum, of each slot.
    ///
    /// # Errors
    /// If the block joins too many constraints.
    fn template(&self, first: usize, block: &[usize]) -> Result<(Vec<Part>, Vec<u32>), NotHeated> {
        let of_rows = || block.iter().map(|&row| &self.rows[row]);
        let mut numbers: FxHashMap<u32, u32> = FxHashMap::default();
        for &scalar in of_rows().flat_map(|(_, scalars)| scalars).filter(|&&s| s != NONE) {
            let next = numbers.len() as u32;
            numbers.entry(scalar).or_insert(next);
        }
        if numbers.len() > MOST_JOINED_CONSTRAINTS {
            let (count, name) = (numbers.len(), self.scalars[first].to_string());
            return Err(NotHeated::Joined { count, name });
        }
        let mut parts: Vec<Part> = of_rows().map(|(part, _)| *part).collect();
        let mut coordinates: Vec<u32> = Vec::new();
        for entry in parts.iter().flat_map(|&part| self.states(part)) {
            if !coordinates.contains(&entry) {
                coordinates.push(entry);
            }
        }
        for feeder in coordinates.iter().flat_map(|&coordinate| &self.feeders[coordinate as usize])
        {
            if !parts.contains(feeder) {
                parts.push(*feeder);
            }
        }
        let mut shape = vec![numbers.len() as u32, block.len() as u32, coordinates.len() as u32];
        let number = |scalar: &u32| numbers.get(scalar).copied().unwrap_or(NONE);
        shape.extend(of_rows().flat_map(|(_, scalars)| scalars).map(number));
        let degrees = self.degrees as u32;
        let slot = |(entry, source): (u32, Source)| {
            let momentum = entry >= degrees;
            let coordinate = if momentum { entry - degrees } else { entry };
            let place = coordinates.iter().position(|&known| known == coordinate);
            place
                .filter(|_| source == Source::State)
                .map_or(NONE, |place| 2 * place as u32 + u32::from(momentum))
        };
        shape.extend(parts.iter().flat_map(|&part| self.entries(part)).map(slot));
        Ok((parts, shape))
    }
}

/// ½ ln det G M⁻¹Gᵀ of the constraints of a block's parts.
fn half_log_determinant(g: &mut Graph, instances: &Instances) -> Node {
    let (header, mut codes) = instances.shape.split_at(3);
    let [scalars, own, coordinates] = [header[0], header[1], header[2]].map(|n| n as usize);
    let zero = g.zero();
    let mut of_roots: Vec<&[u32]> = Vec::new();
    for roots in &instances.roots[..own] {
        let (these, rest) = codes.split_at(roots.len());
        of_roots.push(these);
        codes = rest;
    }
    // G by rows, and M⁻¹.
    let (mut jacobian, mut inverse) =
        (vec![vec![zero; coordinates]; scalars], vec![zero; coordinates]);
    for (part, (roots, slots)) in instances.roots.iter().zip(&instances.slots).enumerate() {
        let (of_slots, rest) = codes.split_at(slots.len());
        codes = rest;
        let code = |input: Input| match input {
            Input::Slot(k) if slots.contains(&k) => of_slots[(k - slots.start) as usize],
            _ => NONE,
        };
        if let Some(scalars) = of_roots.get(part) {
            for (&root, &scalar) in
                roots.iter().zip(*scalars).filter(|(_, scalar)| **scalar != NONE)
            {
                for (input, d) in g.adjoint(root, |input| code(input) != NONE) {
                    let entry = &mut jacobian[scalar as usize][code(input) as usize / 2];
                    *entry = g.add(*entry, d);
                }
            }
            continue;
        }
        let of_momentum = |input: Input| code(input) != NONE && code(input) % 2 == 1;
        for (input, d) in g.adjoint(roots[0], of_momentum) {
            for (_, second) in g.adjoint(d, |other| other == input) {
                let entry = &mut inverse[code(input) as usize / 2];
                *entry = g.add(*entry, second);
            }
        }
    }
    let mut matrix = Matrix::zeros(g, scalars);
    for (i, a) in jacobian.iter().enumerate() {
        let weighted: Vec<Node> = a.iter().zip(&inverse).map(|(&a, &w)| g.mul(a, w)).collect();
        for (j, b) in jacobian[..=i].iter().enumerate() {
            let entry = g.dot(&weighted, b);
            matrix.set(i, j, entry);
        }
    }
    let factors = Factors::symmetric(g, &matrix);
    let mut sum = zero;
    for &pivot in factors.inverse_pivots() {
        let logarithm = g.unary(Unary::Log, pivot);
        sum = g.sub(sum, logarithm);
    }
    let half = g.constant(0.5);
    g.mul(half, sum)
}
