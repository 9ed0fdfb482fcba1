//! The allocator of the program, and how a server makes it return memory. The system allocator keeps most of the memory
//! that a burst of requests has freed, which would look like a leak.

use std::hint::black_box;
use std::time::Duration;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The interval at which a server returns free memory. It exceeds the second for which memory has to be free.
const OFTEN: Duration = Duration::from_secs(2);
/// Large enough to be a separate memory segment. When such a segment is freed, the allocator returns all memory that
/// has been free for a second. Without allocations it never does.
const PIECE: usize = 4 << 20;

/// Returns memory to the system while it is polled.
pub(crate) async fn release_memory() {
    let mut often = tokio::time::interval(OFTEN);
    loop {
        often.tick().await;
        // The buffer is never written to, so it uses no physical memory.
        drop(black_box(Vec::<u8>::with_capacity(PIECE)));
    }
}
