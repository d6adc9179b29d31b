//! Arguments of every command.

use clap::{
    Arg, ArgAction, ArgGroup, ArgMatches, Args, FromArgMatches, Parser, Subcommand, ValueEnum,
    value_parser,
};
use clap_complete::Shell;
use holonome::method::Method;
use holonome::store::{FORMATS, Format};
use holonome::sweep::Share;
use holonome::{
    CompareOptions, Error, Gains, Metric, PenaltyStrength, RunOptions, Settings, Singular,
    StepSize, SweepOptions, Thermostat, constant, each, left_to_model, until_event,
};
use std::path::PathBuf;
use std::sync::Arc;

// Headings of the options, in the order in which a help text shows them.
const ENSEMBLE: &str = "Ensemble";
const WORKERS: &str = "Workers that share a folder";
const MODEL: &str = "Model";
const METHOD: &str = "Method and steps";
const HEAT_BATH: &str = "Heat bath";
const INVARIANTS: &str = "Constraints and invariants";
const PENALTY: &str = "Penalty";
const OUTPUT: &str = "Output";
const GENERAL: &str = "General options";

/// Position of the first general option within its heading, after those of a command.
const LAST: usize = 1000;

/// Structure-preserving integrator of mechanical systems with constraints and conserved quantities.
#[derive(Parser)]
#[command(
    name = "holonome",
    version,
    arg_required_else_help = true,
    disable_help_flag = true,
    disable_version_flag = true,
    arg = help_flag(),
    arg = version_flag(),
    after_help = "Example:\n  holonome run models/spherical-pendulum.holo"
)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
    /// Colours in messages: always, never, or auto (on terminals, unless NO_COLOR is set)
    #[arg(
        long,
        value_name = "WHEN",
        value_enum,
        default_value_t,
        hide_possible_values = true,
        global = true
    )]
    #[arg(help_heading = GENERAL, display_order = LAST + 2)]
    pub color: Colour,
}

/// `--help`, with the other general options.
fn help_flag() -> Arg {
    let flag = Arg::new("help").short('h').long("help").action(ArgAction::Help).global(true);
    flag.help("Print this help").help_heading(GENERAL).display_order(LAST + 3)
}

/// `--version`, with the other general options.
fn version_flag() -> Arg {
    let flag = Arg::new("version").short('V').long("version").action(ArgAction::Version);
    flag.help("Print the version").help_heading(GENERAL).display_order(LAST + 4)
}

/// Choice of when messages are coloured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Colour {
    #[default]
    Auto,
    Always,
    Never,
}

#[derive(Subcommand)]
pub enum Command {
    /// Integrate one trajectory.
    #[command(
        after_help = "Examples:\n  holonome run models/spherical-pendulum.holo\n  holonome run models/kepler.holo --until 70.248 \\\n      --method feedback:euler --step 1e-3 --gain L=4,A=2\n  holonome run models/chain.holo --set n=20 --method corrected:rk4 \\\n      --step 0.01 --json"
    )]
    Run(RunArguments),
    /// Compare methods on one system by errors, drifts and costs.
    #[command(
        after_help = "Errors are measured against a converged reference. Methods with an error estimate are run with every tolerance, or with every step if no tolerance is given. Other methods are run with every step.\n\nExamples:\n  holonome compare models/spherical-pendulum.holo \\\n      --method euler,rk4,corrected:rk4 --step 0.02,0.01,0.005\n  holonome compare models/kepler.holo \\\n      --method rk4 --method dop853 --step 0.01 --rtol 1e-6,1e-9 --until 70.248\n  holonome compare models/planar-pendulum.holo \\\n      --method corrected:rk4,dop853 --budget 1000,5000 --until 7.416"
    )]
    Compare(CompareArguments),
    /// Integrate an ensemble: many initial values or parameters.
    #[command(
        after_help = "Examples:\n  holonome sweep models/spherical-pendulum.holo --trajectories 1000 \\\n      --vary \"g=0.5+i/N\"\n  holonome sweep models/kepler.holo --trajectories 100000 \\\n      --vary \"v=(0,1+0.01*normal(),0)\" --shard 1/4 --out part-1\n  holonome sweep models/kepler.holo --over mu=0.5..2,101 \\\n      --over 'x.y=list(0,0.1)' --out grid --worker 1/4\n\nThe same command again goes on with the ensemble in --out."
    )]
    Sweep(SweepArguments),
    /// Join the parts of a sharded sweep.
    #[command(
        after_help = "The result equals that of an unsharded sweep.\n\nExample:\n  holonome merge whole part-1 part-2 part-3 part-4"
    )]
    Merge(MergeArguments),
    /// Continue an interrupted run, or extend a finished one.
    #[command(
        after_help = "The result equals that of an uninterrupted run bit for bit.\n\nExamples:\n  holonome resume runs/spherical-pendulum-1\n  holonome resume runs/spherical-pendulum-1 --until 200"
    )]
    Resume(ResumeArguments),
    /// Show how far an ensemble is that others compute.
    #[command(
        after_help = "The exit status is 0 only if all trajectories are done.\n\nExample:\n  holonome status grid --watch"
    )]
    Status(StatusArguments),
    /// Show the structure derived from a model, and problems found in it.
    #[command(after_help = "Example:\n  holonome check models/double-pendulum.holo")]
    Check(CheckArguments),
    /// Search for first integrals that a model does not state.
    #[command(
        after_help = "Searched are sums of products of components of the state, the time, and the functions in the model's formulas.\n\nExamples:\n  holonome integrals models/kepler.holo\n  holonome integrals models/henon-heiles.holo --degree 3"
    )]
    Integrals(IntegralsArguments),
    /// List all methods, or describe one: facts, equations, source.
    #[command(
        after_help = "Examples:\n  holonome methods\n  holonome methods rattle\n  holonome methods corrected:dop853"
    )]
    Methods(MethodsArguments),
    /// Print a stage of a model's translation.
    #[command(after_help = "Example:\n  holonome show tape models/planar-pendulum.holo")]
    Show(ShowArguments),
    /// Write an HTML page of runs, ensembles and comparisons.
    #[command(
        after_help = "The page shows the motion, drifts, and any column over any other.\n\nExamples:\n  holonome report runs/spherical-pendulum-1\n  holonome report runs/kepler-1 runs/kepler-2 --out kepler.html --open\n  holonome report runs/chain-1 --live"
    )]
    Report(ReportArguments),
    /// Draw a figure of runs, an ensemble or a comparison for a paper.
    #[command(override_usage = "holonome plot [OPTIONS] <PATHS>... --svg|--pdf|--png <FILE>")]
    #[command(
        after_help = "The figure shows the orbit and drifts of runs, work and precision of a comparison, or chosen columns.\n\nExamples:\n  holonome plot runs/kepler-1 --pdf kepler.pdf\n  holonome plot runs/kepler-1 --x x.x --y v.x --svg phase.svg\n  holonome plot runs/kepler-1 runs/kepler-2 --y drift.H --png drift.png"
    )]
    Plot(PlotArguments),
    /// Film the motion of a run, as GIF or MP4.
    #[command(override_usage = "holonome animate [OPTIONS] <RUN> --gif|--mp4 <FILE>")]
    #[command(
        after_help = "A browser of the Chromium family draws the frames. A run whose unit of time is one of seconds is shown in real time if it takes up to a minute.\n\nExamples:\n  holonome animate runs/kepler-1 --gif kepler.gif\n  holonome animate runs/chain-1 --mp4 chain.mp4 --seconds 20 --size 1280x720 --dark"
    )]
    Animate(AnimateArguments),
    /// Compute averages of a run or an ensemble, with standard errors.
    #[command(
        after_help = "Statistics of the quantity NAME:\n  mean(NAME)                   mean of every component\n  histogram(NAME, a, b, bins)  density of its values from a to b\n  rdf(NAME, b, bins)           density of the distances of its members up to b\n  rdf(NAME, b, bins, side)     radial distribution function in a periodic cube\n  msd(NAME)                    mean squared displacement of its members\n  autocorrelation(NAME)        autocorrelation of its deviation from the mean\n\nExample:\n  holonome analyse runs/spring-1 --from 100 \\\n      --measure 'mean(H)' --measure 'histogram(q, -2, 2, 20)'"
    )]
    Analyse(AnalyseArguments),
    /// Write a run's data in another format.
    #[command(override_usage = "holonome export [OPTIONS] <RUN> --FORMAT <FILE>")]
    #[command(
        after_help = "Example:\n  holonome export runs/spherical-pendulum-1 --csv pendulum.csv"
    )]
    Export(ExportArguments),
    /// Repeat the published experiments and check each claim.
    #[command(
        after_help = "The exit status is 1 if a claim differs from the recorded finding. An interrupted command continues if it is given the same folder again.\n\nExamples:\n  holonome reproduce --list\n  holonome reproduce planar-pendulum-2022\n  holonome reproduce --out reproduced"
    )]
    Reproduce(ReproduceArguments),
    /// Print the completion script for a shell.
    #[command(
        after_help = "Examples:\n  holonome completions bash \\\n      > ~/.local/share/bash-completion/completions/holonome\n  holonome completions fish > ~/.config/fish/completions/holonome.fish"
    )]
    Completions(CompletionsArguments),
}

#[derive(Args)]
pub struct ReproduceArguments {
    /// Studies to run; `--list` shows them [default: all]
    pub studies: Vec<String>,
    /// List the studies instead of running them
    #[arg(long)]
    pub list: bool,
    /// Include the long runs
    #[arg(long)]
    pub full: bool,
    /// Folder of models, runs and the table of claims; continued if it exists
    #[arg(long, value_name = "DIR", default_value = "reproduced")]
    pub out: PathBuf,
    /// Open the report in the browser
    #[arg(long)]
    pub open: bool,
    #[command(flatten)]
    pub threads: ThreadArguments,
    #[command(flatten)]
    pub output: OutputArguments,
}

#[derive(Args)]
pub struct CompletionsArguments {
    /// Shell of the script
    #[arg(value_enum)]
    pub shell: Shell,
    #[command(flatten)]
    pub output: OutputArguments,
}

/// Model, and changes of it.
#[derive(Args, Clone)]
pub struct ModelArguments {
    /// Model file, or - for the standard input
    pub model: PathBuf,
    /// Replace a parameter, size, initial value, or a member of one, `m[2]=5`; or a table by a file
    /// (repeatable)
    #[arg(long = "set", value_name = "NAME=EXPR", help_heading = MODEL, allow_hyphen_values = true)]
    pub set: Vec<String>,
    /// Seed of normal(), uniform() and the heat bath's noise
    #[arg(long, value_name = "N", help_heading = MODEL, default_value_t = 0, allow_hyphen_values = true)]
    pub seed: u64,
    /// Move the initial state onto the constraint set
    #[arg(long, help_heading = MODEL)]
    pub project_initial: bool,
}

impl ModelArguments {
    pub fn settings(&self) -> Result<Settings, Error> {
        let mut set: Vec<(String, String)> = Vec::new();
        for (name, value) in assignments("--set", &self.set, "m=2")? {
            set.retain(|(n, _)| *n != name); // the last one counts
            set.push((name, value));
        }
        Ok(Settings {
            set,
            seed: self.seed,
            project_initial: self.project_initial,
            ..Settings::default()
        })
    }
}

/// A penalty in place of constraints.
#[derive(Args)]
pub struct PenaltyArguments {
    /// Replace the constraints g by a potential (OMEGA^2/2)|g|^2; auto chooses OMEGA from the step
    /// [default: none]
    #[arg(long, value_name = "OMEGA|auto", help_heading = PENALTY, allow_hyphen_values = true)]
    pub penalty: Option<String>,
    /// Error of the positions at the end; OMEGA is chosen to meet it, in place of `--penalty`
    #[arg(long, value_name = "TOL", help_heading = PENALTY, conflicts_with = "penalty", allow_hyphen_values = true)]
    pub penalty_tolerance: Option<f64>,
    /// Start a penalised run on the slow manifold [default: on]
    #[arg(long, value_name = "on|off", help_heading = PENALTY, value_enum, hide_possible_values = true)]
    pub slow_manifold: Option<Switch>,
}

/// On or off.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Switch {
    On,
    Off,
}

impl PenaltyArguments {
    /// Copy of `options` with these arguments.
    fn put(&self, options: RunOptions) -> Result<RunOptions, Error> {
        Ok(RunOptions {
            penalty: self.penalty.as_deref().map(str::parse::<PenaltyStrength>).transpose()?,
            penalty_tolerance: self.penalty_tolerance,
            slow_manifold: self.slow_manifold.map(|switch| switch == Switch::On),
            ..options
        })
    }
}

/// A heat bath.
#[derive(Args)]
pub struct HeatBathArguments {
    /// Heat bath: gla adds friction and noise after every step [default: none]
    #[arg(long, value_name = "gla", help_heading = HEAT_BATH, value_enum, hide_possible_values = true)]
    pub thermostat: Option<ThermostatName>,
    /// Friction of the heat bath, force per velocity
    #[arg(long, value_name = "GAMMA", help_heading = HEAT_BATH, value_parser = constant, allow_hyphen_values = true)]
    pub friction: Option<f64>,
    /// Inverse temperature 1/kT of the heat bath
    #[arg(long, value_name = "BETA", help_heading = HEAT_BATH, value_parser = constant, allow_hyphen_values = true)]
    pub inverse_temperature: Option<f64>,
    /// Add Fixman's potential, for constraints that represent stiff springs [default: off]
    #[arg(long, value_name = "on|off", help_heading = HEAT_BATH, value_enum, hide_possible_values = true)]
    pub fixman: Option<Switch>,
}

/// A thermostat.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ThermostatName {
    Gla,
}

impl HeatBathArguments {
    /// Copy of `options` with these arguments.
    fn put(&self, options: RunOptions) -> RunOptions {
        RunOptions {
            thermostat: self.thermostat.map(|ThermostatName::Gla| Thermostat::Gla),
            friction: self.friction,
            inverse_temperature: self.inverse_temperature,
            fixman: self.fixman.map(|switch| switch == Switch::On),
            ..options
        }
    }
}

/// Arguments of every command that integrates, whatever its methods and steps.
#[derive(Args)]
pub struct IntegrationArguments {
    /// End time: a number or a constant formula, as 2*pi [default: the model's, or 100]
    #[arg(long, value_name = "T", value_parser = constant, allow_hyphen_values = true)]
    #[arg(help_heading = METHOD)]
    pub until: Option<f64>,
    /// Begin at the last state of another run, the values of its variables [default: the model's]
    #[arg(long, value_name = "RUN", help_heading = MODEL)]
    pub start: Option<PathBuf>,
    /// End the run at an event of the model, or at its N-th crossing, if that comes before the end
    /// time
    #[arg(long, value_name = "NAME[,N]", help_heading = METHOD)]
    pub until_event: Option<String>,
    /// Maximum length of adaptive steps; limit it if a longer step would miss a pulse or a wall
    /// [default: no limit]
    #[arg(long, value_name = "H", help_heading = METHOD, value_parser = constant, allow_hyphen_values = true)]
    pub max_step: Option<f64>,
    /// Let adaptive steps cross the switching surfaces of the field, where a condition, min, max or
    /// abs changes, rather than end there
    #[arg(long, help_heading = METHOD)]
    pub no_landing: bool,
    /// Where the motion goes through a singular configuration of the constraints, as a linkage laid
    /// flat: stop with its time, or continue along the branch of the momentum [default: the model's,
    /// or stop]
    #[arg(long, value_name = "continue|stop", help_heading = METHOD, value_enum, hide_possible_values = true)]
    pub singular: Option<SingularName>,
    /// Maximum number of steps, rejected ones included [default: no limit]
    #[arg(long, value_name = "N", help_heading = METHOD, allow_hyphen_values = true)]
    pub max_steps: Option<u64>,
    /// Largest residual, relative to its terms, that Newton iterations of implicit methods accept
    /// [default: round-off]
    #[arg(long, value_name = "TOL", help_heading = METHOD, allow_hyphen_values = true)]
    pub newton_tolerance: Option<f64>,
    /// Newmark's beta, for Newmark and Zhang–Skeel methods [default: 0.4]
    #[arg(long, value_name = "BETA", help_heading = METHOD, allow_hyphen_values = true)]
    pub beta: Option<f64>,
    /// Stiff term of the potential energy, for zhang-skeel-stiff: the name of a `let` that the
    /// Hamiltonian adds
    #[arg(long, value_name = "NAME", help_heading = METHOD)]
    pub stiff: Option<String>,
    #[command(flatten, next_help_heading = METHOD)]
    pub threads: ThreadArguments,
    /// Gains of `feedback`: auto, one number, or NAME=NUMBER,… for `rod`, `rod.hidden`, `H` or an
    /// integral [default: auto]
    #[arg(long, value_name = "GAIN", help_heading = INVARIANTS, allow_hyphen_values = true)]
    pub gain: Option<String>,
    /// State whose invariants are the targets, as "q=(0,1,0),p=(1,0,-1)" [default: the initial
    /// state]
    #[arg(long, value_name = "STATE", help_heading = INVARIANTS)]
    pub reference: Option<String>,
    /// Largest residual that projections accept [default: round-off]
    #[arg(long, value_name = "TOL", help_heading = INVARIANTS, allow_hyphen_values = true)]
    pub projection_tolerance: Option<f64>,
    /// Metric in which projections move a state: that of the step's error, or the Euclidean one
    /// [default: error]
    #[arg(long, value_name = "error|euclidean", help_heading = INVARIANTS, value_enum, hide_possible_values = true)]
    pub metric: Option<MetricName>,
    /// Run with gains that are refused as unstable
    #[arg(long, help_heading = INVARIANTS)]
    pub allow_unstable: bool,
    /// Run without holding a claimed integral or constraint that fails its test
    #[arg(long, help_heading = INVARIANTS)]
    pub allow_unverified: bool,
    #[command(flatten)]
    pub penalty: PenaltyArguments,
    /// Time between samples; with a fixed step, a multiple of it
    #[arg(long, value_name = "DT", value_parser = constant, conflicts_with = "samples", allow_hyphen_values = true)]
    #[arg(help_heading = OUTPUT)]
    pub every: Option<f64>,
    /// Number of samples, first and last included [default: 1001, of equal steps at most one each; sweep: 2]
    #[arg(long, value_name = "N", help_heading = OUTPUT, allow_hyphen_values = true)]
    pub samples: Option<u64>,
}

/// A metric of projections.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum MetricName {
    Error,
    Euclidean,
}

/// Reaction to a singular configuration.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SingularName {
    Continue,
    Stop,
}

/// Number of cores that are used.
#[derive(Args)]
pub struct ThreadArguments {
    /// Number of threads; results do not depend on it [default: all cores]
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub threads: Option<usize>,
}

impl Command {
    /// Start the threads that the command wants, before anything is computed.
    pub fn start_threads(&self) -> Result<(), Error> {
        let wanted = match self {
            Command::Run(arguments) => &arguments.trajectory.integration.threads,
            Command::Sweep(arguments) => &arguments.trajectory.integration.threads,
            Command::Compare(arguments) => &arguments.integration.threads,
            Command::Resume(arguments) => &arguments.threads,
            Command::Reproduce(arguments) => &arguments.threads,
            _ => &ThreadArguments { threads: None },
        };
        wanted.threads.map_or_else(holonome::bound_threads, holonome::set_threads)
    }
}

impl IntegrationArguments {
    /// Changes of the model: with targets from elsewhere, the start need not meet the constraints.
    pub fn settings(&self, model: &ModelArguments) -> Result<Settings, Error> {
        let mut settings = Settings {
            start_off_set: self.reference.is_some(),
            stiff: self.stiff.clone(),
            span: Some((None, self.until)),
            allow_unverified: self.allow_unverified,
            ..model.settings()?
        };
        if let Some(run) = &self.start {
            settings.start_at(run)?;
        }
        Ok(settings)
    }

    /// Names of the options that are given, of those that a model may suggest.
    fn given(&self) -> impl Iterator<Item = &'static str> {
        let options = [
            ("until", self.until.is_some()),
            ("max_step", self.max_step.is_some()),
            ("max_steps", self.max_steps.is_some()),
            ("singular", self.singular.is_some()),
            ("every", self.every.is_some()),
            ("samples", self.samples.is_some()),
        ];
        options.into_iter().filter(|(_, given)| *given).map(|(name, _)| name)
    }

    /// Options by these arguments, with the defaults of a run.
    fn options(&self) -> Result<RunOptions, Error> {
        let given: Vec<&str> = self.given().collect();
        self.penalty.put(RunOptions {
            open: left_to_model(&given),
            until: self.until.unwrap_or(RunOptions::default().until),
            until_event: self.until_event.as_deref().map(until_event).transpose()?,
            every: self.every,
            samples: self.samples,
            gain: self.gain.as_deref().map(str::parse::<Gains>).transpose()?,
            reference: self.reference.clone(),
            max_step: self.max_step,
            max_steps: self.max_steps,
            metric: match self.metric {
                None => Metric::Auto,
                Some(MetricName::Error) => Metric::Error,
                Some(MetricName::Euclidean) => Metric::Euclidean,
            },
            projection_tolerance: self.projection_tolerance,
            newton_tolerance: self.newton_tolerance,
            beta: self.beta,
            allow_unstable: self.allow_unstable,
            landing: !self.no_landing,
            singular: match self.singular {
                Some(SingularName::Continue) => Singular::Continue,
                Some(SingularName::Stop) | None => Singular::Stop,
            },
            ..RunOptions::default()
        })
    }
}

/// Times of samples that are listed, or in a file.
fn sample_times(text: &str) -> Result<Vec<f64>, Error> {
    each::times(text).map_err(|reason| Error::option(format!("--at {text}: {reason}")))
}

/// Names that were divided at commas, of which those in brackets belong to a name: `r[1,2]`.
fn whole_names(parts: &[String]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for part in parts {
        match names.last_mut().filter(|name| name.contains('[') && !name.contains(']')) {
            Some(name) => *name = format!("{name},{}", part.trim()),
            None => names.push(part.trim().to_string()),
        }
    }
    names
}

/// Arguments of trajectories by one method, of one or of an ensemble.
#[derive(Args)]
pub struct TrajectoryArguments {
    #[command(flatten)]
    pub model: ModelArguments,
    /// Method: BASE, TREATMENT:BASE or COMPOSITION(METHOD); see `holonome methods` [default: the
    /// model's, or corrected:dop853, for long runs the fastest of three by trial]
    #[arg(long, help_heading = METHOD)]
    pub method: Option<String>,
    /// Fixed step [default: the model's, or adaptive steps]
    #[arg(long, value_name = "H", help_heading = METHOD, value_parser = constant, allow_hyphen_values = true)]
    pub step: Option<f64>,
    /// Relative tolerance of a step's error, per vector of the state [default: the model's, or 1e-9]
    #[arg(long, help_heading = METHOD, allow_hyphen_values = true)]
    pub rtol: Option<f64>,
    /// Absolute floor of the tolerance [default: none]
    #[arg(long, help_heading = METHOD, allow_hyphen_values = true)]
    pub atol: Option<f64>,
    /// Time of the initial state: a number or a constant formula [default: the model's, or 0]
    #[arg(long, value_name = "T0", help_heading = METHOD, value_parser = constant)]
    #[arg(allow_hyphen_values = true)]
    pub from: Option<f64>,
    /// Times of the samples, in the order of the run: a list, or a file with a column t [default: as
    /// --samples says]
    #[arg(long, value_name = "T1,T2,…|FILE.csv", help_heading = OUTPUT, allow_hyphen_values = true)]
    #[arg(conflicts_with_all = ["samples", "every"])]
    pub at: Option<String>,
    #[command(flatten)]
    pub heat_bath: HeatBathArguments,
    #[command(flatten)]
    pub integration: IntegrationArguments,
    /// Names of the quantities to store, as `q`, `r[2].x`, `H`, `residual.rod`, `drift.H` [default:
    /// all]; `none` in a sweep: its measures, drifts and counts alone
    #[arg(long, value_name = "NAME,…", help_heading = OUTPUT, value_delimiter = ',')]
    pub record: Option<Vec<String>>,
    /// Folder to write [default: runs/STEM-k for STEM.holo, k the first free number]
    #[arg(long, value_name = "DIR", help_heading = OUTPUT)]
    pub out: Option<PathBuf>,
}

#[derive(Args)]
pub struct RunArguments {
    #[command(flatten)]
    pub trajectory: TrajectoryArguments,
    /// Measure the orbit's error by a second run at a hundredth of the tolerances, or two at a half
    /// and a third of the step
    #[arg(long, help_heading = OUTPUT)]
    pub error: bool,
    /// Write an HTML report of the run, report.html in its folder
    #[arg(long, help_heading = OUTPUT)]
    pub report: bool,
    /// Write the report and open it in the browser
    #[arg(long, help_heading = OUTPUT)]
    pub open: bool,
    #[command(flatten)]
    pub summary: SummaryArguments,
    #[command(flatten)]
    pub output: OutputArguments,
}

/// Content of the JSON object of a run.
#[derive(Args, Clone, Copy)]
pub struct SummaryArguments {
    /// Print the final state with `--json` however large it is [default: up to 1000 numbers]
    #[arg(long, help_heading = OUTPUT)]
    pub state: bool,
}

#[derive(Args)]
pub struct CompareArguments {
    #[command(flatten)]
    pub model: ModelArguments,
    /// Methods: BASE, TREATMENT:BASE or COMPOSITION(METHOD); see `holonome methods` (repeatable)
    #[arg(long = "method", value_name = "METHOD,…", help_heading = METHOD, value_delimiter = ',', required = true)]
    pub methods: Vec<String>,
    /// Fixed steps
    #[arg(long = "step", value_name = "H,…", value_delimiter = ',', value_parser = constant, allow_hyphen_values = true)]
    #[arg(help_heading = METHOD)]
    pub steps: Vec<f64>,
    /// Relative tolerances of a step's error, per vector of the state [default: 1e-9 without
    /// `--step`]
    #[arg(long, value_name = "RTOL,…", help_heading = METHOD, value_delimiter = ',', allow_hyphen_values = true)]
    pub rtol: Vec<f64>,
    /// Absolute floors of the tolerances, one for each or one for all [default: none]
    #[arg(long, value_name = "ATOL,…", help_heading = METHOD, value_delimiter = ',', allow_hyphen_values = true)]
    pub atol: Vec<f64>,
    /// Work budgets, in units of a gradient or Newton iteration (a field, Hessian or linear solve
    /// counts 4); steps or tolerances are chosen to spend them
    #[arg(long = "budget", value_name = "N,…", value_delimiter = ',', allow_hyphen_values = true)]
    #[arg(help_heading = METHOD)]
    pub budgets: Vec<u64>,
    #[command(flatten)]
    pub integration: IntegrationArguments,
    /// Folder to write [default: runs/STEM-compare-k for STEM.holo, k the first free number]
    #[arg(long, value_name = "DIR", help_heading = OUTPUT)]
    pub out: Option<PathBuf>,
    #[command(flatten)]
    pub output: OutputArguments,
}

impl CompareArguments {
    /// Options without the methods; see [`CompareArguments::methods`].
    pub fn options(&self) -> Result<CompareOptions, Error> {
        let run = self.integration.options()?;
        let (methods, steps) = (Vec::new(), self.steps.clone());
        let (rtol, atol, budgets) = (self.rtol.clone(), self.atol.clone(), self.budgets.clone());
        Ok(CompareOptions { methods, steps, rtol, atol, budgets, run })
    }

    pub fn methods(&self) -> Result<Vec<Method>, Error> {
        self.methods.iter().map(|name| Ok(name.parse()?)).collect()
    }
}

#[derive(Args)]
pub struct SweepArguments {
    /// Number of trajectories [default: that of the values given by the options below]
    #[arg(long, value_name = "N", help_heading = ENSEMBLE, allow_hyphen_values = true)]
    pub trajectories: Option<u64>,
    /// Value of a parameter or initial value in trajectory i: a formula of i, N, normal(),
    /// uniform(); or list(A,B,…), or A..B,N for N evenly spaced values (repeatable)
    #[arg(long = "vary", value_name = "NAME=EXPR", help_heading = ENSEMBLE, allow_hyphen_values = true)]
    pub vary: Vec<String>,
    /// Values of a parameter or initial value, a row for each trajectory, from columns of a CSV
    /// file or from an array FILE.npy or FOLDER.zarr:ARRAY (repeatable)
    #[arg(long = "each", value_name = "NAME=FILE.csv:COLUMN,…", help_heading = ENSEMBLE)]
    pub each: Vec<String>,
    /// Values of a parameter or initial value as a dimension of a grid, all combinations of which
    /// are trajectories: A..B,N or list(A,B,…) (repeatable)
    #[arg(long = "over", value_name = "NAME=VALUES", help_heading = ENSEMBLE, allow_hyphen_values = true)]
    pub over: Vec<String>,
    /// Part to run, the k-th of K; `holonome merge` joins the parts [default: all]
    #[arg(long, value_name = "k/K", help_heading = ENSEMBLE)]
    pub shard: Option<String>,
    #[command(flatten)]
    pub worker: WorkerArguments,
    #[command(flatten)]
    pub trajectory: TrajectoryArguments,
    #[command(flatten)]
    pub output: OutputArguments,
}

/// Share of an ensemble that this process computes, in a folder that it shares with others.
#[derive(Args)]
pub struct WorkerArguments {
    /// Compute only the blocks A to B of the ensemble, both included
    #[arg(long, value_name = "A..B", help_heading = WORKERS, conflicts_with_all = ["worker", "steal"])]
    pub blocks: Option<String>,
    /// Compute the share of the k-th of n processes; `env` takes both from the variables of Slurm,
    /// MPI or Kubernetes
    #[arg(long, value_name = "k/n", help_heading = WORKERS, conflicts_with = "steal")]
    pub worker: Option<String>,
    /// Compute blocks that no other process has claimed, until all are done
    #[arg(long, help_heading = WORKERS)]
    pub steal: bool,
    /// Wait until other processes have computed the rest
    #[arg(long, help_heading = WORKERS)]
    pub wait: bool,
    /// End when the process that started this one ends
    #[arg(long, help_heading = WORKERS)]
    pub die_with_parent: bool,
}

impl WorkerArguments {
    pub fn share(&self) -> Result<Share, Error> {
        if self.steal {
            return Ok(Share::Claimed);
        }
        if let Some(text) = &self.blocks {
            let ends = text.split_once("..").or(Some((text, text)));
            let blocks = ends.and_then(|(a, b)| {
                Some((a.trim().parse::<u64>().ok()?, b.trim().parse::<u64>().ok()?))
            });
            return match blocks {
                Some((first, last)) if first <= last => {
                    Ok(Share::Blocks(first..last.saturating_add(1)))
                }
                _ => Err(Error::option(format!(
                    "--blocks {text}: write A..B with A up to B, for example --blocks 0..15"
                ))),
            };
        }
        match self.worker.as_deref() {
            None => Ok(Share::All),
            Some("env") => Share::from_environment(&|name| std::env::var(name).ok()),
            Some(text) => {
                let (number, of) = fraction(text).ok_or_else(|| {
                    Error::option(format!(
                        "--worker {text}: write k/n, for example --worker 1/4, or env"
                    ))
                })?;
                Ok(Share::Worker { number, of })
            }
        }
    }

    /// Option by which this process computes a share only, if any.
    pub fn given(&self) -> Option<&'static str> {
        let options = [
            ("--blocks", self.blocks.is_some()),
            ("--worker", self.worker.is_some()),
            ("--steal", self.steal),
            ("--wait", self.wait),
        ];
        options.into_iter().find(|(_, given)| *given).map(|(option, _)| option)
    }
}

/// The two numbers of `k/n`.
fn fraction(text: &str) -> Option<(u64, u64)> {
    let (k, of) = text.split_once('/')?;
    Some((k.trim().parse().ok()?, of.trim().parse().ok()?))
}

impl SweepArguments {
    pub fn sweep(&self) -> Result<SweepOptions, Error> {
        let (mut vary, mut given) = (Vec::new(), Vec::new());
        let varied = assignments("--vary", &self.vary, "g=9.8+0.1*normal()")?;
        if let Some((name, _)) =
            varied.iter().enumerate().find_map(|(k, v)| varied[..k].iter().find(|w| w.0 == v.0))
        {
            return Err(Error::option(format!("--vary names '{name}' twice")));
        }
        for (name, value) in varied {
            let refused =
                |reason: String| Error::option(format!("--vary {name}={value}: {reason}"));
            if is_range(&value) {
                return Err(refused(format!(
                    "give evenly spaced values as {name}=A..B,N, others as {name}=list(A,B,…) or by a formula of the number i of the trajectory, from 0 to N - 1, as {name}=a+(b-a)*i/(N-1)"
                )));
            }
            match each::listed(&value).map_err(&refused)? {
                Some(numbers) => {
                    given.push((format!("--vary {name}"), name, numbers.len(), numbers))
                }
                None => vary.push((name, value)),
            }
        }
        for (name, value) in assignments("--each", &self.each, "g=starts.csv:g")? {
            let each::Rows { numbers, rows } = each::read(&value)
                .map_err(|reason| Error::option(format!("--each {name}: {reason}")))?;
            given.push((format!("--each {name}"), name, rows, numbers));
        }
        let mut over = Vec::new();
        for (name, value) in assignments("--over", &self.over, "g=0..1,11")? {
            let refused =
                |reason: String| Error::option(format!("--over {name}={value}: {reason}"));
            let values = each::listed(&value).map_err(refused)?.ok_or_else(|| {
                refused(format!(
                    "write {name}=A..B,N for N evenly spaced values, or {name}=list(A,B,…)"
                ))
            })?;
            over.push((name, values));
        }
        let trajectories = self.trajectories(&given, &over)?;
        let each = given.into_iter().map(|(_, name, _, numbers)| (name, numbers)).collect();
        let shard = match &self.shard {
            None => None,
            Some(text) => {
                let bad =
                    || Error::option(format!("--shard {text}: write k/K, for example --shard 1/4"));
                Some(fraction(text).ok_or_else(bad)?)
            }
        };
        Ok(SweepOptions { trajectories, vary, each, over, shard })
    }

    /// Number of trajectories: as given, or that of the given values, with which it has to agree.
    fn trajectories(&self, given: &[GivenValues], over: &[Values]) -> Result<u64, Error> {
        let mut known: Option<(String, u64)> =
            self.trajectories.map(|count| (format!("--trajectories {count}"), count));
        if !over.is_empty() {
            let count = over.iter().fold(1u64, |all, (_, v)| all.saturating_mul(v.len() as u64));
            known = Some(("--over".to_string(), count));
        }
        for (option, _, rows, _) in given {
            let rows = *rows as u64;
            match &known {
                Some((first, count)) if *count != rows => {
                    return Err(Error::option(format!(
                        "{option} has values for {rows} trajectories, {first} for {count}: give as many"
                    )));
                }
                Some(_) => {}
                None => known = Some((option.clone(), rows)),
            }
        }
        // The library compares a given number with that of a grid.
        self.trajectories.or(known.map(|(_, count)| count)).ok_or_else(|| {
            Error::option(
                "how many trajectories? Give --trajectories N, or values for each by --vary NAME=A..B,N, --each or --over",
            )
        })
    }
}

/// Option, name, number of rows and numbers of values that are given as data.
type GivenValues = (String, String, usize, Arc<[f64]>);

/// Name and values of a dimension of a grid.
type Values = (String, Arc<[f64]>);

/// True for two numbers between which values should lie, or a list of numbers, as other programs
/// write them.
fn is_range(value: &str) -> bool {
    let numbers = |separator: &str| {
        let parts: Vec<&str> = value.split(separator).collect();
        parts.len() > 1 && parts.iter().all(|part| part.trim().parse::<f64>().is_ok())
    };
    numbers(":") || numbers(",")
}

/// Split `NAME=EXPR` in every text.
fn assignments(
    option: &str,
    texts: &[String],
    example: &str,
) -> Result<Vec<(String, String)>, Error> {
    let split = |text: &String| match text.split_once('=') {
        Some((name, value)) => Ok((name.trim().to_string(), value.trim().to_string())),
        None => Err(Error::option(format!(
            "{option} {text}: write NAME=EXPR, for example {option} {example}"
        ))),
    };
    texts.iter().map(split).collect()
}

#[derive(Args)]
pub struct MergeArguments {
    /// Folder of the joined ensemble
    pub out: PathBuf,
    /// Folders of all parts, in any order
    #[arg(required = true)]
    pub parts: Vec<PathBuf>,
    #[command(flatten)]
    pub output: OutputArguments,
}

/// Output of results.
#[derive(Args, Clone, Copy)]
pub struct OutputArguments {
    /// Print one JSON object on stdout
    #[arg(long, help_heading = GENERAL, display_order = LAST)]
    pub json: bool,
    /// Print errors only
    #[arg(long, short, help_heading = GENERAL, display_order = LAST + 1)]
    pub quiet: bool,
}

impl TrajectoryArguments {
    /// Changes of the model, and its initial time.
    pub fn settings(&self) -> Result<Settings, Error> {
        if let Some(from) = self.from.filter(|from| !from.is_finite()) {
            return Err(Error::option(format!("--from must be finite, but it is {from}")));
        }
        let span = Some((self.from, self.integration.until));
        Ok(Settings { span, ..self.integration.settings(&self.model)? })
    }

    /// Options without the method, whose name is checked only after the model; see
    /// [`TrajectoryArguments::method`].
    pub fn options(&self) -> Result<RunOptions, Error> {
        let options = [
            ("method", self.method.is_some()),
            ("step", self.step.is_some()),
            ("rtol", self.rtol.is_some()),
            ("atol", self.atol.is_some()),
            ("at", self.at.is_some()),
            ("friction", self.heat_bath.friction.is_some()),
            ("inverse_temperature", self.heat_bath.inverse_temperature.is_some()),
        ];
        let given = options.into_iter().filter(|(_, given)| *given).map(|(name, _)| name);
        let given: Vec<&str> = given.chain(self.integration.given()).collect();
        Ok(self.heat_bath.put(RunOptions {
            open: left_to_model(&given),
            step: self.step.map_or(self.tolerances(), StepSize::Fixed),
            at: self.at.as_deref().map(sample_times).transpose()?,
            record: self.record.as_deref().map(whole_names),
            out: self.out.clone(),
            ..self.integration.options()?
        }))
    }

    /// Adaptive steps by the tolerances that are given.
    fn tolerances(&self) -> StepSize {
        let (rtol, atol) = StepSize::default().tolerances().expect("adaptive by default");
        let (rtol, atol) = (self.rtol.unwrap_or(rtol), self.atol.unwrap_or(atol));
        StepSize::Adaptive { rtol, atol }
    }

    pub fn method(&self) -> Result<Method, Error> {
        match &self.method {
            Some(name) => Ok(name.parse()?),
            None => Ok(RunOptions::default().method),
        }
    }

    /// Warning about arguments that are given and have no effect.
    pub fn unused(&self) -> Option<String> {
        (self.step.is_some() && self.tolerances() != StepSize::default())
            .then(|| "--rtol or --atol has no effect: the step is fixed by --step".to_string())
    }
}

impl RunArguments {
    /// Options without the method; see [`TrajectoryArguments::options`].
    pub fn options(&self) -> Result<RunOptions, Error> {
        Ok(RunOptions { error: self.error, ..self.trajectory.options()? })
    }
}

#[derive(Args)]
pub struct CheckArguments {
    #[command(flatten)]
    pub model: ModelArguments,
    /// Print every constraint, rank and method with its reason
    #[arg(long, short)]
    pub verbose: bool,
    #[command(flatten)]
    pub output: OutputArguments,
}

#[derive(Args)]
pub struct IntegralsArguments {
    #[command(flatten)]
    pub model: ModelArguments,
    /// Largest number of factors of a product [default: up to 6, as many as give 600 products]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=8))]
    pub degree: Option<u8>,
    #[command(flatten)]
    pub output: OutputArguments,
}

#[derive(Args)]
pub struct MethodsArguments {
    /// Method, base scheme, treatment or composition to describe
    pub name: Option<String>,
    #[command(flatten)]
    pub output: OutputArguments,
}

/// The stages of a model's translation.
#[derive(Clone, Copy, ValueEnum)]
pub enum Stage {
    /// Syntax tree
    Syntax,
    /// Checked model: variables, parameters, term templates
    Model,
    /// Expression graph of the field and its invariants
    Graph,
    /// Tape of the field: straight-line code
    Tape,
}

#[derive(Args)]
pub struct ShowArguments {
    /// Stage to print: `syntax` tree, checked `model`, expression `graph` of the field and its
    /// invariants, or `tape` of straight-line code
    #[arg(value_enum, hide_possible_values = true)]
    pub stage: Stage,
    #[command(flatten)]
    pub model: ModelArguments,
    #[command(flatten)]
    pub output: OutputArguments,
}

#[derive(Args)]
pub struct ExportArguments {
    /// Folder of the run
    pub run: PathBuf,
    #[command(flatten)]
    pub exported: Exported,
    #[command(flatten)]
    pub output: OutputArguments,
}

/// The format of an export and its file: a flag for each format.
pub struct Exported {
    pub format: &'static Format,
    pub path: PathBuf,
}

impl FromArgMatches for Exported {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Exported, clap::Error> {
        let given = |format: &'static Format| {
            matches.get_one::<PathBuf>(format.name).map(|path| (format, path.clone()))
        };
        let (format, path) = FORMATS.iter().find_map(given).expect("one of the flags is required");
        Ok(Exported { format, path })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Exported::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for Exported {
    fn augment_args(command: clap::Command) -> clap::Command {
        let flag = |format: &'static Format| {
            Arg::new(format.name)
                .long(format.name)
                .value_name("FILE")
                .value_parser(value_parser!(PathBuf))
                .help(format!("File to write as {}, or - for stdout", format.about))
                .help_heading("Formats")
        };
        let group =
            ArgGroup::new("format").args(FORMATS.iter().map(|format| format.name)).required(true);
        command.args(FORMATS.iter().map(flag)).group(group)
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Exported::augment_args(command)
    }
}

#[derive(Args)]
pub struct AnalyseArguments {
    /// Folder of a run or an ensemble
    pub run: PathBuf,
    /// Statistic to compute, as listed below (repeatable) [default: the measures of the model, or
    /// else the mean of every recorded scalar that is not a variable]
    #[arg(long = "measure", value_name = "STATISTIC")]
    pub measures: Vec<String>,
    /// Time before which samples are left out [default: the start]
    #[arg(long, value_name = "T", value_parser = constant, allow_hyphen_values = true)]
    pub from: Option<f64>,
    #[command(flatten)]
    pub output: OutputArguments,
}

#[derive(Args)]
pub struct ReportArguments {
    /// Folders of runs, ensembles or comparisons; several runs are shown side by side
    #[arg(required = true)]
    pub paths: Vec<PathBuf>,
    /// HTML file to write [default: report.html in the folder; for several, in the current one]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Open the report in the browser
    #[arg(long)]
    pub open: bool,
    /// Rewrite the page every few seconds until the run ends
    #[arg(long)]
    pub live: bool,
    #[command(flatten)]
    pub output: OutputArguments,
}

#[derive(Args)]
#[command(group = ArgGroup::new("file").args(["out", "svg", "pdf", "png"]).required(true).multiple(true))]
pub struct PlotArguments {
    /// Folders of runs, or the folder of one ensemble or comparison
    #[arg(required = true)]
    pub paths: Vec<PathBuf>,
    /// Column of the horizontal axis, as `q.x` [default: t; for an ensemble, the varied value; t gives
    /// quantiles over time]
    #[arg(long, value_name = "COLUMN")]
    pub x: Option<String>,
    /// Columns of the vertical axis, as `q.x`, all of a quantity `q`, all members `r[*].x`; those of
    /// different sizes have panels of their own [default: the motion and the drifts; for an ensemble,
    /// the map of a grid, or its first result over the varied value]
    #[arg(long, value_name = "COLUMN,…")]
    pub y: Vec<String>,
    /// Draw this result of a grid of trajectories over its two dimensions, by colours
    #[arg(long, value_name = "COLUMN", conflicts_with_all = ["x", "y", "event"])]
    pub map: Option<String>,
    /// Draw the states at this event, as a Poincaré section
    #[arg(long, value_name = "NAME")]
    pub event: Option<String>,
    /// Draw points [default: where samples do not follow the motion]
    #[arg(long, conflicts_with = "lines")]
    pub points: bool,
    /// Draw lines, whatever the samples follow
    #[arg(long)]
    pub lines: bool,
    /// Logarithmic axes [possible values: x, y, xy]
    #[arg(long, value_name = "AXES", num_args = 0..=1, default_missing_value = "y", value_parser = ["x", "y", "xy"])]
    pub log: Option<String>,
    /// Ends of the horizontal axis
    #[arg(long, value_name = "A..B", value_parser = range, allow_hyphen_values = true)]
    pub x_range: Option<[f64; 2]>,
    /// Ends of the vertical axis
    #[arg(long, value_name = "A..B", value_parser = range, allow_hyphen_values = true)]
    pub y_range: Option<[f64; 2]>,
    /// Title of the figure
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub title: String,
    /// Width and height of a panel in points [default: 440x340]
    #[arg(long, value_name = "WxH", value_parser = panel_size)]
    pub size: Option<(f64, f64)>,
    /// File to write, in the format of its ending: .svg, .pdf or .png
    #[arg(long, value_name = "FILE")]
    pub out: Vec<PathBuf>,
    /// SVG file to write
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// PDF file to write
    #[arg(long, value_name = "FILE")]
    pub pdf: Option<PathBuf>,
    /// PNG file to write
    #[arg(long, value_name = "FILE")]
    pub png: Option<PathBuf>,
    #[command(flatten)]
    pub output: OutputArguments,
}

#[derive(Args)]
#[command(group = ArgGroup::new("film").args(["out", "gif", "mp4"]).required(true).multiple(true))]
pub struct AnimateArguments {
    /// Folder of the run
    pub run: PathBuf,
    /// Time of the run that passes in a second, in seconds if its unit of time is one of them, minutes
    /// or days [default: 1 in that case, if the film then takes up to a minute]
    #[arg(long, value_name = "SPEED", value_parser = positive, conflicts_with = "seconds")]
    pub speed: Option<f64>,
    /// Length of the film in seconds [default: 12, if no speed is given and real time does not suit]
    #[arg(long, value_name = "SECONDS", value_parser = positive)]
    pub seconds: Option<f64>,
    /// Frames a second [default: 20 for GIF, 30 for MP4]
    #[arg(long, value_name = "RATE", value_parser = frame_rate)]
    pub rate: Option<f64>,
    /// First time that is shown
    #[arg(long, value_name = "T", value_parser = constant, allow_hyphen_values = true)]
    pub from: Option<f64>,
    /// Last time that is shown
    #[arg(long, value_name = "T", value_parser = constant, allow_hyphen_values = true)]
    pub until: Option<f64>,
    /// Width and height in pixels [default: 480x360 for GIF, 800x600 for MP4]
    #[arg(long, value_name = "WxH", value_parser = film_size)]
    pub size: Option<(u32, u32)>,
    /// Draw light things before a dark ground
    #[arg(long)]
    pub dark: bool,
    /// Browser of the Chromium family that draws the frames [default: the one that is found]
    #[arg(long, value_name = "PROGRAM")]
    pub browser: Option<PathBuf>,
    /// File to write, in the format of its ending: .gif or .mp4
    #[arg(long, value_name = "FILE")]
    pub out: Vec<PathBuf>,
    /// GIF file to write
    #[arg(long, value_name = "FILE")]
    pub gif: Option<PathBuf>,
    /// MP4 file to write
    #[arg(long, value_name = "FILE")]
    pub mp4: Option<PathBuf>,
    #[command(flatten)]
    pub output: OutputArguments,
}

/// A number above 0.
fn positive(text: &str) -> Result<f64, String> {
    let number = constant(text)?;
    if number > 0.0 && number.is_finite() {
        Ok(number)
    } else {
        Err("write a number above 0".into())
    }
}

/// Frames a second.
fn frame_rate(text: &str) -> Result<f64, String> {
    let rate = constant(text)?;
    let fits = (1.0..=120.0).contains(&rate);
    if fits { Ok(rate) } else { Err("write a number from 1 to 120".to_string()) }
}

/// Both numbers of `WxH`.
fn sides<T: std::str::FromStr>(text: &str) -> Option<(T, T)> {
    let (width, height) = text.split_once('x')?;
    Some((width.parse().ok()?, height.parse().ok()?))
}

/// Width and height of a film: `WxH`, even as those of video are.
fn film_size(text: &str) -> Result<(u32, u32), String> {
    let size = sides(text);
    let fits = |side: u32| (64..=4096).contains(&side) && side.is_multiple_of(2);
    let size = size.filter(|&(width, height)| fits(width) && fits(height));
    size.ok_or("write WIDTHxHEIGHT, even numbers from 64 to 4096".to_string())
}

/// Ends of an axis: `A..B`.
fn range(text: &str) -> Result<[f64; 2], String> {
    let (low, high) = text.split_once("..").ok_or("write A..B")?;
    let [low, high] = [constant(low)?, constant(high)?];
    if low < high { Ok([low, high]) } else { Err(format!("{low} is not below {high}")) }
}

/// Width and height: `WxH`.
fn panel_size(text: &str) -> Result<(f64, f64), String> {
    let size = sides(text);
    let fits = |side: f64| (50.0..=5000.0).contains(&side);
    let size = size.filter(|&(width, height)| fits(width) && fits(height));
    size.ok_or("write WIDTHxHEIGHT, each from 50 to 5000 points".to_string())
}

#[derive(Args)]
pub struct ResumeArguments {
    /// Folder of the run or ensemble
    pub run: PathBuf,
    /// Extend the run to this time, even if it is finished
    #[arg(long, value_name = "T", value_parser = constant, allow_hyphen_values = true)]
    pub until: Option<f64>,
    /// Maximum number of steps, in place of the run's own
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_steps: Option<u64>,
    #[command(flatten)]
    pub worker: WorkerArguments,
    #[command(flatten)]
    pub summary: SummaryArguments,
    #[command(flatten)]
    pub threads: ThreadArguments,
    #[command(flatten)]
    pub output: OutputArguments,
}

#[derive(Args)]
pub struct StatusArguments {
    /// Folder of the ensemble
    pub run: PathBuf,
    /// Show it again every few seconds until all trajectories are done
    #[arg(long)]
    pub watch: bool,
    #[command(flatten)]
    pub output: OutputArguments,
}
