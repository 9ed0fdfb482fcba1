//! Runs a batch from its folder to its summary: opens the state of an earlier process, starts the workers,
//! and flushes while they work. When every row is answered, it writes the output in its final form.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use cognitive_contract::Failure;
use cognitive_contract::ports::Provider;
use tokio::task::JoinSet;

use crate::answer_log::AnswerLog;
use crate::batch_folder::{self, BatchFolder};
use crate::finish;
use crate::plan::{BatchPlan, BatchProgress, BatchStop, BatchSummary, StopHandle};
use crate::posting::{self, PostCoordinator, PostedProvider};
use crate::workers::{BatchWork, run_worker};

/// The interval of flushes and of checks for the time limit.
const TICK: Duration = Duration::from_millis(50);
/// The interval at which files are synced to disk. A power loss costs at most the answers of this time. Syncing each
/// line would slow down the batch.
const SYNC: Duration = Duration::from_secs(1);

/// Runs a batch to its end, or as far as its limits allow. Calls `hear` with the progress several times a
/// second.
pub async fn run(
    plan: BatchPlan,
    stop: &StopHandle,
    mut hear: impl FnMut(&BatchProgress) + Send,
) -> Result<BatchSummary, Failure> {
    let started = Instant::now();
    plan.mapping.check(&plan.rows)?;
    let folder = BatchFolder::open(&plan)?;
    let log = AnswerLog::open(&folder.places, folder.rows, plan.dedupe)
        .map_err(|error| batch_folder::unusable(&folder.path, &error))?;
    let mut plan = plan;
    let coordinator = post_coordinator(&mut plan, &folder)?;
    let work = BatchWork::new(plan, log, &folder, started);
    let work = Arc::new(work.map_err(|error| batch_folder::unusable(&folder.path, &error))?);
    // Dropped with this function, which ends the task.
    let mut postman = JoinSet::new();
    if let (Some(coordinator), Some(posts)) = (&coordinator, &work.plan.posts) {
        postman.spawn(posting::deliver(posts.clone(), Arc::clone(coordinator)));
    }
    for round in 0..=work.plan.limits.retries {
        work.begin_round(round)?;
        let mut workers = JoinSet::new();
        for _ in 0..work.plan.limits.concurrency.max(1) {
            workers.spawn(run_worker(Arc::clone(&work), stop.clone()));
        }
        attend(&work, &mut workers, coordinator.as_deref(), stop, &mut hear).await?;
        if work.end_reason().is_some() || work.deferred.load(Ordering::Relaxed) == 0 {
            break;
        }
    }
    hear(&work.progress());
    close(&work, folder).await
}

/// Replaces the model by the batch endpoint if rows are to be posted. Rounds never retry a posted request, so
/// `retries` is 0.
fn post_coordinator(
    plan: &mut BatchPlan,
    folder: &BatchFolder,
) -> Result<Option<Arc<PostCoordinator>>, Failure> {
    let Some(posts) = &plan.posts else { return Ok(None) };
    let coordinator =
        PostCoordinator::open(&folder.path).map_err(|error| batch_folder::unusable(&folder.path, &error))?;
    let coordinator = Arc::new(coordinator);
    let provider =
        PostedProvider { service: Arc::clone(&posts.service), coordinator: Arc::clone(&coordinator) };
    // A part with a separate model keeps it; only calls that would reach the service are posted.
    let posted = Arc::new(provider) as Arc<dyn Provider>;
    plan.host = plan.host.for_runs_of(&plan.module.manifest.name, posted.into());
    plan.host.prices = Arc::new(plan.host.prices.for_posts());
    plan.limits.retries = 0;
    Ok(Some(coordinator))
}

/// Flushes the rest, writes the final output if every row is answered, and creates the summary.
async fn close(work: &Arc<BatchWork>, folder: BatchFolder) -> Result<BatchSummary, Failure> {
    let handles = {
        let mut log = work.log();
        log.write();
        if let Some(why) = log.trouble() {
            return Err(batch_folder::unusable(&work.plan.target.path, &std::io::Error::other(why)));
        }
        log.handles()
    };
    if let Some(money) = &work.money {
        money.close();
    }
    let (stopped, reason) = work.end_reason().unwrap_or((BatchStop::Finished, None));
    let (is_resumed, rows) = (folder.is_resumed, folder.rows);
    let (target, is_finished) = (work.plan.target.clone(), stopped == BatchStop::Finished);
    let done = tokio::task::spawn_blocking(move || {
        handles?.iter().try_for_each(std::fs::File::sync_all)?;
        if is_finished {
            if folder.is_staged {
                finish::write(&folder.places, &target)?;
            }
            folder.remove()?;
        }
        Ok::<(), std::io::Error>(())
    });
    let unwritten = |error: std::io::Error| batch_folder::unusable(&work.plan.target.path, &error);
    done.await.map_err(|error| unwritten(std::io::Error::other(error)))?.map_err(unwritten)?;
    let counts = work.log().counts;
    let unaccounted = work.money.as_ref().map(|money| money.lost_cost()).filter(|lost| lost.pico() > 0);
    Ok(BatchSummary {
        module: work.plan.module.manifest.name.clone(),
        stopped,
        reason,
        rows,
        left: rows.saturating_sub(counts.answered),
        counts,
        unaccounted,
        resumed: is_resumed,
        elapsed_ms: u64::try_from(work.started.elapsed().as_millis()).unwrap_or(u64::MAX),
        output: work.plan.target.path.clone(),
        failed_output: work.plan.target.failed.clone(),
    })
}

/// Waits for the workers. Meanwhile flushes when due, and checks the time limit, the stop handle and the
/// progress.
async fn attend(
    work: &Arc<BatchWork>,
    workers: &mut JoinSet<()>,
    coordinator: Option<&PostCoordinator>,
    stop: &StopHandle,
    hear: &mut (impl FnMut(&BatchProgress) + Send),
) -> Result<(), Failure> {
    let mut tick = tokio::time::interval(TICK);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let (mut synced, mut syncing) = (Instant::now(), None::<tokio::task::JoinHandle<()>>);
    loop {
        tokio::select! {
            over = workers.join_next() => if over.is_none() { return Ok(()) },
            _ = tick.tick() => {
                work.log().write_if_due();
                if let Some(why) = work.log().trouble() {
                    workers.abort_all();
                    return Err(batch_folder::unusable(&work.plan.target.path, &std::io::Error::other(why)));
                }
                if stop.is_stopped() {
                    work.end(BatchStop::Interrupted, None);
                }
                if work.plan.limits.max_time.is_some_and(|most| work.started.elapsed() >= most) {
                    work.end(BatchStop::MaxTime, None);
                }
                if let Some(why) = coordinator.and_then(PostCoordinator::trouble) {
                    work.end(BatchStop::Provider, Some(why));
                }
                // Answers to posts take hours. The process that resumes the batch finds them.
                if coordinator.is_some() && work.end_reason().is_some() {
                    workers.abort_all();
                }
                if synced.elapsed() >= SYNC && syncing.as_ref().is_none_or(tokio::task::JoinHandle::is_finished) {
                    synced = Instant::now();
                    let handles = work.log().handles();
                    syncing = Some(tokio::task::spawn_blocking(move || {
                        // A failure here loses nothing: after a power loss, the last lines are checked.
                        let _ = handles.map(|handles| handles.iter().try_for_each(std::fs::File::sync_data));
                    }));
                }
                hear(&work.progress());
            }
        }
    }
}
