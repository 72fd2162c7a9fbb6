//! What a server prints as JSON lines: events on standard error, its status to readers. `docs/reference/json.md` names the schemas.

use rubus_nbd::server::tally::Counts;
use serde::Serialize;

/// A line of `rubus serve --json`: something that happened.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EventLine<'a> {
    /// When, as RFC 3339 in UTC.
    pub time: String,
    /// The same for people.
    pub text: String,
    /// What happened.
    #[serde(flatten)]
    pub what: EventOf<'a>,
}

/// What happened to a server.
#[derive(Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum EventOf<'a> {
    /// The server says what it serves, where it listens, or that it ended.
    Said {},
    /// A client opened an export.
    Came {
        /// Number of the client, from 1.
        client: u64,
        /// Address of the client.
        caller: &'a str,
        /// Name of the export.
        export: &'a str,
    },
    /// A client disconnected.
    Went {
        /// Number of the client, from 1.
        client: u64,
        /// Address of the client.
        caller: &'a str,
        /// Name of the export.
        export: &'a str,
        /// How long it was connected.
        seconds: f64,
        /// Why it disconnected.
        why: String,
        /// What it did.
        counts: CountsLine,
    },
    /// Someone asked for the list of exports, or about one, and opened none.
    Asked {
        /// Address of the client.
        caller: &'a str,
    },
    /// Someone disconnected during the handshake.
    Left {
        /// Address of the client.
        caller: &'a str,
    },
    /// A client was refused; in a flood, how many others were not served.
    Refused {
        /// Address of the client.
        #[serde(skip_serializing_if = "Option::is_none")]
        caller: Option<&'a str>,
        /// Why.
        #[serde(skip_serializing_if = "Option::is_none")]
        why: Option<&'a str>,
        /// How many clients had no line of their own.
        #[serde(skip_serializing_if = "Option::is_none")]
        callers: Option<u64>,
    },
    /// A problem, which `--quiet` prints too.
    Trouble {},
}

/// A line of `rubus serve --status`: what the server does, once per second.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StatusLine<'a> {
    /// When, as RFC 3339 in UTC.
    pub time: String,
    /// The same on a clock that never jumps.
    pub monotonic_seconds: f64,
    /// Processor time of the server so far.
    pub cpu_seconds: f64,
    /// Processors in use since the previous line; null in the first one.
    pub cpu_share: Option<f64>,
    /// Threads that serve clients at the moment.
    pub busy_threads: usize,
    /// The connected clients.
    pub clients: Vec<ClientLine<'a>>,
    /// How many clients have disconnected.
    pub gone_clients: u64,
    /// What all clients did, including those that disconnected.
    pub total: CountsLine,
    /// The same per second since the previous line; null in the first one.
    pub rates: Option<RatesLine>,
}

/// A connected client.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClientLine<'a> {
    /// Number of the client, from 1.
    pub client: u64,
    /// Address of the client.
    pub caller: &'a str,
    /// Name of the export.
    pub export: &'a str,
    /// How long it has been connected.
    pub seconds: f64,
    /// It has requests in flight.
    pub busy: bool,
    /// What it did.
    pub counts: CountsLine,
    /// The same per second since the previous line; null in its first one.
    pub rates: Option<RatesLine>,
}

/// Requests since the start. Percentiles are of the time a request took; null without requests.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CountsLine {
    /// Requests that read.
    pub reads: u64,
    /// Requests that write.
    pub writes: u64,
    /// Requests to make what was written durable.
    pub flushes: u64,
    /// Requests of other kinds, such as trim.
    pub others: u64,
    /// Requests that were answered with an error.
    pub errors: u64,
    /// Bytes that clients read.
    pub read_bytes: u64,
    /// Bytes that clients wrote.
    pub written_bytes: u64,
    /// Half of the requests took no longer, in microseconds.
    pub p50_us: Option<u64>,
    /// 99 % of the requests took no longer, in microseconds.
    pub p99_us: Option<u64>,
    /// 99.9 % of the requests took no longer, in microseconds.
    pub p999_us: Option<u64>,
}

impl From<&Counts> for CountsLine {
    fn from(counts: &Counts) -> CountsLine {
        CountsLine {
            reads: counts.reads,
            writes: counts.writes,
            flushes: counts.flushes,
            others: counts.others,
            errors: counts.errors,
            read_bytes: counts.read_bytes,
            written_bytes: counts.written_bytes,
            p50_us: counts.percentile_us(0.5),
            p99_us: counts.percentile_us(0.99),
            p999_us: counts.percentile_us(0.999),
        }
    }
}

/// Requests between two lines. Percentiles are of the time a request took; null without requests.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RatesLine {
    /// Requests that read, per second.
    pub reads_per_second: f64,
    /// Requests that write, per second.
    pub writes_per_second: f64,
    /// Requests to make what was written durable, per second.
    pub flushes_per_second: f64,
    /// Bytes that clients read per second.
    pub read_bytes_per_second: f64,
    /// Bytes that clients wrote per second.
    pub written_bytes_per_second: f64,
    /// Half of the requests took no longer, in microseconds.
    pub p50_us: Option<u64>,
    /// 99 % of the requests took no longer, in microseconds.
    pub p99_us: Option<u64>,
}

impl RatesLine {
    /// What happened between two readings of the same counters.
    pub fn between(before: &Counts, now: &Counts, seconds: f64) -> RatesLine {
        let rate = |before: u64, now: u64| (now - before) as f64 / seconds;
        let mut between = now.clone();
        for (time, before) in between.times.iter_mut().zip(before.times) {
            *time -= before;
        }
        RatesLine {
            reads_per_second: rate(before.reads, now.reads),
            writes_per_second: rate(before.writes, now.writes),
            flushes_per_second: rate(before.flushes, now.flushes),
            read_bytes_per_second: rate(before.read_bytes, now.read_bytes),
            written_bytes_per_second: rate(before.written_bytes, now.written_bytes),
            p50_us: between.percentile_us(0.5),
            p99_us: between.percentile_us(0.99),
        }
    }
}
