//! The live view of a machine: from what two samples say to cells on a screen. Pure: the terminal is not known here.

mod ascii;
mod disks;
mod fit;
mod grid;
mod line;
mod machine;
mod memory;
mod others;
pub mod prometheus;
mod screen;
#[cfg(test)]
mod tests;
mod trail;

use crate::{Header, Look};

use fit::{Section, fit};
use grid::Grid;
use line::{Row, text};
use rubus_draw::style::Tone;
use rubus_draw::text::clean;
pub use screen::{Letters, Screen, lines};
pub use trail::Trail;

/// Everything that is drawn.
#[derive(Clone, Debug)]
pub struct View<'a> {
    /// What does not change while it is watched.
    pub header: &'a Header,
    /// What the last two samples say; none before the second.
    pub look: Option<&'a Look>,
    /// What disks did before.
    pub trail: &'a Trail,
    /// How it is watched.
    pub mode: Mode<'a>,
    /// Whether programs are to be shown.
    pub with_programs: bool,
    /// What the user should know now: a disk that went, a recording that ended.
    pub notice: Option<&'a str>,
}

/// How it is watched.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mode<'a> {
    /// This machine, now.
    Live {
        /// The screen stands still; samples are taken all the same.
        is_paused: bool,
        /// Where it is recorded.
        recording: Option<&'a str>,
    },
    /// A recording that is played back.
    Replay {
        /// Which sample, from 1 on.
        at: usize,
        /// Of how many.
        of: usize,
        /// How many times faster than it was.
        speed: f64,
        /// It stands still.
        is_paused: bool,
    },
    /// Once, and no keys.
    Once,
}

/// Redraws everything, however small the screen is.
fn draw(view: &View<'_>, grid: &mut Grid) {
    grid.clear();
    if grid.width == 0 || grid.height == 0 {
        return;
    }
    let width = usize::from(grid.width);
    let has_footer = view.mode != Mode::Once && grid.height >= 4;
    let room = usize::from(grid.height) - 1 - usize::from(has_footer);
    let mut rows = vec![title(view, width)];
    match view.look {
        Some(look) => rows.extend(fit(sections(view, look, width), room)),
        None => rows.push(text(Tone::Faint, "the first figures come after one interval")),
    }
    for (y, row) in rows.iter().take(room + 1).enumerate() {
        row.put(grid, y as u16);
    }
    if has_footer {
        footer(view, width).put(grid, grid.height - 1);
    }
}

/// Whether a screen of this size shows programs: if not, they need not be sampled.
pub fn has_room_for_programs(width: u16, height: u16) -> bool {
    width >= 40 && height >= 18
}

/// All of it as cells, in as many lines as it takes.
fn draw_whole(view: &View<'_>, width: u16) -> Grid {
    const MAX: u16 = 400;
    let mut whole = Grid::empty(width, MAX);
    draw(view, &mut whole);
    let is_used = |&y: &u16| !whole.line(y).iter().all(grid::Cell::is_blank);
    whole.height = (0..MAX).rev().find(is_used).map_or(1, |y| y + 1);
    let used = usize::from(width) * usize::from(whole.height);
    whole.cells.truncate(used);
    whole
}

fn sections(view: &View<'_>, look: &Look, width: usize) -> Vec<Section> {
    let mut all = vec![
        machine::processors(look, width),
        machine::heat(look, width),
        memory::memory(look, width),
        memory::swap(look, width),
        memory::compressed(look, width),
        memory::pressure(look, width),
        disks::disks(view, look, width),
        others::pipes(look, width),
        others::links(look, width),
        others::nbd(look, width),
        others::health(&view.header.health, width),
    ];
    if view.with_programs {
        all.push(others::programs(look, width));
    }
    all.retain(|section| !section.rows.is_empty());
    all
}

fn title(view: &View<'_>, width: usize) -> Row {
    let mut left = vec![(Tone::Strong, "rubus watch".to_string())];
    left.push((Tone::Plain, clean(&view.header.machine)));
    if let Some(look) = view.look {
        left.push((Tone::Faint, format!("up {}", up(look.up_seconds))));
    }
    // The time of day of the recording's clock; the date is in the recording.
    let time = view.look.and_then(|look| look.at.get(11..19));
    let seconds = view.look.map_or(view.header.interval_seconds, |look| look.seconds);
    let right = format!("{} UTC  {}", time.unwrap_or("--:--:--"), seconds_words(seconds));
    line::ends(&left, &right, width)
}

/// "1 s", "0.25 s", "12.3 s".
fn seconds_words(seconds: f64) -> String {
    let rounded = (seconds * 10.0).round() / 10.0;
    match rounded {
        _ if seconds < 0.95 => format!("{seconds:.2} s"),
        whole if whole.fract() == 0.0 => format!("{whole:.0} s"),
        other => format!("{other:.1} s"),
    }
}

/// "3 d 4 h", "4 h 12 min", "12 min".
fn up(seconds: f64) -> String {
    let minutes = (seconds / 60.0) as u64;
    match (minutes / 1440, minutes / 60 % 24, minutes % 60) {
        (0, 0, minutes) => format!("{minutes} min"),
        (0, hours, minutes) => format!("{hours} h {minutes} min"),
        (days, hours, _) => format!("{days} d {hours} h"),
    }
}

fn footer(view: &View<'_>, width: usize) -> Row {
    if let Some(notice) = view.notice {
        return text(Tone::Warn, &clean(notice));
    }
    let (state, keys) = match view.mode {
        Mode::Live { is_paused, recording } => {
            let state = match (is_paused, recording) {
                (true, Some(_)) => "paused, still recording".to_string(),
                (true, None) => "paused".to_string(),
                (false, Some(file)) => format!("recording to {}", clean(file)),
                (false, None) => String::new(),
            };
            let pause = if is_paused { "space go on" } else { "space pause" };
            (state, format!("q quit  {pause}  p programs"))
        }
        Mode::Replay { at, of, speed, is_paused } => {
            let state = if is_paused {
                format!("sample {at} of {of}, paused")
            } else {
                format!("sample {at} of {of}, {speed}× as fast")
            };
            let pause = if is_paused { "space go on" } else { "space pause" };
            (state, format!("q quit  {pause}  ←→ step  +- speed"))
        }
        Mode::Once => (String::new(), String::new()),
    };
    line::ends(&[(Tone::Faint, keys)], &state, width)
}
