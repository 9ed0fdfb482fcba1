//! Registries and file servers: a real one if it is installed, and hostile ones created by the tests. All of them
//! listen on 127.0.0.1; no test needs a clock, an account or a network.

mod clients;
mod files;
mod hostile;
mod lies;
mod logins;
mod outside;
mod patience;
mod real;
mod stub;
mod uploads;
