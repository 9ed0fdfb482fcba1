//! The process that reads documents. Handles one document and exits; writes nothing but its answer.

use std::io;
use std::process::ExitCode;

fn main() -> ExitCode {
    match cognitive_media::worker::serve(io::stdin().lock(), io::stdout().lock()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
