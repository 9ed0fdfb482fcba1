//! Packages from where they are kept: registries that speak the OCI distribution protocol, and files by their address.
//! Carries bytes and knows nothing of what is in them.
//!
//! [`OciClient`] pulls and pushes manifests and blobs, [`FileFetcher`] gets one file, [`docker_credentials`] reads the
//! logins that docker and podman keep. Read the modules in this order: `name` (hosts, repositories, tags, digests),
//! `credentials` and `docker_config` (who asks), `challenge` and `login` (how a registry is told), `transfer` (bounded,
//! patient requests through the guard of [`fetch`](crate::fetch)), `oci`, `tags` and `push` (the protocol), `file`, and
//! `report` (what goes wrong, in words).
//!
//! A registry is a stranger that the user named. So its origin may be anywhere, also on this machine; every address that
//! it names itself (a redirect, the place of an upload, the giver of tokens) has to be public and `https`, or trusted by
//! name. What arrives counts only if its digest and length are those that were asked for. Credentials go to the origin
//! that the user named and to its giver of tokens, and nowhere else.

mod challenge;
mod credentials;
mod docker_config;
mod file;
mod login;
mod name;
mod oci;
mod push;
mod report;
mod tags;
mod transfer;

pub use credentials::Credentials;
pub use docker_config::{CredentialHelper, DockerLogin, docker_credentials};
pub use file::FileFetcher;
pub use oci::{OciClient, OciManifest};
