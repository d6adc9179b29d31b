//! Typical mistakes on a command line, and the remedy that each message names.

mod common;

use common::Folder;

#[test]
fn an_unknown_option_leads_to_the_one_that_was_meant() {
    let folder = Folder::new();
    let tip = |arguments: &str| {
        let answer = folder.run(arguments).refused(&["unexpected argument"]);
        let tips = answer.stderr.lines().filter_map(|line| line.trim().strip_prefix("tip: "));
        tips.collect::<Vec<_>>().join("; ")
    };
    for (arguments, meant) in [
        ("run models/kepler.holo --dt 0.1", "'--step'"),
        ("run models/kepler.holo --dt=0.1", "'--step'"),
        ("run models/kepler.holo --time 10", "'--until'"),
        ("sweep models/kepler.holo --runs 10", "'--trajectories'"),
        ("compare models/kepler.holo --integrator rk4", "'--method'"),
        ("run models/kepler.holo --tol 1e-6", "'--rtol'"),
        ("run models/kepler.holo -o there", "'--out'"),
        ("run models/kepler.holo --methd rk4", "'--method'"),
        ("export run kepler.csv", "'--csv kepler.csv'"),
        ("export run kepler.xtc", "'--xtc kepler.xtc'"),
    ] {
        assert_eq!(tip(arguments), format!("a similar argument exists: {meant}"), "{arguments}");
    }
    assert_eq!(
        tip("run models/kepler.holo --vary mu=i"),
        "'--vary' is an option of `holonome sweep`"
    );
    // Not an option of this command, nor of another.
    assert_eq!(
        (tip("methods --dt 1"), tip("run models/kepler.holo --zzzzz")),
        (String::new(), String::new())
    );
    let told = folder.run("run models/kepler.holo --dt 1 --json").json();
    assert!(
        told["error"]["message"]
            .as_str()
            .unwrap()
            .ends_with("found; a similar argument exists: '--step'"),
        "{told}"
    );
}

#[test]
fn a_path_that_is_no_model_leads_to_one() {
    let folder = Folder::new();
    folder.run("run models/kepler.holo --until 1 --out runs/first").ok();
    folder.write("water.pdb", "END\n").write("pendulum.holo", "");
    for (arguments, fragments) in [
        ("run models/kepler", ["cannot read models/kepler", "did you mean models/kepler.holo?"]),
        ("check models/kelper.holo", ["there is no such file", "did you mean models/kepler.holo?"]),
        ("run kepler.holo", ["there is no such file", "did you mean models/kepler.holo?"]),
        ("compare pendulm --method rk4", ["there is no such file", "did you mean pendulum.holo?"]),
        (
            "run nothing-like-it.holo",
            ["there is no such file", "the models beside it are pendulum.holo"],
        ),
        ("run models", ["it is a folder", "alkane.holo"]),
        ("run runs", ["it is a folder, not a model file", "runs"]),
        ("run runs/first", ["the folder of a run", "`holonome report` shows it"]),
        ("run water.pdb", ["a file of data, not a model", "`table NAME = \"water.pdb\"`"]),
        ("report runs", ["runs is not a stored run", "but the runs first; name the folder of one"]),
    ] {
        folder.run(arguments).refused(&fragments);
    }
}

#[test]
fn units_behind_numbers_are_one_mistake() {
    let folder = Folder::new();
    for (value, remedy) in
        [("2 kg", "numbers have no units: write 2,"), ("90deg", "write 90*pi/180")]
    {
        folder.write("units.holo", format!("parameter m = {value}\nstate x = 1\nx' = -m*x\n"));
        let answer = folder.run("check units.holo").refused(&["missing operator", remedy]);
        assert_eq!(answer.stderr.matches("error").count(), 1, "{answer:?}");
    }
}

#[test]
fn files_and_ensembles_that_are_probably_not_meant_are_warned_of() {
    let folder = Folder::new();
    folder.run("run models/kepler.holo --until 1 --out run").ok();
    let warned = |arguments: &str, says: &str| {
        let answer = folder.run(arguments).ok();
        assert_eq!(answer.stderr.contains("warning"), !says.is_empty(), "{answer:?}");
        assert!(answer.stderr.contains(says), "{answer:?}");
    };
    warned(
        "plot run --svg a.png",
        "a.png is written as svg, whatever its name: --png a.png writes png",
    );
    warned("plot run --svg a.svg --png a.PNG", "");
    warned("export run --csv a.xyz", "--xyz a.xyz writes xyz");
    warned("export run --csv a.txt", "");
    let sweep = "sweep models/kepler.holo --until 1 --trajectories";
    warned(&format!("{sweep} 3"), "all trajectories are alike");
    warned(&format!("{sweep} 1"), "");
    warned(&format!("{sweep} 3 --vary mu=1+i"), "");
    warned(&format!("{sweep} 3 --vary x=(1,uniform(),0)"), "");
    folder.write("drawn.holo", "state x = normal()\nx' = -x\n");
    warned("sweep drawn.holo --method plain:dop853 --until 1 --trajectories 3", "");
    for range in ["1:2", "1,2,3"] {
        let refused = folder.run(&format!("{sweep} 3 --vary mu={range}"));
        refused.refused(&["mu=A..B,N", "by a formula of the number i", "as mu=a+(b-a)*i/(N-1)"]);
    }
    folder.run(&format!("{sweep} 3 --vary mu=1..2")).refused(&["how many values", "1..2,11"]);
    folder.run(&format!("{sweep} 3 --vary mu=1..2,4")).refused(&["--vary mu", "--trajectories 3"]);
    warned("sweep models/kepler.holo --until 1 --vary mu=1..2,4", "");
}
