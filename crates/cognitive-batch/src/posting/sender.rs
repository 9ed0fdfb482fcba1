//! Sends posts, checks their state, and collects their answers. Runs until it is dropped, or until a
//! permanent error.

use std::sync::Arc;
use std::time::{Duration, Instant};

use cognitive_contract::ports::ProviderError;
use cognitive_ports::batch_service::{PostState, PostedRequest};

use super::PostPlan;
use super::coordinator::PostCoordinator;
use super::post_file::OpenPost;

/// The interval of the loop.
const LOOK: Duration = Duration::from_millis(50);
/// A post is sent after this time without a new request. It is long enough for all rows that are ready, so that they
/// share one post.
const QUIET: Duration = Duration::from_millis(250);
/// The number of tries after a temporary error, and the longest pause in between. A batch endpoint may be unavailable
/// for minutes, and giving up at once would fail its rows.
const TRIES: u32 = 8;
const LONGEST_WAIT: Duration = Duration::from_mins(2);

/// Runs the delivery loop. A permanent error is reported to the coordinator.
pub(crate) async fn deliver(plan: PostPlan, coordinator: Arc<PostCoordinator>) {
    let rounds = async {
        for (post, open) in coordinator.open_posts() {
            if open.id.is_none() {
                settle(&plan, &coordinator, post, &open).await?;
            }
        }
        let mut asked: Option<Instant> = None;
        loop {
            while let Some(requests) = coordinator.take_post(plan.service.limits(), QUIET) {
                post(&plan, &coordinator, &requests).await?;
            }
            if asked.is_none_or(|asked| asked.elapsed() >= plan.poll) {
                for (post, open) in coordinator.open_posts() {
                    ask(&plan, &coordinator, post, &open).await?;
                }
                asked = Some(Instant::now());
            }
            tokio::time::sleep(LOOK).await;
        }
    };
    let ended: Result<std::convert::Infallible, String> = rounds.await;
    let Err(why) = ended;
    coordinator.set_trouble(why);
}

/// Resolves a post whose process died while sending: the service may have it or not.
async fn settle(
    plan: &PostPlan,
    coordinator: &PostCoordinator,
    post: u64,
    open: &OpenPost,
) -> Result<(), String> {
    let found = with_retries(plan, || plan.service.find(&open.name, open.at, open.ids.len())).await?;
    match found {
        Some(id) => coordinator.record_sent(post, id),
        None => coordinator.void(post),
    }
    .map_err(|error| error.to_string())
}

async fn post(
    plan: &PostPlan,
    coordinator: &PostCoordinator,
    requests: &[PostedRequest],
) -> Result<(), String> {
    let (post, name) = coordinator.record_leaving(requests).map_err(|error| error.to_string())?;
    // Never resent blindly: the service may have received it, so it is looked up first.
    let mut wait = Duration::from_secs(1).min(plan.poll);
    for _ in 0..TRIES {
        match plan.service.post(&name, requests).await {
            Ok(id) => return coordinator.record_sent(post, id).map_err(|error| error.to_string()),
            Err(error) if passes(&error) => {
                tokio::time::sleep(wait).await;
                wait = (wait * 2).min(LONGEST_WAIT);
                let since = std::time::SystemTime::now().checked_sub(Duration::from_mins(10));
                let since = since.unwrap_or(std::time::UNIX_EPOCH);
                if let Ok(Some(id)) = plan.service.find(&name, since, requests.len()).await {
                    return coordinator.record_sent(post, id).map_err(|error| error.to_string());
                }
            }
            Err(error) => {
                coordinator.void(post).map_err(|error| error.to_string())?;
                return Err(error.to_string());
            }
        }
    }
    Err("the batch endpoint does not respond".to_owned())
}

async fn ask(
    plan: &PostPlan,
    coordinator: &PostCoordinator,
    post: u64,
    open: &OpenPost,
) -> Result<(), String> {
    let Some(id) = &open.id else { return Ok(()) };
    let state = match plan.service.state(id).await {
        Ok(state) => state,
        // The next round asks again.
        Err(error) if passes(&error) => return Ok(()),
        Err(error) => return Err(error.to_string()),
    };
    match state {
        PostState::Waiting(_) => Ok(()),
        PostState::Failed(why) => {
            coordinator.void(post).map_err(|error| error.to_string())?;
            Err(format!("the service accepted no request of a batch: {why}"))
        }
        PostState::Ended => {
            let mut keep = |id: &str, reply| coordinator.keep(id, reply);
            match plan.service.collect(id, &open.ids, &mut keep).await {
                Ok(()) if coordinator.has_any(&open.ids) => {
                    coordinator.record_collected(post, &open.ids).map_err(|error| error.to_string())
                }
                // The lookup found an unrelated post, or the service processed none of its requests.
                Ok(()) => coordinator.void(post).map_err(|error| error.to_string()),
                Err(error) if passes(&error) => Ok(()),
                Err(error) => Err(error.to_string()),
            }
        }
    }
}

/// Retries an operation while its error is temporary.
async fn with_retries<T, F>(plan: &PostPlan, mut attempt: impl FnMut() -> F) -> Result<T, String>
where
    F: Future<Output = Result<T, ProviderError>>,
{
    let mut wait = Duration::from_secs(1).min(plan.poll);
    for _ in 0..TRIES {
        match attempt().await {
            Ok(found) => return Ok(found),
            Err(error) if passes(&error) => {
                tokio::time::sleep(wait).await;
                wait = (wait * 2).min(LONGEST_WAIT);
            }
            Err(error) => return Err(error.to_string()),
        }
    }
    Err("the batch endpoint does not respond".to_owned())
}

fn passes(error: &ProviderError) -> bool {
    matches!(
        error,
        ProviderError::Unavailable(_)
            | ProviderError::RateLimited { .. }
            | ProviderError::Timeout
            | ProviderError::Interrupted(_)
    )
}
