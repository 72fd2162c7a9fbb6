//! `openssl speed` beside this program's own figures.

use std::sync::atomic::Ordering;

use rubus_host::process::programs;
use rubus_stats::estimate::Estimate;
use rubus_vocabulary::processor::ciphers::{Algorithm, Work};
use rubus_vocabulary::processor::peers::{ASKED, Peer};
use rubus_vocabulary::processor::{LeftOut, Part, ProcessorRun};

use super::CpuSuite;
use super::openssl_speed::{of_openssl, parse_speed, parse_version};
use crate::offer::Offer;
use crate::run::one_core;

/// Measures each algorithm here, there, and here again, so that a drift of the machine does not look like a difference.
pub fn peers(suite: &CpuSuite<'_>, offer: &Offer<'_>, processor: &mut ProcessorRun) -> Vec<Peer> {
    let mut leave_out = |what: String| {
        let part = Part::Ciphers;
        processor.left_out.push(LeftOut { part, what });
    };
    if programs::find("openssl").is_none() {
        leave_out("openssl is not installed, so nothing stands beside".into());
        return Vec::new();
    }
    let printed = ask(suite, &["version"]).unwrap_or_default();
    let Some(version) = parse_version(&printed) else {
        leave_out("openssl does not say which version it is".into());
        return Vec::new();
    };
    let tool: Vec<&str> = printed.split_whitespace().take(2).collect();
    let tool = tool.join(" ");
    let mut peers = Vec::new();
    for (algorithm, name, block_bytes) in ASKED {
        if suite.cancel.load(Ordering::Relaxed) {
            break;
        }
        (suite.says)(&format!("{tool}, {}", algorithm.name()));
        let work = match algorithm {
            Algorithm::Sha256 => Work::Digest,
            _ => Work::Encrypt,
        };
        let here = || one_core(algorithm, work, block_bytes, suite.options.seconds, suite.cancel);
        let before = here();
        // Whole seconds only, and one is the least.
        let seconds = (suite.options.seconds.round() as u64).max(1).to_string();
        let bytes = block_bytes.to_string();
        let speed =
            ["speed", "-elapsed", "-mr", "-seconds", &seconds, "-bytes", &bytes, "-evp", name];
        let there = ask(suite, &speed);
        let after = here();
        match there.as_deref().and_then(parse_speed) {
            Some(bytes_per_second) => peers.push(Peer {
                tool: tool.clone(),
                algorithm,
                block_bytes,
                bytes_per_second,
                uses: of_openssl(version, offer, algorithm),
                ours: both(before, after),
                our_uses: offer.chosen(algorithm).uses,
            }),
            None => leave_out(format!("openssl speed has no {name}")),
        }
    }
    peers
}

/// Both together: their mean, and an interval that holds both.
fn both(before: Option<Estimate>, after: Option<Estimate>) -> Option<Estimate> {
    let (before, after) = (before?, after?);
    Some(Estimate::new(
        (before.value + after.value) / 2.0,
        before.low.min(after.low),
        before.high.max(after.high),
    ))
}

fn ask(suite: &CpuSuite<'_>, arguments: &[&str]) -> Option<String> {
    programs::run("openssl", arguments, suite.cancel).ok()
}
