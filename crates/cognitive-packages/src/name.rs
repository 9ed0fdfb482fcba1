//! Validates names of packages and of the files in them. Refuses a name that any common file system would reject or
//! interpret differently, so that every machine can unpack what another one packs. (REG-005)

use cognitive_contract::text::cut;

use crate::PackageError;

/// The maximum length of a package name. The manifest allows no longer one.
const MAX_NAME: usize = 64;
/// The maximum length of a file path in a package. Windows refuses paths above 260 characters.
const MAX_PATH: usize = 240;
/// The maximum folder depth in a package. A module nests no deeper, and deep trees are slow to walk.
const MAX_DEPTH: usize = 8;
/// Prefixes reserved for registry operators.
const RESERVED_PREFIXES: [&str; 3] = ["cognitive-", "cm-", "core-"];
/// Namespaces that publishers cannot choose.
const RESERVED_NAMESPACES: [&str; 3] = ["official", "community", "verified"];
/// Windows opens a device for these names, with any extension.
const DEVICES: [&str; 4] = ["con", "prn", "aux", "nul"];

/// Refuses an invalid package name.
pub fn check_name(name: &str) -> Result<(), PackageError> {
    let begins = name.starts_with(|first: char| first.is_ascii_lowercase());
    let is_taken = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
    if begins && name.len() <= MAX_NAME && name.chars().all(is_taken) && !is_device(name) {
        return Ok(());
    }
    Err(PackageError::new(format!("invalid package name: `{}`", cut(name, 80)))
        .hint("Use lower-case letters, digits and hyphens, a letter first, at most 64 characters"))
}

/// Refuses reserved names. Applies only to publishing; packages with reserved names can be installed.
pub fn check_publishable(name: &str, namespace: Option<&str>) -> Result<(), PackageError> {
    check_name(name)?;
    if let Some(prefix) = RESERVED_PREFIXES.iter().find(|prefix| name.starts_with(**prefix)) {
        return Err(PackageError::new(format!("names that begin with `{prefix}` are reserved: `{name}`"))
            .hint("Choose another name in `module.yaml`"));
    }
    match namespace.filter(|namespace| RESERVED_NAMESPACES.contains(namespace)) {
        Some(namespace) => Err(PackageError::new(format!("the namespace is reserved: `{namespace}`"))
            .hint("Use the name of your organisation")),
        None => Ok(()),
    }
}

/// The reason why a path is invalid for a file in a package; `None` if it is valid. Path parts are separated by `/`.
pub(crate) fn path_fault(path: &str) -> Option<&'static str> {
    if path.len() > MAX_PATH {
        return Some("its path is longer than 240 bytes");
    }
    if path.starts_with('/') {
        return Some("its path is absolute");
    }
    let parts: Vec<&str> = path.split('/').collect();
    if parts.len() > MAX_DEPTH {
        return Some("its folders are nested too deeply");
    }
    parts.iter().find_map(|part| part_fault(part))
}

fn part_fault(part: &str) -> Option<&'static str> {
    let is_bad = |letter: char| {
        letter.is_control() || matches!(letter, '\\' | ':' | '<' | '>' | '"' | '|' | '?' | '*')
    };
    match part {
        "" => Some("a part of its path is empty"),
        "." | ".." => Some("its path leaves the folder"),
        _ if part.chars().any(is_bad) => Some("its path has a character that some systems do not support"),
        _ if part.ends_with('.') || part.ends_with(' ') => {
            Some("a part of its path ends with a dot or a space")
        }
        _ if is_device(part) => Some("its name is reserved for a device on some systems"),
        _ => None,
    }
}

fn is_device(part: &str) -> bool {
    let stem = part.split('.').next().unwrap_or_default().to_ascii_lowercase();
    let numbered =
        |prefix: &str| stem.strip_prefix(prefix).is_some_and(|rest| matches!(rest.as_bytes(), [b'1'..=b'9']));
    DEVICES.contains(&stem.as_str()) || numbered("com") || numbered("lpt")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reg_005_names_are_checked() {
        for good in ["a", "text-classifier", "a1", &"a".repeat(64), "console", "com10"] {
            assert_eq!(check_name(good), Ok(()), "{good}");
        }
        let long = "a".repeat(4_000);
        for bad in ["", "A", "1a", "-a", "a_b", "../x", "a/b", ".a", "con", "nul", "com1", "lpt9", "ä", &long]
        {
            let refused = check_name(bad).unwrap_err();
            assert!(refused.message().len() < 200, "{}", refused.message());
        }
    }

    #[test]
    fn reg_005_what_is_reserved_cannot_be_published() {
        for name in ["cognitive-x", "cm-x", "core-x"] {
            assert!(check_name(name).is_ok() && check_publishable(name, None).is_err(), "{name}");
        }
        assert!(check_publishable("mine", Some("official")).is_err());
        assert!(check_publishable("mine", Some("acme")).is_ok());
    }

    #[test]
    fn sec_021_paths_stay_inside_and_mean_the_same_everywhere() {
        for good in ["module.yaml", "tests/a.input.json", "a/b/c/d/e/f/g/h", "naïve/日本.md"] {
            assert_eq!(path_fault(good), None, "{good}");
        }
        let long = "a/".repeat(200);
        for bad in [
            "",
            "/etc/passwd",
            "../x",
            "a/../b",
            "a//b",
            "./a",
            "a\\b",
            "C:/x",
            "a\0b",
            "a\nb",
            "con",
            "tests/NUL.txt",
            "a.",
            "a ",
            "a/b/c/d/e/f/g/h/i",
            &long,
        ] {
            assert!(path_fault(bad).is_some(), "{bad:?}");
        }
    }
}
