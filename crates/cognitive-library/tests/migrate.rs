//! Tests migrations on a real file system: completed or without effect, even after a kill or an error.

#![cfg(unix)]

// In a module, so that `cargo test migrate` finds these tests too.
#[cfg(test)]
mod migrate {
    use std::collections::BTreeMap;
    use std::fs::{self, Permissions};
    use std::io::{BufRead, BufReader};
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
    use std::os::unix::process::CommandExt;
    use std::path::{Path, PathBuf};
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant, SystemTime};
    use std::{env, hint};

    use cognitive_library::migrate::{ApplyOptions, Backup, Links, MigrateError, apply, plan};
    use cognitive_library::{Folder, Library, Mode, validate};

    const V1: &str = "---\nname: old\nversion: 1.0.0\nresponsibility: r\nexcludes: [x]\n---\nDo the work.\n";
    const V21: &str = "# mine\nname: old\nversion: 1.0.0\nresponsibility: r\nexcludes: [x]\n";
    const SCHEMA: &str = r#"{"input": {"type": "object"}, "output": {"type": "object"}}"#;
    /// 2026-01-02 03:04:05 UTC.
    const STAMP: Duration = Duration::from_secs(1_767_323_045);

    fn options(backup: Backup) -> ApplyOptions {
        ApplyOptions { backup, stamp: SystemTime::UNIX_EPOCH + STAMP, links: Links::Follow }
    }

    fn write(root: &Path, file: &str, content: impl AsRef<[u8]>) {
        let path = root.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// A v1 module with other files: binary data, a program, a link, an empty folder.
    fn v1(parent: &Path) -> PathBuf {
        let root = parent.join("old");
        write(&root, "MODULE.md", V1);
        write(&root, "schema.json", SCHEMA);
        write(&root, "assets/deep/picture.png", b"\x89PNG\x00\xff");
        write(&root, "assets/tool.sh", "#!/bin/sh\n");
        fs::set_permissions(root.join("assets/tool.sh"), Permissions::from_mode(0o755)).unwrap();
        symlink("deep/picture.png", root.join("assets/link.png")).unwrap();
        fs::create_dir(root.join("empty")).unwrap();
        root
    }

    fn v21(parent: &Path) -> PathBuf {
        let root = parent.join("old");
        write(&root, "module.yaml", V21);
        write(&root, "prompt.md", "Do the work.\n");
        write(&root, "schema.json", SCHEMA);
        root
    }

    /// All entries of a folder: path → permissions and content.
    type Tree = BTreeMap<PathBuf, (u32, Vec<u8>)>;

    /// The paths where two trees differ. A short list is readable when a test fails.
    fn differences(a: &Tree, b: &Tree) -> Vec<PathBuf> {
        a.keys().chain(b.keys()).filter(|path| a.get(*path) != b.get(*path)).cloned().collect()
    }

    #[track_caller]
    fn assert_same(found: &Tree, expected: &Tree, when: &str) {
        assert_eq!(differences(found, expected), Vec::<PathBuf>::new(), "{when}");
    }

    fn tree(root: &Path) -> Tree {
        let mut found = BTreeMap::new();
        let mut folders = vec![root.to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                let meta = fs::symlink_metadata(&path).unwrap();
                let content = if meta.is_symlink() {
                    fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes()
                } else if meta.is_dir() {
                    folders.push(path.clone());
                    Vec::new()
                } else if meta.is_file() {
                    fs::read(&path).unwrap()
                } else {
                    Vec::new()
                };
                found.insert(path.strip_prefix(root).unwrap().to_owned(), (meta.mode(), content));
            }
        }
        found
    }

    fn names(folder: &Path) -> Vec<String> {
        let mut names = Folder::Disk(folder.to_owned()).names();
        names.sort();
        names
    }

    fn migrate(root: &Path, backup: Backup) -> Result<Option<PathBuf>, MigrateError> {
        apply(root, &plan(&Folder::Disk(root.to_owned()))?, options(backup)).map(|applied| applied.backup)
    }

    /// Returns the error of a refused migration, and checks that everything below `parent` is unchanged.
    fn refused(parent: &Path, root: &Path) -> MigrateError {
        let before = tree(parent);
        let error = migrate(root, Backup::Keep).unwrap_err();
        assert_same(&tree(parent), &before, "refused");
        error
    }

    #[test]
    fn mig_005_a_plan_writes_nothing() {
        for module in [v1, v21] {
            let dir = tempfile::tempdir().unwrap();
            let root = module(dir.path());
            let before = tree(dir.path());
            let plan = plan(&Folder::Disk(root)).unwrap();
            assert!(!plan.changes.is_empty());
            assert_same(&tree(dir.path()), &before, "nothing to write");
        }
    }

    #[test]
    fn mig_006_the_backup_is_the_old_tree_and_everything_else_comes_along() {
        let dir = tempfile::tempdir().unwrap();
        let root = v1(dir.path());
        let before = tree(&root);
        let backup = migrate(&root, Backup::Keep).unwrap().unwrap();
        assert_eq!(backup.file_name().unwrap(), "old_backup_20260102_030405");
        assert_same(&tree(&backup), &before, "backup");
        assert_eq!(names(dir.path()), ["old", "old_backup_20260102_030405"]);
        let after = tree(&root);
        for (path, entry) in before.iter().filter(|(path, _)| **path != *"schema.json") {
            assert_eq!(after.get(path), Some(entry), "{}", path.display());
        }
        let new: Vec<&PathBuf> = after.keys().filter(|path| !before.contains_key(*path)).collect();
        assert_eq!(new, [Path::new("module.yaml"), Path::new("prompt.md")]);
        assert_eq!(fs::metadata(&root).unwrap().mode(), fs::metadata(&backup).unwrap().mode());
    }

    #[test]
    fn mig_006_without_backup_nothing_is_left_of_the_old_tree() {
        let dir = tempfile::tempdir().unwrap();
        let root = v21(dir.path());
        assert_eq!(migrate(&root, Backup::Discard).unwrap(), None);
        assert_eq!(names(dir.path()), ["old"]);
        assert!(fs::read_to_string(root.join("module.yaml")).unwrap().starts_with(V21));
    }

    #[test]
    fn mig_004_008_the_result_is_valid_and_a_second_migration_does_nothing() {
        for module in [v1, v21] {
            let dir = tempfile::tempdir().unwrap();
            let root = module(dir.path());
            migrate(&root, Backup::Keep).unwrap();
            let report = validate(&Folder::Disk(root.clone()), Mode::Strict);
            assert!(report.findings.is_empty(), "{:?}", report.findings);
            let before = tree(dir.path());
            assert_eq!(migrate(&root, Backup::Keep).unwrap(), None);
            assert_same(&tree(dir.path()), &before, "nothing to write");
        }
    }

    #[test]
    fn mig_006_backups_of_one_second_do_not_meet() {
        let dir = tempfile::tempdir().unwrap();
        for expected in ["old_backup_20260102_030405", "old_backup_20260102_030405_2"] {
            let _ = fs::remove_dir_all(dir.path().join("old"));
            let backup = migrate(&v21(dir.path()), Backup::Keep).unwrap().unwrap();
            assert_eq!(backup.file_name().unwrap(), expected);
        }
    }

    #[test]
    fn a_backup_is_never_found_as_a_module() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("cognitive/modules");
        fs::create_dir_all(&place).unwrap();
        migrate(&v1(&place), Backup::Keep).unwrap();
        let library = Library::new(dir.path(), None, &[]);
        let found: Vec<String> = library.list().into_iter().map(|found| found.name).collect();
        assert!(found.contains(&"old".to_owned()));
        assert!(!found.iter().any(|name| name.contains("backup")));
        assert!(library.load("old").unwrap().warnings.is_empty());
    }

    #[test]
    fn a_module_given_by_a_link_is_migrated_where_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let root = v21(dir.path());
        fs::create_dir(dir.path().join("links")).unwrap();
        let link = dir.path().join("links/module");
        symlink("../old", &link).unwrap();
        let backup = migrate(&link, Backup::Keep).unwrap().unwrap();
        assert_eq!(backup.parent().unwrap(), dir.path().canonicalize().unwrap());
        assert_eq!(fs::read_link(&link).unwrap(), Path::new("../old"));
        assert!(fs::read_to_string(root.join("module.yaml")).unwrap().contains("tier: decision"));
        assert_eq!(names(&dir.path().join("links")), ["module"]);
    }

    #[test]
    fn links_to_files_of_the_module_stay_links_and_the_old_tree_is_not_written_through_them() {
        let dir = tempfile::tempdir().unwrap();
        let root = v21(dir.path());
        for file in ["schema.json", "prompt.md"] {
            fs::create_dir_all(root.join("real")).unwrap();
            fs::rename(root.join(file), root.join("real").join(file)).unwrap();
        }
        symlink("real/schema.json", root.join("schema.json")).unwrap();
        symlink(root.join("real/prompt.md"), root.join("prompt.md")).unwrap();
        let before = tree(&root);
        let backup = migrate(&root, Backup::Keep).unwrap().unwrap();
        assert_same(&tree(&backup), &before, "backup");
        for (file, word) in [("schema.json", "\"data\""), ("prompt.md", "envelope")] {
            assert!(fs::symlink_metadata(root.join(file)).unwrap().is_symlink());
            assert!(fs::read_to_string(root.join(file)).unwrap().contains(word));
        }
    }

    #[test]
    fn fmt_012_a_byte_order_mark_is_no_change() {
        let dir = tempfile::tempdir().unwrap();
        let root = v21(dir.path());
        write(&root, "module.yaml", format!("\u{feff}{V21}"));
        migrate(&root, Backup::Discard).unwrap();
        assert!(fs::read_to_string(root.join("module.yaml")).unwrap().starts_with(V21));
    }

    #[test]
    fn what_a_killed_run_left_behind_is_neither_in_the_way_nor_touched() {
        let dir = tempfile::tempdir().unwrap();
        let root = v21(dir.path());
        write(dir.path(), ".old.migrating-aaaaaa/module.yaml", "half");
        migrate(&root, Backup::Discard).unwrap();
        assert_eq!(names(dir.path()), [".old.migrating-aaaaaa", "old"]);
    }

    #[test]
    fn a_pipe_in_the_module_is_refused_without_waiting_for_it() {
        let dir = tempfile::tempdir().unwrap();
        let root = v1(dir.path());
        let pipe = root.join("assets/pipe");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let error = refused(dir.path(), &root);
        assert!(
            matches!(&error, MigrateError::Unsupported { path, .. } if path.ends_with("assets/pipe")),
            "{error}"
        );
    }

    #[test]
    fn a_broken_module_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let root = v1(dir.path());
        write(&root, "schema.json", "{");
        assert!(matches!(refused(dir.path(), &root), MigrateError::Invalid { .. }));
    }

    #[test]
    fn a_link_in_the_place_of_a_new_file_is_refused_and_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let root = v1(dir.path());
        symlink("../outside.md", root.join("prompt.md")).unwrap();
        assert!(matches!(refused(dir.path(), &root), MigrateError::Invalid { .. }));
        assert!(!dir.path().join("outside.md").exists());
    }

    #[test]
    fn a_name_that_leaves_no_room_for_another_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("o".repeat(250));
        fs::rename(v21(dir.path()), &root).unwrap();
        let error = refused(dir.path(), &root);
        assert!(error.to_string().starts_with("cannot write beside"), "{error}");
    }

    #[test]
    fn a_backup_whose_name_would_be_too_long_stays_hidden_and_is_reported() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("o".repeat(235));
        fs::rename(v21(dir.path()), &root).unwrap();
        let before = tree(&root);
        let backup = migrate(&root, Backup::Keep).unwrap().unwrap();
        assert_same(&tree(&backup), &before, "backup");
        assert!(fs::read_to_string(root.join("module.yaml")).unwrap().contains("tier: decision"));
    }

    #[test]
    fn a_folder_that_changed_since_it_was_planned_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let root = v1(dir.path());
        let plan = plan(&Folder::Disk(root.clone())).unwrap();
        for (file, content) in [("module.yaml", "name: new\n"), ("schema.json", "{}")] {
            let kept = fs::read(root.join(file)).ok();
            write(&root, file, content);
            let before = tree(dir.path());
            let error = apply(&root, &plan, options(Backup::Keep)).unwrap_err();
            assert!(matches!(&error, MigrateError::Changed { file: changed } if changed == file), "{error}");
            assert_same(&tree(dir.path()), &before, "nothing to write");
            match kept {
                Some(kept) => write(&root, file, kept),
                None => fs::remove_file(root.join(file)).unwrap(),
            }
        }
        assert!(apply(&root, &plan, options(Backup::Keep)).is_ok());
    }

    /// The environment variable with the module that the child process migrates.
    const CHILD: &str = "COGN_TEST_MIGRATE";

    /// This program as a child process that migrates one module.
    fn spawnable(program: &Path, root: &Path) -> Command {
        let mut command = Command::new(program);
        command.args(["--exact", "migrate::child", "--nocapture", "--test-threads=1"]).env(CHILD, root);
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        command
    }

    /// The work of the child process. As an ordinary test it does nothing.
    #[test]
    fn child() {
        let Some(root) = env::var_os(CHILD).map(PathBuf::from) else { return };
        let plan = plan(&Folder::Disk(root.clone())).unwrap();
        println!("\nready");
        match apply(&root, &plan, options(Backup::Keep)) {
            Ok(_) => println!("done"),
            Err(error) => println!("error: {error}"),
        }
    }

    #[test]
    fn a_parent_that_may_not_be_written_to_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let parent = dir.path().join("parent");
        let root = v21(&parent);
        // Root may write everywhere, so the child runs as another user, with its own copy of this program.
        let program = dir.path().join("program");
        // Copied by another process. A file written by this one may still be open in a child of another test, and then
        // it cannot be executed.
        let copied = Command::new("cp").arg(env::current_exe().unwrap()).arg(&program).status().unwrap();
        assert!(copied.success());
        for (path, mode) in [(dir.path(), 0o755), (&parent, 0o555), (&program, 0o755)] {
            fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        }
        let mut command = spawnable(&program, &root);
        if fs::metadata(dir.path()).unwrap().uid() == 0 {
            command.uid(65_534).gid(65_534);
        }
        let before = tree(&parent);
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(said.contains("error: cannot write beside"), "{said}");
        assert_same(&tree(&parent), &before, "refused");
        fs::set_permissions(&parent, Permissions::from_mode(0o755)).unwrap();
    }

    const ROUNDS: u32 = 40;

    /// A kill tests the order of steps and not the disk, so a memory file system is used if it exists: waiting for a
    /// busy disk forty times would take most of the test.
    fn place() -> tempfile::TempDir {
        tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
    }

    /// A module that takes a moment to copy.
    fn big(parent: &Path) -> PathBuf {
        let root = v1(parent);
        for number in 0..20 {
            write(&root, &format!("assets/{number}.bin"), vec![number; 20_000]);
        }
        root
    }

    #[test]
    fn a_kill_at_any_moment_leaves_the_old_or_the_new_module() {
        let reference = place();
        let root = big(reference.path());
        let old = tree(&root);
        let planned = plan(&Folder::Disk(root.clone())).unwrap();
        let started = Instant::now();
        apply(&root, &planned, options(Backup::Keep)).unwrap();
        let whole = started.elapsed();
        let new = tree(&root);

        let (mut olds, mut news) = (0, 0);
        for round in 0..ROUNDS {
            let dir = place();
            let root = big(dir.path());
            let mut child = spawnable(&env::current_exe().unwrap(), &root).spawn().unwrap();
            let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
            assert!(lines.any(|line| line.unwrap() == "ready"));
            let ready = Instant::now();
            // From immediately to twice the time of a whole migration.
            let moment = whole * round * 2 / ROUNDS;
            while ready.elapsed() < moment {
                hint::spin_loop();
            }
            child.kill().unwrap();
            child.wait().unwrap();

            let when = format!("killed after {moment:?}");
            let now = tree(&root);
            if now == old {
                olds += 1;
            } else {
                assert_same(&now, &new, &when);
                news += 1;
                let beside = names(dir.path()).into_iter().filter(|name| name != "old");
                let kept: Vec<Tree> = beside.map(|name| tree(&dir.path().join(name))).collect();
                assert_eq!(kept.len(), 1, "{when}");
                assert_same(&kept[0], &old, &when);
            }
            // The next run succeeds, whatever was left behind.
            migrate(&root, Backup::Discard).unwrap();
            assert_same(&tree(&root), &new, &when);
        }
        assert_eq!(olds + news, ROUNDS);
    }
}
