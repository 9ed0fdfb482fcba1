//! The Pythons of this machine.

use std::env;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// The first Python that can run this program, such as `import httpx`. `COGN_TEST_PYTHON` may list several, as `PATH` does.
#[must_use]
pub fn python_with(program: &str) -> Option<PathBuf> {
    let named = env::var_os("COGN_TEST_PYTHON").unwrap_or_else(|| "python3".into());
    env::split_paths(&named).find(|python| {
        let mut command = Command::new(python);
        command.args(["-c", program]).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    })
}
