//! Creates tokio runtimes for programs that have none. Tokio panics without free file descriptors or threads, so both
//! are checked first and a shortage is an ordinary failure.

use std::io;

use cognitive_contract::{ErrorCode, Failure};
use tokio::runtime::{Builder, Runtime};

use crate::platform;

/// The number of files that a runtime opens for itself, with a small reserve for its tasks.
const FILES: usize = 10;

/// Creates a runtime that runs on the calling thread.
pub fn on_this_thread() -> Result<Runtime, Failure> {
    build(&mut Builder::new_current_thread()).map_err(|error| start_failure(&error))
}

/// Creates a runtime on the calling thread, for work that also needs other threads.
pub fn on_this_thread_and_others() -> Result<Runtime, Failure> {
    threads_left().map_err(|error| start_failure(&error)).and_then(|()| on_this_thread())
}

/// Creates a runtime that uses all cores.
pub fn on_all_cores() -> Result<Runtime, Failure> {
    let built = threads_left().and_then(|()| build(&mut Builder::new_multi_thread()));
    built.map_err(|error| start_failure(&error))
}

fn threads_left() -> io::Result<()> {
    std::thread::Builder::new().spawn(|| ()).map(drop)
}

fn start_failure(error: &io::Error) -> Failure {
    let message = format!("cannot start the async runtime: {error}");
    Failure::new(ErrorCode::InternalError, message)
        .suggest("Raise the limits of the process, as in `ulimit -n 1024`")
}

fn build(builder: &mut Builder) -> io::Result<Runtime> {
    platform::files_left(FILES)?;
    builder.enable_all().build()
}
