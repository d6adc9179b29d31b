//! Place of a process among others that a scheduler started, from its environment.

use super::blocks::Share;
use crate::error::Error;
use holonome_words::option;

/// Variables of one scheduler or launcher.
struct Launcher {
    name: &'static str,
    /// Number of this process.
    number: &'static str,
    /// Number of processes.
    of: &'static str,
    /// Number of the first process, if not 0.
    first: Option<&'static str>,
    /// Difference between the numbers of two processes, if not 1.
    step: Option<&'static str>,
}

/// Array of jobs, each of which may start several processes.
const ARRAYS: [Launcher; 2] = [
    Launcher {
        name: "a Slurm array",
        number: "SLURM_ARRAY_TASK_ID",
        of: "SLURM_ARRAY_TASK_COUNT",
        first: Some("SLURM_ARRAY_TASK_MIN"),
        step: Some("SLURM_ARRAY_TASK_STEP"),
    },
    Launcher {
        name: "a Kubernetes Indexed Job",
        number: "JOB_COMPLETION_INDEX",
        of: "JOB_COMPLETIONS",
        first: None,
        step: None,
    },
];

/// Processes of one job. A process that `mpirun` starts within a job of Slurm inherits the number
/// of the job's script, so Slurm comes last.
const PROCESSES: [Launcher; 3] = [
    plain("Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    plain("MPICH", "PMI_RANK", "PMI_SIZE"),
    plain("srun", "SLURM_PROCID", "SLURM_NTASKS"),
];

const fn plain(name: &'static str, number: &'static str, of: &'static str) -> Launcher {
    Launcher { name, number, of, first: None, step: None }
}

impl Launcher {
    /// Number of this process from 0, and number of all; `None` if something else started it.
    fn place(&self, read: &dyn Fn(&str) -> Option<String>) -> Result<Option<(u64, u64)>, Error> {
        let Some(number) = read(self.number) else { return Ok(None) };
        let worker = option("worker");
        let value = |name: &str, text: String| {
            text.trim().parse::<u64>().map_err(|_| {
                Error::option(format!("{worker} env: {name} is '{text}', which is no number"))
            })
        };
        let Some(of) = read(self.of) else {
            return Err(Error::option(format!(
                "{worker} env: {} sets {}, but not {}: set that to the number of processes, or give {}",
                self.name,
                self.number,
                self.of,
                option("worker").of("k/n")
            )));
        };
        let optional = |name: Option<&str>, default: u64| match name {
            Some(name) => read(name).map_or(Ok(default), |text| value(name, text)),
            None => Ok(default),
        };
        let (first, step) = (optional(self.first, 0)?, optional(self.step, 1)?.max(1));
        let number = value(self.number, number)?.saturating_sub(first) / step;
        Ok(Some((number, value(self.of, of)?)))
    }
}

impl Share {
    /// Share of a process that a scheduler or launcher started: an array of Slurm, an Indexed Job
    /// of Kubernetes, Open MPI, MPICH or `srun`, or several processes in each job of an array.
    /// `read` gives the value of a variable.
    ///
    /// # Errors
    /// If none of them started it; if a variable has no value that is a number.
    pub fn from_environment(read: &dyn Fn(&str) -> Option<String>) -> Result<Share, Error> {
        let place = |launchers: &[Launcher]| -> Result<Option<(u64, u64)>, Error> {
            for launcher in launchers {
                if let Some(place) = launcher.place(read)? {
                    return Ok(Some(place));
                }
            }
            Ok(None)
        };
        let (job, process) = (place(&ARRAYS)?, place(&PROCESSES)?);
        if job.is_none() && process.is_none() {
            let all = ARRAYS.iter().chain(&PROCESSES);
            let names: Vec<&str> = all.map(|launcher| launcher.number).collect();
            return Err(Error::option(format!(
                "{} env: none of {} is set: start it by a scheduler, or give {}",
                option("worker"),
                names.join(", "),
                option("worker").of("k/n")
            )));
        }
        let ((job, jobs), (process, processes)) =
            (job.unwrap_or((0, 1)), process.unwrap_or((0, 1)));
        Ok(Share::Worker { number: job * processes + process + 1, of: jobs * processes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(variables: &[(&str, &str)]) -> Result<(u64, u64), String> {
        let read = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, text)| text.to_string())
        };
        match Share::from_environment(&read) {
            Ok(Share::Worker { number, of }) => Ok((number, of)),
            Ok(other) => panic!("{other:?}"),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn every_scheduler_tells_the_place() {
        let array = [("SLURM_ARRAY_TASK_ID", "7"), ("SLURM_ARRAY_TASK_COUNT", "4")];
        let more = [("SLURM_ARRAY_TASK_MIN", "1"), ("SLURM_ARRAY_TASK_STEP", "2")];
        assert_eq!(share(&[&array[..], &more].concat()), Ok((4, 4)));
        let processes = [("SLURM_PROCID", "1"), ("SLURM_NTASKS", "3")];
        assert_eq!(share(&processes), Ok((2, 3)));
        assert_eq!(share(&[&array[..], &more, &processes].concat()), Ok((11, 12)));
        let ranks = [("OMPI_COMM_WORLD_RANK", "2"), ("OMPI_COMM_WORLD_SIZE", "5")];
        assert_eq!(
            share(&[&ranks[..], &[("SLURM_PROCID", "0"), ("SLURM_NTASKS", "5")]].concat()),
            Ok((3, 5))
        );
        assert_eq!(share(&[("PMI_RANK", "0"), ("PMI_SIZE", "2")]), Ok((1, 2)));
        assert_eq!(
            share(&[("JOB_COMPLETION_INDEX", "9"), ("JOB_COMPLETIONS", "10")]),
            Ok((10, 10))
        );
        assert!(share(&[("JOB_COMPLETION_INDEX", "9")]).unwrap_err().contains("JOB_COMPLETIONS"));
        assert!(share(&[]).unwrap_err().contains("SLURM_ARRAY_TASK_ID"));
        assert!(share(&[("PMI_RANK", "x"), ("PMI_SIZE", "2")]).unwrap_err().contains("'x'"));
    }
}
