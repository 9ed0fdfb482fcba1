//! Reads the configuration files: the project's `cognitive.yaml`, or the file that `--config` names, over
//! `~/.cognitive/config.yaml`. Each file is read once, so the bytes that are hashed and trusted are the bytes that are
//! used.
//! Accepts only regular files below a size limit and never blocks.
//! The user's file is trusted. The project's file is untrusted until the user trusts it.

use std::path::{Path, PathBuf};

use cognitive_contract::text::hex;
use cognitive_library::folder::{self, ReadError, TEXT_LIMIT};
use sha2::{Digest, Sha256};

use crate::config::Config;
use crate::env_vars;
use crate::settings::Environment;
use crate::trust::{HeldBack, Ledger, sift};

/// The file name of a project's configuration.
pub const PROJECT_FILE: &str = "cognitive.yaml";
/// The user's file, below the home directory.
pub const USER_FILE: &str = ".cognitive/config.yaml";

/// The project's and the user's configuration files.
#[derive(Debug, Clone, Default)]
pub struct Layers {
    /// The project's file.
    pub project: Option<ProjectFile>,
    /// The contents of the user's file.
    pub user: Option<Config>,
}

/// The file of a project.
#[derive(Debug, Clone)]
pub struct ProjectFile {
    /// Its path.
    pub path: PathBuf,
    /// The folder, as a real path.
    pub folder: PathBuf,
    /// The hash of its bytes.
    pub sha256: String,
    /// All its settings.
    pub says: Config,
    /// The settings that are in effect.
    pub counts: Config,
    /// The settings that need trust, whether the file is trusted or not.
    pub delicate: Vec<HeldBack>,
    /// The trust state.
    pub standing: Standing,
}

/// The trust state of a project's file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// It sets nothing that needs trust.
    NotNeeded,
    /// `cogn trust` has recorded it.
    Recorded,
    /// The user trusts it for this process, by this flag or variable.
    Vouched(&'static str),
    /// It was never trusted.
    Unknown,
    /// It has changed since it was trusted.
    Changed,
    /// This flag or variable names another hash.
    Other(&'static str),
    /// The state cannot be determined, for this reason.
    Unclear(String),
}

/// The trust that was given at process start: `1`, or the required hash of the project's file.
#[derive(Debug, Clone, Default)]
pub struct Vouching {
    /// The value of `--trust-project`.
    pub flag: Option<String>,
    /// The value of the variable.
    pub variable: Option<String>,
    /// The file that `--config` names. It replaces the project's file and is trusted.
    pub named: Option<PathBuf>,
}

/// The flag that trusts the project's file.
const FLAG: &str = "--trust-project";
/// The flag that names a replacement for the project's file. The user typed its name, so it is trusted.
const NAMED: &str = "--config";

impl Layers {
    /// Reads the usable files and returns the reason for each one that is unusable.
    #[must_use]
    pub fn read(
        project: &Path,
        home: Option<&Path>,
        vouching: &Vouching,
        environment: Environment<'_>,
    ) -> (Self, Vec<String>) {
        let mut problems = Vec::new();
        let user = home.map(|home| read(&home.join(USER_FILE))).and_then(|read| match read {
            Ok(found) => found.map(|(config, _)| config),
            Err(problem) => {
                problems.push(problem);
                None
            }
        });
        let below = user.clone().unwrap_or_default();
        let project = match project_file(project, (&below, environment), home, vouching) {
            Ok(found) => found,
            Err(problem) => {
                problems.push(problem);
                None
            }
        };
        (Self { project, user }, problems)
    }

    /// Returns the merged settings that are in effect.
    #[must_use]
    pub fn config(&self) -> Config {
        let user = self.user.clone().unwrap_or_default();
        match &self.project {
            Some(project) => project.counts.clone().or(user),
            None => user,
        }
    }
}

impl Layers {
    /// Lists the settings of the project's file that are not in effect, in one sentence. Addresses are excluded: a run
    /// that would use one fails.
    #[must_use]
    pub fn notice(&self) -> Option<String> {
        let project = self.project.as_ref()?;
        let held: Vec<String> = project
            .withheld_settings()
            .iter()
            .filter(|held| held.setting != "base_url")
            .map(|held| format!("`{}`", held.setting))
            .collect();
        let (file, standing) = (project.path.display(), project.standing.words());
        (!held.is_empty()).then(|| {
            format!(
                "`{file}` is {standing}; these settings in it are ignored: {} (`cogn trust` shows and trusts them)",
                held.join(", ")
            )
        })
    }
}

/// Reads the project's file, or the file that was named instead.
fn project_file(
    project: &Path,
    below: (&Config, Environment<'_>),
    home: Option<&Path>,
    vouching: &Vouching,
) -> Result<Option<ProjectFile>, String> {
    let path = vouching.named.clone().unwrap_or_else(|| project.join(PROJECT_FILE));
    let Some((says, sha256)) = read(&path)? else {
        let missing = || format!("no such file: `{}`", path.display());
        return vouching.named.as_ref().map_or(Ok(None), |_| Err(missing()));
    };
    ProjectFile::new(&path, (says, sha256), below, home, vouching).map(Some)
}

impl ProjectFile {
    fn new(
        path: &Path,
        (says, sha256): (Config, String),
        (below, environment): (&Config, Environment<'_>),
        home: Option<&Path>,
        vouching: &Vouching,
    ) -> Result<Self, String> {
        let beside = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let folder = beside.canonicalize().map_err(|error| format!("cannot read the folder: {error}"))?;
        let says = says.with_paths_from(beside);
        let path = folder.join(path.file_name().unwrap_or_default());
        let (sifted, delicate) = sift(&says, below, &path, environment);
        let standing = if delicate.is_empty() {
            Standing::NotNeeded
        } else if vouching.named.is_some() {
            Standing::Vouched(NAMED)
        } else {
            trust_standing(&folder, &sha256, home, vouching)?
        };
        let counts = if standing.is_good() { says.clone() } else { sifted };
        Ok(Self { path, folder, sha256, says, counts, delicate, standing })
    }

    /// Returns the settings that are not in effect.
    #[must_use]
    pub fn withheld_settings(&self) -> &[HeldBack] {
        if self.standing.is_good() { &[] } else { &self.delicate }
    }
}

impl Standing {
    /// Returns whether all settings of the file are in effect.
    #[must_use]
    pub fn is_good(&self) -> bool {
        matches!(self, Self::NotNeeded | Self::Recorded | Self::Vouched(_))
    }

    /// Describes the state for users.
    #[must_use]
    pub fn words(&self) -> String {
        match self {
            Self::NotNeeded => "it sets nothing that needs trust".to_owned(),
            Self::Recorded => "trusted".to_owned(),
            Self::Vouched(by) => format!("trusted by `{by}`"),
            Self::Unknown => "not trusted".to_owned(),
            Self::Changed => "not trusted: changed since it was trusted".to_owned(),
            Self::Other(by) => format!("not trusted: its sha256 is not the one in `{by}`"),
            Self::Unclear(why) => format!("not trusted: {why}"),
        }
    }
}

fn trust_standing(
    folder: &Path,
    sha256: &str,
    home: Option<&Path>,
    vouching: &Vouching,
) -> Result<Standing, String> {
    let said = [(FLAG, &vouching.flag), (env_vars::TRUST_PROJECT, &vouching.variable)];
    let mut other = None;
    for (by, word) in said.into_iter().filter_map(|(by, word)| Some((by, word.as_deref()?.trim()))) {
        match word {
            "" | "0" | "false" => {}
            "1" | "true" => return Ok(Standing::Vouched(by)),
            hash if is_sha256(hash) => {
                if hash.eq_ignore_ascii_case(sha256) {
                    return Ok(Standing::Vouched(by));
                }
                other = other.or(Some(Standing::Other(by)));
            }
            _ => return Err(format!("`{by}` takes `1` or the sha256 of the file, found: `{word}`")),
        }
    }
    let recorded = match home.map(Ledger::read) {
        Some(Ok(ledger)) => ledger.find(folder).map(|known| known.sha256.clone()),
        Some(Err(why)) => return Ok(Standing::Unclear(why)),
        None => None,
    };
    Ok(match recorded {
        Some(hash) if hash == sha256 => Standing::Recorded,
        Some(_) => other.unwrap_or(Standing::Changed),
        None => other.unwrap_or(Standing::Unknown),
    })
}

fn is_sha256(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Reads a file and hashes its bytes; `None` if it does not exist.
fn read(path: &Path) -> Result<Option<(Config, String)>, String> {
    let broken = |reason: &str| format!("`{}`: {reason}", path.display());
    let bytes = match folder::read_file(path, TEXT_LIMIT) {
        Ok(bytes) => bytes,
        Err(ReadError::Missing) => return Ok(None),
        Err(ReadError::Refused(reason)) => return Err(format!("`{}` {reason}", path.display())),
    };
    let sha256 = hex(&Sha256::digest(&bytes));
    let text = String::from_utf8(bytes).map_err(|_| broken("it is not UTF-8 text"))?;
    Ok(Some((Config::parse(&text).map_err(|reason| broken(&reason))?, sha256)))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    struct Folders(tempfile::TempDir);

    impl Folders {
        fn new(project: &str, user: &str) -> Self {
            let dir = tempfile::tempdir().unwrap();
            fs::create_dir_all(dir.path().join("h/.cognitive")).unwrap();
            fs::create_dir_all(dir.path().join("p")).unwrap();
            fs::write(dir.path().join("p").join(PROJECT_FILE), project).unwrap();
            fs::write(dir.path().join("h").join(USER_FILE), user).unwrap();
            Self(dir)
        }

        fn home(&self) -> PathBuf {
            self.0.path().join("h")
        }

        fn read(&self, flag: Option<&str>) -> Layers {
            let vouching = Vouching { flag: flag.map(str::to_owned), ..Vouching::default() };
            self.read_by(&vouching, Some(&self.home())).unwrap()
        }

        /// Returns the first reason why a file is unusable.
        fn read_by(&self, vouching: &Vouching, home: Option<&Path>) -> Result<Layers, String> {
            let (layers, problems) = Layers::read(&self.0.path().join("p"), home, vouching, &|_| None);
            problems.into_iter().next().map_or(Ok(layers), Err)
        }

        fn standing(&self, flag: Option<&str>) -> Standing {
            self.read(flag).project.unwrap().standing
        }
    }

    #[test]
    fn a_file_counts_from_its_record_on_until_it_changes() {
        let disk = Folders::new("audit: {path: /x}\nreask: 1\n", "audit: {payloads: true}\n");
        let found = disk.read(None);
        let project = found.project.as_ref().unwrap();
        assert_eq!((&project.standing, project.withheld_settings().len()), (&Standing::Unknown, 1));
        let config = found.config();
        assert_eq!((config.audit.path, config.audit.payloads, config.run.reask), (None, Some(true), Some(1)));

        let mut ledger = Ledger::default();
        ledger.add(&project.folder, &project.sha256).unwrap();
        ledger.write(&disk.home()).unwrap();
        assert_eq!(disk.standing(None), Standing::Recorded);
        assert_eq!(disk.read(None).config().audit.path, Some(PathBuf::from("/x")));

        fs::write(disk.0.path().join("p").join(PROJECT_FILE), "audit: {path: /y}\n").unwrap();
        assert_eq!(disk.standing(None), Standing::Changed);
        assert_eq!(disk.read(None).config().audit.path, None);
    }

    #[test]
    fn the_process_environment_can_vouch_for_the_file_or_for_one_version_of_it() {
        let disk = Folders::new("audit: {path: /x}\n", "");
        let hash = disk.read(None).project.unwrap().sha256;
        assert_eq!(disk.standing(Some("1")), Standing::Vouched(FLAG));
        assert_eq!(disk.standing(Some(&hash.to_uppercase())), Standing::Vouched(FLAG));
        assert_eq!(disk.standing(Some(&"0".repeat(64))), Standing::Other(FLAG));
        assert_eq!(disk.standing(Some("0")), Standing::Unknown);
        let vouching = Vouching { variable: Some("yes please".to_owned()), ..Vouching::default() };
        let refused = disk.read_by(&vouching, None).unwrap_err();
        assert!(refused.contains("`COGN_TRUST_PROJECT` takes `1` or the sha256"), "{refused}");
    }

    #[test]
    fn a_file_that_is_named_stands_in_the_place_of_the_projects_and_is_meant() {
        let disk = Folders::new("audit: {path: /x}\n", "");
        fs::write(disk.0.path().join("own.yaml"), "audit: {path: kept.db}\nreask: 2\n").unwrap();
        let named = |name: &str| Vouching { named: Some(disk.0.path().join(name)), ..Vouching::default() };
        let layers = disk.read_by(&named("own.yaml"), None).unwrap();
        assert_eq!(layers.project.as_ref().unwrap().standing, Standing::Vouched(NAMED));
        let config = layers.config();
        assert_eq!((config.run.reask, config.audit.path), (Some(2), Some(disk.0.path().join("kept.db"))));
        let missing = disk.read_by(&named("nothing.yaml"), None).unwrap_err();
        assert!(missing.starts_with("no such file: `"), "{missing}");
    }

    #[test]
    fn a_file_that_cannot_be_used_does_not_hide_the_other_one() {
        let disk = Folders::new("modle: x\n", "reask: 1\n");
        let (layers, problems) =
            Layers::read(&disk.0.path().join("p"), Some(&disk.home()), &Vouching::default(), &|_| None);
        assert_eq!((layers.config().run.reask, layers.project.is_none(), problems.len()), (Some(1), true, 1));
        assert!(
            problems[0].ends_with("line 1: unknown setting `modle`; did you mean `model`?"),
            "{problems:?}"
        );
    }

    #[test]
    fn a_file_of_configuration_is_regular_and_bounded() {
        let disk = Folders::new("reask: 1\n", "");
        let path = disk.0.path().join("p").join(PROJECT_FILE);
        let refused = || disk.read_by(&Vouching::default(), None).unwrap_err();
        fs::write(&path, "#".repeat((1 << 20) + 1)).unwrap();
        assert!(refused().ends_with("is larger than the limit of 1 MiB"), "{}", refused());
        fs::write(&path, b"reask: \xff\n").unwrap();
        assert!(refused().ends_with("it is not UTF-8 text"), "{}", refused());
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert!(refused().ends_with("is not a regular file"), "{}", refused());
    }
}
