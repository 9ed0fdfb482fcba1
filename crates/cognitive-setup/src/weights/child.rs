//! Runs a program of the user, such as `uv`, as a child process. It has a timeout, and the end of its output is kept.
//! It is killed with all its children on timeout or when the caller drops the future.

use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::Command;
use tokio::time::{Instant, timeout, timeout_at};

use crate::platform;

/// The amount of output that is kept. Only the end matters, because programs report errors last.
const MAX_KEPT_OUTPUT: usize = 64 << 10;

/// The time to read output after the program has ended: one of its children may hold the pipe open.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// The end of a program.
pub(super) enum ChildEnd {
    /// The program exited; holds the end of its output.
    ByItself(ExitStatus, String),
    /// The program timed out.
    Late,
}

/// Runs a program until it ends or `until` is reached.
pub(super) async fn run(mut command: Command, until: Instant) -> io::Result<ChildEnd> {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true);
    platform::lead_a_group(&mut command);
    let mut child = command.spawn()?;
    let family = Family(child.id());
    let mut stderr = child.stderr.take();
    let mut said = Vec::new();
    let ended = timeout_at(until, async {
        tokio::select! {
            status = child.wait() => status,
            () = listen(&mut stderr, &mut said) => child.wait().await,
        }
    });
    let Ok(status) = ended.await else { return Ok(ChildEnd::Late) };
    drop(family);
    let _enough_was_said = timeout(LAST_WORDS, listen(&mut stderr, &mut said)).await;
    Ok(ChildEnd::ByItself(status?, String::from_utf8_lossy(&said).into_owned()))
}

/// Reads the output to its end and keeps the last part.
async fn listen(source: &mut Option<impl AsyncRead + Unpin>, said: &mut Vec<u8>) {
    let Some(source) = source else { return };
    let mut buffer = vec![0; 16 << 10];
    while let Ok(length @ 1..) = source.read(&mut buffer).await {
        said.extend_from_slice(buffer.get(..length).unwrap_or_default());
        if said.len() > 2 * MAX_KEPT_OUTPUT {
            said.drain(..said.len() - MAX_KEPT_OUTPUT);
        }
    }
}

/// A program and its children. Dropping it kills all of them.
struct Family(Option<u32>);

impl Drop for Family {
    fn drop(&mut self) {
        platform::end_group(self.0);
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    async fn shell(script: &str, limit: Duration) -> ChildEnd {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        run(command, Instant::now() + limit).await.unwrap()
    }

    #[tokio::test]
    async fn only_the_end_of_the_output_is_kept() {
        let script = "i=0; while [ $i -lt 6000 ]; do echo 0123456789012345678901234567890123456789 >&2; i=$((i+1)); done; echo last >&2; exit 3";
        let ChildEnd::ByItself(status, said) = shell(script, Duration::from_mins(1)).await else { panic!() };
        assert_eq!(status.code(), Some(3));
        assert!(said.ends_with("\nlast\n") && said.len() <= 2 * MAX_KEPT_OUTPUT, "{}", said.len());
    }

    #[tokio::test]
    async fn a_late_program_is_ended_with_all_that_it_started() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        assert!(Command::new("mkfifo").arg(&pipe).status().await.unwrap().success());
        // The grandchild holds the pipe open while it runs; the pipe is closed when it ends.
        let script = format!("sleep 600 > '{}' & wait", pipe.display());
        let opened = tokio::task::spawn_blocking(move || std::fs::File::open(pipe));
        let late = async {
            // Only when the grandchild has the pipe is it late, and then at once.
            let pipe = opened.await.unwrap().unwrap();
            tokio::time::pause();
            tokio::time::advance(Duration::from_hours(2)).await;
            tokio::time::resume();
            pipe
        };
        let (ended, pipe) = tokio::join!(shell(&script, Duration::from_hours(1)), late);
        assert!(matches!(ended, ChildEnd::Late));
        let rest = tokio::task::spawn_blocking(move || io::read_to_string(pipe));
        assert_eq!(rest.await.unwrap().unwrap(), "");
    }

    #[tokio::test]
    async fn children_of_a_program_are_ended_too() {
        let ChildEnd::ByItself(status, said) =
            shell("sleep 600 & echo done >&2", Duration::from_mins(1)).await
        else {
            panic!()
        };
        assert!(status.success() && said == "done\n", "{said}");
    }
}
