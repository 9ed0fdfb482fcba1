//! Media for this process: what the configuration allows, put together from the parts that read, fetch and keep them.
//! Decides no limit of the specification; an operator can only take less.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use cognitive_contract::Failure;
use cognitive_contract::media::MediaLimits;
use cognitive_media::{Documents, Media, UploadLimits, Uploads, Worker};
use cognitive_net::fetch::{Fetcher, Policy};
use cognitive_runtime::Host;

use crate::config::MediaConfig;

/// The hidden command that reads one document and ends.
pub(crate) const WORKER: &str = "read-document";

/// Lets the modules of a host have media.
pub(crate) fn give(host: &mut Host, config: &MediaConfig, uploads: Option<Uploads>) -> Result<(), Failure> {
    let mut media = source(config)?;
    if let Some(uploads) = uploads {
        media = media.with_uploads(uploads);
    }
    host.keep_metadata = config.keep_metadata.unwrap_or(false);
    host.take_media(Arc::new(media), limits(config)?);
    Ok(())
}

/// Files and addresses, as far as the configuration lets them be read.
pub(crate) fn source(config: &MediaConfig) -> Result<Media, Failure> {
    let mut policy = Policy::default();
    if config.allow_http.unwrap_or(false) {
        policy = policy.with_http();
    }
    for origin in config.trusted_origins.iter().flatten() {
        policy = policy.trusting(origin).map_err(|_| {
            wrong(format!("`media.trusted_origins` holds no origin: `{origin}`"))
                .suggest("Write scheme, host and port, such as `http://media.internal:9000`")
        })?;
    }
    let roots: Vec<PathBuf> = config.roots.iter().flatten().cloned().collect();
    Ok(Media::new(documents()).with_roots(&roots).with_urls(Arc::new(Fetcher::new(policy))))
}

/// What media may weigh here.
pub(crate) fn limits(config: &MediaConfig) -> Result<MediaLimits, Failure> {
    let mut limits = MediaLimits::default();
    if let Some(megabytes) = config.max_size_mb {
        let most = u32::try_from(limits.largest >> 20).unwrap_or(u32::MAX);
        if !(1..=most).contains(&megabytes) {
            return Err(wrong(format!(
                "`media.max_size_mb` has to be from 1 to {most}, found: `{megabytes}`"
            )));
        }
        limits.largest = u64::from(megabytes) << 20;
    }
    limits.shortest_side = config.shortest_side.unwrap_or(limits.shortest_side);
    Ok(limits)
}

/// The place of uploads: as configured, or below the directory of this user.
pub(crate) fn uploads(config: &MediaConfig, home: Option<PathBuf>) -> Result<Option<Uploads>, Failure> {
    let folder = config.uploads.clone().or_else(|| Some(home?.join(".cognitive/uploads")));
    let opened = folder.map(|folder| Uploads::open(folder, UploadLimits::default(), SystemTime::now));
    opened.transpose()
}

/// Documents are read by a second process of this program, which can be ended. Where the program does not find itself, that
/// process does not start, and a document is E4000: it is never read in this process, which it could fill.
fn documents() -> Documents {
    // The allocator would take a gigabyte ahead, which is more than the process may have.
    let worker = Worker::new(this_program(), &[WORKER]).with_variable("MIMALLOC_ARENA_EAGER_COMMIT", "0");
    Documents::InWorker(worker)
}

/// This very program, also after its file was moved or replaced by a newer one.
#[cfg(target_os = "linux")]
fn this_program() -> PathBuf {
    PathBuf::from("/proc/self/exe")
}

#[cfg(not(target_os = "linux"))]
fn this_program() -> PathBuf {
    std::env::current_exe().unwrap_or_default()
}

fn wrong(message: String) -> Failure {
    Failure::misconfigured(message).suggest("Correct `media` in `cognitive.yaml`")
}

#[cfg(test)]
mod tests {
    use cognitive_contract::ErrorCode;

    use super::*;

    #[test]
    fn media_005_an_operator_can_only_take_less() {
        let with =
            |megabytes| limits(&MediaConfig { max_size_mb: Some(megabytes), ..MediaConfig::default() });
        assert_eq!(with(20).unwrap().largest, 20 << 20);
        for wrong in [0, 101, u32::MAX] {
            assert_eq!(with(wrong).unwrap_err().code(), ErrorCode::ProviderUnavailable, "{wrong}");
        }
    }

    #[test]
    fn an_origin_that_is_none_is_refused_before_anything_is_served() {
        let config = MediaConfig {
            trusted_origins: Some(vec!["media.internal".to_owned()]),
            ..MediaConfig::default()
        };
        assert!(source(&config).unwrap_err().message().contains("`media.internal`"));
    }
}
