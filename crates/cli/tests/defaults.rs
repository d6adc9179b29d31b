//! `run OPTION = VALUE`: options that a model suggests.

mod common;

use common::Folder;

const OSCILLATOR: &str = "size n = 2\nparameter w = 1\ncoordinate q = 1\nmomentum p of q\n\
    hamiltonian p^2/2 + w*q^2/2\n";

/// A run by the options of the model is the run with these options: its states have equal bits.
#[test]
fn options_of_a_model_are_those_of_the_command_line() {
    let folder = Folder::new();
    let suggested = "run until = 2*pi*n\nrun method = corrected:rk4\nrun step = 2*pi/100\n\
        run from = -w\nrun samples = 11\n";
    folder.write("plain.holo", OSCILLATOR).write("own.holo", format!("{OSCILLATOR}{suggested}"));
    let state = |command: &str| {
        let run = folder.summary(&format!("run {command}"));
        (run["method"].clone(), run["steps"].clone(), run["t"].clone(), run["state"].clone())
    };
    let given = "--from -1 --method corrected:rk4";
    let own = state("own.holo");
    assert_eq!(
        own,
        state(&format!("plain.holo {given} --until 4*pi --step 2*pi/100 --samples 11"))
    );
    // A value that is set changes what follows from it, and what is given counts.
    let both = format!("plain.holo {given} --until 6*pi --step 2*pi/100 --samples 11");
    assert_eq!(state("own.holo --set n=3"), state(&both));
    let both = format!("plain.holo {given} --until 3 --step 0.01");
    assert_eq!(state("own.holo --until 3 --step 0.01"), state(&both));
    // A tolerance excludes the step of the model.
    let adaptive = "--until 3 --rtol 1e-6 --method dop853";
    assert_eq!(
        state(&format!("own.holo {adaptive}")),
        state(&format!("plain.holo --from -1 {adaptive}"))
    );
    let sweep = folder.summary("sweep own.holo --trajectories 3 --vary q=1+i");
    assert_eq!((sweep["method"].clone(), sweep["t"].clone()), (own.0, own.2));
}

/// An option that is a word, and one of a command line that counts instead.
#[test]
fn a_model_may_go_on_through_singular_configurations() {
    let folder = Folder::new();
    let eight = "coordinate q : R^2 = (1, 0)\nmomentum p of q = (0, 1)\nhamiltonian dot(p, p)/2\n\
        constraint c : (q.x^2 + q.y^2)^2 = q.x^2 - q.y^2\nrun until = 2\n";
    folder.write("stop.holo", eight).write("on.holo", format!("{eight}run singular = continue\n"));
    let stopped = folder.run("run stop.holo");
    assert_eq!(stopped.code, Some(1), "{stopped:?}");
    for said in ["singular configuration at t = 1.311", "gradient of c", "--singular continue"] {
        assert!(stopped.stderr.contains(said), "{stopped:?}");
    }
    let on = folder.run("run on.holo").ok();
    assert!(on.stderr.contains("along the branch of its momentum"), "{on:?}");
    assert_eq!(folder.run("run on.holo --singular stop").code, Some(1));
    folder.run("run stop.holo --singular continue").ok();
    folder.write("bad.holo", format!("{eight}run singular = perhaps\n"));
    folder.run("check bad.holo").refused(&["'perhaps'", "stop or continue", "bad.holo:6"]);
    folder.run("run stop.holo --singular perhaps").refused(&["--singular", "continue"]);
}

/// Options are those of all trajectories.
#[test]
fn an_option_that_differs_between_trajectories_is_refused() {
    let folder = Folder::new();
    folder.write("own.holo", format!("{OSCILLATOR}run until = 2*pi/sqrt(w)\n"));
    let vary = "sweep own.holo --trajectories 3 --vary w=1+i";
    folder.run(vary).refused(&["run until", "--vary changes it", "--until"]);
    folder.run(&format!("{vary} --until 5")).ok();
}

#[test]
fn mistakes_are_shown_in_their_lines() {
    let folder = Folder::new();
    for (statement, fragments) in [
        ("untl = 3", ["untl", "did you mean 'until'?"]),
        ("colour = 3", ["colour", "it may suggest method, step"]),
        ("rtol = -1", ["must be positive and finite", "it is -1"]),
        ("until = exp(1000*n)", ["must be finite", "inf"]),
        ("samples = 2.5", ["an integer, at least 2", "2.5"]),
        ("method = rk44", ["rk44", "rk4"]),
        ("step = 1\nrun rtol = 1", ["'step' and 'rtol' exclude each other", "own.holo:7"]),
    ] {
        folder.write("own.holo", format!("{OSCILLATOR}run {statement}\n"));
        folder.run("run own.holo").refused(&fragments);
    }
}

/// Members and components are set, by formulas of what their statement may use; the others stay.
#[test]
fn members_and_components_are_set() {
    let folder = Folder::new();
    folder.write(
        "chain.holo",
        "size n = 3\nparameter g = (0, 9.8)\nparameter m[i in 1..n] = list(1, 2, 3)\n\
         parameter k[i in 1..2, j in 1..2] = i + j\nparameter twice[i in 1..n] = 2*m[i]\n\
         coordinate r[i in 1..n] : R^2 = (i, -i)\nmomentum p of r\n\
         hamiltonian sum(i in 1..n : dot(p[i], p[i])/(2*m[i]) + dot(g, r[i]) + k[1,1]*dot(r[i], r[i]))\n\
         observe all = (m[1], m[2], m[3], twice[2], k[1,2], k[2,1], g.x, g.y)\n",
    );
    let start = |set: &str, columns: &str| {
        folder.run(&format!("run chain.holo {set} --until 0.001 --out out")).ok();
        let (names, rows) = folder.samples("out");
        std::fs::remove_dir_all(folder.path("out")).unwrap();
        let value = |name: &str| rows[0][names.iter().position(|n| n == name).unwrap()];
        columns.split(' ').map(value).collect::<Vec<f64>>()
    };
    let all = "all[1] all[2] all[3] all[4] all[5] all[6] all[7] all[8]";
    assert_eq!(start("", all), [1.0, 2.0, 3.0, 4.0, 3.0, 3.0, 0.0, 9.8]);
    let set = "--set m[2]=5*n --set k[2,1]=-i --set g.x=m[1]+1";
    assert_eq!(start(set, all), [1.0, 15.0, 3.0, 30.0, 3.0, -2.0, 2.0, 9.8]);
    let variables = "r[1].x r[2].x r[2].y r[3].x r[3].y p[2].x p[2].y p[3].y";
    let set = "--set r[2]=(7,8) --set r[3].y=m[3] --set p[2].y=1 --set r[1].x=i/4";
    assert_eq!(start(set, variables), [0.25, 7.0, 8.0, 3.0, 3.0, 0.0, 1.0, 0.0]);
    for (set, fragments) in [
        ("m[4]=1", ["'m' has no member or component '[4]'", "m[1] to m[3]"]),
        ("r[1].z=1", ["'[1].z'", "r[3].y"]),
        ("r[1]=1", ["'r[1]' is in R^2", "the value is in R"]),
        ("mm[1]=1", ["cannot set 'mm[1]'", "these can be set: n, g, m"]),
        ("n[1]=1", ["cannot set 'n[1]'", "no parameter"]),
    ] {
        folder.run(&format!("run chain.holo --set {set}")).refused(&fragments);
    }
    // A sweep varies what depends on a parameter, beside a member that is set.
    let sweep = "sweep chain.holo --trajectories 2 --vary g.x=i --until 0.1";
    folder.run(sweep).refused(&["g.x"]);
    let sweep = "sweep chain.holo --trajectories 2 --vary n=i --until 0.1";
    folder.run(sweep).refused(&["n"]);
}

/// A table is read from another file, relative to the current folder, and kept with the run.
#[test]
fn a_table_is_read_from_another_file() {
    let folder = Folder::new();
    std::fs::create_dir(folder.path("models/data")).unwrap();
    folder.write("models/data/pull.csv", "f\n1\n").write("other.csv", "f\n4\n2\n");
    folder.write(
        "models/pulled.holo",
        "table pull = \"data/pull.csv\"\ncoordinate q = 0\nmomentum p of q\n\
         hamiltonian p^2/2 - pull.f[1]*q\nobserve count = rows(pull)\n",
    );
    let end = |set: &str| {
        let run = folder.summary(&format!("run models/pulled.holo --until 2 {set}"));
        (run["state"]["q"].as_f64().unwrap(), run["out"].as_str().unwrap().to_string())
    };
    assert!((end("").0 - 2.0).abs() < 1e-12);
    let (q, out) = end("--set pull=other.csv");
    assert!((q - 8.0).abs() < 1e-12);
    std::fs::remove_file(folder.path("other.csv")).unwrap();
    let longer = folder.summary(&format!("resume {out} --until 3"));
    assert!((longer["state"]["q"].as_f64().unwrap() - 18.0).abs() < 1e-12);
    folder.run("run models/pulled.holo --set pull=other.csv").refused(&["other.csv", "--set"]);
    folder.run("run models/pulled.holo --set pul=other.csv").refused(&["did you mean 'pull'?"]);
}

const PENDULUM: &str = "coordinate q = 1\nmomentum p of q\nhamiltonian p^2/2 - cos(q)\n";

/// A long run of which nobody chooses the method: the fastest by trial, which is reported, stored,
/// and kept when the run goes on.
#[test]
fn a_long_run_chooses_its_method_by_trial() {
    let folder = Folder::new();
    folder.write("free.holo", PENDULUM);
    let long = "free.holo --samples 2 --until 1e6";
    let run = folder.summary(&format!("run {long} --out free"));
    let times = run["trial"]["times"].as_object().expect("a trial");
    let names: Vec<&str> = times.keys().map(String::as_str).collect();
    assert_eq!(names, ["corrected:dop853", "corrected:taylor", "corrected:gauss16"]);
    let times = times.values().map(|time| time.as_f64().expect("an estimate"));
    assert!(times.clone().all(|time| (1.0..10.0).contains(&time)), "{run}");
    let fastest = names[times.clone().position(|time| time == 1.0).expect("the fastest")];
    assert_eq!(run["method"], fastest);
    // The same bits as by the name.
    let named = folder.summary(&format!("run {long} --method {fastest} --out named"));
    assert_eq!((&run["state"], &run["steps"]), (&named["state"], &named["steps"]));
    assert!(named.get("trial").is_none(), "{named}");
    // In words, and in a run that goes on.
    let words = folder.run(&format!("run {long} --out words")).ok();
    assert!(words.stdout.contains("the fastest by trial"), "{words:?}");
    let on = folder.summary("resume free --until 1.1e6");
    assert_eq!((&on["method"], &on["trial"]), (&run["method"], &run["trial"]));
}

/// The way to the later part of a trial is no longer than a run may be: this one would never get
/// there.
#[test]
fn a_trial_ends_at_the_limit_of_steps() {
    let folder = Folder::new();
    folder.write("free.holo", PENDULUM);
    let ended = folder.run("run free.holo --samples 2 --until 1e13 --max-steps 20000 --out ended");
    assert!(ended.code == Some(1) && ended.stderr.contains("after 20000 steps"), "{ended:?}");
}

/// What is short, or chosen, is not tried; what a method cannot run is left out.
#[test]
fn a_trial_is_for_what_nobody_chose() {
    let folder = Folder::new();
    folder
        .write("free.holo", PENDULUM)
        .write("own.holo", format!("{PENDULUM}run method = dop853\n"))
        .write("kink.holo", PENDULUM.replace("- cos(q)", "+ q^2/2 + max(q, 0)^2/4"));
    for (run, method) in [
        ("free.holo", "corrected:dop853"),
        ("own.holo --samples 2 --until 1e6", "dop853"),
        ("free.holo --samples 2 --until 1e6 --method corrected:dop853", "corrected:dop853"),
        ("free.holo --until 2e4 --every 0.2", "corrected:dop853"),
    ] {
        let summary = folder.summary(&format!("run {run}"));
        assert!(summary.get("trial").is_none() && summary["method"] == method, "{summary}");
    }
    let kink = folder.summary("run kink.holo --samples 2 --until 2e5");
    assert!(kink["trial"]["times"].get("corrected:taylor").is_none(), "{kink}");
}
