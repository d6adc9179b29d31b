//! Runs of the examples, which check their own numbers.

#[path = "../examples/first_run.rs"]
mod first_run;
#[path = "../examples/methods.rs"]
mod methods;
#[path = "../examples/own_field.rs"]
mod own_field;
#[path = "../examples/own_step.rs"]
mod own_step;
#[path = "../examples/sweep.rs"]
mod sweep;

#[test]
fn a_first_run() {
    first_run::main().unwrap();
}

#[test]
fn a_field_of_ones_own() {
    own_field::main().unwrap();
}

#[test]
fn an_ensemble() {
    sweep::main().unwrap();
}

#[test]
fn methods_compared() {
    methods::main().unwrap();
}

#[test]
fn a_step_of_ones_own() {
    own_step::main().unwrap();
}

/// Check that every file among the examples is one of those above.
#[test]
fn no_example_is_left_out() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/examples");
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort_unstable();
    assert_eq!(names, ["first_run.rs", "methods.rs", "own_field.rs", "own_step.rs", "sweep.rs"]);
}
