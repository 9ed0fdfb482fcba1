//! A service that costs as much as it may. It writes up to its limit, and counts every byte of the request as a token
//! (or the maximum of its vocabulary). It caches as much as it may. Everything is random from a seed.

use std::sync::Mutex;
use std::time::Duration;

use cognitive_contract::money::Money;
use cognitive_contract::ports::{
    Attempt, CallSink, DecodeMode, Destination, ModelCall, ModelEnd, PortFuture, Provider, ProviderError,
    Usage,
};
use cognitive_contract::tools::{FUNCTION_CALLING, ToolCall};
use cognitive_ports::prices::{BilledVocabulary, ModelPrice, PriceTable};
use cognitive_runtime::cost::most_tokens;
use cognitive_schema::SchemaTarget;
use cognitive_testkit::SeededRandom;
use serde_json::json;

/// Prices that differ for output, input and cache.
pub fn prices() -> PriceTable {
    PriceTable::from_value(json!({ "as_of": "2026-11-17", "models": {
        "cheap/m": { "input": 0.25, "output": 2, "cache_read": 0.025 },
        "dear/m": { "input": 3, "output": 15, "cache_read": 0.3, "cache_write": 3.75,
                    "long_context": { "above_tokens": 20000, "input": 6, "output": 22.5, "cache_write": 7.5 } },
        "known/m": { "input": 2, "output": 8, "cache_read": 0.5, "vocabulary": "o200k" },
        "thinker/m": { "input": 1.25, "output": 10, "thinking_tokens": 2048 },
    } }))
    .unwrap()
}

/// The misbehaviour of a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Habit {
    /// Writes the longest answer that its contract admits, and bills the maximum.
    Long,
    /// The same with tokens that are longer than in any real text.
    LongTokens,
    /// Writes an invalid answer.
    Broken,
    /// Requests tools as long as it may.
    Tools,
    /// Breaks off after it has reported its usage, and is retried.
    BreaksOff,
    /// Never finishes its reply, and reports no usage.
    Silent,
    /// Any of them, call by call.
    Any,
}

/// The service.
pub struct Hostile {
    pub name: &'static str,
    pub habit: Habit,
    pub target: Option<SchemaTarget>,
    price: ModelPrice,
    state: Mutex<Books>,
}

struct Books {
    random: SeededRandom,
    billed: Money,
    calls: u64,
}

/// The habits of a mixed service; mostly it writes as much as it can.
const HABITS: [Habit; 8] = [
    Habit::Long,
    Habit::Long,
    Habit::Long,
    Habit::LongTokens,
    Habit::Broken,
    Habit::Tools,
    Habit::BreaksOff,
    Habit::Silent,
];

impl Hostile {
    pub fn new(name: &'static str, habit: Habit, seed: u64) -> Self {
        let price = prices().price(name, "m").unwrap();
        let target =
            [None, Some(SchemaTarget::OpenAi), Some(SchemaTarget::Anthropic)][usize::from((seed % 3) as u8)];
        let state = Mutex::new(Books { random: SeededRandom::new(seed | 1), billed: Money::ZERO, calls: 0 });
        Self { name, habit, target, price, state }
    }

    /// The cost of all requests together, as the service billed it.
    pub fn billed(&self) -> Money {
        self.state.lock().unwrap().billed
    }

    pub fn calls(&self) -> u64 {
        self.state.lock().unwrap().calls
    }

    /// The most that it may bill for a request: a token for each byte of the request, plus its own overhead.
    fn usage(&self, call: &ModelCall) -> Usage {
        let (stable, varying) = sent(call, self.price.vocabulary);
        let turns = (2 + 2 * (call.examples.len() + call.rounds.len() + call.tools.len())) as u64;
        let words = u64::from(call.schema.is_some()) * 96 + u64::from(!call.tools.is_empty()) * 768;
        let own = 64 + words + 8 * turns;
        // The shortest thought of some services is longer than the requested budget.
        let thought =
            call.thinking.filter(|tokens| *tokens > 0).map_or(0, |tokens| u64::from(tokens.max(1024)));
        let written = call.max_output_tokens.unwrap_or(1 << 40) + thought;
        Usage::new(stable + varying + own, written).with_cache(0, stable + own)
    }

    fn bill(&self, usage: Usage) -> Usage {
        self.state.lock().unwrap().billed = self.billed().plus(self.price.cost(&usage));
        usage
    }

    fn habit(&self) -> Habit {
        let mut state = self.state.lock().unwrap();
        state.calls += 1;
        if self.habit != Habit::Any {
            return self.habit;
        }
        HABITS[state.random.index(HABITS.len())]
    }
}

/// The tokens that are the same in every call of the module, and those of this call.
fn sent(call: &ModelCall, vocabulary: BilledVocabulary) -> (u64, u64) {
    let tokens = |text: &str| most_tokens(text, vocabulary);
    let examples: u64 = call.examples.iter().map(|each| tokens(&each.input) + tokens(&each.answer)).sum();
    let schema = call.schema.as_ref().map_or(0, |schema| tokens(schema.text()));
    let tools = call.tools.iter();
    let tools: u64 = tools
        .map(|tool| tokens(&tool.name) + tokens(&tool.description) + tokens(&tool.parameters.to_string()))
        .sum();
    let mut told = 0;
    for round in &call.rounds {
        told += tokens(&round.turn.to_string());
        told += round
            .calls
            .iter()
            .map(|(call, reply)| tokens(&call.arguments) + tokens(&reply.content))
            .sum::<u64>();
    }
    (tokens(&call.instructions) + examples + schema + tools, tokens(&call.input) + told)
}

/// The longest answer that the random modules accept, or one of any length if they leave it open.
fn longest(call: &ModelCall, bytes_per_token: u64) -> String {
    let room = call.max_output_tokens.unwrap_or(4096) * bytes_per_token;
    let text = "x".repeat(usize::try_from(room.saturating_sub(400)).unwrap().max(1));
    // Modules with an open contract have this prefix.
    let text = if call.module.starts_with("open") { text } else { "x".repeat(100) };
    json!({ "ok": true, "meta": { "confidence": 0.9, "risk": "low", "explain": "e".repeat(200) },
            "data": { "rationale": "r".repeat(100), "text": text, "items": ["abc", "abc"] } })
    .to_string()
}

impl Provider for Hostile {
    fn name(&self) -> &str {
        self.name
    }

    fn target(&self) -> Option<SchemaTarget> {
        self.target
    }

    fn capabilities(&self) -> &[&str] {
        &["json_mode", FUNCTION_CALLING]
    }

    fn destination(&self) -> Option<Destination> {
        Some(Destination { model: Some("m".to_owned()), address: None })
    }

    fn ask<'a>(
        &'a self,
        call: &'a ModelCall,
        sink: &'a mut dyn CallSink,
    ) -> PortFuture<'a, Result<ModelEnd, ProviderError>> {
        Box::pin(async move {
            let (usage, mut habit) = (self.usage(call), self.habit());
            let mut end = ModelEnd::complete("m", DecodeMode::Prompt);
            let attempt = |outcome: &str, status, usage| {
                let mut attempt = Attempt::new(DecodeMode::Prompt, outcome, Duration::ZERO);
                (attempt.status, attempt.usage) = (status, usage);
                attempt
            };
            for _ in 0..2 {
                // A call that breaks off was billed; a refused one was not. Both are retried.
                match habit {
                    Habit::BreaksOff => sink.attempt(attempt("broke off", Some(200), Some(self.bill(usage)))),
                    Habit::Silent => {
                        self.bill(usage);
                        sink.attempt(attempt("timed out", None, None));
                    }
                    _ => break,
                }
                sink.before_retry().await?;
                sink.attempt(attempt("busy", Some(503), None));
                sink.before_retry().await?;
                habit = Habit::Long;
            }
            let offers = !call.tools.is_empty() && !call.answer_now;
            match habit {
                Habit::LongTokens => sink.piece(&longest(call, 64)),
                Habit::Broken => sink.piece(&"{ broken ".repeat(50)),
                Habit::Tools if offers => {
                    let arguments = json!({ "value": { "a": "b".repeat(2000) }, "path": "/a" }).to_string();
                    end.tool_calls = vec![ToolCall::new("id", "json_query", &arguments)];
                    end.turn = json!({ "role": "assistant", "content": "c".repeat(1000) });
                }
                _ => sink.piece(&longest(call, 4)),
            }
            end.usage = Some(self.bill(usage));
            sink.attempt(attempt("ok", Some(200), None));
            Ok(end)
        })
    }
}
