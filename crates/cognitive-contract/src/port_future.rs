//! The future type of the ports.

use std::future::Future;
use std::pin::Pin;

/// A boxed future, so that ports can be trait objects.
pub type PortFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
