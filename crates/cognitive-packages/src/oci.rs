//! A package in an OCI registry: one manifest with one layer, the archive itself. It has no artifact type and the usual
//! configuration type, because some registries refuse unknown types. The signature is an annotation, because many
//! registries have no referrers list. Opens no connection.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::PackageError;
use crate::archive::MAX_BYTES;
use crate::package::{Package, sha256};

/// The media type of a manifest.
pub const MANIFEST_TYPE: &str = "application/vnd.oci.image.manifest.v1+json";
/// The media type of a package.
pub const LAYER_TYPE: &str = "application/vnd.cognitive.module.v1.tar+gzip";
/// The media type of the configuration. Every registry supports it.
const CONFIG_TYPE: &str = "application/vnd.oci.image.config.v1+json";
/// The annotation with the signature.
const SIGNATURE: &str = "dev.cognitive-modules.signature.minisign";
const TITLE: &str = "org.opencontainers.image.title";
const VERSION: &str = "org.opencontainers.image.version";
const DESCRIPTION: &str = "org.opencontainers.image.description";

/// A location in a registry: `host[:port]/repository[:tag][@sha256:…]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OciReference {
    /// The host, with the port if there is one.
    pub host: String,
    /// The repository, such as `acme/text-classifier`.
    pub repository: String,
    /// A tag, which can be moved.
    pub tag: Option<String>,
    /// The digest of the manifest, `sha256:…`, which cannot be moved.
    pub digest: Option<String>,
}

impl OciReference {
    /// Parses a reference, without `oci://`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (text, digest) = match text.split_once('@') {
            None => (text, None),
            Some((text, digest)) => (text, Some(checked_digest(digest)?)),
        };
        let (host, rest) =
            text.split_once('/').ok_or("write it as `oci://host/repository[:tag][@sha256:…]`")?;
        let (repository, tag) = match rest.rsplit_once(':') {
            None => (rest, None),
            Some((repository, tag)) => (repository, Some(tag)),
        };
        let is_host =
            |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b':' | b'[' | b']');
        if host.is_empty() || host.len() > 255 || !host.bytes().all(is_host) || host.starts_with('-') {
            return Err("invalid host".to_owned());
        }
        if !repository.split('/').all(is_component) || repository.len() > 200 {
            return Err("the repository has parts of lower-case letters, digits, `.`, `_` and `-`".to_owned());
        }
        if tag.is_some_and(|tag| !is_tag(tag)) {
            return Err("the tag has at most 128 letters, digits, `.`, `_` and `-`".to_owned());
        }
        Ok(Self {
            host: host.to_owned(),
            repository: repository.to_owned(),
            tag: tag.map(str::to_owned),
            digest,
        })
    }

    /// The requested version: the digest, else the tag, else `latest`.
    #[must_use]
    pub fn target(&self) -> &str {
        self.digest.as_deref().or(self.tag.as_deref()).unwrap_or("latest")
    }

    /// Returns this location, identified only by its digest.
    #[must_use]
    pub fn with_digest(&self, digest: &str) -> Self {
        Self { tag: None, digest: Some(digest.to_owned()), ..self.clone() }
    }
}

impl fmt::Display for OciReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.host, self.repository)?;
        self.tag.as_ref().map_or(Ok(()), |tag| write!(f, ":{tag}"))?;
        self.digest.as_ref().map_or(Ok(()), |digest| write!(f, "@{digest}"))
    }
}

fn is_component(part: &str) -> bool {
    let is_taken =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'.' | b'_' | b'-');
    let is_end =
        |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    part.bytes().all(is_taken)
        && is_end(part.as_bytes().first())
        && is_end(part.as_bytes().last())
        && !part.contains("..")
}

/// Returns whether a text is a valid tag. A version with `+` is not.
#[must_use]
pub fn is_tag(text: &str) -> bool {
    let is_taken = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    !text.is_empty() && text.len() <= 128 && !text.starts_with(['.', '-']) && text.bytes().all(is_taken)
}

fn checked_digest(digest: &str) -> Result<String, String> {
    let hash = digest.strip_prefix("sha256:").unwrap_or_default();
    let is_good =
        hash.len() == 64 && hash.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
    if is_good {
        Ok(digest.to_owned())
    } else {
        Err("the digest is not `sha256:` with 64 hexadecimal digits".to_owned())
    }
}

/// A package for upload: the blobs are sent first, then the manifest.
#[derive(Debug)]
pub struct OciUpload {
    /// The manifest.
    pub manifest: Vec<u8>,
    /// The configuration, which is empty.
    pub config: Vec<u8>,
}

/// Writes the manifest of a package. The same package gives the same manifest, and so the same digest.
#[must_use]
pub fn upload_of(package: &Package, signature: Option<&str>) -> OciUpload {
    let config = b"{}".to_vec();
    let mut annotations = BTreeMap::from([
        (TITLE, package.name().to_owned()),
        (VERSION, package.version().to_owned()),
        (DESCRIPTION, package.module.manifest.responsibility.trim().to_owned()),
    ]);
    annotations.extend(signature.map(|text| (SIGNATURE, text.to_owned())));
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST_TYPE,
        "config": { "mediaType": CONFIG_TYPE, "digest": format!("sha256:{}", sha256(&config)), "size": config.len() },
        "layers": [{
            "mediaType": LAYER_TYPE,
            "digest": format!("sha256:{}", package.sha256),
            "size": package.archive.len(),
            "annotations": { TITLE: package.file_name() },
        }],
        "annotations": annotations,
    });
    OciUpload { manifest: manifest.to_string().into_bytes(), config }
}

/// The location of the archive, according to the manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OciLayer {
    /// `sha256:…` of the archive.
    pub digest: String,
    /// The size of the archive.
    pub size: u64,
    /// The signature of the archive.
    pub signature: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
struct OciManifestFile {
    #[serde(default)]
    layers: Vec<LayerFile>,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct LayerFile {
    media_type: String,
    digest: String,
    size: u64,
}

/// Reads a manifest and returns the one layer that is a package. Refuses any other content.
pub fn layer_of(manifest: &[u8]) -> Result<OciLayer, PackageError> {
    let refused = |reason: &str| {
        PackageError::new(format!("the registry has no module package there: {reason}"))
            .hint("`cogn publish` uploads packages; images and other artefacts cannot be installed")
    };
    let file: OciManifestFile =
        serde_json::from_slice(manifest).map_err(|_| refused("its manifest is invalid"))?;
    let mut layers = file.layers.into_iter().filter(|layer| layer.media_type == LAYER_TYPE);
    let (Some(layer), None) = (layers.next(), layers.next()) else {
        return Err(refused("its manifest does not have exactly one module layer"));
    };
    let digest = checked_digest(&layer.digest).map_err(|reason| refused(&reason))?;
    if layer.size > MAX_BYTES {
        return Err(refused("its archive is larger than 50 MiB"));
    }
    Ok(OciLayer { digest, size: layer.size, signature: file.annotations.get(SIGNATURE).cloned() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::package::tests::files;

    #[test]
    fn a_manifest_leads_back_to_the_archive_and_its_signature() {
        let package = Package::from_files(files("m", "1.0.0")).unwrap();
        let upload = upload_of(&package, Some("signed"));
        let layer = layer_of(&upload.manifest).unwrap();
        assert_eq!(layer.digest, format!("sha256:{}", package.sha256));
        assert_eq!((layer.size, layer.signature.as_deref()), (package.archive.len() as u64, Some("signed")));
        assert_eq!(upload.manifest, upload_of(&package, Some("signed")).manifest);
        let text = String::from_utf8(upload.manifest).unwrap();
        assert!(!text.contains("artifactType") && !text.contains("\"subject\""), "{text}");
    }

    #[test]
    fn what_is_no_package_is_refused() {
        let layer = |kind: &str, digest: &str, size: u64| json!({ "mediaType": kind, "digest": digest, "size": size });
        let (good, other) =
            (format!("sha256:{}", "a".repeat(64)), "application/vnd.oci.image.layer.v1.tar+gzip");
        let manifest =
            |layers: serde_json::Value| layer_of(json!({ "layers": layers }).to_string().as_bytes());
        assert!(manifest(json!([layer(LAYER_TYPE, &good, 5), layer(other, &good, 5)])).is_ok());
        for layers in [
            json!([]),
            json!([layer(other, &good, 5)]),
            json!([layer(LAYER_TYPE, &good, 5), layer(LAYER_TYPE, &good, 5)]),
            json!([layer(LAYER_TYPE, "sha256:../../x", 5)]),
            json!([layer(LAYER_TYPE, "md5:00", 5)]),
            json!([layer(LAYER_TYPE, &good, u64::MAX)]),
            json!("x"),
        ] {
            assert!(manifest(layers.clone()).is_err(), "{layers}");
        }
        assert!(layer_of(b"<html>").is_err());
    }

    #[test]
    fn references_are_read_with_ports_tags_and_digests() {
        let digest = format!("sha256:{}", "b".repeat(64));
        let parsed = OciReference::parse(&format!("localhost:5000/a/b_c:1.0.0@{digest}")).unwrap();
        assert_eq!((parsed.host.as_str(), parsed.repository.as_str()), ("localhost:5000", "a/b_c"));
        assert_eq!((parsed.tag.as_deref(), parsed.target()), (Some("1.0.0"), digest.as_str()));
        assert_eq!(OciReference::parse("host/m").unwrap().target(), "latest");
        assert!(is_tag("1.0.0-beta.1") && !is_tag("1.0.0+x") && !is_tag("-x") && !is_tag(""));
    }
}
