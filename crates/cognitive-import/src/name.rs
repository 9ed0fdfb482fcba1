//! Determines the name of the module: the value of `--name`, otherwise the name in the file. A name that is only spelt
//! differently is normalised; a name that could be a path is refused.

use cognitive_contract::Failure;
use cognitive_library::init::{check_new_name, suggested_name};

use crate::loss::LossList;
use crate::source::{quote, refuse};

/// The maximum length of a name. The manifest allows no longer one.
const MAX_LENGTH: usize = 64;
/// Device names on some systems, in any folder.
const DEVICES: [&str; 4] = ["con", "prn", "aux", "nul"];

const HINT: &str = "Give it a name with `--name my-module`";

/// The name of the new module. `written` is the name in the file, `place` its location.
pub(crate) fn module_name(
    asked: Option<&str>,
    written: &str,
    place: &str,
    losses: &mut LossList,
) -> Result<String, Failure> {
    if let Some(asked) = asked {
        if asked.chars().count() > MAX_LENGTH {
            return Err(refuse(
                format!("the name is too long: {}", quote(asked)),
                "Use a short name such as `my-module`",
            ));
        }
        check_new_name(asked).map_err(|error| refuse(error.to_string(), &error.hint()))?;
        return check_not_reserved(asked);
    }
    let is_path =
        written.contains(['/', '\\']) || written.contains("..") || written.chars().any(char::is_control);
    if is_path || written.chars().count() > MAX_LENGTH {
        return Err(refuse(format!("invalid module name in {place}: {}", quote(written)), HINT));
    }
    if check_new_name(written).is_ok() {
        return check_not_reserved(written);
    }
    let Some(near) = suggested_name(written) else {
        return Err(refuse(format!("invalid module name in {place}: {}", quote(written)), HINT));
    };
    let why = "module names have lower-case letters, digits and hyphens; callers use the new name";
    losses.add_changed(format!("the name {}, now `{near}`", quote(written)), place, why);
    check_not_reserved(&near)
}

/// Refuses folder names that some systems treat as devices.
pub(crate) fn check_not_reserved(name: &str) -> Result<String, Failure> {
    let numbered = |stem: &str| {
        name.strip_prefix(stem)
            .is_some_and(|rest| rest.len() == 1 && rest.bytes().all(|byte| byte.is_ascii_digit()))
    };
    if DEVICES.contains(&name) || numbered("com") || numbered("lpt") {
        return Err(refuse(
            format!("the name is reserved for a device on some systems: `{name}`"),
            "Choose another name with `--name my-module`",
        ));
    }
    Ok(name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(written: &str) -> Result<String, String> {
        module_name(None, written, "f", &mut LossList::default())
            .map_err(|failure| failure.message().to_owned())
    }

    #[test]
    fn spellings_are_mended_and_paths_are_not() {
        assert_eq!(named("Extract_Resume"), Ok("extract-resume".to_owned()));
        assert_eq!(named("a"), Ok("a".to_owned()));
        let long = "a".repeat(4_000);
        for bad in ["../x", "a/b", "a\\b", "..", "", "猫", "a\u{0}b", "con", "COM1", "lpt9", long.as_str()] {
            assert!(named(bad).is_err(), "{bad}");
        }
        assert!(named(&long).unwrap_err().len() < 200);
    }

    #[test]
    fn what_is_asked_for_has_to_be_right() {
        let asked = |name: &str| module_name(Some(name), "x", "f", &mut LossList::default());
        assert_eq!(asked("my-module").unwrap(), "my-module");
        let long = "a".repeat(4_000);
        for bad in ["../x", "My Module", "con", long.as_str(), ""] {
            assert!(asked(bad).unwrap_err().message().len() < 300, "{bad}");
        }
    }
}
