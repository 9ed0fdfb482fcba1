//! Assembles the media source of this process from the configuration and the parts that read, fetch and store media.
//! Sets no limit of the specification; an operator can only lower them.

use std::path::PathBuf;
#[cfg(all(feature = "media", feature = "net"))]
use std::sync::Arc;
#[cfg(feature = "media")]
use std::time::SystemTime;

use cognitive_contract::Failure;
use cognitive_contract::media::MediaLimits;
#[cfg(feature = "media")]
use cognitive_media::{Documents, Media, UploadLimits, Uploads, Worker};
#[cfg(all(feature = "media", feature = "net"))]
use cognitive_net::fetch::{Fetcher, Policy};

use crate::config::MediaConfig;

/// The hidden command of `cogn` that reads one document and exits.
pub const DOCUMENT_COMMAND: &str = "read-document";

/// The media settings that are not in the configuration.
#[derive(Clone, Default)]
pub struct MediaAccess {
    /// The uploads of a server.
    #[cfg(feature = "media")]
    pub uploads: Option<Uploads>,
    /// The program `cogn`, which reads documents in a process that can be killed. Without it a document fails with
    /// E4000: it is never read in this process, whose memory it could exhaust.
    pub document_reader: Option<PathBuf>,
}

/// Files and addresses, as far as the configuration lets them be read. Documents are read by a second process, which can be
/// ended; where there is no program for it, that process does not start.
#[cfg(feature = "media")]
pub fn source(config: &MediaConfig, access: MediaAccess) -> Result<Media, Failure> {
    let roots: Vec<PathBuf> = config.roots.iter().flatten().cloned().collect();
    let worker = Worker::new(access.document_reader.unwrap_or_default(), &[DOCUMENT_COMMAND])
        // The allocator would reserve a gigabyte in advance, which exceeds the limit of the process.
        .with_variable("MIMALLOC_ARENA_EAGER_COMMIT", "0");
    let mut media = Media::new(Documents::InWorker(worker)).with_roots(&roots);
    #[cfg(feature = "net")]
    {
        media = media.with_urls(Arc::new(Fetcher::new(policy(config)?)));
    }
    if let Some(uploads) = access.uploads {
        media = media.with_uploads(uploads);
    }
    Ok(media)
}

#[cfg(all(feature = "media", feature = "net"))]
fn policy(config: &MediaConfig) -> Result<Policy, Failure> {
    let mut policy = Policy::default();
    if config.allow_http.unwrap_or(false) {
        policy = policy.with_http();
    }
    for origin in config.trusted_origins.iter().flatten() {
        policy = policy.with_trusted_origin(origin).map_err(|_| {
            invalid_setting(format!("invalid origin in `media.trusted_origins`: `{origin}`"))
                .suggest("Write scheme, host and port, such as `http://media.internal:9000`")
        })?;
    }
    Ok(policy)
}

/// Returns the size limits of media.
pub fn limits(config: &MediaConfig) -> Result<MediaLimits, Failure> {
    let mut limits = MediaLimits::default();
    if let Some(megabytes) = config.max_size_mb {
        let most = u32::try_from(limits.largest >> 20).unwrap_or(u32::MAX);
        if !(1..=most).contains(&megabytes) {
            return Err(invalid_setting(format!(
                "`media.max_size_mb` must be from 1 to {most}, found: `{megabytes}`"
            )));
        }
        limits.largest = u64::from(megabytes) << 20;
    }
    limits.shortest_side = config.shortest_side.unwrap_or(limits.shortest_side);
    Ok(limits)
}

/// Opens the upload folder of a server: the configured one, or one below the user's home directory.
#[cfg(feature = "media")]
pub fn uploads(config: &MediaConfig, home: Option<PathBuf>) -> Result<Option<Uploads>, Failure> {
    let folder = config.uploads.clone().or_else(|| Some(home?.join(".cognitive/uploads")));
    let opened = folder.map(|folder| Uploads::open(folder, UploadLimits::default(), SystemTime::now));
    opened.transpose()
}

fn invalid_setting(message: String) -> Failure {
    Failure::config_fault(message).suggest("Correct `media` in `cognitive.yaml`")
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

    #[cfg(all(feature = "media", feature = "net"))]
    #[test]
    fn an_origin_that_is_none_is_refused_before_anything_is_served() {
        let config = MediaConfig {
            trusted_origins: Some(vec!["media.internal".to_owned()]),
            ..MediaConfig::default()
        };
        assert!(
            source(&config, MediaAccess::default()).err().unwrap().message().contains("`media.internal`")
        );
    }
}
