//! The flags of every command.

use clap::{
    Arg, ArgGroup, ArgMatches, Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum, value_parser,
};
use clap_complete::Shell;
use holonome::method::Method;
use holonome::store::{FORMATS, Format};
use holonome::{
    CompareOptions, Error, Gains, Metric, PenaltyStrength, RunOptions, Settings, StepSize, SweepOptions, Thermostat,
    constant,
};
use std::path::PathBuf;

/// Integrates mechanical systems with constraints and conserved quantities, keeping their structure.
#[derive(Parser)]
#[command(
    name = "holonome",
    version,
    about,
    arg_required_else_help = true,
    after_help = "Example:\n  holonome run models/spherical-pendulum.holo"
)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
    /// Colours in messages; auto: on a terminal that has them, unless NO_COLOR is set
    #[arg(long, value_name = "WHEN", value_enum, default_value_t, global = true)]
    pub color: Colour,
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
        after_help = "Examples:\n  holonome run models/spherical-pendulum.holo\n  holonome run models/kepler.holo --until 70.248 --method feedback:euler --step 1e-3 --gain L=4,A=2\n  holonome run models/chain.holo --set n=20 --method corrected:rk4 --step 0.01 --json"
    )]
    Run(RunArguments),
    /// Compare methods on one system: errors against a converged reference, drifts, costs.
    #[command(
        after_help = "Methods with an error estimate take the tolerances, or fixed steps where no tolerance is given; the others take the steps.\n\nExamples:\n  holonome compare models/spherical-pendulum.holo --method euler,rk4,corrected:rk4 --step 0.02,0.01,0.005\n  holonome compare models/kepler.holo --method rk4 --method dop853 --step 0.01 --rtol 1e-6,1e-9 --until 70.248\n  holonome compare models/planar-pendulum.holo --method corrected:rk4,dop853 --budget 1000,5000 --until 7.416"
    )]
    Compare(CompareArguments),
    /// Integrate an ensemble: many initial values or parameters, all cores.
    #[command(
        after_help = "Examples:\n  holonome sweep models/spherical-pendulum.holo --trajectories 1000 --vary \"g=0.5+i/N\"\n  holonome sweep models/kepler.holo --trajectories 100000 --vary \"v=(0,1+0.01*normal(),0)\" --shard 1/4 --out part-1"
    )]
    Sweep(SweepArguments),
    /// Join the parts of a sharded sweep to what one run would have written.
    #[command(after_help = "Example:\n  holonome merge whole part-1 part-2 part-3 part-4")]
    Merge(MergeArguments),
    /// Tell what the engine derived from a model, and what stands against it.
    #[command(after_help = "Example:\n  holonome check models/double-pendulum.holo")]
    Check(CheckArguments),
    /// List every method: order, structure, what it needs, source.
    #[command(after_help = "Example:\n  holonome methods")]
    Methods(MethodsArguments),
    /// Dump a stage of a model's translation.
    #[command(after_help = "Example:\n  holonome show tape models/planar-pendulum.holo")]
    Show(ShowArguments),
    /// Write a run's data in another format.
    #[command(after_help = "Example:\n  holonome export runs/spherical-pendulum-1 --csv pendulum.csv")]
    Export(ExportArguments),
    /// Make the published experiments again, and say claim by claim whether they hold.
    #[command(
        after_help = "Claims are compared with what was found before; where one differs, the exit status is 1. What was interrupted goes on when the same folder is given again.\n\nExamples:\n  holonome reproduce --list\n  holonome reproduce planar-pendulum-2022\n  holonome reproduce --out reproduced"
    )]
    Reproduce(ReproduceArguments),
    /// Average what a run or an ensemble has recorded, with standard errors.
    #[command(
        after_help = "Example:\n  holonome analyse runs/spring-1 --from 100 --measure 'mean(H)' --measure 'histogram(q, -2, 2, 20)'"
    )]
    Analyse(AnalyseArguments),
    /// Write a page that shows runs, ensembles and comparisons: the motion, drifts, any variable over any other.
    #[command(
        after_help = "Examples:\n  holonome report runs/spherical-pendulum-1\n  holonome report runs/kepler-1 runs/kepler-2 --out kepler.html --open\n  holonome report runs/chain-1 --live"
    )]
    Report(ReportArguments),
    /// Draw a figure for a paper: drifts and orbit of runs, work and precision of a comparison, or columns of one's
    /// own.
    #[command(
        after_help = "Examples:\n  holonome plot runs/kepler-1 --pdf kepler.pdf\n  holonome plot runs/kepler-1 --x x.x --y v.x --svg phase.svg\n  holonome plot runs/kepler-1 runs/kepler-2 --y drift.H --png drift.png"
    )]
    Plot(PlotArguments),
    /// Continue an interrupted run, or extend a finished one, bit for bit.
    #[command(
        after_help = "Examples:\n  holonome resume runs/spherical-pendulum-1\n  holonome resume runs/spherical-pendulum-1 --until 200"
    )]
    Resume(ResumeArguments),
    /// Print a shell's completions of this command line.
    #[command(
        after_help = "Examples:\n  holonome completions bash > ~/.local/share/bash-completion/completions/holonome\n  holonome completions fish > ~/.config/fish/completions/holonome.fish"
    )]
    Completions(CompletionsArguments),
}

#[derive(Args)]
pub struct ReproduceArguments {
    /// Which studies [default: all]
    pub studies: Vec<String>,
    /// List the studies
    #[arg(long)]
    pub list: bool,
    /// Make the long runs, too
    #[arg(long)]
    pub full: bool,
    /// Folder of models, runs and table, where an interrupted one goes on
    #[arg(long, value_name = "DIR", default_value = "reproduced")]
    pub out: PathBuf,
    /// Open the page in the browser
    #[arg(long)]
    pub open: bool,
    #[command(flatten)]
    pub threads: ThreadArguments,
    #[command(flatten)]
    pub output: OutputArguments,
}

#[derive(Args)]
pub struct CompletionsArguments {
    /// Which shell
    #[arg(value_enum)]
    pub shell: Shell,
}

/// Script that completes the commands and options in a shell.
pub fn completions(shell: Shell) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "holonome", &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

/// Model, and changes of it.
#[derive(Args, Clone)]
pub struct ModelArguments {
    /// The model file
    pub model: PathBuf,
    /// Replace a parameter, size or initial value (repeatable)
    #[arg(long = "set", value_name = "NAME=EXPR", allow_hyphen_values = true)]
    pub set: Vec<String>,
    /// Which random numbers normal() and uniform() draw
    #[arg(long, value_name = "N", default_value_t = 0, allow_hyphen_values = true)]
    pub seed: u64,
    /// Move the initial state onto the constraint set
    #[arg(long)]
    pub project_initial: bool,
}

impl ModelArguments {
    pub fn settings(&self) -> Result<Settings, Error> {
        let mut set: Vec<(String, String)> = Vec::new();
        for (name, value) in assignments("--set", &self.set, "m=2")? {
            set.retain(|(n, _)| *n != name); // the last one counts
            set.push((name, value));
        }
        Ok(Settings { set, seed: self.seed, project_initial: self.project_initial, ..Settings::default() })
    }
}

/// A penalty in place of constraints.
#[derive(Args)]
pub struct PenaltyArguments {
    /// Take the constraints g for a potential (OMEGA^2/2)|g|^2, so that methods without constraints apply: a number, or
    /// auto, which follows from the step
    #[arg(long, value_name = "OMEGA|auto", allow_hyphen_values = true)]
    pub penalty: Option<String>,
    /// The same, OMEGA being what an error of this size in the positions at the end takes
    #[arg(long, value_name = "TOL", conflicts_with = "penalty", allow_hyphen_values = true)]
    pub penalty_tolerance: Option<f64>,
    /// Start a penalised run where nothing oscillates at the penalty's frequency [default: on]
    #[arg(long, value_name = "on|off", value_enum)]
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
    /// Friction and noise after every step of the method
    #[arg(long, value_name = "gla", value_enum)]
    pub thermostat: Option<ThermostatName>,
    /// Friction of a heat bath, as force per velocity
    #[arg(long, value_name = "GAMMA", value_parser = constant, allow_hyphen_values = true)]
    pub friction: Option<f64>,
    /// 1/kT of a heat bath
    #[arg(long, value_name = "BETA", value_parser = constant, allow_hyphen_values = true)]
    pub inverse_temperature: Option<f64>,
    /// Let constraints in a heat bath stand for stiff springs: add Fixman's potential [default: off]
    #[arg(long, value_name = "on|off", value_enum)]
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
    /// Time at the end: a number or a constant formula, as 2*pi
    #[arg(long, value_name = "T", default_value = "100", value_parser = constant, allow_hyphen_values = true)]
    pub until: f64,
    /// Output spacing (with a fixed step, a multiple of it)
    #[arg(long, value_name = "DT", value_parser = constant, conflicts_with = "samples", allow_hyphen_values = true)]
    pub every: Option<f64>,
    /// Number of outputs, first and last included [default: 1001 but no more than steps, of a sweep 2]
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub samples: Option<u64>,
    /// auto, a number for every invariant, or NAME=NUMBER,… (`rod`, `rod.hidden`, `H`, an integral)
    #[arg(long, value_name = "GAIN", allow_hyphen_values = true)]
    pub gain: Option<String>,
    /// Take the invariants' targets from this state: "q=(0,1,0),p=(1,0,-1)"
    #[arg(long, value_name = "STATE")]
    pub reference: Option<String>,
    /// Largest residual that projections accept [default: round-off]
    #[arg(long, value_name = "TOL", allow_hyphen_values = true)]
    pub projection_tolerance: Option<f64>,
    /// Longest adaptive step: for pulses and walls that a longer one would not see
    #[arg(long, value_name = "H", value_parser = constant, allow_hyphen_values = true)]
    pub max_step: Option<f64>,
    /// Steps, rejected ones included, after which a run fails [default: 100000000 where steps adapt]
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub max_steps: Option<u64>,
    /// The metric in which `projection` moves a state: that of the step's error, or the Euclidean one of the papers
    /// [default: error for schemes of an order above 2, else euclidean]
    #[arg(long, value_name = "error|euclidean", value_enum)]
    pub metric: Option<MetricName>,
    /// Largest residual, relative to its terms, that the Newton iterations of implicit methods accept [default:
    /// round-off]
    #[arg(long, value_name = "TOL", allow_hyphen_values = true)]
    pub newton_tolerance: Option<f64>,
    #[command(flatten)]
    pub penalty: PenaltyArguments,
    /// Newmark's beta, of the methods of Newmark, Zhang and Skeel [default: 0.4]
    #[arg(long, value_name = "BETA", allow_hyphen_values = true)]
    pub beta: Option<f64>,
    /// The stiff term of the potential energy, for zhang-skeel-stiff: a `let` that the Hamiltonian adds
    #[arg(long, value_name = "NAME")]
    pub stiff: Option<String>,
    /// Run gains that would be refused as unstable
    #[arg(long)]
    pub allow_unstable: bool,
    /// Run although a claimed integral is none, or a field leaves its constraint: without holding it
    #[arg(long)]
    pub allow_unverified: bool,
    #[command(flatten)]
    pub threads: ThreadArguments,
}

/// A metric of projections.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum MetricName {
    Error,
    Euclidean,
}

/// Number of cores that are used.
#[derive(Args)]
pub struct ThreadArguments {
    /// Threads for ensembles, comparisons and long sums, whose results do not depend on them [default: all cores]
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub threads: Option<usize>,
}

impl ThreadArguments {
    /// Start so many threads, before anything is computed.
    pub fn start(&self) -> Result<(), Error> {
        self.threads.map_or(Ok(()), holonome::set_threads)
    }
}

impl IntegrationArguments {
    /// Changes of the model: with targets from elsewhere, the start need not meet the constraints.
    pub fn settings(&self, model: &ModelArguments) -> Result<Settings, Error> {
        Ok(Settings {
            start_off_set: self.reference.is_some(),
            stiff: self.stiff.clone(),
            span: Some((0.0, self.until)),
            allow_unverified: self.allow_unverified,
            ..model.settings()?
        })
    }

    /// Options by these arguments, with the defaults of a run.
    fn options(&self) -> Result<RunOptions, Error> {
        self.penalty.put(RunOptions {
            until: self.until,
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
            ..RunOptions::default()
        })
    }
}

#[derive(Args)]
pub struct RunArguments {
    #[command(flatten)]
    pub model: ModelArguments,
    /// BASE or TREATMENT:BASE; `holonome methods` lists them
    #[arg(long, default_value = "corrected:dop853")]
    pub method: String,
    /// Fixed step; without it the step adapts to the tolerances
    #[arg(long, value_name = "H", value_parser = constant, allow_hyphen_values = true)]
    pub step: Option<f64>,
    /// Tolerance of a step's error, relative to the size of every vector so far
    #[arg(long, default_value = "1e-9", allow_hyphen_values = true)]
    pub rtol: f64,
    /// Absolute floor of the tolerance [default: none, so that units change nothing]
    #[arg(long, allow_hyphen_values = true)]
    pub atol: Option<f64>,
    #[command(flatten)]
    pub integration: IntegrationArguments,
    /// Time of the initial state
    #[arg(long, value_name = "T0", default_value_t = 0.0, allow_hyphen_values = true)]
    pub from: f64,
    /// What is stored at each output, by name (`q`, `H`, an integral, an observable, `residual.rod`, `drift.H`)
    /// [default: everything]
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub record: Option<Vec<String>>,
    /// Measure the orbit's error by a second run, at a hundredth of the tolerances or at half the step
    #[arg(long)]
    pub error: bool,
    #[command(flatten)]
    pub heat_bath: HeatBathArguments,
    /// Folder of the run [default: runs/STEM-k]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Write a page that shows the run: report.html in its folder
    #[arg(long)]
    pub report: bool,
    /// Show that page in the browser
    #[arg(long)]
    pub open: bool,
    #[command(flatten)]
    pub output: OutputArguments,
}

#[derive(Args)]
pub struct CompareArguments {
    #[command(flatten)]
    pub model: ModelArguments,
    /// BASE or TREATMENT:BASE (repeatable, or a list); `holonome methods` lists them
    #[arg(long = "method", value_name = "METHOD,…", value_delimiter = ',', required = true)]
    pub methods: Vec<String>,
    /// Fixed steps
    #[arg(long = "step", value_name = "H,…", value_delimiter = ',', value_parser = constant, allow_hyphen_values = true)]
    pub steps: Vec<f64>,
    /// Relative tolerances [default: 1e-9 where there is no --step]
    #[arg(long, value_name = "RTOL,…", value_delimiter = ',', allow_hyphen_values = true)]
    pub rtol: Vec<f64>,
    /// Absolute floors of the tolerances, one for each or one for all [default: none]
    #[arg(long, value_name = "ATOL,…", value_delimiter = ',', allow_hyphen_values = true)]
    pub atol: Vec<f64>,
    /// Budgets, 4 for each field evaluation, Hessian or linear solve and 1 for each gradient or Newton iteration: every
    /// method takes the step or the tolerance that spends them
    #[arg(long = "budget", value_name = "N,…", value_delimiter = ',', allow_hyphen_values = true)]
    pub budgets: Vec<u64>,
    #[command(flatten)]
    pub integration: IntegrationArguments,
    /// Folder of the results [default: runs/STEM-compare-k]
    #[arg(long, value_name = "DIR")]
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
    #[command(flatten)]
    pub run: RunArguments,
    /// How many trajectories
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub trajectories: u64,
    /// Give a parameter or an initial value a value of its own in trajectory i of N: any formula of i, N, normal(),
    /// uniform() (repeatable)
    #[arg(long = "vary", value_name = "NAME=EXPR", allow_hyphen_values = true)]
    pub vary: Vec<String>,
    /// Run the k-th of K parts only
    #[arg(long, value_name = "k/K")]
    pub shard: Option<String>,
}

impl SweepArguments {
    pub fn sweep(&self) -> Result<SweepOptions, Error> {
        let vary = assignments("--vary", &self.vary, "g=9.8+0.1*normal()")?;
        if let Some((name, _)) = vary.iter().enumerate().find_map(|(k, v)| vary[..k].iter().find(|w| w.0 == v.0)) {
            return Err(Error::option(format!("--vary names '{name}' twice")));
        }
        let shard = match &self.shard {
            None => None,
            Some(text) => {
                let parts =
                    text.split_once('/').and_then(|(k, of)| Some((k.trim().parse().ok()?, of.trim().parse().ok()?)));
                let bad = || Error::option(format!("--shard {text}: write k/K, for example --shard 1/4"));
                Some(parts.ok_or_else(bad)?)
            }
        };
        Ok(SweepOptions { trajectories: self.trajectories, vary, shard })
    }
}

/// Split `NAME=EXPR` in every text.
fn assignments(option: &str, texts: &[String], example: &str) -> Result<Vec<(String, String)>, Error> {
    let split = |text: &String| match text.split_once('=') {
        Some((name, value)) => Ok((name.trim().to_string(), value.trim().to_string())),
        None => Err(Error::option(format!("{option} {text}: write NAME=EXPR, for example {option} {example}"))),
    };
    texts.iter().map(split).collect()
}

#[derive(Args)]
pub struct MergeArguments {
    /// The folder to make
    pub out: PathBuf,
    /// The parts' folders, in any order
    #[arg(required = true)]
    pub parts: Vec<PathBuf>,
    #[command(flatten)]
    pub output: OutputArguments,
}

/// Output of results.
#[derive(Args, Clone, Copy)]
pub struct OutputArguments {
    /// Print one JSON object on stdout
    #[arg(long)]
    pub json: bool,
    /// Print errors only
    #[arg(long, short)]
    pub quiet: bool,
}

impl RunArguments {
    /// Changes of the model, and its initial time.
    pub fn settings(&self) -> Result<Settings, Error> {
        if !self.from.is_finite() {
            return Err(Error::option(format!("--from must be finite, but it is {}", self.from)));
        }
        let span = Some((self.from, self.integration.until));
        Ok(Settings { span, ..self.integration.settings(&self.model)? })
    }

    /// Options without the method, whose name is checked only after the model; see [`RunArguments::method`].
    pub fn options(&self) -> Result<RunOptions, Error> {
        let adaptive = StepSize::Adaptive { rtol: self.rtol, atol: self.atol.unwrap_or(0.0) };
        Ok(self.heat_bath.put(RunOptions {
            step: self.step.map_or(adaptive, StepSize::Fixed),
            record: self.record.as_ref().map(|names| names.iter().map(|name| name.trim().to_string()).collect()),
            out: self.out.clone(),
            error: self.error,
            ..self.integration.options()?
        }))
    }

    pub fn method(&self) -> Result<Method, Error> {
        Ok(self.method.parse()?)
    }

    /// Warning about arguments that are given and have no effect.
    pub fn unused(&self) -> Option<String> {
        let given = StepSize::Adaptive { rtol: self.rtol, atol: self.atol.unwrap_or(0.0) } != StepSize::default();
        (self.step.is_some() && given)
            .then(|| "--rtol or --atol has no effect: the step is fixed by --step".to_string())
    }
}

#[derive(Args)]
pub struct CheckArguments {
    #[command(flatten)]
    pub model: ModelArguments,
    /// Tell everything: constraints one by one, ranks, every method and why it does not apply
    #[arg(long, short)]
    pub verbose: bool,
    #[command(flatten)]
    pub output: OutputArguments,
}

#[derive(Args)]
pub struct MethodsArguments {
    #[command(flatten)]
    pub output: OutputArguments,
}

/// The stages of a model's translation.
#[derive(Clone, Copy, ValueEnum)]
pub enum Stage {
    /// The syntax tree
    Syntax,
    /// The checked model: variables, parameters, term templates
    Model,
    /// The expression graph of the field and its invariants
    Graph,
    /// The field's tape: straight-line code
    Tape,
}

#[derive(Args)]
pub struct ShowArguments {
    /// Which stage
    #[arg(value_enum)]
    pub stage: Stage,
    #[command(flatten)]
    pub model: ModelArguments,
    #[command(flatten)]
    pub output: OutputArguments,
}

#[derive(Args)]
pub struct ExportArguments {
    /// The run's folder
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
        let given =
            |format: &'static Format| matches.get_one::<PathBuf>(format.name).map(|path| (format, path.clone()));
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
                .help(format!("The {} file to write, or - for stdout", format.about))
        };
        let group = ArgGroup::new("format").args(FORMATS.iter().map(|format| format.name)).required(true);
        command.args(FORMATS.iter().map(flag)).group(group)
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Exported::augment_args(command)
    }
}

#[derive(Args)]
pub struct AnalyseArguments {
    /// The folder of the run or the ensemble
    pub run: PathBuf,
    /// mean(NAME), histogram(NAME, a, b, bins), rdf(NAME, b, bins), rdf(NAME, b, bins, side), msd(NAME) or
    /// autocorrelation(NAME) (repeatable) [default: the mean of every single number recorded beside the state]
    #[arg(long = "measure", value_name = "MEASURE")]
    pub measures: Vec<String>,
    /// Time before which samples are left out
    #[arg(long, value_name = "T", value_parser = constant, allow_hyphen_values = true)]
    pub from: Option<f64>,
    #[command(flatten)]
    pub output: OutputArguments,
}

#[derive(Args)]
pub struct ReportArguments {
    /// Folders of runs, ensembles or comparisons; several runs stand side by side
    #[arg(required = true)]
    pub paths: Vec<PathBuf>,
    /// The file to write [default: report.html in the folder, or of several in the current one]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Show it in the browser
    #[arg(long)]
    pub open: bool,
    /// Write it anew every few seconds until the run ends
    #[arg(long)]
    pub live: bool,
    #[command(flatten)]
    pub output: OutputArguments,
}

#[derive(Args)]
#[command(group = ArgGroup::new("file").args(["svg", "pdf", "png"]).required(true).multiple(true))]
pub struct PlotArguments {
    /// The folder of an ensemble or a comparison, or those of runs, which are named after them
    #[arg(required = true)]
    pub paths: Vec<PathBuf>,
    /// The column along the horizontal axis, as `q.x`, or of an ensemble what varies [default: t, or what suits]
    #[arg(long, value_name = "COLUMN")]
    pub x: Option<String>,
    /// Columns along the vertical axis
    #[arg(long, value_name = "COLUMN,…")]
    pub y: Vec<String>,
    /// The SVG file to write
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// The PDF file to write
    #[arg(long, value_name = "FILE")]
    pub pdf: Option<PathBuf>,
    /// The PNG file to write
    #[arg(long, value_name = "FILE")]
    pub png: Option<PathBuf>,
    #[command(flatten)]
    pub output: OutputArguments,
}

#[derive(Args)]
pub struct ResumeArguments {
    /// The run's folder
    pub run: PathBuf,
    /// Go on to a later end than the run's own, also if it is finished
    #[arg(long, value_name = "T", value_parser = constant, allow_hyphen_values = true)]
    pub until: Option<f64>,
    #[command(flatten)]
    pub threads: ThreadArguments,
    #[command(flatten)]
    pub output: OutputArguments,
}
