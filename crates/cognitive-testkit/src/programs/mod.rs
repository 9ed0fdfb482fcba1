//! The program `cogn` in tests: a home folder without anything from this machine, one run of the program, a server, and a
//! model service on loopback.

mod fake_model;
mod home;
mod served;

pub use fake_model::{FakeModel, FakeReply, FakeRequest};
pub use home::{Finished, Home};
pub use served::Served;
