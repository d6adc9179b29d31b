//! A model with everything that is derived of it, each part once and on demand.

use crate::elaborate::model::{Model, Quantity};
use crate::rows::RowProgram;
use crate::templated::{Differentiated, RowField, RowMechanics};
use crate::treatment::classes::structure;
use crate::treatment::mechanics::{Mechanics, NoMechanics};
use crate::treatment::structure::{Irregular, Structure};
use crate::treatment::unrolled::{TooLarge, Unrolled, unroll};
use crate::treatment::{Field, dirac};
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

/// A model. Its copies share everything that is derived of it.
#[derive(Clone, Debug)]
pub struct Derived {
    model: Arc<Model>,
    parts: Arc<Parts>,
}

#[derive(Debug, Default)]
struct Parts {
    unrolled: OnceLock<Result<Written, TooLarge>>,
    mechanics: OnceLock<Result<Mechanics, NoMechanics>>,
    templated: OnceLock<Option<RowMechanics>>,
}

/// An unrolled model, with its hidden constraints if it has a structure.
#[derive(Debug)]
pub struct Written {
    /// Graph of the model; the hidden constraints are formulas in it too.
    pub unrolled: Unrolled,
    /// Class of the constraints.
    pub structure: Result<Structure, Irregular>,
}

impl Deref for Derived {
    type Target = Model;

    fn deref(&self) -> &Model {
        &self.model
    }
}

impl Derived {
    /// Wraps `model`, of which nothing is derived yet.
    pub fn new(model: Model) -> Derived {
        Derived { model: Arc::new(model), parts: Arc::default() }
    }

    /// The model without its observables, measures and pictures, of which nothing is derived. All
    /// derived parts are shared.
    pub fn without_observables(&self) -> Derived {
        match self.model.observed().next() {
            Some(_) => self.observing(Vec::new()),
            None => self.clone(),
        }
    }

    /// The model with these observables in place of its own, its measures and its pictures. All
    /// derived parts are shared.
    pub fn observing(&self, observables: Vec<Quantity>) -> Derived {
        let model = Model {
            observables,
            measures: Vec::new(),
            drawings: Vec::new(),
            ..Model::clone(&self.model)
        };
        Derived { model: Arc::new(model), parts: Arc::clone(&self.parts) }
    }

    /// The model with these parameter values and this initial state. What is derived are formulas
    /// for all values, and stays.
    pub fn set_values(&mut self, parameters: &[f64], initial: &[f64]) {
        let model = Arc::make_mut(&mut self.model);
        model.parameter_values.copy_from_slice(parameters);
        model.initial.copy_from_slice(initial);
    }

    /// Drops everything that is derived: it takes memory, and a compiled run no longer needs it.
    pub fn forget(&mut self) {
        self.parts = Arc::default();
    }

    /// The unrolled model.
    ///
    /// # Errors
    /// If it is too large.
    pub fn written(&self) -> Result<&Written, &TooLarge> {
        let write = || {
            let mut unrolled = unroll(&self.model)?;
            let structure = structure(&self.model, &mut unrolled);
            Ok(Written { unrolled, structure })
        };
        self.parts.unrolled.get_or_init(write).as_ref()
    }

    /// The unrolled field with the constraints in it.
    ///
    /// # Errors
    /// If it is too large, or its constraints have no Dirac bracket.
    pub fn field(&self) -> Result<(Field, Structure), NoMechanics> {
        let Written { unrolled, structure } = self.written().map_err(Clone::clone)?;
        let structure = structure.clone()?;
        let field = dirac::extend(&self.model, unrolled.clone(), &structure)?;
        Ok((field, structure))
    }

    /// The unrolled mechanics.
    ///
    /// # Errors
    /// If it is too large, or its constraints are of mixed class.
    pub fn mechanics(&self) -> Result<&Mechanics, &NoMechanics> {
        let derive = || {
            let Written { unrolled, structure } = self.written().map_err(Clone::clone)?;
            Ok(Mechanics::new(&self.model, unrolled.clone(), structure.clone()?))
        };
        self.parts.mechanics.get_or_init(derive).as_ref()
    }

    /// A copy of its mechanics over columns, to which formulas can be added; `None` if the model
    /// has no such mechanics.
    pub fn row_mechanics(&self) -> Option<RowMechanics> {
        self.parts.templated.get_or_init(|| RowMechanics::new(&self.model)).clone()
    }

    /// Its field over rows.
    pub fn row_field(&self) -> RowField {
        RowField::new(&self.model, || self.row_mechanics())
    }

    /// Its field without constraints over rows, with the Jacobian; see [`Differentiated::field`].
    pub fn row_jacobian(&self) -> Option<Differentiated> {
        Differentiated::field(&self.model, || self.row_mechanics())
    }

    /// Its invariants over rows.
    pub fn row_invariants(&self) -> RowProgram {
        RowField::invariants(&self.model, || self.row_mechanics())
    }
}
