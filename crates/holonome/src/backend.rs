//! Choice of the backend that runs the tapes: machine code if available, else an interpreter. All
//! give the same bits.

use crate::error::Error;
use holonome_jit::{Best, BlockInterpreter, best};
use holonome_model::graph::interpret::{Backend, Cycle, CycleMap, Interpreter, Kernel};
use holonome_model::graph::tape::Tape;
use holonome_words::option;
use std::sync::OnceLock;

/// Environment variable that names another backend than the best, which is `gradual`: `machine`
/// compiles every kernel before it is first run, except those that are seldom run; `block` and
/// `interpreter` compile none.
const VARIABLE: &str = "HOLONOME_BACKEND";

/// The backend of this process.
struct Chosen {
    backend: Box<dyn Backend>,
    /// Backend of kernels that are seldom run, if it is another one.
    seldom: Option<Box<dyn Backend>>,
    lanes: usize,
    warning: Option<String>,
}

fn chosen() -> &'static Chosen {
    static CHOSEN: OnceLock<Chosen> = OnceLock::new();
    CHOSEN.get_or_init(|| {
        let wanted = |backend: Box<dyn Backend>, lanes| Chosen {
            backend,
            seldom: None,
            lanes,
            warning: None,
        };
        match std::env::var(VARIABLE).as_deref() {
            Ok("interpreter") => wanted(Box::new(Interpreter), 1),
            Ok("block") => {
                let block = BlockInterpreter::detect();
                wanted(Box::new(block), block.preferred_lanes())
            }
            Ok("machine") => the_best(false),
            Ok("gradual") | Err(_) => the_best(true),
            Ok(other) => {
                let ignored = format!(
                    "{VARIABLE}={other} is none of gradual, machine, block, interpreter, and is ignored"
                );
                Chosen { warning: Some(ignored), ..the_best(true) }
            }
        }
    })
}

fn the_best(gradually: bool) -> Chosen {
    let Best { backend, lanes, refused } = best(gradually);
    let slower =
        |reason| format!("{reason}; formulas are interpreted, which takes several times as long");
    let seldom = (!gradually).then(|| best(true).backend);
    Chosen { backend, seldom, lanes, warning: refused.map(|refused| slower(refused.reason)) }
}

/// The best backend available, for callers that compile many small tapes themselves.
pub fn backend() -> &'static dyn Backend {
    &*chosen().backend
}

/// Compile `tape` for this many lanes by the best backend available.
pub fn compile(tape: &Tape, lanes: usize) -> Box<dyn Kernel> {
    backend().compile_any(tape, lanes)
}

/// Kernel of `tape` in one lane that is seldom run: it is compiled only if it is run often.
pub fn compile_seldom(tape: &Tape) -> Box<dyn Kernel> {
    chosen().seldom.as_deref().unwrap_or_else(backend).compile_any(tape, 1)
}

/// Compile `tape` for the first lane of arrays of so many lanes.
pub fn compile_first_lane(tape: &Tape, lanes: usize) -> Box<dyn Kernel> {
    let compiled = chosen().backend.compile_first_lane(tape, lanes);
    compiled
        .or_else(|_| Interpreter.compile_first_lane(tape, lanes))
        .expect("the interpreter never refuses")
}

/// Compile maps of one array that follow each other again and again, if the best backend available
/// runs them together.
pub fn compile_cycle(maps: &[CycleMap]) -> Option<Box<dyn Cycle>> {
    chosen().backend.compile_cycle(maps).ok()
}

/// Create `count` threads for ensembles, comparisons and long sums, or as many of them as are of
/// use: see `most_threads`. Called once, before anything is computed; without it there are as many
/// threads as cores.
///
/// # Errors
/// If the number is out of range, or threads exist already.
pub fn set_threads(count: usize) -> Result<(), Error> {
    const MOST: usize = 4096;
    if !(1..=MOST).contains(&count) {
        return Err(Error::option(format!(
            "{threads} must be from 1 to {MOST}, but it is {count}",
            threads = option("threads")
        )));
    }
    create_threads(count.min(most_threads())).map_err(|error| {
        Error::option(format!("{threads} {count}: {error}", threads = option("threads")))
    })
}

/// Create threads at once if the environment asks for more of them than are of use, which would be
/// created later. Called in place of [`set_threads`].
///
/// # Errors
/// If threads exist already.
pub fn bound_threads() -> Result<(), Error> {
    let most = most_threads();
    let asked = std::env::var(THREADS).ok().and_then(|count| count.trim().parse::<usize>().ok());
    match asked.is_some_and(|count| count > most) {
        true => create_threads(most).map_err(|error| Error::option(format!("{THREADS}: {error}"))),
        false => Ok(()),
    }
}

/// Environment variable that gives the number of threads.
const THREADS: &str = "RAYON_NUM_THREADS";

/// Number of threads beyond which more are of no use: several for every core wait for each other,
/// and thousands take longer to look for work than to do it. On two cores ten pendula take 0.3 s
/// with 256 threads and 6 s with 1024.
fn most_threads() -> usize {
    const PER_CORE: usize = 8;
    const ALWAYS: usize = 64;
    ALWAYS.max(PER_CORE * std::thread::available_parallelism().map_or(1, usize::from))
}

fn create_threads(count: usize) -> Result<(), rayon::ThreadPoolBuildError> {
    rayon::ThreadPoolBuilder::new().num_threads(count).build_global()
}

/// Best number of lanes for an ensemble.
pub fn lanes() -> usize {
    chosen().lanes
}

/// Warning about the backend for the user, if any.
pub fn warning() -> Option<String> {
    chosen().warning.clone()
}
