//! Downloads weights over HTTPS from the model hub or a mirror. Resumes an interrupted download; discards a file with
//! another hash.

use std::fs;
use std::io;

use cognitive_net::{Download, FileSink};

use super::file::{self, PartialDownload, WeightsState};
use super::{FailedSource, KnownWeights, PullProgress, WeightsFolder};

/// Downloads the file, moves it into place and returns its origin.
pub(super) async fn fetch(
    known: &KnownWeights,
    place: &WeightsFolder,
    endpoint: &str,
    watch: &dyn PullProgress,
) -> Result<String, FailedSource> {
    let endpoint = endpoint.trim_end_matches('/');
    let host = host(endpoint);
    let failed = |reason: String| FailedSource::new(host, reason);
    // A resumed download may have started from another file; a second attempt then starts from zero.
    for _ in 0..2 {
        let mut part =
            PartialDownload::open(&place.part(), watch).map_err(|error| failed(unwritable(place, &error)))?;
        let resumed = part.length() > 0;
        file::room(place.folder(), known.length.saturating_sub(part.length())).map_err(failed)?;
        watch.begin(&format!("fetching {} from {host}", known.name), Some(known.length));
        watch.at(part.length());
        let fetched =
            Download::new(format!("{endpoint}/{}", known.on_hub), known.length).fetch(&mut part).await;
        watch.end();
        fetched.map_err(|error| failed(error.to_string()))?;
        match part.judge(known) {
            WeightsState::Right => {
                file::install(&place.part(), place, host)
                    .map_err(|error| failed(unwritable(place, &error)))?;
                return Ok(host.to_owned());
            }
            wrong => {
                fs::remove_file(place.part()).map_err(|error| failed(unwritable(place, &error)))?;
                if !resumed {
                    return Err(failed(wrong.refusal()));
                }
            }
        }
    }
    Err(failed("the download is not the expected file".to_owned()))
}

fn unwritable(place: &WeightsFolder, error: &io::Error) -> String {
    format!("cannot write to `{}`: {error}", place.folder().display())
}

/// Returns the host: `https://a.b/c` → `a.b`. User names in the address are kept out of messages.
fn host(endpoint: &str) -> &str {
    let after = endpoint.split_once("://").map_or(endpoint, |(_, after)| after);
    let before = after.split('/').next().unwrap_or(after);
    before.rsplit_once('@').map_or(before, |(_, host)| host)
}

#[cfg(test)]
mod tests {
    #[test]
    fn only_the_host_of_an_address_is_shown() {
        assert_eq!(super::host("https://me:secret@hub.example:8080/x"), "hub.example:8080");
        assert_eq!(super::host("hub.example"), "hub.example");
    }
}
