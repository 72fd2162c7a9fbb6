//! What a server offers, of one export and of all, in words and as JSON.

use anyhow::Context;
use rubus_draw::text::one_line;
use rubus_nbd::client::{Inquiry, Learnt, Listing, Style};
use rubus_nbd::connect::{Connection, Endpoint, connect, inquire};
use rubus_nbd::identity::Identity;
use rubus_nbd::uri::Uri;
use rubus_nbd::wire::{OptionRequest, TransmissionFlags};
use rubus_vocabulary::units::bytes_iec;

use crate::documents::{
    NbdBlockSizesDocument, NbdExportDocument, NbdIdentityDocument, NbdInfoDocument, NbdListDocument,
};

type Flag = (TransmissionFlags, &'static str, &'static str, &'static str);

/// What each flag means: its name in JSON, that it is set, that it is not.
const FLAGS: [Flag; 11] = [
    (TransmissionFlags::READ_ONLY, "read_only", "can only be read", "can be written"),
    (TransmissionFlags::SEND_FLUSH, "flush", "flush", "no flush: nothing can be made durable"),
    (
        TransmissionFlags::SEND_FUA,
        "fua",
        "durable single writes (FUA)",
        "no durable single writes (FUA)",
    ),
    (TransmissionFlags::SEND_TRIM, "trim", "trim", "no trim"),
    (
        TransmissionFlags::SEND_WRITE_ZEROES,
        "write_zeroes",
        "zeros without data",
        "no zeros without data",
    ),
    (
        TransmissionFlags::SEND_FAST_ZERO,
        "fast_zero",
        "says when zeros are slow",
        "does not say when zeros are slow",
    ),
    (TransmissionFlags::SEND_CACHE, "cache", "prefetch", "no prefetch"),
    (TransmissionFlags::SEND_DF, "df", "unfragmented reads", "no unfragmented reads"),
    (TransmissionFlags::CAN_MULTI_CONN, "multi_conn", "several connections", "one connection only"),
    (TransmissionFlags::ROTATIONAL, "rotational", "turning medium", "no turning medium"),
    (
        TransmissionFlags::BLOCK_STATUS_PAYLOAD,
        "block_status_payload",
        "block status by payload",
        "no block status by payload",
    ),
];

/// All that is found out.
struct Answer {
    style: Style,
    tls: Option<String>,
    offers_tls: Option<bool>,
    structured: bool,
    extended: bool,
    contexts: Vec<String>,
    learnt: Learnt,
}

/// What is known of one export.
pub struct Info {
    uri: Uri,
    answer: Answer,
}

impl Info {
    /// Asks the server of an address.
    ///
    /// # Errors
    /// In words: it cannot be reached, or does not tell.
    pub fn of(address: &str) -> anyhow::Result<Info> {
        let endpoint = Endpoint::of(address)?;
        let answer = ask(&endpoint).with_context(|| format!("cannot ask {address}"))?;
        Ok(Info { uri: endpoint.uri, answer })
    }

    /// The answer as text for a terminal.
    pub fn text(&self) -> String {
        as_text(&self.uri, &self.answer)
    }

    /// The answer for JSON output.
    pub fn document(&self) -> NbdInfoDocument<'_> {
        document(&self.uri, &self.answer)
    }
}

fn ask(endpoint: &Endpoint) -> anyhow::Result<Answer> {
    let mut inquiry = inquire(endpoint)?;
    let mut answer = Answer {
        style: inquiry.style(),
        tls: match inquiry.transport() {
            Connection::Plain(_) => None,
            Connection::Tls(tls) => Some(tls.description()),
        },
        offers_tls: None,
        structured: false,
        extended: false,
        contexts: Vec::new(),
        learnt: Learnt::default(),
    };
    let export = &endpoint.uri.export;
    match answer.style {
        Style::Oldstyle => {
            anyhow::ensure!(
                export.is_empty(),
                "this server is of the old style and has one export without a name; leave '{export}' out"
            );
            answer.learnt.size_and_flags = inquiry.old_export();
            return Ok(answer);
        }
        Style::Newstyle => anyhow::bail!(
            "this server is of the first newstyle, which cannot be asked anything; `rubus bench {}` connects to it",
            endpoint.uri
        ),
        Style::Fixed => {}
    }
    answer.structured = inquiry.agrees_to(&OptionRequest::StructuredReply)?;
    if answer.structured {
        answer.contexts = inquiry.contexts(export)?;
    }
    answer.learnt = match inquiry.about(export)? {
        Ok(learnt) => learnt,
        Err((why, text)) => {
            let words = match clean(&text) {
                text if text.is_empty() => text,
                text => format!(" (\"{text}\")"),
            };
            let known = match inquiry.list()? {
                Some(list) if !list.exports.is_empty() && list.exports.len() <= 20 => {
                    let names: Vec<_> =
                        list.exports.iter().map(|(name, _)| format!("'{}'", clean(name))).collect();
                    format!("; it has {}", names.join(", "))
                }
                _ => String::new(),
            };
            anyhow::bail!("the server does not tell about '{export}': {why}{words}{known}");
        }
    };
    inquiry.end();
    find_size(endpoint, export, &mut answer.learnt)?;
    // What follows takes a connection each, since it changes how the server speaks.
    let mut second = inquire(endpoint)?;
    answer.extended = second.agrees_to(&OptionRequest::ExtendedHeaders)?;
    second.end();
    if !endpoint.uri.tls {
        let mut third = inquire(endpoint)?;
        let is_offered = third.agrees_to(&OptionRequest::StartTls)?;
        answer.offers_tls = Some(is_offered);
        // After a yes it waits for encryption and takes no goodbye.
        if !is_offered {
            third.end();
        }
    }
    Ok(answer)
}

/// Some servers (nbd-server) tell the size of an export to those alone who enter it, and 0 before.
fn find_size(endpoint: &Endpoint, export: &str, learnt: &mut Learnt) -> anyhow::Result<()> {
    if !matches!(learnt.size_and_flags, Some((0, _))) {
        return Ok(());
    }
    let endpoint = Endpoint {
        uri: Uri { export: export.into(), ..endpoint.uri.clone() },
        tls: endpoint.tls.clone(),
    };
    let (mut client, offer) = connect(&endpoint)?;
    client.disconnect();
    learnt.size_and_flags = Some((offer.size_bytes, offer.flags));
    Ok(())
}

/// The start of a server's words.
fn clean(text: &str) -> String {
    let start: String = text.chars().take(400).collect();
    one_line(&start).trim().to_string()
}

/// The words of a description without the identity behind them.
fn words_of(description: &str) -> String {
    let end = match Identity::parse(description) {
        Some(_) => description.rfind("[rubus ").unwrap_or(description.len()),
        None => description.len(),
    };
    clean(&description[..end])
}

fn as_text(uri: &Uri, answer: &Answer) -> String {
    let mut lines = vec![uri.to_string()];
    let mut line = |what: &str, value: String| lines.push(format!("  {what:<12} {value}"));
    let learnt = &answer.learnt;
    line("protocol", {
        let mut styles = vec![answer.style.name()];
        match (answer.structured, answer.extended) {
            (_, true) => styles.push("structured replies, extended headers"),
            (true, _) => styles.push("structured replies"),
            _ => styles.push("simple replies"),
        }
        styles.join(", ")
    });
    line(
        "encryption",
        match (&answer.tls, answer.offers_tls) {
            (Some(tls), _) => tls.clone(),
            (None, Some(true)) => "offered, not used (write nbds:// to use it)".into(),
            (None, _) => "none".into(),
        },
    );
    if let Some(name) = &learnt.name {
        line("name", format!("'{}'", clean(name)));
    }
    if let Some(description) = &learnt.description {
        let words = words_of(description);
        if !words.is_empty() {
            line("description", words);
        }
        if let Some(identity) = Identity::parse(description) {
            line("disk", identity.export.to_string());
            line("boot", identity.boot.to_string());
            line("generation", identity.generation.to_string());
            line(
                "durability",
                if identity.sync {
                    "every write is durable when it is answered".into()
                } else {
                    "writes are durable after a flush".into()
                },
            );
        }
    }
    if let Some((size_bytes, flags)) = learnt.size_and_flags {
        line("size", format!("{} ({size_bytes} bytes)", bytes_iec(size_bytes)));
        line(
            "access",
            if flags.has(TransmissionFlags::READ_ONLY) {
                "reading only".into()
            } else {
                "reading and writing".into()
            },
        );
        let told = FLAGS.into_iter().filter(|flag| flag.0 != TransmissionFlags::READ_ONLY);
        let (can, cannot): (Vec<Flag>, Vec<Flag>) = told.partition(|(flag, ..)| flags.has(*flag));
        line("offers", can.iter().map(|flag| flag.2).collect::<Vec<_>>().join(", "));
        let lacks = cannot.iter().filter(|flag| flag.0 != TransmissionFlags::ROTATIONAL);
        line("lacks", lacks.map(|flag| flag.3).collect::<Vec<_>>().join(", "));
    }
    line(
        "requests",
        match learnt.block_sizes {
            Some(sizes) => format!(
                "multiples of {} bytes, best {}, at most {}",
                sizes.min_bytes,
                bytes_iec(u64::from(sizes.preferred_bytes)),
                bytes_iec(u64::from(sizes.max_bytes))
            ),
            None => "the server names no block sizes".into(),
        },
    );
    let contexts: Vec<_> = answer.contexts.iter().map(|name| clean(name)).collect();
    line(
        "contexts",
        match contexts.join(", ") {
            none if none.is_empty() => "none: holes and zeros are not told".into(),
            names => names,
        },
    );
    lines.join("\n") + "\n"
}

fn document<'a>(uri: &Uri, answer: &'a Answer) -> NbdInfoDocument<'a> {
    let learnt = &answer.learnt;
    let identity = learnt.description.as_deref().and_then(Identity::parse);
    NbdInfoDocument {
        uri: uri.to_string(),
        style: answer.style.name(),
        tls: answer.tls.as_deref(),
        offers_tls: answer.offers_tls,
        structured_replies: answer.structured,
        extended_headers: answer.extended,
        name: learnt.name.as_deref(),
        description: learnt.description.as_deref(),
        identity: identity.map(|identity| NbdIdentityDocument {
            boot: identity.boot.to_string(),
            export: identity.export.to_string(),
            generation: identity.generation,
            sync: identity.sync,
        }),
        size_bytes: learnt.size_and_flags.map(|(size_bytes, _)| size_bytes),
        flags: learnt.size_and_flags.map(|(_, flags)| {
            let each = FLAGS.iter().map(|(flag, name, ..)| (*name, flags.has(*flag)));
            each.collect()
        }),
        block_sizes: learnt.block_sizes.map(|sizes| NbdBlockSizesDocument {
            least_bytes: sizes.min_bytes,
            preferred_bytes: sizes.preferred_bytes,
            most_bytes: sizes.max_bytes,
        }),
        contexts: &answer.contexts,
    }
}

/// The names of a server's exports.
///
/// # Errors
/// In words: it cannot be reached, or does not tell.
pub fn names(address: &str) -> anyhow::Result<Vec<String>> {
    let endpoint = Endpoint::of(address)?;
    let (inquiry, listing) = ask_for_list(address, &endpoint)?;
    inquiry.end();
    let names = listing.exports.iter().map(|(name, _)| clean(name));
    Ok(names.collect())
}

fn ask_for_list(
    address: &str,
    endpoint: &Endpoint,
) -> anyhow::Result<(Inquiry<Connection>, Listing)> {
    let trouble = || format!("cannot ask {address}");
    let mut inquiry = inquire(endpoint).with_context(trouble)?;
    anyhow::ensure!(
        inquiry.style() == Style::Fixed,
        "cannot list the exports of {address}: a server of the style {} has no list",
        inquiry.style().name()
    );
    let listed = inquiry.list().with_context(trouble)?;
    let listing =
        listed.with_context(|| format!("{address} does not tell which exports it has"))?;
    Ok((inquiry, listing))
}

/// What is known of all exports of a server.
pub struct Exports {
    rows: Vec<Row>,
    /// The server has others.
    more: bool,
}

impl Exports {
    /// Asks the server of an address.
    ///
    /// # Errors
    /// In words: it cannot be reached, or does not tell.
    pub fn of(address: &str) -> anyhow::Result<Exports> {
        let endpoint = Endpoint::of(address)?;
        let trouble = || format!("cannot ask {address}");
        let (mut inquiry, listing) = ask_for_list(address, &endpoint)?;
        let mut rows = Vec::new();
        for (name, details) in listing.exports {
            let learnt = inquiry.about(&name).with_context(trouble)?;
            rows.push((name, details, learnt));
        }
        inquiry.end();
        for (name, _, learnt) in &mut rows {
            if let Ok(learnt) = learnt {
                find_size(&endpoint, name, learnt).with_context(trouble)?;
            }
        }
        Ok(Exports { rows, more: listing.more })
    }

    /// The list as text for a terminal.
    pub fn text(&self) -> String {
        as_rows(&self.rows, self.more)
    }

    /// The list for JSON output.
    pub fn document(&self) -> NbdListDocument<'_> {
        NbdListDocument { exports: self.rows.iter().map(export).collect(), is_all: !self.more }
    }
}

type Row = (String, String, Result<Learnt, (rubus_nbd::wire::Refusal, String)>);

fn export((name, details, learnt): &Row) -> NbdExportDocument<'_> {
    let learnt = learnt.as_ref().ok();
    let description = learnt.and_then(|learnt| learnt.description.as_deref());
    let size_and_flags = learnt.and_then(|learnt| learnt.size_and_flags);
    NbdExportDocument {
        name,
        description: description.or(Some(&**details).filter(|text| !text.is_empty())),
        size_bytes: size_and_flags.map(|(size_bytes, _)| size_bytes),
        read_only: size_and_flags.map(|(_, flags)| flags.has(TransmissionFlags::READ_ONLY)),
    }
}

fn as_rows(rows: &[Row], more: bool) -> String {
    if rows.is_empty() {
        return "the server has no exports\n".into();
    }
    let name_of = |name: &str| match name {
        "" => "(without a name)".into(),
        name => clean(name),
    };
    let widest = rows.iter().map(|row| name_of(&row.0).chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for (name, details, learnt) in rows {
        let about = match learnt {
            // The list may say what is to be asked for instead.
            Err((why, text)) => match clean(if details.is_empty() { text } else { details }) {
                words if words.is_empty() => format!("not told: {why}"),
                words => words,
            },
            Ok(learnt) => {
                let size = learnt.size_and_flags.map_or("size unknown".into(), |(bytes, flags)| {
                    if flags.has(TransmissionFlags::READ_ONLY) {
                        format!("{} (read-only)", bytes_iec(bytes))
                    } else {
                        bytes_iec(bytes)
                    }
                });
                let words = words_of(learnt.description.as_deref().unwrap_or(details));
                if words.is_empty() { size } else { format!("{size}  {words}") }
            }
        };
        text += &format!("{:<widest$}  {about}\n", name_of(name));
    }
    if more {
        text += "and more\n";
    }
    text
}
