//! Behaviour in a terminal and a shell: streams, colours, quotes, completions; numbers as formulas;
//! threads.

mod common;

use common::{Answer, Folder, keys, number};
use std::f64::consts::PI;
use std::process::Command;

/// Run with these environment variables; the streams are pipes, so nothing is coloured unless asked
/// for.
fn with(folder: &Folder, arguments: &str, variables: &[(&str, &str)]) -> Answer {
    let mut command: Command = folder.command(arguments);
    command.envs(variables.iter().copied());
    Answer::new(command.output().unwrap())
}

#[test]
fn times_and_steps_are_constant_formulas() {
    let folder = Folder::new();
    let run = folder
        .summary("run models/kepler.holo --method rk4 --until 2*pi --step pi/100 --every pi/2");
    // Time is 200 h, and h a rounded hundredth of pi.
    let rounding = 2.0 * f64::EPSILON * 2.0 * PI;
    assert!((number(&run, "/t") - 2.0 * PI).abs() <= rounding && run["steps"] == 200, "{run}");
    assert_eq!(folder.times("runs/kepler-1").len(), 5);
    let sweep = folder
        .summary("sweep models/kepler.holo --trajectories 2 --method rk4 --until 1/2 --step 1/100");
    assert_eq!((number(&sweep, "/t"), sweep["steps"].as_u64()), (0.5, Some(100)));
    let compared =
        folder.summary("compare models/kepler.holo --method rk4 --step 1/10,1/20 --until 10/10");
    let steps: Vec<f64> =
        compared["rows"].as_array().unwrap().iter().map(|row| number(row, "/step")).collect();
    assert_eq!((steps, number(&compared, "/t")), (vec![0.1, 0.05], 1.0));
    for (option, value, why) in [
        ("--until", "soon", "unknown name 'soon'"),
        ("--until", "1/0", "--until"),
        ("--step", "(1,2)", "vector"),
        ("--every", "2*", "--every"),
        ("--until", "t", "--until"),
        ("--until", "normal()", "--until"),
    ] {
        let step = if option == "--step" { "" } else { "--step 0.1" };
        folder
            .run(&format!("run models/kepler.holo --method rk4 {step} {option}={value}"))
            .refused(&[option, why]);
    }
    assert!(!folder.path("runs/kepler-3").exists(), "what is refused leaves nothing");
}

#[test]
fn colours_are_for_who_wants_them() {
    let folder = Folder::new();
    folder.write("bad.holo", "coordinate q = 1\nmomentum p of q\nhamiltonian p^2/2 + qq\n");
    let coloured = |arguments: &str, variables: &[(&str, &str)]| {
        let answer = with(&folder, arguments, variables);
        assert!(!answer.stdout.contains('\u{1b}'), "results have no colours: {answer:?}");
        answer.stderr.contains('\u{1b}')
    };
    assert!(!coloured("run bad.holo", &[]), "a pipe is no terminal");
    assert!(coloured("run bad.holo --color always", &[]));
    assert!(
        coloured("--color=always run bad.holo", &[("NO_COLOR", "1"), ("TERM", "dumb")]),
        "an option beats them"
    );
    assert!(!coloured("run bad.holo --color never", &[]));
    // Messages of clap itself are coloured, too.
    assert!(coloured("run --color always --nothing", &[]) && !coloured("run --nothing", &[]));
    with(&folder, "run bad.holo --color pink", &[]).refused(&["--color", "always"]);
}

#[test]
fn the_next_command_can_be_pasted() {
    let folder = Folder::new();
    let model = std::fs::read(folder.path("models/kepler.holo")).unwrap();
    folder.write("my model's.holo", model);
    let mut command = folder.command("run --until 1 --out");
    let answer = Answer::new(command.args(["a run;", "my model's.holo"]).output().unwrap()).ok();
    let next = answer
        .stderr
        .lines()
        .find_map(|line| line.trim().strip_prefix("next:"))
        .expect("a next command");
    assert_eq!(next.trim(), "holonome report 'a run;' --open");
    // A shell reads it as intended.
    let paste = |line: &str| {
        let line = line.trim().replacen("holonome", env!("CARGO_BIN_EXE_holonome"), 1);
        Command::new("sh").args(["-c", &line]).current_dir(folder.path("")).output().unwrap()
    };
    let pasted = paste(next.trim().trim_end_matches("--open"));
    assert!(pasted.status.success() && folder.path("a run;/report.html").exists(), "{pasted:?}");
    // Who has seen the report is told how to take the data elsewhere.
    let mut command = folder.command("run --until 1 --report --out");
    let answer = Answer::new(command.args(["another;", "my model's.holo"]).output().unwrap()).ok();
    let next = answer
        .stderr
        .lines()
        .find_map(|line| line.trim().strip_prefix("next:"))
        .expect("a next command");
    assert_eq!(next.trim(), "holonome export 'another;' --csv 'my model'\\''s.csv'");
    let pasted = paste(next);
    assert!(pasted.status.success() && folder.path("my model's.csv").exists(), "{pasted:?}");
}

#[test]
fn completions_name_commands_and_options() {
    let folder = Folder::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = folder.run(&format!("completions {shell}")).ok();
        assert!(script.stderr.is_empty());
        for word in ["run", "compare", "sweep", "rtol", "project-initial", "completions"] {
            assert!(script.stdout.contains(word), "{shell}: no {word}");
        }
    }
    folder.run("completions basic").refused(&["basic", "bash", "fish"]);
}

/// Candidates of bash, in whose words colons and equals signs stand alone.
#[test]
fn methods_are_completed() {
    let folder = Folder::new();
    for shell in ["zsh", "fish"] {
        let script = folder.run(&format!("completions {shell}")).ok().stdout;
        assert!(script.contains("stormer-verlet-b") && script.contains("dop853"), "{shell}");
    }
    folder.write("completions.bash", folder.run("completions bash").ok().stdout);
    let completed = |line: &str| {
        let spaced = line.replace(':', " : ").replace('=', " = ");
        let mut words: Vec<&str> = spaced.split_whitespace().collect();
        if line.ends_with([' ', ':', '=']) {
            words.push("");
        }
        let [.., before, last] = words[..] else { panic!("{line}") };
        let quoted: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
        let script = format!(
            "source completions.bash\nread -ra registered <<< \"$(complete -p holonome)\"\n\
             COMP_LINE='{line}'; COMP_POINT={}; COMP_WORDS=({}); COMP_CWORD={}\n\
             for k in \"${{!registered[@]}}\"; do [[ ${{registered[k]}} == -F ]] && function=${{registered[k+1]}}; done\n\
             $function holonome '{last}' '{before}'\necho \"${{COMPREPLY[*]}}\"\n",
            line.len(),
            quoted.join(" "),
            words.len() - 1,
        );
        let output = Command::new("bash")
            .args(["--norc", "-c", &script])
            .current_dir(folder.path(""))
            .output();
        let answer = Answer::new(output.unwrap());
        assert_eq!((answer.code, answer.stderr.as_str()), (Some(0), ""), "{line}");
        answer.stdout.trim().to_string()
    };
    for (line, candidates) in [
        ("holonome run m.holo --method stor", "stormer-verlet-a stormer-verlet-b"),
        ("holonome run m.holo --method corr", "corrected:"),
        ("holonome run m.holo --method corrected:do", "dopri5 dop853"),
        ("holonome run m.holo --method=corrected:dop8", "dop853"),
        ("holonome sweep m.holo --method=rk", "rk4"),
        ("holonome compare m.holo --method rk4,do", "rk4,dopri5 rk4,dop853"),
        ("holonome compare m.holo --method rk4,corrected:dop8", "dop853"),
        ("holonome compare m.holo --method corrected:rk4,dop8", "rk4,dop853"),
        // Everything else is left to the generated function.
        ("holonome run m.holo --met", "--method --metric"),
        ("holonome comp", "compare completions"),
    ] {
        assert_eq!(completed(line), candidates, "{line}");
    }
    let all = completed("holonome run m.holo --method ");
    let all: Vec<&str> = all.split(' ').collect();
    for scheme in holonome::method::SCHEMES {
        assert!(all.contains(&scheme.name), "{all:?} lack {}", scheme.name);
    }
    assert!(
        all.ends_with(&["feedback:", "corrected:", "projection:", "symmetric-projection:"]),
        "{all:?}"
    );
}

#[test]
fn results_do_not_depend_on_threads() {
    let folder = Folder::new();
    let sweep =
        "sweep models/spherical-pendulum.holo --trajectories 600 --vary g=0.5+i/N --until 2";
    let mut one = folder.summary(&format!("{sweep} --threads 1"));
    let mut three = folder.summary(&format!("{sweep} --threads 3"));
    for object in [&mut one, &mut three] {
        object["out"].take();
        object["cost"]["wall_seconds"].take();
    }
    assert_eq!(one, three);
    assert!(keys(&one["drift"]["hamiltonian"]).contains(&"relative"));
    let rows =
        |k: u32| folder.run(&format!("export runs/spherical-pendulum-{k} --csv -")).ok().stdout;
    assert_eq!(rows(1), rows(2));
    let water = "run models/water.holo --set N=170 --method rattle --step 0.05 --until 0.1";
    let [one, three] =
        [1, 3].map(|threads| folder.summary(&format!("{water} --state --threads {threads}")));
    assert_eq!((&one["state"], &one["drift"]), (&three["state"], &three["drift"]));
    assert_eq!(three["warnings"], serde_json::json!([]));
    let single = folder.summary("run models/kepler.holo --until 1 --threads 2");
    assert!(
        single["warnings"][0].as_str().unwrap().starts_with("--threads has no effect"),
        "{single}"
    );
    folder.run(&format!("{sweep} --threads 0")).refused(&["--threads", "1 to"]);
    folder.run(&format!("{sweep} --threads many")).refused(&["--threads"]);
}

#[test]
fn tiny_and_vanishing_numbers_are_shown_as_such() {
    let folder = Folder::new();
    let model =
        "coordinate x = 1e-16\nmomentum v of x = 0\nhamiltonian v^2/2 + x^2\nintegral Z = 0*x\n";
    folder.write("tiny.holo", model);
    let table = folder.run("run tiny.holo --until 1 --atol 0 --rtol 1e-6").ok().stdout;
    let line = |name: &str| {
        table.lines().find(|line| line.contains(name)).unwrap_or_else(|| panic!("{table}"))
    };
    assert!(line("Hamiltonian").contains("1e-32"), "{table}");
    assert!(line("integral Z").split_whitespace().skip(2).all(|cell| cell == "0"), "{table}");
    assert!(!table.contains("-0 "), "{table}");
}
