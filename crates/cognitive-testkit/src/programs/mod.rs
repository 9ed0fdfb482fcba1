//! The program `cogn` in tests: a home folder without anything from this machine, one run of the program, a server, and a
//! model service on loopback.

mod act;
mod child_process;
mod fake_model;
mod home;
mod recorded_replies;
mod run_options;
mod test_server;
mod wire;

pub use act::{Act, Then};
pub use child_process::Running;
pub use fake_model::{FakeModel, FakeReply, FakeRequest};
pub use home::{Home, ProcessOutput};
pub use recorded_replies::bundled_replies;
pub use run_options::OptionCase;
pub use test_server::TestServer;
pub use wire::{piece, stream_reply};

/// The certificate of a service with TLS and its key, in one file. No machine trusts it by default.
pub const SELF_SIGNED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/certificates/self-signed.pem");

/// The same for a certificate that is an authority, as `openssl req -x509` creates it.
pub const SELF_SIGNED_AUTHORITY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/certificates/authority.pem");
