//! The program: everything is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    atom_launch::app::run(std::env::args_os().collect())
}
