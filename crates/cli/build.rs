//! Build script: the studies and the models are part of the program, which is built anew when they
//! change.

fn main() {
    for folder in ["studies", "models", "suite/models"] {
        println!("cargo::rerun-if-changed=../../{folder}");
    }
}
