//! The studies and the models are part of the program: what is new among them makes it anew.

fn main() {
    for folder in ["studies", "models", "suite/models"] {
        println!("cargo::rerun-if-changed=../../{folder}");
    }
}
