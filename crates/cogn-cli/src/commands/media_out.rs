//! `--media-out`: writes the media of an answer to files and replaces them by paths. Never overwrites a file. Media
//! that cannot be written stay in the answer, with a notice: they were paid for.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cognitive_contract::media::{EmbeddedMedia, MediaLocation, embedded_media, refer};
use cognitive_contract::{Envelope, Warning};

use crate::output_paths::is_same;

/// The maximum number of files with one name in a folder, so that the search for a free name ends.
const NAMES: u32 = 100_000;

/// Writes the media of an answer to files and leaves their paths in their place. Says what could not be written, as the
/// warnings of the answer do. `reserved` is the file that the envelope goes to: no medium takes its place.
pub(super) fn store(envelope: &mut Envelope, folder: &Path, reserved: Option<&Path>) -> Vec<String> {
    let done: Vec<_> = embedded_media(envelope)
        .into_iter()
        .map(|medium| {
            let written = write(&medium, folder, reserved);
            (medium.place, written)
        })
        .collect();
    let mut unwritten = Vec::new();
    for (place, written) in done {
        match written {
            Ok(path) => refer(envelope, &place, MediaLocation::File { path: path.display().to_string() }),
            Err(why) => {
                let message =
                    format!("cannot write `/data{place}` to a file, so it stays in the envelope: {why}");
                envelope.meta_mut().warn(&Warning::new("MEDIA", &message));
                unwritten.push(message);
            }
        }
    }
    unwritten
}

fn write(medium: &EmbeddedMedia<'_>, folder: &Path, reserved: Option<&Path>) -> Result<PathBuf, String> {
    let bytes = STANDARD.decode(medium.text).map_err(|_| "not valid base64".to_owned())?;
    let unwritable = |error: io::Error| format!("cannot write to `{}`: {error}", folder.display());
    fs::create_dir_all(folder).map_err(unwritable)?;
    let (path, mut file) = create(folder, &medium.file_name(), reserved).map_err(unwritable)?;
    if let Err(error) = file.write_all(&bytes) {
        // A partial image would look complete.
        let _nothing_more_to_do = fs::remove_file(&path);
        return Err(unwritable(error));
    }
    Ok(path)
}

/// A new file: `a.png`, and where that is taken `a-2.png`, `a-3.png` and so on.
fn create(folder: &Path, name: &str, reserved: Option<&Path>) -> io::Result<(PathBuf, File)> {
    let (stem, ending) = name.rsplit_once('.').unwrap_or((name, "bin"));
    for number in 1..=NAMES {
        let name = if number == 1 { name.to_owned() } else { format!("{stem}-{number}.{ending}") };
        let path = folder.join(name);
        if reserved.is_some_and(|reserved| is_same(reserved, &path)) {
            continue;
        }
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            opened => return opened.map(|file| (path, file)),
        }
    }
    Err(io::Error::other(format!("{NAMES} files with the name `{name}` exist")))
}

#[cfg(test)]
mod tests {
    use cognitive_contract::{ErrorCode, Failure};
    use serde_json::{Value, json};

    use super::*;

    fn answer(media: &Value) -> Envelope {
        let meta = json!({ "confidence": 1, "risk": "low", "explain": "e" });
        let data = json!({ "rationale": "r", "all": media, "link": { "type": "url" } });
        Envelope::from_value(json!({ "ok": true, "meta": meta, "data": data })).unwrap()
    }

    #[test]
    fn media_of_an_answer_become_files() {
        let folder = tempfile::tempdir().unwrap();
        let medium = json!({ "type": "base64", "media_type": "image/png", "data": "UE5H", "width": 1 });
        let mut envelope = answer(&json!([medium]));
        assert!(store(&mut envelope, folder.path(), None).is_empty());
        let path = folder.path().join("all-0.png");
        assert_eq!(fs::read(&path).unwrap(), b"PNG");
        let path = path.display().to_string();
        let left = json!({ "type": "file", "media_type": "image/png", "width": 1, "path": path });
        assert_eq!(envelope.data().unwrap()["all"][0], left);
        let mut failed = Failure::new(ErrorCode::InternalError, "m").into_envelope();
        assert!(store(&mut failed, folder.path(), None).is_empty());
    }

    #[test]
    fn no_medium_takes_the_place_of_the_envelope() {
        let folder = tempfile::tempdir().unwrap();
        let medium = json!({ "type": "base64", "media_type": "image/png", "data": "UE5H" });
        let mut envelope = answer(&json!([medium]));
        let reserved = folder.path().join("./all-0.png");
        assert!(store(&mut envelope, folder.path(), Some(&reserved)).is_empty());
        assert!(!reserved.exists());
        assert_eq!(fs::read(folder.path().join("all-0-2.png")).unwrap(), b"PNG");
    }

    #[test]
    fn what_cannot_be_written_stays_with_a_notice() {
        let folder = tempfile::tempdir().unwrap();
        let medium = |data: &str| json!({ "type": "base64", "media_type": "image/png", "data": data });
        let mut envelope = answer(&json!([medium("?"), medium("UE5H")]));
        let unwritten = store(&mut envelope, folder.path(), None);
        assert_eq!(
            unwritten,
            ["cannot write `/data/all/0` to a file, so it stays in the envelope: not valid base64"]
        );
        assert_eq!(envelope.data().unwrap()["all"][0], medium("?"));
        assert_eq!(envelope.data().unwrap()["all"][1]["type"], "file");
        assert_eq!(envelope.meta().extra["warnings"][0]["message"], unwritten[0].as_str());
    }
}
