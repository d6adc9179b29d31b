//! Output of a run's samples: to its folder, or to memory.

use super::Simulation;
use super::orbit;
use super::outcome::{OF_MODELS, motion_warnings};
use super::stepping::{Running, without_failed};
use super::{From, Trajectory};
use crate::arrays::Array;
use crate::error::Error;
use crate::events::EventTable;
use crate::interpolant::Interpolant;
use crate::monitored::Monitored;
use crate::output::{Output, RunFolder};
use crate::pieces::Pieces;
use crate::recording::{Deviations, Progress, RecordedArray, Recorder};
use crate::solution::Solution;
use crate::store::{Group, Status, Store, StoreError};
use crate::summary::{Ending, Summary, large_drifts, lost};
use holonome_integrate::failure::Failure;
use holonome_integrate::observer::Control;
use holonome_integrate::run::Outcome;
use holonome_integrate::system::System;
use holonome_model::treatment::InvariantKind;
use holonome_words::option;
use serde_json::{Map, Value};
use std::path::Path;
use std::time::Instant;

impl Simulation {
    /// Open the run's folder: create it or, if the run was stopped there, go on from its
    /// checkpoint.
    ///
    /// # Errors
    /// If it cannot be created or opened; if the run has finished or failed in it.
    pub fn open(&mut self) -> Result<&Path, Error> {
        match &self.folder {
            RunFolder::New => self.folder = self.create()?,
            RunFolder::Open(_) => {}
            RunFolder::Closed(path, status) => {
                let path = path.clone();
                let (folder, checkpoint) = RunFolder::reopen(&path, *status)?;
                self.go_on(checkpoint.state().map_err(Error::store)?, &path)?;
                self.folder = folder;
            }
        }
        Ok(self.folder.path())
    }

    fn create(&self) -> Result<RunFolder, Error> {
        if self.settable.is_some() {
            return Err(Error::option(
                "a simulation whose values are set runs in memory: `solve` it, or give the values by `Settings::given` to one that is prepared for them",
            ));
        }
        self.footprint().check()?;
        RunFolder::create(self.options.out.as_deref(), &self.problem.name, &self.layout())
    }

    /// Run to the end, or until `watch` returns [`Control::Stop`], into the run's folder; `watch`
    /// is called every few hundredths of a second. The next call continues a stopped run in the
    /// same folder, as does [`Simulation::resume`] in another process.
    ///
    /// # Errors
    /// If the run fails; the trajectory up to there is stored. If it has finished or failed
    /// already.
    pub fn run(
        &mut self,
        watch: &mut (dyn FnMut(&Progress) -> Control + Send),
    ) -> Result<Summary, Error> {
        if self.options.interpolant {
            return Err(Error::option(format!(
                "{} is kept in memory only: leave it out, or solve in memory",
                option("interpolant")
            )));
        }
        self.open()?;
        let mut output = self.folder.take();
        let outcome = self.run_into(&mut output, None, watch);
        self.folder.close(outcome.as_ref().ok().map(|summary| summary.interrupted));
        outcome
    }

    /// Run to the end, in memory. Every call begins at the start, and gives the numbers that
    /// [`Simulation::run`] stores, bit for bit.
    ///
    /// # Errors
    /// If the run fails, with the trajectory up to there; if memory does not hold the samples.
    pub fn solve(&mut self) -> Result<Solution, Error> {
        self.solve_while(&mut |_| Control::Continue)
    }

    /// Run [`Simulation::solve`] until `watch` returns [`Control::Stop`]; it is called every few
    /// hundredths of a second.
    ///
    /// # Errors
    /// As [`Simulation::solve`].
    pub fn solve_while(
        &mut self,
        watch: &mut (dyn FnMut(&Progress) -> Control + Send),
    ) -> Result<Solution, Error> {
        if !matches!(self.folder, RunFolder::New) {
            return Err(Error::option(
                "this run has begun in a folder, which has its first samples: go on there, or prepare the problem anew",
            ));
        }
        let mut output = Output::Memory(self.footprint().in_memory(&self.arrays_layout())?);
        // The state that a run changes is restored, so that the next run begins at the same start.
        let outputs = self.measuring.as_ref().map(|measuring| measuring.outputs.clone());
        let before = (self.trajectory.state.clone(), self.plan.clone(), self.options.clone());
        let mut pieces =
            self.options.interpolant.then(|| Pieces::new(&self.plan, &self.trajectory.state.x));
        let outcome = self.run_into(&mut output, pieces.as_mut(), watch);
        let interpolant = match (pieces, &outcome) {
            (Some(pieces), Ok(_)) => {
                let run = (&self.plan, &self.trajectory.system, &self.trajectory.state);
                Some(Interpolant::new(pieces, run, self.arrays_layout(), &self.recorded.arrays))
            }
            _ => None,
        };
        (self.trajectory.state, self.plan, self.options) = before;
        if let Some((measuring, outputs)) = self.measuring.as_mut().zip(outputs) {
            measuring.outputs = outputs;
        }
        let arrays = output.into_parts().1.expect("the output is memory");
        match outcome {
            Ok(summary) => Ok(Solution { summary, arrays, interpolant: interpolant.transpose()? }),
            Err(Error::Failed { failure, monitored, samples, .. }) => {
                let kept = Some(Box::new(arrays));
                Err(Error::Failed { failure, monitored, out: None, samples, kept })
            }
            Err(error) => Err(error),
        }
    }

    /// Drifts, costs and warnings of the last run, up to its failure: what a summary would have told.
    /// `None` if none has failed since the last call.
    pub fn failed(&mut self) -> Option<Summary> {
        self.failed.take().map(|summary| *summary)
    }

    /// Store a result of [`Simulation::solve`] in a new folder, as [`Simulation::run`] would have
    /// done. There is no state from which such a run could be resumed or extended.
    ///
    /// # Errors
    /// If the folder cannot be written, or is not empty; if the result is not one of this
    /// simulation.
    pub fn store(&self, solution: &Solution, path: impl AsRef<Path>) -> Result<(), Error> {
        let Solution { summary, arrays, .. } = solution;
        let layout = self.layout();
        if !arrays.fit(&layout) {
            return Err(Error::option("this result is not one of this simulation"));
        }
        let mut store = Store::create(path.as_ref(), &layout).map_err(Error::store)?;
        let rows: Vec<&[f64]> = arrays.iter().map(Array::values).collect();
        store.append_many(arrays.times().len(), &rows).map_err(|(_, error)| Error::store(error))?;
        let status = if summary.interrupted { Status::Interrupted } else { Status::Finished };
        store
            .finish(status, summary)
            .and_then(|()| {
                let (attributes, groups) = self.ending(status, summary);
                store.publish(attributes, &groups)
            })
            .map_err(Error::store)
    }

    fn run_into(
        &mut self,
        output: &mut Output,
        pieces: Option<&mut Pieces>,
        watch: &mut (dyn FnMut(&Progress) -> Control + Send),
    ) -> Result<Summary, Error> {
        let started = Instant::now();
        let Simulation {
            problem,
            options,
            groups,
            plan,
            trajectory,
            recorded,
            measuring,
            multipliers,
            ..
        } = self;
        let Trajectory { system, step, program, state, gains, rate } = trajectory;
        let (of_run, recorded) = (
            (&*plan, &groups[..], &**system),
            (&*recorded, measuring.as_ref(), multipliers.as_ref()),
        );
        let deviations = Deviations::new(&**system, &state.target);
        let mut recorder = Recorder::new(of_run, recorded, deviations, output, pieces, watch);
        let model = &problem.model;
        let running = Running {
            groups,
            parts: (program.as_ref(), step, system),
            gains: (gains, *rate),
            from: From { parameters: &model.parameter_values, x: &model.initial, reference: None },
            without: &|state| without_failed(problem, options, groups, state),
        };
        let plan = measuring.as_ref().map_or(&*plan, |measuring| &measuring.outputs.plan);
        let outcome = running.run(plan, state, &mut recorder);
        let undefined = recorder.undefined;
        let path = output.path().map(Path::to_path_buf);
        let ended = matches!(outcome, Ok(Outcome::Event));
        let finished = ended || matches!(outcome, Ok(Outcome::Finished));
        let mut summary = self.summary(path.clone(), started.elapsed().as_secs_f64(), !finished);
        summary.renamed = output.renamed();
        if ended {
            summary.ended_by = self.last_event();
        }
        let monitored = self.warn_of_results(&mut summary, &undefined);
        match outcome {
            Err(failure) => {
                let monitored = monitored.and_then(|monitored| monitored.explaining(&failure));
                // The failure is reported even if the disk accepts nothing more.
                let stored = output.checkpoint(&self.trajectory.state);
                let (failure, samples) = (Box::new(failure), output.kept());
                let error = Error::Failed { failure, monitored, out: path, samples, kept: None };
                let ending = || self.ending(Status::Failed, &summary);
                let report = error.report();
                drop(stored.and_then(|()| output.finish(Status::Failed, &report, ending)));
                self.failed = Some(Box::new(summary));
                Err(error)
            }
            Ok(_) => match self.end(output, &mut summary, finished, watch) {
                Ok(()) => Ok(summary),
                Err(source) => {
                    let failure = Box::new(Failure::Observer(source));
                    let samples = output.kept();
                    Err(Error::Failed { failure, monitored: None, out: path, samples, kept: None })
                }
            },
        }
    }

    /// Warn of results that are not those of the model's motion, or not known; `undefined` counts
    /// the samples in which each array is not finite.
    fn warn_of_results(&self, summary: &mut Summary, undefined: &[u64]) -> Option<Monitored> {
        let warnings = &mut summary.warnings;
        if !self.rests() {
            let off_target = self.options.reference.is_some();
            summary.lost = lost(&summary.drift, off_target);
            warnings.extend(large_drifts(&summary.drift, off_target));
        }
        let arrays = self.recorded.arrays.iter().zip(undefined);
        warnings.extend(arrays.filter(|(_, count)| **count > 0).map(|(array, count)| {
            let RecordedArray { role, name, .. } = array;
            format!("{role} '{name}' is not a finite number in {count} of the samples")
        }));
        let tables = summary.measures.iter().filter(|table| table.is_undefined());
        warnings.extend(tables.map(|table| {
            let name = table.name.as_deref().unwrap_or(&table.measure);
            format!("measure '{name}' met something that is not a finite number")
        }));
        let program = self.trajectory.program.as_ref();
        let eigenvalue =
            program.and_then(|program| program.smallest_eigenvalue(&self.trajectory.state.memory));
        let modified =
            summary.drift.iter().find(|drift| drift.kind == InvariantKind::ModifiedEnergy);
        let monitored = Monitored::new(modified.map(|drift| drift.max), eigenvalue);
        warnings.extend(monitored.and_then(|monitored| monitored.warning()));
        let system = &*self.trajectory.system;
        warnings.extend(motion_warnings(
            &self.trajectory.state,
            system,
            &self.groups,
            &self.plan,
            OF_MODELS,
        ));
        monitored
    }

    /// Store the end of a run that did not fail, and measure the error of its orbit if requested.
    fn end(
        &mut self,
        output: &mut Output,
        summary: &mut Summary,
        finished: bool,
        watch: &mut (dyn FnMut(&Progress) -> Control + Send),
    ) -> Result<(), StoreError> {
        // State from which the run goes on, or can be extended.
        output.checkpoint(&self.trajectory.state)?;
        if !finished {
            let ending = || self.ending(Status::Interrupted, summary);
            return output.finish(Status::Interrupted, summary, ending);
        }
        output.finish(Status::Finished, summary, || self.ending(Status::Finished, summary))?;
        if !self.options.error {
            return Ok(());
        }
        let name = option("error");
        match orbit::measure(self, output, watch) {
            Ok(Some(error)) => summary.error = Some(error),
            Ok(None) => {
                summary.warnings.push(format!("{name}: stopped before the error was known"));
            }
            Err(error) => summary.warnings.push(format!("{name}: the second run: {error}")),
        }
        output.finish(Status::Finished, summary, || self.ending(Status::Finished, summary))
    }

    /// Name of the event at which the run is.
    fn last_event(&self) -> Option<String> {
        let rules = self.trajectory.system.events()?.rules();
        let last = self.trajectory.state.event_log.iter().last()?;
        Some(rules[last.rule].name.clone())
    }

    /// What attributes and groups tell of a run that has ended.
    fn ending(&self, status: Status, summary: &Summary) -> (Map<String, Value>, Vec<Group>) {
        let Summary { t, steps, drift, error, cost, warnings, .. } = summary;
        let (t, steps, error) = (*t, *steps, error.as_ref());
        let ending = Ending { status, t, steps, drift, error, cost, warnings };
        let measures = self.measuring.iter().flat_map(|measuring| &measuring.measures);
        let groups = measures.zip(&summary.measures).filter_map(|(of, table)| of.group(table));
        let events = summary.events.iter().filter(|table| !table.t.is_empty());
        (ending.attributes(), groups.chain(events.map(EventTable::group)).collect())
    }

    /// True if no position has moved by more than rounding: energies and integrals may then consist
    /// of rounding only.
    fn rests(&self) -> bool {
        const ROUNDINGS: f64 = 16.0 * f64::EPSILON;
        let n = self.problem.model.degrees();
        let (x, before) = (&self.trajectory.state.x[..n], &self.problem.model.initial[..n]);
        let size = before.iter().fold(0.0f64, |size, x| size.max(x.abs()));
        n > 0 && x.iter().zip(before).all(|(x, before)| (x - before).abs() <= ROUNDINGS * size)
    }
}
