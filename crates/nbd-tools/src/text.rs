//! The copy of a disk: its receipt, and the line while it runs.

use std::fmt::Write;

use crate::disk_copy::{DiskCopy, DiskCopyProgress};
use rubus_vocabulary::units::{bytes_iec, percent, rate_si};

use rubus_draw::style::{Style, Tone};
use rubus_draw::words::waited;

/// Places that are shown; `--json` has more.
const SHOWN: usize = 5;

/// What was copied, and whether the destination is what it should be.
pub fn receipt(copy: &DiskCopy, style: Style) -> String {
    let verdict = match (copy.is_good(), copy.verify_s) {
        (true, Some(_)) => style.paint(Tone::Good, "complete and verified"),
        (true, None) => style.paint(Tone::Good, "complete"),
        (false, _) if copy.different.is_empty() && copy.is_doubtful => {
            style.paint(Tone::Bad, "doubtful")
        }
        (false, _) if copy.different.is_empty() => {
            style.paint(Tone::Bad, &format!("all but {}", bytes_iec(copy.unreadable_bytes())))
        }
        (false, _) => style.paint(Tone::Bad, "the destination is not the source"),
    };
    let fresh_bytes = copy.size_bytes - copy.resumed_bytes.min(copy.size_bytes);
    let mut text = format!(
        "Copied {} to {}: {verdict}\n  {} in {} ({}), {} written as data, {}\n",
        copy.source,
        copy.destination,
        bytes_iec(fresh_bytes),
        waited(copy.copy_s),
        rate_si(fresh_bytes as f64 / copy.copy_s.max(1e-9)),
        bytes_iec(copy.data_bytes),
        match copy.connections {
            1 => "1 connection".to_string(),
            many => format!("{many} connections"),
        }
    );
    let mut line = |words: String| {
        let _ = writeln!(text, "  {words}");
    };
    if copy.resumed_bytes > 0 {
        line(format!("{} had been copied before", bytes_iec(copy.resumed_bytes)));
    }
    match copy.verify_s {
        Some(verify_s) => line(format!(
            "read back in {} ({})",
            waited(verify_s),
            rate_si(copy.size_bytes as f64 / verify_s.max(1e-9))
        )),
        None => line("not read back (--no-verify)".into()),
    }
    for (places, what) in [
        (&copy.different, "differs somewhere in bytes"),
        (&copy.unreadable, "could not be read, and is zeros now: bytes"),
    ] {
        for (from, to) in places.iter().take(SHOWN) {
            line(format!("{what} {from} to {to}"));
        }
        if let Some(more @ 1..) = places.len().checked_sub(SHOWN) {
            line(format!("and in {more} more places (--json lists them)"));
        }
    }
    if copy.destination_bytes > copy.size_bytes {
        line(format!(
            "{} is larger: its last {} are as they were",
            copy.destination,
            bytes_iec(copy.destination_bytes - copy.size_bytes)
        ));
    }
    if !copy.is_durable {
        line(style.paint(
            Tone::Warn,
            "the server cannot promise that it is on stable storage: it offers no flush",
        ));
    }
    for remark in &copy.remarks {
        line(style.paint(Tone::Warn, remark));
    }
    text
}

/// The progress line of a terminal, at most `columns` columns wide.
pub fn line(progress: &DiskCopyProgress, columns: usize) -> String {
    let share = progress.done_bytes as f64 / progress.size_bytes.max(1) as f64;
    let mut parts = vec![
        if progress.is_verifying { "reading back".to_string() } else { "copying".to_string() },
        percent(share.min(1.0)),
        format!("{} of {}", bytes_iec(progress.done_bytes), bytes_iec(progress.size_bytes)),
    ];
    parts.extend(progress.bytes_per_second().map(rate_si));
    parts.extend(progress.left_s().map(|left_s| format!("about {} left", waited(left_s))));
    parts.join("  ").chars().take(columns).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copy() -> DiskCopy {
        DiskCopy {
            source: "nbd://server/root".into(),
            destination: "root.img".into(),
            size_bytes: 8 << 30,
            destination_bytes: 8 << 30,
            data_bytes: 3 << 30,
            connections: 4,
            copy_s: 40.0,
            verify_s: Some(20.0),
            is_durable: true,
            ..DiskCopy::default()
        }
    }

    #[test]
    fn the_receipt_says_what_was_done() {
        let plain = Style::PLAIN;
        insta::assert_snapshot!(receipt(&copy(), plain), @r"
        Copied nbd://server/root to root.img: complete and verified
          8.00 GiB in 40 s (215 MB/s), 3.00 GiB written as data, 4 connections
          read back in 20 s (429 MB/s)
        ");
        let resumed = DiskCopy {
            resumed_bytes: 5 << 30,
            destination_bytes: 9 << 30,
            verify_s: None,
            connections: 1,
            is_durable: false,
            remarks: vec!["it was mounted while it was copied".into()],
            is_doubtful: true,
            ..copy()
        };
        insta::assert_snapshot!(receipt(&resumed, plain), @r"
        Copied nbd://server/root to root.img: doubtful
          3.00 GiB in 40 s (80.5 MB/s), 3.00 GiB written as data, 1 connection
          5.00 GiB had been copied before
          not read back (--no-verify)
          root.img is larger: its last 1.00 GiB are as they were
          the server cannot promise that it is on stable storage: it offers no flush
          it was mounted while it was copied
        ");
        let different = DiskCopy {
            different: (0..7).map(|i| (i << 23, (i << 23) + (4 << 20))).collect(),
            ..copy()
        };
        let rescued = DiskCopy {
            unreadable: vec![(1 << 20, (1 << 20) + 512), (5 << 20, (5 << 20) + 4096)],
            ..copy()
        };
        insta::assert_snapshot!(receipt(&rescued, plain), @r"
        Copied nbd://server/root to root.img: all but 4.50 KiB
          8.00 GiB in 40 s (215 MB/s), 3.00 GiB written as data, 4 connections
          read back in 20 s (429 MB/s)
          could not be read, and is zeros now: bytes 1048576 to 1049088
          could not be read, and is zeros now: bytes 5242880 to 5246976
        ");
        insta::assert_snapshot!(receipt(&different, plain), @r"
        Copied nbd://server/root to root.img: the destination is not the source
          8.00 GiB in 40 s (215 MB/s), 3.00 GiB written as data, 4 connections
          read back in 20 s (429 MB/s)
          differs somewhere in bytes 0 to 4194304
          differs somewhere in bytes 8388608 to 12582912
          differs somewhere in bytes 16777216 to 20971520
          differs somewhere in bytes 25165824 to 29360128
          differs somewhere in bytes 33554432 to 37748736
          and in 2 more places (--json lists them)
        ");
    }

    #[test]
    fn the_line_says_how_long_it_takes() {
        let progress = DiskCopyProgress {
            is_verifying: false,
            done_bytes: 3 << 30,
            size_bytes: 8 << 30,
            before_bytes: 0,
            elapsed_s: 30.0,
        };
        let verifying = DiskCopyProgress { is_verifying: true, elapsed_s: 0.1, ..progress };
        let lines = [line(&progress, 80), line(&verifying, 80), line(&progress, 20)];
        insta::assert_snapshot!(lines.join("\n"), @r"
        copying  38 %  3.00 GiB of 8.00 GiB  107 MB/s  about 50 s left
        reading back  38 %  3.00 GiB of 8.00 GiB
        copying  38 %  3.00
        ");
    }
}
