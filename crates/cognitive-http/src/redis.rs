//! [`SharedState`] in Redis: rate limits, streams, logins, and messages between
//! servers. Each operation that reads and writes is one script, so that it is atomic. All entries expire; durable
//! data belongs in the database.
//!
//! Each server reports every second that it is alive. If the server of a stream no longer does, a client that resumes
//! it knows that its end will not arrive. Every call except `hear` returns within moments, even if Redis does not
//! respond.

use std::time::Duration;

use bytes::Bytes;
use cognitive_contract::ports::PortFuture;
use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use redis::{AsyncCommands, Client, RedisError, Script};
use tokio::task::JoinHandle;

use crate::shared_state::{ServerWord, SharedPart, SharedState, SharedStream};

/// The response timeout of Redis. Requests wait for Redis, so a slow one must count as unavailable.
const PATIENCE: Duration = Duration::from_millis(500);
/// The interval of heartbeats, and the time for which one is valid. The validity bridges two lost heartbeats; a
/// longer one would let streams of a dead server appear alive.
const PULSE: Duration = Duration::from_secs(1);
const BELIEVED: Duration = Duration::from_secs(3);

/// The duration of one blocking read of messages, and the lifetime of unread messages. Unread messages would
/// otherwise pile up for servers that are gone.
const LISTENING: Duration = Duration::from_secs(5);
const UNHEARD: Duration = Duration::from_mins(1);

/// The generic cell rate algorithm, using the clock of Redis as the common one. Returns the microseconds to wait.
const TAKE_RUN: &str = r"
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
local interval, burst = tonumber(ARGV[1]), tonumber(ARGV[2])
local busy = tonumber(redis.call('GET', KEYS[1]) or '0')
local ends = math.max(busy, now) + interval
if ends > now + burst then return ends - now - burst end
redis.call('SET', KEYS[1], string.format('%.0f', ends), 'PX', math.ceil((ends - now) / 1000) + 1)
return 0";

const GIVE_BACK: &str = r"
local busy = redis.call('GET', KEYS[1])
if busy then redis.call('SET', KEYS[1], string.format('%.0f', tonumber(busy) - tonumber(ARGV[1])), 'KEEPTTL') end
return 0";

/// Checks whether the server is alive before reading its chunks. The last chunk of a server that died right after it
/// is therefore not missed.
const READ: &str = r"
local server = redis.call('HGET', KEYS[2], 'server')
if not server then return {0, 0, {}} end
local lives = redis.call('EXISTS', 'cogn:server:' .. server)
return {lives, redis.call('HEXISTS', KEYS[2], 'cut_off'), redis.call('LRANGE', KEYS[1], ARGV[1], -1)}";

const CLOSE_ORPHAN: &str = r"
if redis.call('LLEN', KEYS[1]) ~= tonumber(ARGV[1]) then return 0 end
local left = redis.call('PTTL', KEYS[2])
redis.call('RPUSH', KEYS[1], ARGV[2])
redis.call('HSET', KEYS[2], 'cut_off', 1)
if left > 0 then redis.call('PEXPIRE', KEYS[1], left) end
return 1";

/// Sends a message if the server is alive; a dead server has no run to cancel.
const CANCEL: &str = r"
local known = redis.call('HMGET', KEYS[1], 'owner', 'server')
if known[1] ~= ARGV[1] then return 0 end
local server = 'cogn:server:' .. known[2]
if redis.call('EXISTS', server) == 1 then
    redis.call('RPUSH', server .. ':words', ARGV[2])
    redis.call('PEXPIRE', server .. ':words', ARGV[3])
end
return 1";

/// Sends a message to all servers but one, and removes dead servers.
const TELL_ALL: &str = r"
for _, server in ipairs(redis.call('SMEMBERS', KEYS[1])) do
    local name = 'cogn:server:' .. server
    if redis.call('EXISTS', name) == 0 then
        redis.call('SREM', KEYS[1], server)
    elseif server ~= ARGV[1] then
        redis.call('RPUSH', name .. ':words', ARGV[2])
        redis.call('PEXPIRE', name .. ':words', ARGV[3])
    end
end
return 0";
/// The set of servers that have reported to be alive.
const SERVERS: &str = "cogn:servers";

/// Shared state in Redis.
pub struct RedisState {
    connection: ConnectionManager,
    /// A separate connection for messages, because its reads block.
    ears: ConnectionManager,
    /// The id of this server.
    server: String,
    pulse: JoinHandle<()>,
    take_run: Script,
    give_back: Script,
    read: Script,
    close_orphan: Script,
    cancel: Script,
    tell_all: Script,
}

impl RedisState {
    /// Connects to Redis: `redis://HOST:PORT/DATABASE`, `rediss://…` with TLS and a certificate trusted by the
    /// system's roots, or `redis+unix:///SOCKET`. The error omits the address, which may contain a password.
    pub async fn connect(address: &str, password: Option<&str>) -> Result<Self, String> {
        let mut info: redis::ConnectionInfo = redis::IntoConnectionInfo::into_connection_info(address)
            .map_err(|_| "the address is not `redis://HOST:PORT`".to_owned())?;
        if let Some(password) = password.filter(|_| info.redis_settings().password().is_none()) {
            let settings = info.redis_settings().clone().set_password(password);
            info = info.set_redis_settings(settings);
        }
        let _already_chosen = rustls::crypto::ring::default_provider().install_default();
        let client = Client::open(info).map_err(|error| redis_message(&error))?;
        let mut connection = open(&client, PATIENCE).await?;
        let ears = open(&client, LISTENING + PATIENCE).await?;
        let server = uuid::Uuid::new_v4().simple().to_string();
        say_alive(&mut connection, &server).await.map_err(|error| redis_message(&error))?;
        let pulse = tokio::spawn(send_heartbeats(connection.clone(), server.clone()));
        Ok(Self {
            connection,
            ears,
            server,
            pulse,
            take_run: Script::new(TAKE_RUN),
            give_back: Script::new(GIVE_BACK),
            read: Script::new(READ),
            close_orphan: Script::new(CLOSE_ORPHAN),
            cancel: Script::new(CANCEL),
            tell_all: Script::new(TELL_ALL),
        })
    }
}

/// Opens a connection with a response timeout.
async fn open(client: &Client, patience: Duration) -> Result<ConnectionManager, String> {
    let config = ConnectionManagerConfig::new()
        .set_connection_timeout(Some(PATIENCE))
        .set_response_timeout(Some(patience))
        .set_number_of_retries(1);
    ConnectionManager::new_with_config(client.clone(), config).await.map_err(|error| redis_message(&error))
}

impl Drop for RedisState {
    fn drop(&mut self) {
        self.pulse.abort();
    }
}

async fn say_alive(connection: &mut ConnectionManager, server: &str) -> Result<(), RedisError> {
    let believed = u64::try_from(BELIEVED.as_millis()).unwrap_or(u64::MAX);
    let mut pipe = redis::pipe();
    pipe.atomic().pset_ex(server_key(server), 1, believed).ignore();
    // The set expires too once all servers are gone.
    pipe.sadd(SERVERS, server).ignore().pexpire(SERVERS, millis(UNHEARD)).ignore();
    pipe.query_async(connection).await
}

async fn send_heartbeats(mut connection: ConnectionManager, server: String) {
    loop {
        tokio::time::sleep(PULSE).await;
        // A server without heartbeat counts as dead. This is correct, since its streams cannot be followed either.
        let _ = say_alive(&mut connection, &server).await;
    }
}

fn redis_message(error: &RedisError) -> String {
    format!("Redis: {error}")
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

fn server_key(server: &str) -> String {
    format!("cogn:server:{server}")
}

fn login_key(hash: &str) -> String {
    format!("cogn:login:{hash}")
}

fn client_key(client: &str) -> String {
    format!("cogn:runs:{client}")
}

/// The braces keep both keys on one node of a cluster.
fn stream_keys(id: &str) -> (String, String) {
    (format!("cogn:stream:{{{id}}}"), format!("cogn:stream:{{{id}}}:of"))
}

/// Formats a message for Redis.
fn format_word(word: &ServerWord) -> String {
    match word {
        ServerWord::CancelStream(id) => format!("cancel {id}"),
        ServerWord::ModulesChanged => "modules".to_owned(),
    }
}

fn read(text: &str) -> Option<ServerWord> {
    match text.split_once(' ').unwrap_or((text, "")) {
        ("cancel", id) => Some(ServerWord::CancelStream(id.to_owned())),
        ("modules", _) => Some(ServerWord::ModulesChanged),
        _ => None,
    }
}

impl SharedState for RedisState {
    fn take_run<'a>(
        &'a self,
        client: &'a str,
        interval: Duration,
        burst: Duration,
    ) -> PortFuture<'a, Result<Result<(), Duration>, String>> {
        Box::pin(async move {
            let mut connection = self.connection.clone();
            let mut call = self.take_run.key(client_key(client));
            let call = call.arg(micros(interval)).arg(micros(burst));
            let wait: u64 =
                call.invoke_async(&mut connection).await.map_err(|error| redis_message(&error))?;
            Ok(if wait == 0 { Ok(()) } else { Err(Duration::from_micros(wait)) })
        })
    }

    fn refund<'a>(&'a self, client: &'a str, interval: Duration) -> PortFuture<'a, Result<(), String>> {
        Box::pin(async move {
            let mut connection = self.connection.clone();
            let mut call = self.give_back.key(client_key(client));
            let done: Result<i64, _> = call.arg(micros(interval)).invoke_async(&mut connection).await;
            done.map(drop).map_err(|error| redis_message(&error))
        })
    }

    fn open_stream<'a>(
        &'a self,
        stream: &'a SharedStream,
        keep: Duration,
    ) -> PortFuture<'a, Result<(), String>> {
        Box::pin(async move {
            let (_, of) = stream_keys(&stream.id);
            let members = [("owner", &stream.owner), ("module", &stream.module), ("server", &self.server)];
            let mut pipe = redis::pipe();
            pipe.atomic().hset_multiple(&of, &members).ignore().pexpire(&of, millis(keep)).ignore();
            let mut connection = self.connection.clone();
            pipe.query_async::<()>(&mut connection).await.map_err(|error| redis_message(&error))
        })
    }

    fn append<'a>(
        &'a self,
        id: &'a str,
        chunks: Vec<Bytes>,
        keep: Duration,
    ) -> PortFuture<'a, Result<(), String>> {
        Box::pin(async move {
            let (list, of) = stream_keys(id);
            let chunks: Vec<&[u8]> = chunks.iter().map(AsRef::as_ref).collect();
            let mut pipe = redis::pipe();
            pipe.atomic().rpush(&list, chunks).ignore();
            pipe.pexpire(&list, millis(keep)).ignore().pexpire(&of, millis(keep)).ignore();
            let mut connection = self.connection.clone();
            pipe.query_async::<()>(&mut connection).await.map_err(|error| redis_message(&error))
        })
    }

    fn close_orphan<'a>(
        &'a self,
        id: &'a str,
        length: usize,
        chunk: Bytes,
    ) -> PortFuture<'a, Result<bool, String>> {
        Box::pin(async move {
            let (list, of) = stream_keys(id);
            let mut connection = self.connection.clone();
            let mut call = self.close_orphan.key(list);
            let call = call.key(of).arg(length).arg(<Bytes as AsRef<[u8]>>::as_ref(&chunk));
            let added: i64 =
                call.invoke_async(&mut connection).await.map_err(|error| redis_message(&error))?;
            Ok(added == 1)
        })
    }

    fn forget_stream<'a>(&'a self, id: &'a str) -> PortFuture<'a, Result<(), String>> {
        Box::pin(async move {
            let (list, of) = stream_keys(id);
            let mut connection = self.connection.clone();
            connection.del::<_, ()>(&[list, of]).await.map_err(|error| redis_message(&error))
        })
    }

    fn stream<'a>(&'a self, id: &'a str) -> PortFuture<'a, Result<Option<SharedStream>, String>> {
        Box::pin(async move {
            let mut connection = self.connection.clone();
            let (_, of) = stream_keys(id);
            let members: (Option<String>, Option<String>) =
                connection.hmget(of, &["owner", "module"]).await.map_err(|error| redis_message(&error))?;
            let named = members.0.zip(members.1);
            Ok(named.map(|(owner, module)| SharedStream { id: id.to_owned(), owner, module }))
        })
    }

    fn read<'a>(&'a self, id: &'a str, from: usize) -> PortFuture<'a, Result<SharedPart, String>> {
        Box::pin(async move {
            let (list, of) = stream_keys(id);
            let mut connection = self.connection.clone();
            let mut call = self.read.key(list);
            let found: Result<(i64, i64, Vec<Vec<u8>>), _> =
                call.key(of).arg(from).invoke_async(&mut connection).await;
            let (lives, cut_off, chunks) = found.map_err(|error| redis_message(&error))?;
            let chunks = chunks.into_iter().map(Bytes::from).collect();
            Ok(SharedPart { chunks, is_served: lives == 1, was_cut_off: cut_off == 1 })
        })
    }

    fn cancel_stream<'a>(&'a self, id: &'a str, owner: &'a str) -> PortFuture<'a, Result<bool, String>> {
        Box::pin(async move {
            let (_, of) = stream_keys(id);
            let mut connection = self.connection.clone();
            let mut call = self.cancel.key(of);
            let call = call.arg(owner).arg(format_word(&ServerWord::CancelStream(id.to_owned())));
            let known: Result<i64, _> = call.arg(millis(UNHEARD)).invoke_async(&mut connection).await;
            known.map(|known| known == 1).map_err(|error| redis_message(&error))
        })
    }

    fn keep_login<'a>(
        &'a self,
        hash: &'a str,
        holder: &'a str,
        keep: Duration,
    ) -> PortFuture<'a, Result<(), String>> {
        Box::pin(async move {
            let mut connection = self.connection.clone();
            let keep = u64::try_from(keep.as_millis()).unwrap_or(u64::MAX);
            connection
                .pset_ex::<_, _, ()>(login_key(hash), holder, keep)
                .await
                .map_err(|error| redis_message(&error))
        })
    }

    fn login<'a>(&'a self, hash: &'a str) -> PortFuture<'a, Result<Option<String>, String>> {
        Box::pin(async move {
            let mut connection = self.connection.clone();
            connection.get(login_key(hash)).await.map_err(|error| redis_message(&error))
        })
    }

    fn end_login<'a>(&'a self, hash: &'a str) -> PortFuture<'a, Result<(), String>> {
        Box::pin(async move {
            let mut connection = self.connection.clone();
            connection.del::<_, ()>(login_key(hash)).await.map_err(|error| redis_message(&error))
        })
    }

    fn tell_of_modules(&self) -> PortFuture<'_, Result<(), String>> {
        Box::pin(async move {
            let mut connection = self.connection.clone();
            let mut call = self.tell_all.key(SERVERS);
            let call =
                call.arg(&self.server).arg(format_word(&ServerWord::ModulesChanged)).arg(millis(UNHEARD));
            let told: Result<i64, _> = call.invoke_async(&mut connection).await;
            told.map(drop).map_err(|error| redis_message(&error))
        })
    }

    fn hear(&self) -> PortFuture<'_, Result<ServerWord, String>> {
        Box::pin(async move {
            let list = format!("{}:words", server_key(&self.server));
            let mut ears = self.ears.clone();
            loop {
                let heard: Result<Option<(String, String)>, _> =
                    ears.blpop(&list, LISTENING.as_secs_f64()).await;
                // Messages of a newer server may be unknown; they are skipped.
                if let Some(word) =
                    heard.map_err(|error| redis_message(&error))?.and_then(|(_, text)| read(&text))
                {
                    return Ok(word);
                }
            }
        })
    }
}
