//! Reads the available memory from the files that Linux provides: the memory of the machine, and the limits of the
//! control groups of this process, such as those of a container. Without these files the amount is unknown.

use std::fs;
use std::path::Path;

/// A limit for nested control groups; real systems have fewer.
const MAX_GROUPS: usize = 32;

/// Returns the bytes that a process can still allocate. `root` is `/`.
pub(super) fn available(root: &Path) -> Option<u64> {
    let machine = fs::read_to_string(root.join("proc/meminfo")).ok().and_then(|text| machine_memory(&text));
    machine.into_iter().chain(groups_limit(root)).min()
}

/// Parses the line `MemAvailable:   123 kB`: the memory that is available without swapping.
fn machine_memory(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kilobytes.checked_mul(1024)
}

/// Returns the smallest limit of the innermost control group and its parents. Supports version 2 only; unlimited groups
/// count as absent.
fn groups_limit(root: &Path) -> Option<u64> {
    let text = fs::read_to_string(root.join("proc/self/cgroup")).ok()?;
    let own = text.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let top = root.join("sys/fs/cgroup");
    let innermost = top.join(own);
    let around = innermost.ancestors().take(MAX_GROUPS).take_while(|folder| folder.starts_with(&top));
    around.filter_map(group_limit).min()
}

/// Returns the limit minus the used memory. The page cache of read files does not count, because the system can drop
/// it.
fn group_limit(folder: &Path) -> Option<u64> {
    let read = |name: &str| fs::read_to_string(folder.join(name)).ok();
    let number = |name: &str| read(name)?.trim().parse::<u64>().ok();
    let (limit, used) = (number("memory.max")?, number("memory.current")?);
    let files = read("memory.stat").and_then(|text| {
        text.lines().find_map(|line| line.strip_prefix("inactive_file "))?.trim().parse().ok()
    });
    Some(limit.saturating_sub(used.saturating_sub(files.unwrap_or(0))))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn write(root: &Path, files: &[(&str, &str)]) {
        for (path, text) in files {
            let path: PathBuf = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
    }

    #[test]
    fn the_machine_and_every_group_around_the_process_count() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(available(root.path()), None, "another system");
        write(root.path(), &[("proc/meminfo", "MemTotal: 9000 kB\nMemAvailable:    8000 kB\n")]);
        assert_eq!(available(root.path()), Some(8000 << 10));
        let group = "sys/fs/cgroup/a";
        write(
            root.path(),
            &[
                ("proc/self/cgroup", "4:memory:/old\n0::/a/b\n"),
                (&format!("{group}/b/memory.max"), "max\n"),
                (&format!("{group}/b/memory.current"), "5\n"),
                (&format!("{group}/memory.max"), "3000000\n"),
                (&format!("{group}/memory.current"), "2500000\n"),
                (&format!("{group}/memory.stat"), "anon 1\ninactive_file 500000\n"),
            ],
        );
        assert_eq!(available(root.path()), Some(1_000_000));
        write(root.path(), &[(&format!("{group}/memory.current"), "9000000\n")]);
        assert_eq!(available(root.path()), Some(0), "more than the limit is used for a moment");
    }

    #[test]
    fn nonsense_is_nothing() {
        let root = tempfile::tempdir().unwrap();
        write(
            root.path(),
            &[("proc/meminfo", "MemAvailable: lots\n"), ("proc/self/cgroup", "0::/../../..\n")],
        );
        assert_eq!(available(root.path()), None);
    }
}
