//! Downloads and uploads packages: registries with the OCI distribution protocol, and files by URL. Transfers bytes
//! and does not interpret them.
//!
//! [`OciClient`] pulls and pushes manifests and blobs, [`FileFetcher`] downloads one file, and [`docker_credentials`]
//! parses the credentials stored by docker and podman. Read the modules in this order: `name` (hosts, repositories,
//! tags, digests), `credentials` and `docker_config` (credentials), `challenge` and `login` (authentication),
//! `transfer` (bounded requests with retries, through the guard of [`fetch`](crate::fetch)), `oci`, `tags` and `push`
//! (the protocol), `file`, and `report` (error messages).
//!
//! A registry is an untrusted host that the user named. Its origin may be anywhere, even on this machine. Every URL
//! that the registry itself names (a redirect, an upload location, a token server) must be public and `https`, or
//! trusted by name. Content is accepted only with the requested digest and length. Credentials are sent only to the
//! origin that the user named and to its token server.

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
