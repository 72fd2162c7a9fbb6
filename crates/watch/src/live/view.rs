//! Watching itself: samples and their uses, on the screen or without one, and a recording as it is played.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;
use rubus_host::clock;

use super::keys::Key;
use super::network_disks;
use super::recorder::Recorder;
use super::replay::Replay;
use super::terminal::{self, Taken, Woken};
use crate::probe::{Sampler, Wanted};
use crate::text::{Letters, Mode, Screen, Trail, View, has_room_for_programs, prometheus};
use crate::{Header, Look, Programs, Sample};

/// Time between two files for the monitoring system, which asks for them no more often.
const EXPORT_EVERY: Duration = Duration::from_secs(15);
/// How long a notice stays.
const NOTICE: Duration = Duration::from_secs(10);
/// A machine that slept is not waited for when its recording is shown.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// What takes samples and keeps what they say.
pub struct Watcher<'a> {
    sampler: Sampler<'a>,
    nbd: network_disks::Disks,
    recorder: Option<Recorder>,
    export: Option<Export<'a>>,
    exported: Option<Instant>,
    before: Option<Sample>,
    look: Option<Look>,
    programs: Option<Programs>,
    header: Header,
    interval: Duration,
}

/// Writes what a monitoring system reads.
pub type Export<'a> = Box<dyn Fn(&str) -> anyhow::Result<()> + 'a>;

impl<'a> Watcher<'a> {
    /// Begins; samples go into the recording and to the monitoring system, where there are these.
    pub fn new(
        sampler: Sampler<'a>,
        nbd: network_disks::Disks,
        header: Header,
        recorder: Option<Recorder>,
        export: Option<Export<'a>>,
    ) -> Watcher<'a> {
        Watcher {
            sampler,
            nbd,
            recorder,
            export,
            exported: None,
            before: None,
            look: None,
            programs: None,
            interval: Duration::from_secs_f64(header.interval_seconds),
            header,
        }
    }

    /// What does not change.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Takes two samples, and gives what they say.
    ///
    /// # Errors
    /// As of a step.
    pub fn once(&mut self) -> anyhow::Result<&Look> {
        self.step(true)?;
        let deadline = clock::now() + self.interval.max(Duration::from_millis(1500));
        clock::sleep(self.interval);
        while !self.nbd.has_rates() && clock::now() < deadline {
            clock::sleep(Duration::from_millis(50));
        }
        self.step(true)?;
        self.look.as_ref().context("there is no second sample")
    }

    /// Takes a sample and puts it to all its uses.
    ///
    /// # Errors
    /// When the recording or the file for the monitoring system cannot be written.
    fn step(&mut self, with_programs: bool) -> anyhow::Result<()> {
        let wanted = match (with_programs, &self.recorder) {
            (_, Some(_)) => Wanted::Writers,
            (true, None) => Wanted::Programs,
            (false, None) => Wanted::Nothing,
        };
        let mut sample = self.sampler.sample(wanted);
        sample.nbd = self.nbd.look();
        if let Some(programs) = &sample.programs {
            self.programs = Some(programs.clone());
        }
        if let Some(before) = &self.before {
            let (pipes, page_bytes) = (&self.header.pipes, self.header.page_bytes);
            let mut look = Look::between(before, &sample, pipes, page_bytes);
            look.programs = self.programs.clone();
            self.look = Some(look);
        }
        let kept = self.keep(&sample);
        self.before = Some(sample);
        kept
    }

    fn keep(&mut self, sample: &Sample) -> anyhow::Result<()> {
        if let Some(recorder) = &mut self.recorder {
            if let Err(error) = recorder.add(sample) {
                self.recorder = None;
                return Err(error);
            }
        }
        let Some(export) = &self.export else {
            return Ok(());
        };
        // The first has nothing to compare with, so that a ratio would be missing.
        let is_due =
            self.look.is_some() && self.exported.is_none_or(|at| at.elapsed() >= EXPORT_EVERY);
        if is_due {
            self.exported = Some(clock::now());
            export(&prometheus::render(sample, self.look.as_ref()))?;
        }
        Ok(())
    }
}

/// When the next sample is due.
struct Beat {
    every: Duration,
    next: Instant,
}

impl Beat {
    fn new(every: Duration) -> Beat {
        Beat { every, next: clock::now() }
    }

    fn is_due(&mut self) -> bool {
        let now = clock::now();
        if now < self.next {
            return false;
        }
        self.next += self.every;
        // After a sleep, or when the machine was too busy, nothing is made up for.
        if self.next < now {
            self.next = now + self.every;
        }
        true
    }

    fn left(&self) -> Duration {
        self.next.saturating_duration_since(clock::now())
    }
}

/// Records and exports without a screen, until it is told to end.
///
/// # Errors
/// When the recording or the file for the monitoring system cannot be written.
pub fn unseen(watcher: &mut Watcher<'_>, is_asked: &AtomicBool) -> anyhow::Result<()> {
    let mut beat = Beat::new(watcher.interval);
    while !is_asked.load(Ordering::Relaxed) {
        if beat.is_due() {
            watcher.step(false)?;
        }
        // Short enough to end soon when told to.
        clock::sleep(beat.left().min(Duration::from_millis(500)));
    }
    Ok(())
}

/// What the last row says for a while.
#[derive(Default)]
struct Notice {
    words: Option<(String, Instant)>,
}

impl Notice {
    fn say(&mut self, words: String) {
        self.words = Some((words, clock::now()));
    }

    fn now(&self) -> Option<&str> {
        let (words, at) = self.words.as_ref()?;
        (at.elapsed() < NOTICE).then_some(words)
    }
}

/// Shows it on the terminal until the user has seen enough.
///
/// # Errors
/// When the terminal cannot be taken over, or as [`unseen`].
pub fn on_screen(
    watcher: &mut Watcher<'_>,
    letters: Letters,
    is_asked: &AtomicBool,
) -> anyhow::Result<()> {
    let mut screen = Screen::new(letters);
    let mut trail = Trail::default();
    let mut notice = Notice::default();
    let (mut is_paused, mut with_programs) = (false, true);
    let mut held: Option<Look> = None;
    let mut trouble = None;
    let mut beat = Beat::new(watcher.interval);
    let taken = Taken::take()?;
    while !is_asked.load(Ordering::Relaxed) {
        let (width, height) = terminal::size();
        let shows_programs = with_programs && has_room_for_programs(width, height);
        if beat.is_due() {
            if let Err(error) = watcher.step(shows_programs && !is_paused) {
                // The screen is worth having all the same; the end says it once more.
                notice.say(format!("{error:#}"));
                trouble = Some(error);
            }
            if let Some(look) = &watcher.look {
                trail.push(look);
                if let Some(words) = told_of(look) {
                    notice.say(words);
                }
            }
            if !is_paused {
                held = watcher.look.clone();
            }
        }
        let recording = watcher.recorder.as_ref().map(Recorder::name);
        let view = View {
            header: &watcher.header,
            look: held.as_ref(),
            trail: &trail,
            mode: Mode::Live { is_paused, recording: recording.as_deref() },
            with_programs: shows_programs,
            notice: notice.now(),
        };
        if !taken.tell(&screen.update(&view, width, height)) {
            break;
        }
        let pressed = match taken.wait(beat.left()) {
            Woken::Keys(keys) => keys,
            Woken::Gone => break,
            Woken::Signal | Woken::Time => Vec::new(),
        };
        for key in pressed {
            match key {
                Key::Quit => is_asked.store(true, Ordering::Relaxed),
                Key::Pause => {
                    is_paused = !is_paused;
                    if !is_paused {
                        held = watcher.look.clone();
                    }
                }
                Key::Programs => with_programs = !with_programs,
                Key::Redraw => screen.forget(),
                Key::Suspend => {
                    taken.suspend()?;
                    screen.forget();
                }
                _ => {}
            }
        }
    }
    drop(taken);
    match trouble {
        Some(error) => Err(error),
        None => Ok(()),
    }
}

/// What happened that the figures do not show.
fn told_of(look: &Look) -> Option<String> {
    if !look.vanished.is_empty() {
        return Some(format!("gone: {}", look.vanished.join(", ")));
    }
    (look.slept_seconds > 1.0).then(|| format!("the machine slept for {:.0} s", look.slept_seconds))
}

/// Said of a recording whose end was cut off.
pub const CUT: &str = "its end was cut off in the middle of a line, which is left out";

/// Plays a recording on the terminal until the user has seen enough.
///
/// # Errors
/// When the terminal cannot be taken over.
pub fn play(
    replay: &mut Replay,
    speed: f64,
    letters: Letters,
    is_asked: &AtomicBool,
) -> anyhow::Result<()> {
    let mut notice = Notice::default();
    if replay.was_cut() {
        notice.say(CUT.into());
    }
    let header = replay.header().clone();
    let mut player =
        Player { at: 1, speed, is_paused: false, trail: Trail::default(), look: None, replay };
    player.go_to(1);
    let mut screen = Screen::new(letters);
    let mut due = clock::now() + player.until_next();
    let taken = Taken::take()?;
    while !is_asked.load(Ordering::Relaxed) {
        let (width, height) = terminal::size();
        let view = View {
            header: &header,
            look: player.look.as_ref(),
            trail: &player.trail,
            mode: Mode::Replay {
                at: player.at + 1,
                of: player.replay.samples(),
                speed: player.speed,
                is_paused: player.is_paused,
            },
            with_programs: has_room_for_programs(width, height),
            notice: notice.now(),
        };
        if !taken.tell(&screen.update(&view, width, height)) {
            break;
        }
        let left =
            if player.is_paused { NOTICE } else { due.saturating_duration_since(clock::now()) };
        match taken.wait(left) {
            Woken::Keys(keys) => {
                // It was read; now the place in the recording is of more interest.
                notice = Notice::default();
                for key in keys {
                    match key {
                        Key::Quit => is_asked.store(true, Ordering::Relaxed),
                        Key::Redraw => screen.forget(),
                        Key::Suspend => {
                            taken.suspend()?;
                            screen.forget();
                        }
                        key => player.press(key),
                    }
                }
                due = clock::now() + player.until_next();
            }
            Woken::Gone => break,
            Woken::Signal => {}
            Woken::Time if player.is_paused => {}
            Woken::Time => {
                player.go_to(player.at + 1);
                due = clock::now() + player.until_next();
            }
        }
    }
    drop(taken);
    Ok(())
}

/// A recording as it is played.
struct Player<'a> {
    /// The sample that is shown, from 0 on.
    at: usize,
    speed: f64,
    is_paused: bool,
    trail: Trail,
    look: Option<Look>,
    replay: &'a mut Replay,
}

impl Player<'_> {
    fn press(&mut self, key: Key) {
        match key {
            // At the end, it starts over.
            Key::Pause if self.is_paused && self.at + 1 == self.replay.samples() => {
                self.is_paused = false;
                self.go_to(1);
            }
            Key::Pause => self.is_paused = !self.is_paused,
            Key::Forward => self.step_to(self.at + 1),
            Key::Back => self.step_to(self.at - 1),
            Key::Begin => self.step_to(1),
            Key::End => self.step_to(self.replay.samples() - 1),
            Key::Faster => self.speed = (self.speed * 2.0).min(1024.0),
            Key::Slower => self.speed = (self.speed / 2.0).max(1.0 / 64.0),
            _ => {}
        }
    }

    /// A step also pauses: the user wants to look at this sample.
    fn step_to(&mut self, at: usize) {
        self.go_to(at);
        self.is_paused = true;
    }

    /// Shows a sample with the one before it: the second at first, the last at most.
    fn go_to(&mut self, at: usize) {
        /// Maximum number of earlier samples in the trail.
        const BEFORE: usize = 24;
        let last = self.replay.samples() - 1;
        let at = at.clamp(1, last);
        if at != self.at + 1 {
            self.trail = Trail::default();
            for earlier in at.saturating_sub(BEFORE).max(1)..at {
                if let Some(look) = self.replay.look(earlier) {
                    self.trail.push(&look);
                }
            }
        }
        self.at = at;
        // A damaged line in the middle leaves the picture as it was.
        if let Some(look) = self.replay.look(at) {
            self.trail.push(&look);
            self.look = Some(look);
        }
        self.is_paused |= at == last;
    }

    /// As long as it took, at this speed.
    fn until_next(&mut self) -> Duration {
        let now = self.replay.sample(self.at);
        let next = self.replay.sample(self.at + 1);
        let ns =
            now.zip(next).map(|(now, next)| next.monotonic_ns.saturating_sub(now.monotonic_ns));
        let seconds = ns.map_or(self.replay.header().interval_seconds, |ns| ns as f64 / 1e9);
        let most = LONGEST_PAUSE.as_secs_f64();
        Duration::from_secs_f64((seconds.max(0.0) / self.speed).min(most))
    }
}
