//! Two servers and one Redis: limits apply to both together, each finds the streams of the other, and an unresponsive
//! Redis is reported in time.

use std::time::{Duration, Instant};

use cognitive_http::redis::RedisState;
use cognitive_http::{ServerWord, SharedState as _, SharedStream};
use cognitive_testkit::{PATIENCE, TestRedis};

const MINUTE: Duration = Duration::from_mins(1);

#[tokio::test]
async fn a_minute_holds_so_many_runs_over_all_servers() {
    let Some(redis) = TestRedis::start() else { return };
    let servers = [
        RedisState::connect(&redis.address(), None).await.unwrap(),
        RedisState::connect(&redis.address(), None).await.unwrap(),
        RedisState::connect(&redis.address(), None).await.unwrap(),
    ];
    let (mut taken, started) = (0, Instant::now());
    for number in 0..300 {
        let wait = servers[number % 3].take_run("ann", MINUTE / 60, MINUTE).await.unwrap();
        taken += u64::from(wait.is_ok());
    }
    // One more with every second that it took.
    let allowed = 60 + started.elapsed().as_secs();
    assert!((60..=allowed + 3).contains(&taken), "{taken} of {allowed}");
    // A moment ago there may have been one more.
    let wait = loop {
        if let Err(wait) = servers[0].take_run("ann", MINUTE / 60, MINUTE).await.unwrap() {
            break wait;
        }
    };
    assert!(wait <= Duration::from_secs(1), "{wait:?}");
    servers[1].refund("ann", MINUTE / 60).await.unwrap();
    servers[2].take_run("ann", MINUTE / 60, MINUTE).await.unwrap().unwrap();
    servers[2].take_run("bob", MINUTE / 60, MINUTE).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_stream_is_found_by_another_server_and_its_end_is_said_once() {
    let Some(redis) = TestRedis::start() else { return };
    let one = RedisState::connect(&redis.address(), None).await.unwrap();
    let other = RedisState::connect(&redis.address(), None).await.unwrap();
    let stream = SharedStream { id: "s1".to_owned(), owner: "ann".to_owned(), module: "m".to_owned() };
    assert_eq!(other.stream("s1").await.unwrap(), None);
    one.open_stream(&stream, MINUTE).await.unwrap();
    one.append("s1", vec!["a".into(), "b".into()], MINUTE).await.unwrap();
    assert_eq!(other.stream("s1").await.unwrap(), Some(stream));
    let part = other.read("s1", 0).await.unwrap();
    assert_eq!((part.chunks, part.is_served), (vec!["a".into(), "b".into()], true));
    assert_eq!(other.read("s1", 1).await.unwrap().chunks, ["b"]);
    assert!(!other.close_orphan("s1", 1, "end".into()).await.unwrap(), "somebody has added something");
    assert!(other.close_orphan("s1", 2, "end".into()).await.unwrap());
    let end = one.read("s1", 2).await.unwrap();
    assert_eq!((end.chunks, end.was_cut_off), (vec!["end".into()], true));
    one.forget_stream("s1").await.unwrap();
    assert_eq!(other.stream("s1").await.unwrap(), None);
}

#[tokio::test]
async fn who_sends_a_stream_hears_that_its_owner_wants_no_more_of_it() {
    let Some(redis) = TestRedis::start() else { return };
    let one = RedisState::connect(&redis.address(), None).await.unwrap();
    let other = RedisState::connect(&redis.address(), None).await.unwrap();
    let stream = SharedStream { id: "s1".to_owned(), owner: "ann".to_owned(), module: "m".to_owned() };
    assert!(!other.cancel_stream("s1", "ann").await.unwrap());
    one.open_stream(&stream, MINUTE).await.unwrap();
    assert!(!other.cancel_stream("s1", "bob").await.unwrap(), "nobody else's");
    // Sent before it listens, and while it does.
    assert!(other.cancel_stream("s1", "ann").await.unwrap());
    assert_eq!(one.hear().await.unwrap(), ServerWord::CancelStream("s1".to_owned()));
    let (heard, said) = tokio::join!(one.hear(), other.cancel_stream("s1", "ann"));
    assert_eq!((heard.unwrap(), said.unwrap()), (ServerWord::CancelStream("s1".to_owned()), true));
}

#[tokio::test]
async fn all_other_servers_hear_that_a_module_has_changed() {
    let Some(redis) = TestRedis::start() else { return };
    let connect = async || RedisState::connect(&redis.address(), None).await.unwrap();
    let [one, second, third] = [connect().await, connect().await, connect().await];
    one.tell_of_modules().await.unwrap();
    for other in [&second, &third] {
        assert_eq!(other.hear().await.unwrap(), ServerWord::ModulesChanged);
    }
    // A server does not notify itself: its first message comes from another.
    let stream = SharedStream { id: "s1".to_owned(), owner: "ann".to_owned(), module: "m".to_owned() };
    one.open_stream(&stream, MINUTE).await.unwrap();
    second.cancel_stream("s1", "ann").await.unwrap();
    assert_eq!(one.hear().await.unwrap(), ServerWord::CancelStream("s1".to_owned()));
}

#[tokio::test]
async fn a_redis_that_stands_still_is_said_in_time() {
    let Some(redis) = TestRedis::start() else { return };
    let state = RedisState::connect(&redis.address(), None).await.unwrap();
    redis.freeze();
    let started = Instant::now();
    state.take_run("ann", MINUTE / 60, MINUTE).await.unwrap_err();
    assert!(started.elapsed() < PATIENCE, "{:?}", started.elapsed());
    redis.thaw();
    drop(redis);
    assert!(RedisState::connect("redis+unix:///nowhere/redis.sock", None).await.is_err());
    let said = RedisState::connect("nonsense://:hush@x", None).await.err().unwrap();
    assert!(!said.contains("hush"), "{said}");
}
