//! The tokio runtimes of programs that have none. Tokio panics where the system has no file descriptors left for it, so they
//! are asked for first, and a lack of them is a failure like others.

use std::io;

use cognitive_contract::{ErrorCode, Failure};
use tokio::runtime::{Builder, Runtime};

use crate::platform;

/// How many files a runtime opens for itself, and a few for the work in it.
const FILES: usize = 10;

/// One that works on the calling thread.
pub fn on_this_thread() -> Result<Runtime, Failure> {
    build(&mut Builder::new_current_thread()).map_err(|error| nothing_left(&error))
}

/// The same for work that needs other threads in any case.
pub fn on_this_thread_and_others() -> Result<Runtime, Failure> {
    threads_left().map_err(|error| nothing_left(&error)).and_then(|()| on_this_thread())
}

/// One that works on all cores.
pub fn on_all_cores() -> Result<Runtime, Failure> {
    let built = threads_left().and_then(|()| build(&mut Builder::new_multi_thread()));
    built.map_err(|error| nothing_left(&error))
}

fn threads_left() -> io::Result<()> {
    std::thread::Builder::new().spawn(|| ()).map(drop)
}

fn nothing_left(error: &io::Error) -> Failure {
    let message = format!("cannot start the async runtime: {error}");
    Failure::new(ErrorCode::InternalError, message)
        .suggest("Raise the limits of the process, as in `ulimit -n 1024`")
}

fn build(builder: &mut Builder) -> io::Result<Runtime> {
    platform::files_left(FILES)?;
    builder.enable_all().build()
}
