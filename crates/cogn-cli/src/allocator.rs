//! The allocator of the program, and how a server gets it to give memory back. That of the system keeps most of what a
//! burst of requests has freed: a server that met one would look for ever as if it leaked.

use std::hint::black_box;
use std::time::Duration;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How often a server gives back what is free.
const OFTEN: Duration = Duration::from_secs(2);
/// Large enough to be a piece of memory of its own. With the end of such a piece the allocator looks for what has been free
/// for a second, wherever it is; while nobody asks for memory it never looks.
const PIECE: usize = 4 << 20;

/// Gives memory back to the system for as long as it is polled.
pub(crate) async fn give_back() {
    let mut often = tokio::time::interval(OFTEN);
    loop {
        often.tick().await;
        // Nothing is written to it, so it takes no memory itself.
        drop(black_box(Vec::<u8>::with_capacity(PIECE)));
    }
}
