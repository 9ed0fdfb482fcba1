//! Failures of the environment: locks, missing rights, failing writes, damage. Each must cause a descriptive error in
//! time.

use std::fs::{self, Permissions};
use std::ops::ControlFlow;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use std::{env, thread};

use cognitive_contract::ports::AuditLog;
use cognitive_store::{Filter, Problem, Store, StoreOptions};
use cognitive_testkit::PATIENCE;
use rusqlite::Connection;

use crate::child::start;
use crate::common::{good, place};

fn impatient() -> StoreOptions {
    StoreOptions { patience: Duration::from_millis(200), ..StoreOptions::default() }
}

#[test]
fn a_lock_is_waited_for_but_not_for_ever() {
    const WRITERS: u32 = 100;
    let (_dir, path) = place();
    let patience = PATIENCE / 60;
    let store = Store::open_with(&path, StoreOptions { patience, ..StoreOptions::default() }).unwrap();
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let started = Instant::now();
    thread::scope(|scope| {
        for _ in 0..WRITERS {
            scope.spawn(|| {
                let error = store.record(&good("t", "m")).unwrap_err();
                assert!(error.ends_with("other processes locked it for 2.0 s"), "{error}");
            });
        }
    });
    // One after the other, they would wait for longer than that in sum.
    assert!(patience * WRITERS > PATIENCE && started.elapsed() < PATIENCE, "{:?}", started.elapsed());
    assert!(store.list(&Filter::default()).unwrap().is_empty(), "reading goes on");
    other.execute_batch("COMMIT").unwrap();
    store.record(&good("t", "m")).unwrap();
}

#[test]
fn a_store_that_someone_keeps_for_himself_is_busy() {
    let (_dir, path) = place();
    drop(Store::open(&path).unwrap());
    let other = Connection::open(&path).unwrap();
    other.execute_batch("PRAGMA locking_mode = EXCLUSIVE; BEGIN IMMEDIATE; COMMIT").unwrap();
    // The default would end it as well; the text says which limit did.
    let error = Store::open_with(&path, impatient()).unwrap_err();
    assert!(matches!(error.problem(), Problem::Busy(_)), "{error}");
    assert!(error.to_string().contains("0.2 s"), "{error}");
}

/// Runs a job as a user without root rights: root becomes an unprivileged user, who then owns the folder.
fn as_plain_user(job: &str, path: &Path, dir: &Path) -> String {
    let copy = tempfile::tempdir().unwrap();
    let mut command = Command::new(env::current_exe().unwrap());
    if fs::metadata(copy.path()).unwrap().uid() == 0 {
        let nobody = 65_534;
        for owned in fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).chain([dir.to_owned()]) {
            chown(owned, Some(nobody), Some(nobody)).unwrap();
        }
        // That user cannot reach the binary in its build folder. `cp` makes the copy: a child started by another test
        // meanwhile would inherit the open file, and a file open for writing cannot be executed.
        fs::set_permissions(copy.path(), Permissions::from_mode(0o755)).unwrap();
        let program = copy.path().join("test");
        let copied = Command::new("cp").arg(env::current_exe().unwrap()).arg(&program).status().unwrap();
        assert!(copied.success());
        command = Command::new(program);
        command.uid(nobody).gid(nobody);
    }
    let mut helper = start(&mut command, job, path);
    helper.go();
    helper.rest().pop().unwrap()
}

#[test]
fn a_folder_that_cannot_be_written_is_an_error() {
    let (dir, path) = place();
    fs::set_permissions(dir.path(), Permissions::from_mode(0o555)).unwrap();
    for path in [path, dir.path().join("deeper/store.db")] {
        let said = as_plain_user("try", &path, dir.path());
        let expected = format!("open: store `{}`: it cannot be opened: Permission denied", path.display());
        assert!(said.starts_with(&expected), "{said}");
    }
    fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn a_store_in_a_folder_that_cannot_be_written_is_an_error() {
    let (dir, path) = place();
    drop(Store::open(&path).unwrap());
    fs::set_permissions(dir.path(), Permissions::from_mode(0o555)).unwrap();
    let said = as_plain_user("try", &path, dir.path());
    fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
    assert!(said.starts_with(&format!("open: store `{}`: it cannot be ", path.display())), "{said}");
}

#[test]
fn a_file_that_cannot_be_written_is_an_error_but_can_be_read() {
    let (dir, path) = place();
    Store::open(&path).unwrap().record(&good("t", "m")).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o400)).unwrap();
    let said = as_plain_user("try", &path, dir.path());
    assert_eq!(said, format!("open: store `{}`: it cannot be written", path.display()));
    assert_eq!(as_plain_user("read", &path, dir.path()), "1 rows");
}

#[test]
fn an_old_file_that_cannot_be_written_can_be_read() {
    let (dir, path) = place();
    Store::open(&path).unwrap().record(&good("t", "m")).unwrap();
    let raw = Connection::open(&path).unwrap();
    raw.execute_batch("DROP TABLE context; PRAGMA user_version = 1").unwrap();
    drop(raw);
    fs::set_permissions(&path, Permissions::from_mode(0o400)).unwrap();
    assert_eq!(as_plain_user("read", &path, dir.path()), "1 rows");
}

#[test]
fn a_file_that_cannot_be_read_is_an_error() {
    let (dir, path) = place();
    drop(Store::open(&path).unwrap());
    fs::set_permissions(&path, Permissions::from_mode(0o000)).unwrap();
    for job in ["try", "read"] {
        let said = as_plain_user(job, &path, dir.path());
        assert!(
            said.starts_with(&format!("open: store `{}`: it cannot be opened", path.display())),
            "{said}"
        );
    }
}

#[test]
fn writes_that_fail_are_errors_and_what_is_kept_stays_readable() {
    let (_dir, path) = place();
    // The process may write files of at most 512 KiB; the signal that would kill it is ignored.
    let script =
        format!("trap '' XFSZ; ulimit -f 1024; exec '{}' \"$@\"", env::current_exe().unwrap().display());
    let mut helper = start(Command::new("sh").args(["-c", &script, "sh"]), "fill", &path);
    helper.go();
    let reports = helper.rest();
    let [ready, error, kept, there] = reports.as_slice() else { unreachable!("{reports:?}") };
    assert_eq!(ready, "ready");
    assert!(error.contains("disk"), "{error}");
    assert_eq!(kept, there);
    let store = Store::open(&path).unwrap();
    assert_eq!(store.list(&Filter::default()).unwrap().len().to_string(), *kept);
    store.record(&good("t", "m")).unwrap();
}

#[test]
fn a_file_that_is_no_database_is_refused_and_left_alone() {
    for content in ["just text".repeat(1_000).into_bytes(), vec![0; 8_192], b"SQLite format 3\0".to_vec()] {
        let (_dir, path) = place();
        fs::write(&path, &content).unwrap();
        let error = Store::open(&path).unwrap_err();
        assert!(matches!(error.problem(), Problem::Damaged(_)), "{error}");
        assert_eq!(fs::read(&path).unwrap(), content);
    }
}

/// Runs all operations on a store and ignores their results.
fn use_it(path: &Path) -> bool {
    let Ok(store) = Store::open_with(path, impatient()) else { return false };
    let all = Filter::default();
    [
        store.list(&all).is_ok(),
        store.find("t").is_ok(),
        store.stats(&all).is_ok(),
        store.export(&all, &mut |_| ControlFlow::Continue(())).is_ok(),
        store.record(&good("t", "m")).is_ok(),
    ]
    .iter()
    .all(|ok| *ok)
}

#[test]
fn damage_never_does_worse_than_an_error() {
    let (dir, path) = place();
    let store = Store::open(&path).unwrap();
    for number in 0..200 {
        store.record(&good(&format!("t{number}"), "m")).unwrap();
    }
    drop(store);
    let whole = fs::read(&path).unwrap();
    let mut noticed = 0;
    let mut seed: usize = 1;
    for round in 0..100 {
        let mut broken = whole.clone();
        for _ in 0..=round / 4 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let at = (seed >> 16) % broken.len();
            broken[at] = broken[at].wrapping_add(seed.to_le_bytes()[1] | 1);
        }
        if round % 10 == 0 {
            broken.truncate(broken.len() / (round + 2));
        }
        let path = dir.path().join(format!("{round}.db"));
        fs::write(&path, broken).unwrap();
        noticed += usize::from(!use_it(&path));
    }
    assert!(noticed > 20, "only {noticed} of 100 were noticed; is the damage real?");
}
