//! The packed weights of a model, next to its file in the user's cache. One process writes them once, under a temporary
//! name that is then renamed; all processes of the user map them and share the pages. They are only a copy: if the file
//! cannot be written or has the wrong owner, each process packs the weights into private memory.
//!
//! A process that maps a file crashes if the file is truncated. Therefore the file must belong to this user and be
//! writable by no other user. It is also never rewritten in place: a new file takes the name, and the old one exists
//! until the last process unmaps it.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use cognitive_local::PackedWeights;

use super::file;
use crate::platform;

/// Packed weights are at most a quarter longer than their file; unquantized 16-bit weights become shorter.
const MAX_GROWTH: u64 = 4;
/// Packing takes seconds. A process that waits longer for another one packs into its own memory.
const PATIENCE: Duration = Duration::from_secs(30);
/// The interval between two attempts to get the lock, short beside the seconds that packing takes.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// The packed file of one model.
#[derive(Debug, Clone)]
pub(super) struct PackedPlace {
    path: PathBuf,
    patience: Duration,
}

impl PackedPlace {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, patience: PATIENCE }
    }

    fn with(&self, ending: &str) -> PathBuf {
        let mut path = self.path.clone().into_os_string();
        path.push(ending);
        path.into()
    }

    /// One process packs; the others wait and then find the file. The system releases the lock even if the process is
    /// killed.
    fn lock(&self) -> io::Result<File> {
        let lock = File::options().create(true).truncate(false).write(true).open(self.with(".lock"))?;
        let until = Instant::now() + self.patience;
        loop {
            match lock.try_lock() {
                Ok(()) => return Ok(lock),
                Err(TryLockError::WouldBlock) if Instant::now() < until => thread::sleep(LOOK_AGAIN),
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn write(&self, write: &mut dyn FnMut(&File) -> io::Result<()>) -> io::Result<()> {
        // Only the lock holder uses this name; an existing file was left by a killed process.
        let draft = self.with(".new");
        let _usually_nothing = fs::remove_file(&draft);
        let file = platform::create_private_file(&draft)?;
        let written = write(&file).and_then(|()| fs::rename(&draft, &self.path));
        if written.is_err() {
            let _nothing_more_to_do = fs::remove_file(&draft);
        }
        written
    }

    /// Returns whether the packed file takes less than half of the free disk space.
    fn has_room(folder: &Path, length: u64) -> bool {
        let needed = length.saturating_add(length / MAX_GROWTH);
        file::room(folder, needed.saturating_mul(2)).is_ok()
    }
}

impl PackedWeights for PackedPlace {
    fn find(&self) -> Option<File> {
        // Opening a pipe would block until its other end is opened.
        let file = fs::symlink_metadata(&self.path).ok().filter(fs::Metadata::is_file);
        let file = file.and_then(|_| File::open(&self.path).ok())?;
        platform::is_private_to_user(&file.metadata().ok()?).then_some(file)
    }

    fn discard(&self) {
        let _another_may_have_done_it = fs::remove_file(&self.path);
    }

    fn keep(&self, length: u64, write: &mut dyn FnMut(&File) -> io::Result<()>) -> Option<File> {
        let folder = self.path.parent()?;
        // A folder that others can write to is unsafe for a file that must not change.
        if !platform::is_private_to_user(&fs::metadata(folder).ok()?) || !Self::has_room(folder, length) {
            return None;
        }
        let _until_the_end = self.lock().ok()?;
        if let Some(found) = self.find() {
            return Some(found);
        }
        self.write(write).ok()?;
        self.find()
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::io::Write as _;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn place(folder: &Path) -> PackedPlace {
        PackedPlace::new(folder.join("m.gguf.packed"))
    }

    fn content(file: Option<File>) -> Option<String> {
        io::read_to_string(file?).ok()
    }

    fn says(text: &str) -> impl FnMut(&File) -> io::Result<()> {
        move |mut file| file.write_all(text.as_bytes())
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let mut names: Vec<String> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn one_process_packs_and_the_others_find_it() {
        let dir = tempfile::tempdir().unwrap();
        let place = place(dir.path());
        assert!(place.find().is_none());
        assert_eq!(content(place.keep(1, &mut says("one"))).as_deref(), Some("one"));
        assert_eq!(content(place.find()).as_deref(), Some("one"));
        let second = place.keep(1, &mut |_| panic!("it is there"));
        assert_eq!(content(second).as_deref(), Some("one"));
        let mode = fs::metadata(&place.path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let mapped = place.find();
        place.discard();
        assert!(place.find().is_none());
        assert_eq!(content(place.keep(1, &mut says("two"))).as_deref(), Some("two"));
        assert_eq!(content(mapped).as_deref(), Some("one"), "an open file stays readable");
    }

    #[test]
    fn what_fails_leaves_nothing_behind_and_what_was_left_is_no_hindrance() {
        let dir = tempfile::tempdir().unwrap();
        let nowhere = place(&dir.path().join("missing"));
        assert!(nowhere.keep(1, &mut |_| panic!("there is no folder")).is_none());
        let place = place(dir.path());
        fs::write(place.with(".new"), "of a process that was killed").unwrap();
        let full = |mut file: &File| {
            file.write_all(b"half")?;
            Err(io::ErrorKind::StorageFull.into())
        };
        assert!(place.keep(1, &mut { full }).is_none());
        assert_eq!(names(dir.path()), ["m.gguf.packed.lock"]);
        assert!(place.keep(u64::MAX / 4, &mut |_| panic!("there is no room")).is_none());
    }

    #[test]
    fn whoever_packs_is_not_waited_for_forever() {
        let dir = tempfile::tempdir().unwrap();
        let place = PackedPlace { patience: Duration::ZERO, ..place(dir.path()) };
        let held = place.lock().unwrap();
        assert!(place.keep(1, &mut |_| panic!("another process is at it")).is_none());
        drop(held);
        assert!(place.keep(1, &mut says("one")).is_some());
    }

    #[test]
    fn what_others_can_write_to_is_not_taken() {
        let dir = tempfile::tempdir().unwrap();
        let place = place(dir.path());
        place.keep(1, &mut says("one")).unwrap();
        fs::set_permissions(&place.path, fs::Permissions::from_mode(0o666)).unwrap();
        assert!(place.find().is_none());
        fs::remove_file(&place.path).unwrap();
        fs::create_dir(&place.path).unwrap();
        assert!(place.find().is_none(), "a folder");
        fs::remove_dir(&place.path).unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o777)).unwrap();
        assert!(place.keep(1, &mut |_| panic!("another user could replace it")).is_none());
    }
}
