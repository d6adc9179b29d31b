//! The program `holonome`.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(holonome_cli::run_command(std::env::args_os().collect()))
}
