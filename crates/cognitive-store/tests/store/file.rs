//! The file itself: its permissions, the allowed file types at its path, and the accepted versions.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Barrier};
use std::{env, thread};

use cognitive_contract::ports::AuditLog;
use cognitive_store::{Filter, Problem, Store};
use rusqlite::Connection;

use crate::child::start;
use crate::common::{good, place, with_suffix};

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
}

fn problem(path: &Path) -> Problem {
    Store::open(path).unwrap_err().problem().clone()
}

#[test]
fn only_the_owner_can_read_the_file_its_log_and_its_index() {
    let (dir, _) = place();
    let path = dir.path().join("a/b/cognitive.db");
    // Even with a umask that gives everyone access.
    let script = format!("umask 000; exec '{}' \"$@\"", env::current_exe().unwrap().display());
    let mut helper = start(Command::new("sh").args(["-c", &script, "sh"]), "write-for-ever x", &path);
    helper.go();
    while helper.report().unwrap() != "x-5" {}
    for suffix in ["", "-wal", "-shm"] {
        assert_eq!(mode(&with_suffix(&path, suffix)), 0o600, "{suffix}");
    }
    assert_eq!((mode(&dir.path().join("a")), mode(&dir.path().join("a/b"))), (0o700, 0o700));
    helper.kill();
}

#[test]
fn a_file_that_others_could_read_is_narrowed() {
    let (_dir, path) = place();
    let first = Store::open(&path).unwrap();
    first.record(&good("a", "m")).unwrap();
    for suffix in ["", "-wal", "-shm"] {
        fs::set_permissions(with_suffix(&path, suffix), Permissions::from_mode(0o644)).unwrap();
    }
    Store::open(&path).unwrap().record(&good("b", "m")).unwrap();
    for suffix in ["", "-wal", "-shm"] {
        assert_eq!(mode(&with_suffix(&path, suffix)), 0o600, "{suffix}");
    }
    first.record(&good("c", "m")).unwrap();
    assert_eq!(first.list(&Filter::default()).unwrap().len(), 3);
}

#[test]
fn what_is_no_regular_file_is_refused_and_left_alone() {
    let (dir, path) = place();
    fs::create_dir(&path).unwrap();
    assert_eq!(problem(&path), Problem::NotAFile("a directory"));
    assert_eq!(problem(&dir.path().join("x/..")), Problem::NotAFile("a directory"));

    let fifo = dir.path().join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    assert_eq!(problem(&fifo), Problem::NotAFile("a FIFO"));
    assert_eq!(problem(Path::new("/dev/null")), Problem::NotAFile("a device or a socket"));

    let (real, link, dangling) =
        (dir.path().join("real"), dir.path().join("link"), dir.path().join("dangling"));
    drop(Store::open(&real).unwrap());
    symlink(&real, &link).unwrap();
    symlink(dir.path().join("nowhere"), &dangling).unwrap();
    assert_eq!(problem(&link), Problem::NotAFile("a symbolic link"));
    assert_eq!(problem(&dangling), Problem::NotAFile("a symbolic link"));
    assert!(!dir.path().join("nowhere").exists());
    for path in [&fifo, &link, &dangling] {
        assert!(matches!(Store::open_existing(path).unwrap_err().problem(), Problem::NotAFile(_)));
    }

    fs::write(dir.path().join("file"), "").unwrap();
    assert!(matches!(problem(&dir.path().join("file/store.db")), Problem::Inaccessible(_)));
    assert!(matches!(problem(Path::new("")), Problem::Inaccessible(_)));
}

#[test]
fn links_on_the_way_to_the_folder_are_followed() {
    let (dir, _) = place();
    fs::create_dir(dir.path().join("real")).unwrap();
    symlink(dir.path().join("real"), dir.path().join("link")).unwrap();
    let store = Store::open(&dir.path().join("link/store.db")).unwrap();
    store.record(&good("t", "m")).unwrap();
    assert!(dir.path().join("real/store.db").is_file());
}

#[test]
fn names_are_never_read_as_addresses() {
    let (dir, _) = place();
    for name in [":memory:", "file:x?mode=memory", "a b%20c?.db", "-", "naïve 😀"] {
        let path = dir.path().join(name);
        Store::open(&path).unwrap().record(&good("t", "m")).unwrap();
        assert!(path.is_file(), "{name}");
        assert_eq!(Store::open_existing(&path).unwrap().unwrap().find("t").unwrap().len(), 1, "{name}");
    }
}

#[test]
fn asking_a_store_that_is_not_there_creates_nothing() {
    let (dir, path) = place();
    assert!(Store::open_existing(&path).unwrap().is_none());
    assert!(Store::open_existing(&dir.path().join("no/such/folder/store.db")).unwrap().is_none());
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn d_04_the_file_is_a_database_that_others_can_tell_and_inspect() {
    let (_dir, path) = place();
    drop(Store::open(&path).unwrap());
    assert_eq!(&fs::read(&path).unwrap()[68..72], b"cogn");
    let raw = Connection::open(&path).unwrap();
    let text = |name: &str| {
        raw.pragma_query_value(None, name, |row| row.get::<_, rusqlite::types::Value>(0)).unwrap()
    };
    assert_eq!(text("journal_mode"), "wal".to_owned().into());
    assert_eq!(text("user_version"), 8.into());
}

#[test]
fn a_newer_file_is_refused_and_left_alone() {
    let (_dir, path) = place();
    drop(Store::open(&path).unwrap());
    let raw = Connection::open(&path).unwrap();
    raw.pragma_update(None, "user_version", 9).unwrap();
    drop(raw);
    let before = fs::read(&path).unwrap();
    let error = Store::open(&path).unwrap_err();
    assert_eq!(error.problem(), &Problem::Newer { found: 9, known: 8 });
    let expected = "a newer version of this program wrote it (schema 9, known are 1 to 8)";
    assert_eq!(error.to_string(), format!("store `{}`: {expected}", path.display()));
    assert_eq!(Store::open_existing(&path).unwrap_err(), error);
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn the_database_of_another_program_is_refused_and_left_alone() {
    for sql in [
        "CREATE TABLE audit (id); INSERT INTO audit VALUES (1)",
        "PRAGMA application_id = 42",
        "PRAGMA user_version = 1; CREATE TABLE t (x)",
    ] {
        let (_dir, path) = place();
        Connection::open(&path).unwrap().execute_batch(sql).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        let before = fs::read(&path).unwrap();
        assert_eq!(problem(&path), Problem::Foreign, "{sql}");
        assert_eq!(mode(&path), 0o644, "{sql}");
        assert_eq!(fs::read(&path).unwrap(), before, "{sql}");
    }
}

#[test]
fn an_empty_file_becomes_a_store() {
    let (_dir, path) = place();
    fs::write(&path, "").unwrap();
    Store::open(&path).unwrap().record(&good("t", "m")).unwrap();
    assert_eq!(mode(&path), 0o600);
}

#[test]
fn many_threads_may_open_a_new_store_at_once() {
    for _ in 0..20 {
        let (_dir, path) = place();
        let start = Barrier::new(8);
        thread::scope(|scope| {
            let threads: Vec<_> = (0..8)
                .map(|number| {
                    let (start, path) = (&start, &path);
                    scope.spawn(move || {
                        start.wait();
                        Store::open(path).unwrap().record(&good(&number.to_string(), "m")).unwrap();
                    })
                })
                .collect();
            for thread in threads {
                thread.join().unwrap();
            }
        });
        assert_eq!(Store::open(&path).unwrap().list(&Filter::default()).unwrap().len(), 8);
    }
}

#[test]
fn a_file_that_was_taken_away_is_created_anew() {
    let (dir, path) = place();
    let store = Store::open(&path).unwrap();
    store.record(&good("old", "m")).unwrap();
    fs::remove_file(&path).unwrap();
    store.record(&good("new", "m")).unwrap();
    assert_eq!(Store::open(&path).unwrap().list(&Filter::default()).unwrap()[0].trace_id, "new");
    assert_eq!(mode(&path), 0o600);

    let aside = dir.path().join("aside.db");
    fs::rename(&path, &aside).unwrap();
    store.record(&good("newest", "m")).unwrap();
    let rows = Store::open_existing(&path).unwrap().unwrap().list(&Filter::default()).unwrap();
    assert_eq!((rows.len(), rows[0].trace_id.as_str()), (1, "newest"));
}

// A backup is one snapshot, also while others write, and only its owner can read it.
#[cfg(unix)]
#[test]
fn a_backup_is_whole_while_others_write() {
    let (dir, path) = place();
    let store = Arc::new(Store::open(&path).unwrap());
    for number in 0..50 {
        store.record(&good(&format!("t{number}"), "m")).unwrap();
    }
    let to = dir.path().join("backup.db");
    let stop = std::sync::atomic::AtomicBool::new(false);
    let found = thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(std::sync::atomic::Ordering::SeqCst) {
                store.record(&good("later", "m")).unwrap();
            }
        });
        let found = Store::open_existing(&path).unwrap().unwrap().back_up(&to);
        stop.store(true, std::sync::atomic::Ordering::SeqCst);
        found.unwrap()
    });
    assert!(found.is_whole() && found.records >= 50, "{found:?}");
    assert_eq!(fs::metadata(&to).unwrap().permissions().mode() & 0o777, 0o600);
    let backup = Store::open(&to).unwrap();
    assert_eq!(backup.verify(&[]).unwrap().records, found.records);
    backup.record(&good("after", "m")).unwrap();
    let refused = store.back_up(&to).unwrap_err().to_string();
    assert!(refused.contains("backup.db") && to.exists(), "{refused}");
}
