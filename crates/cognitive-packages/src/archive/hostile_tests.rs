//! Malicious archives. Each is refused as a whole, with an understandable reason.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use tar::{Builder, EntryType, Header};

use super::{ArchiveForm, read};

/// Adds one entry with its raw name, since the builder of the library would refuse most of these names.
fn entry(tar: &mut Builder<Vec<u8>>, path: &[u8], kind: EntryType, bytes: &[u8]) {
    entry_of_size(tar, path, kind, bytes, bytes.len() as u64);
}

fn entry_of_size(tar: &mut Builder<Vec<u8>>, path: &[u8], kind: EntryType, bytes: &[u8], size: u64) {
    let mut header = Header::new_ustar();
    header.as_mut_bytes()[..path.len()].copy_from_slice(path);
    header.set_entry_type(kind);
    header.set_mode(0o644);
    header.set_size(size);
    if matches!(kind, EntryType::Symlink | EntryType::Link) {
        header.set_link_name("/etc/passwd").unwrap();
    }
    header.set_cksum();
    tar.append(&header, bytes).unwrap();
}

fn packed(tar: &[u8]) -> Vec<u8> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(tar).unwrap();
    gzip.finish().unwrap()
}

fn refusal(fill: impl FnOnce(&mut Builder<Vec<u8>>)) -> String {
    let mut tar = Builder::new(Vec::new());
    fill(&mut tar);
    let bytes = packed(&tar.into_inner().unwrap());
    read(&bytes, &ArchiveForm::Package).unwrap_err().message().to_owned()
}

#[test]
fn sec_021_what_does_not_belong_is_refused() {
    let regular = EntryType::Regular;
    for (path, kind, reason) in [
        (&b"m/../../x"[..], regular, "its path leaves the folder"),
        (b"../x", regular, "its path leaves the folder"),
        (b"/etc/x", regular, "its path is absolute"),
        (b"m/link", EntryType::Symlink, "it is a link"),
        (b"m/hard", EntryType::Link, "it is a link"),
        (b"m/dev", EntryType::Char, "it is not a regular file"),
        (b"m/block", EntryType::Block, "it is not a regular file"),
        (b"m/pipe", EntryType::Fifo, "it is not a regular file"),
        (b"m/sparse", EntryType::GNUSparse, ""),
        (b"m/con", regular, "its name is reserved for a device on some systems"),
        (b"m/a\\b", regular, "a character that some systems do not support"),
        (b"m/a\x1b[2Jb", regular, "a character that some systems do not support"),
        (b"m/\xff", regular, "a name in the archive is not UTF-8"),
        (b"file", regular, "it is outside the folder of the module"),
    ] {
        let said = refusal(|tar| entry(tar, path, kind, b""));
        assert!(said.contains(reason), "{}: {said}", String::from_utf8_lossy(path));
        assert!(!said.contains('\x1b'), "{said:?}");
    }
}

#[test]
fn sec_021_names_of_4000_characters_are_refused_and_not_repeated() {
    let said = refusal(|tar| {
        let mut header = Header::new_gnu();
        header.set_size(0);
        tar.append_data(&mut header, format!("m/{}", "a".repeat(4_000)), &b""[..]).unwrap();
    });
    assert!(said.contains("its path is longer than 240 bytes") && said.len() < 300, "{said}");
}

#[test]
fn sec_021_twins_and_second_folders_are_refused() {
    let two = |one: &'static [u8], other: &'static [u8]| {
        refusal(move |tar| {
            entry(tar, one, EntryType::Regular, b"1");
            entry(tar, other, EntryType::Regular, b"2");
        })
    };
    assert!(two(b"m/README", b"m/readme").contains("on some systems its name is equal to that of another"));
    assert!(two(b"m/Tests/a", b"m/tests/b").contains("on some systems its name is equal to that of another"));
    assert!(two(b"m/a", b"m/a").contains("the archive contains it twice"));
    assert!(two(b"m/a", b"m/a/b").contains("the archive contains it twice"));
    assert!(two(b"m/a/b", b"m/a").contains("the archive contains it twice"));
    assert!(two(b"m/a", b"other/a").contains("one folder at its top"));
}

// Ten gigabytes of zeros in a header that only promises them, and a smaller stream that really contains them.
#[test]
fn bombs_are_refused_before_they_fill_anything() {
    let said = refusal(|tar| {
        let mut header = Header::new_gnu();
        header.set_path("m/zeros").unwrap();
        header.set_size(10 << 30);
        header.set_cksum();
        // Only the header; the reader must not trust its size.
        tar.get_mut().extend_from_slice(header.as_bytes());
    });
    assert!(said.contains("at most 50 MiB in total"), "{said}");

    let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
    let mut header = Header::new_ustar();
    header.set_path("m/zeros").unwrap();
    header.set_size(40 << 20);
    header.set_cksum();
    gzip.write_all(header.as_bytes()).unwrap();
    let zeros = vec![0; 1 << 20];
    for _ in 0..40 {
        gzip.write_all(&zeros).unwrap();
    }
    let bytes = gzip.finish().unwrap();
    let said = read(&bytes, &ArchiveForm::Package).unwrap_err();
    assert!(said.message().contains("more than the limit of a package"), "{said} of {} bytes", bytes.len());
}

#[test]
fn a_thousand_files_are_enough() {
    let said = refusal(|tar| {
        for number in 0..=1_000 {
            entry(tar, format!("m/{number}").as_bytes(), EntryType::Regular, b"");
        }
    });
    assert!(said.contains("at most 1,000 files"), "{said}");
}

#[test]
fn what_is_cut_or_no_archive_is_refused() {
    for bytes in [&b""[..], b"PK\x03\x04", &[0x1f, 0x8b], b"<html>", &packed(b"not a tar archive")] {
        assert!(read(bytes, &ArchiveForm::Package).is_err(), "{bytes:?}");
    }
    let mut tar = Builder::new(Vec::new());
    entry(&mut tar, b"m/a", EntryType::Regular, &[7; 5_000]);
    let whole = tar.into_inner().unwrap();
    for length in [100, 600, 3_000] {
        assert!(read(&packed(&whole[..length]), &ArchiveForm::Package).is_err(), "{length}");
    }
    let whole = packed(&whole);
    assert!(read(&whole, &ArchiveForm::Package).is_ok());
    assert!(read(&whole[..whole.len() - 12], &ArchiveForm::Package).is_err());
}

#[test]
fn reg_004_one_folder_of_a_repository_is_read_with_its_commit() {
    let commit = "0123456789abcdef0123456789abcdef01234567";
    let mut tar = Builder::new(Vec::new());
    entry(
        &mut tar,
        b"pax_global_header",
        EntryType::XGlobalHeader,
        format!("52 comment={commit}\n").as_bytes(),
    );
    entry(&mut tar, b"repo-1/link", EntryType::Symlink, b"");
    entry(&mut tar, b"repo-1/.github/x", EntryType::Regular, b"");
    entry(&mut tar, b"repo-1/modules/m/module.yaml", EntryType::Regular, b"name: m");
    entry(&mut tar, b"repo-1/modules/more/module.yaml", EntryType::Regular, b"name: more");
    let bytes = packed(&tar.into_inner().unwrap());
    let folder = |path: &str| read(&bytes, &ArchiveForm::Repository(path.to_owned()));
    let unpacked = folder("modules/m").unwrap();
    assert_eq!(unpacked.files.keys().collect::<Vec<_>>(), ["module.yaml"]);
    assert_eq!(unpacked.commit.as_deref(), Some(commit));
    assert!(folder("nowhere").unwrap_err().message().ends_with("no files in this folder: `nowhere`"));
    assert!(folder("").unwrap_err().message().contains("it is a link"), "where it is part of what is taken");
}
