//! Three workers in separate processes, of which one is repeatedly killed. Every run is answered once,
//! answered parts are not asked again, and sessions count correctly.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use cogn::{Value, json};
use cognitive_testkit::TestRestate;
use tempfile::TempDir;
use tokio::task::JoinSet;

use crate::http::post;
use crate::local_worker::{PARTS, write_chain};
use crate::stub::{Asked, Stub};

/// The size and the difficulty of a test.
struct Scale {
    compositions: usize,
    sessions: usize,
    turns: usize,
    callers: usize,
    /// The response time of the model.
    delay: Duration,
    between_kills: Duration,
    /// The most kills, so that a slow machine is not only busy with restarts.
    most_kills: usize,
}

/// A shell script that prints the worker's process id, exits with it, and kills it when the test is gone.
const GUARDIAN: &str = r#"exec 3<&0; "$0" "$@" </dev/null 3<&- & worker=$!; echo "pid $worker" >&2
(cat <&3 >/dev/null; kill -9 "$worker") >/dev/null 2>&1 & wait "$worker""#;

/// The workers, with the settings to start new ones.
struct Workers {
    home: TempDir,
    modules: TempDir,
    model: Stub,
    port: u16,
    started: usize,
    running: Vec<RunningWorker>,
    /// The killed workers, and when each was gone.
    killed: Vec<(String, Instant)>,
}

impl Workers {
    fn new(model: Stub) -> Self {
        let (home, modules) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        fs::create_dir(home.path().join(".cognitive")).unwrap();
        fs::write(home.path().join(".cognitive/config.yaml"), "audit: {enabled: false}\n").unwrap();
        write_chain(modules.path());
        Self { home, modules, model, port: 0, started: 0, running: Vec::new(), killed: Vec::new() }
    }

    /// Starts a worker and waits until it listens.
    fn start(&mut self) {
        self.started += 1;
        let name = format!("w{}", self.started);
        let mut child = cognitive_testkit::command("sh")
            .args(["-c", GUARDIAN, env!("CARGO_BIN_EXE_cogn-restate")])
            .args(["--share-address", "--runs-per-connection", "4", "--listen"])
            .arg(format!("127.0.0.1:{}", self.port))
            .arg("--modules")
            .arg(self.modules.path())
            .current_dir(self.home.path())
            .env_clear()
            .env("PATH", env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.home.path())
            .env("LLM_PROVIDER", "openai")
            .env("LLM_MODEL", "stub-1")
            .env("OPENAI_API_KEY", "none")
            .env("OPENAI_BASE_URL", format!("http://{}/{name}/v1", self.model.address))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let pid =
            lines.by_ref().map_while(Result::ok).find_map(|line| Some(line.strip_prefix("pid ")?.to_owned()));
        let listening = lines.by_ref().map_while(Result::ok).find_map(|line| {
            let (_, rest) = line.split_once("listening on http://127.0.0.1:")?;
            rest.split(',').next()?.parse().ok()
        });
        self.port = listening.expect("the worker ended before it listened");
        thread::spawn(move || lines.for_each(drop));
        self.running.push(RunningWorker { name, pid: pid.unwrap(), guardian: child });
    }

    /// Kills the oldest worker and starts another.
    fn replace(&mut self) {
        let mut oldest = self.running.remove(0);
        assert!(Command::new("kill").args(["-9", &oldest.pid]).status().unwrap().success());
        oldest.guardian.wait().unwrap();
        self.killed.push((oldest.name.clone(), Instant::now()));
        self.start();
    }
}

/// A running worker; dropping it ends the process.
struct RunningWorker {
    name: String,
    pid: String,
    guardian: Child,
}

impl Drop for RunningWorker {
    fn drop(&mut self) {
        drop(self.guardian.stdin.take());
        let _ = self.guardian.wait();
    }
}

/// Sends all requests, concurrently up to the number of callers. Records when each was answered.
async fn call_all(ingress: &str, scale: &Scale) -> BTreeMap<String, (Instant, Value)> {
    let mut work: Vec<(String, String, Value)> = (0..scale.compositions)
        .map(|n| (format!("case-{n}"), format!("chain/case-{n}/run"), json!({ "text": format!("case-{n}") })))
        .collect();
    for n in 0..scale.sessions * scale.turns {
        let (case, session) = (format!("case-s{n}"), n % scale.sessions);
        let body = json!({ "module": "counter", "input": { "text": case } });
        // Spread evenly among the other requests.
        let place = (n * 7919) % work.len();
        work.insert(place, (case, format!("cogn-session/s{session}/run"), body));
    }
    let answered: Arc<Mutex<BTreeMap<String, (Instant, Value)>>> = Arc::default();
    let (work, next) = (Arc::new(work), Arc::new(AtomicUsize::new(0)));
    let mut callers = JoinSet::new();
    for _ in 0..scale.callers {
        let (work, next, answered, ingress) =
            (Arc::clone(&work), Arc::clone(&next), Arc::clone(&answered), ingress.to_owned());
        callers.spawn(async move {
            while let Some((case, path, body)) = work.get(next.fetch_add(1, Ordering::Relaxed)) {
                let envelope = post(&format!("{ingress}/{path}"), body).await;
                let before = answered.lock().unwrap().insert(case.clone(), (Instant::now(), envelope));
                assert!(before.is_none(), "{case} was answered twice");
            }
        });
    }
    while let Some(done) = callers.join_next().await {
        done.unwrap();
    }
    Arc::into_inner(answered).unwrap().into_inner().unwrap()
}

/// Counts the runs that a worker had in flight when it was gone: it was the last to ask for them, and they
/// were unanswered.
fn in_flight(
    asked: &[Asked],
    answered: &BTreeMap<String, (Instant, Value)>,
    worker: &str,
    gone: Instant,
) -> usize {
    let mut last: BTreeMap<&str, &Asked> = BTreeMap::new();
    // A request may have been read after its sender was gone.
    for each in asked.iter().filter(|each| each.at <= gone || each.worker == worker) {
        last.insert(&each.case, each);
    }
    let open = |each: &&Asked| each.worker == worker && answered[&each.case].0 > gone;
    last.into_values().filter(open).count()
}

async fn survive(scale: Scale) {
    let Some(restate) = tokio::task::block_in_place(TestRestate::open) else { return };
    let mut workers = Workers::new(Stub::open(scale.delay).await);
    let model = workers.model.clone();
    tokio::task::block_in_place(|| (0..3).for_each(|_| workers.start()));
    let deployment = json!({ "uri": format!("http://127.0.0.1:{}", workers.port) });
    post(&format!("{}/deployments", restate.admin), &deployment).await;
    let began = Instant::now();
    let mut calls = Box::pin(call_all(&restate.ingress, &scale));
    let mut turn = tokio::time::interval_at((began + scale.between_kills).into(), scale.between_kills);
    let answered = loop {
        tokio::select! {
            answered = &mut calls => break answered,
            _ = turn.tick(), if workers.killed.len() < scale.most_kills => tokio::task::block_in_place(|| workers.replace()),
        }
    };
    let time = began.elapsed();
    let turns = scale.sessions * scale.turns;
    assert_eq!(answered.len(), scale.compositions + turns);
    for (case, (_, envelope)) in answered.iter().filter(|(case, _)| !case.starts_with("case-s")) {
        assert_eq!(envelope["data"]["text"], format!("{case}>{}", PARTS.join(">")), "{envelope}");
    }
    // Each session counted each of its own runs once.
    for session in 0..scale.sessions {
        let of = (0..turns).filter(|n| n % scale.sessions == session).map(|n| format!("case-s{n}"));
        let counts: BTreeSet<u64> =
            of.map(|case| answered[&case].1["data"]["text"].as_str().unwrap().parse().unwrap()).collect();
        assert_eq!(counts, (1..=scale.turns as u64).collect(), "session {session}");
        let kept = post(&format!("{}/cogn-session/s{session}/context", restate.ingress), &json!(null)).await;
        assert_eq!(kept["context"][0]["value"]["count"], scale.turns, "{kept}");
    }
    let asked = model.asked();
    let parts: BTreeSet<(&str, &str)> =
        asked.iter().map(|each| (each.case.as_str(), each.module.as_str())).collect();
    assert_eq!(parts.len(), scale.compositions * PARTS.len() + turns, "every part was asked");
    let lost: usize =
        workers.killed.iter().map(|(worker, gone)| in_flight(&asked, &answered, worker, *gone)).sum();
    let by: BTreeSet<&str> = asked.iter().map(|each| each.worker.as_str()).collect();
    let report = format!(
        "{} compositions of {} parts and {turns} turns of sessions in {:.1} s: {} workers killed, {} of {} asked; {} parts, {} calls, {lost} in flight at kills",
        scale.compositions,
        PARTS.len(),
        time.as_secs_f64(),
        workers.killed.len(),
        by.len(),
        workers.started,
        parts.len(),
        asked.len(),
    );
    if let Some(file) = env::var_os("COGN_KILL_REPORT") {
        fs::write(file, format!("{report}\n")).unwrap();
    }
    assert!(asked.len() <= parts.len() + lost, "{report}");
    assert!(!workers.killed.is_empty(), "{report}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_workers_lose_nothing_and_pay_nothing_twice() {
    survive(Scale {
        compositions: 200,
        sessions: 5,
        turns: 8,
        callers: 16,
        delay: Duration::from_millis(30),
        between_kills: Duration::from_millis(300),
        most_kills: 10,
    })
    .await;
}

/// Takes minutes on both cores: `cargo test --release -p cogn-restate --test durable -- --ignored`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes minutes"]
async fn five_thousand_compositions_and_a_kill_every_second() {
    survive(Scale {
        compositions: 5_000,
        sessions: 50,
        turns: 20,
        callers: 64,
        delay: Duration::from_millis(50),
        between_kills: Duration::from_secs(1),
        most_kills: usize::MAX,
    })
    .await;
}
