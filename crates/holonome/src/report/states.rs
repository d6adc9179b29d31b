//! The states of a stored run.

use crate::error::Error;
use crate::store::{RowReader, StoredRun};
use holonome_model::elaborate::model::Model;

/// Reader of whole states.
pub(super) struct States {
    /// Reader, first component and length of each variable.
    variables: Vec<(RowReader, usize, usize)>,
    dimension: usize,
}

impl States {
    /// States of a run of a model; `None` if not every variable is stored.
    pub fn of(run: &StoredRun, model: &Model) -> Result<Option<States>, Error> {
        let recorded = run.arrays();
        let mut variables = Vec::new();
        for variable in model.phase_variables().filter(|variable| !variable.family.is_empty()) {
            let name = &variable.family.name;
            if !recorded.iter().any(|array| array.name == *name) {
                return Ok(None);
            }
            let reader = run.rows(name).map_err(Error::store)?;
            variables.push((reader, variable.first, variable.family.len()));
        }
        Ok(Some(States { variables, dimension: model.phase_dimension() }))
    }

    /// First component and length of each variable.
    pub fn variables(&self) -> impl Iterator<Item = (usize, usize)> {
        self.variables.iter().map(|(_, first, len)| (*first, *len))
    }

    /// State of a sample.
    pub fn at(&mut self, sample: usize) -> Result<Vec<f64>, Error> {
        let mut x = vec![0.0; self.dimension];
        for (reader, first, len) in &mut self.variables {
            x[*first..*first + *len].copy_from_slice(reader.row(sample).map_err(Error::store)?);
        }
        Ok(x)
    }
}
