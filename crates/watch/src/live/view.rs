//! `rubus watch`: the machine while it works, on the screen, in a recording, for a monitoring system.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;
use rubus_host::clock;
use rubus_watch::live::context::context;
use rubus_watch::live::keys::Key;
use rubus_watch::live::network_disks;
use rubus_watch::live::recorder::Recorder;
use rubus_watch::live::replay::Replay;
use rubus_watch::live::terminal::{self, Taken, Woken};
use rubus_watch::probe::Sampler;
use rubus_watch::text::{Letters, Mode, Screen, Trail, View, has_room_for_programs, prometheus};
use rubus_watch::{Header, Look, Programs, Sample};

use crate::args::{General, Watch};
use crate::documents::WatchDocument;
use crate::exit::Exit;
use crate::places::{self, must_be_writable, say, write_whole};
use crate::signals;
use crate::world::{Terminal, World, can_draw, knows_utf8};

/// Time between two files for the monitoring system, which asks for them no more often.
const EXPORT_EVERY: Duration = Duration::from_secs(15);
/// How long a notice stays.
const NOTICE: Duration = Duration::from_secs(10);
/// A machine that slept is not waited for when its recording is shown.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Watches, shows a recording, or looks once.
pub fn run(general: &General, watch: &Watch) -> anyhow::Result<Exit> {
    if let Some(path) = &general.machine {
        anyhow::bail!(
            "watch looks at a machine that runs, and {} is a captured one: `rubus survey --machine FILE` shows it, and \
             `rubus watch --replay FILE` what was recorded with `rubus watch --record FILE`",
            path.display()
        );
    }
    anyhow::ensure!(
        watch.once || !watch.json.wanted,
        "--json prints one look: use it with --once; `rubus watch --record -` prints every sample as a line of JSON"
    );
    if let Some(path) = &watch.prometheus {
        let is_read = path == Path::new("-") || path.extension().is_some_and(|end| end == "prom");
        anyhow::ensure!(
            is_read,
            "the collector reads only files whose names end in .prom, and {} does not",
            path.display()
        );
        must_be_writable(path)?;
    }
    match &watch.replay {
        Some(path) => replay(general, watch, path),
        None => live(general, watch),
    }
}

fn live(general: &General, watch: &Watch) -> anyhow::Result<Exit> {
    let to_stdout = watch.record.as_deref() == Some(Path::new("-"));
    let has_work = watch.record.is_some() || watch.prometheus.is_some();
    let can_draw = can_draw();
    if let (Err(why), false, false) = (can_draw, watch.once, has_work) {
        anyhow::bail!(
            "{why}: `rubus watch --once` prints one look, `--once --json` prints it for programs, and --record FILE and \
             --prometheus FILE work without a screen"
        );
    }
    let world = World::of(general)?;
    let machine = world.survey();
    let (header, trouble) = context(
        &machine,
        places::present_history().as_deref(),
        watch.interval,
    );
    let mut watcher = Watcher {
        sampler: Sampler::new(world.files(), &machine),
        nbd: network_disks::Disks::new(watch.nbd_status.as_deref()),
        recorder: match &watch.record {
            Some(path) => Some(Recorder::begin(path, &header)?),
            None => None,
        },
        exported: None,
        before: None,
        look: None,
        programs: None,
        header,
        watch,
    };
    if watch.once {
        return once(general, &mut watcher);
    }
    if let (Some(trouble), false) = (&trouble, general.quiet) {
        eprintln!("rubus: {trouble}");
    }
    let is_asked = signals::asked_flag()?;
    match can_draw {
        Ok(()) if !to_stdout => on_screen(general, &mut watcher, &is_asked),
        _ => unseen(&mut watcher, &is_asked),
    }
}

/// What takes samples and keeps what they say.
struct Watcher<'a> {
    sampler: Sampler<'a>,
    nbd: network_disks::Disks,
    recorder: Option<Recorder>,
    exported: Option<Instant>,
    before: Option<Sample>,
    look: Option<Look>,
    programs: Option<Programs>,
    header: Header,
    watch: &'a Watch,
}

impl Watcher<'_> {
    /// Takes a sample and puts it to all its uses.
    ///
    /// # Errors
    /// When the recording or the file for the monitoring system cannot be written.
    fn step(&mut self, with_programs: bool) -> anyhow::Result<()> {
        let mut sample = self
            .sampler
            .sample(with_programs || self.recorder.is_some());
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
        let Some(path) = &self.watch.prometheus else {
            return Ok(());
        };
        // The first has nothing to compare with, so that a ratio would be missing.
        let is_due =
            self.look.is_some() && self.exported.is_none_or(|at| at.elapsed() >= EXPORT_EVERY);
        if is_due {
            self.exported = Some(Instant::now());
            write_whole(path, &prometheus::render(sample, self.look.as_ref()))?;
        }
        Ok(())
    }
}

/// Two samples, and what they say.
fn once(general: &General, watcher: &mut Watcher<'_>) -> anyhow::Result<Exit> {
    let interval = Duration::from_secs_f64(watcher.watch.interval);
    watcher.step(true)?;
    let deadline = Instant::now() + interval.max(Duration::from_millis(1500));
    clock::sleep(interval);
    while !watcher.nbd.has_rates() && Instant::now() < deadline {
        clock::sleep(Duration::from_millis(50));
    }
    watcher.step(true)?;
    let look = watcher.look.as_ref().context("there is no second sample")?;
    // Who wants them on standard output wants nothing else there.
    let taken = [&watcher.watch.record, &watcher.watch.prometheus];
    if taken
        .into_iter()
        .flatten()
        .any(|path| path == Path::new("-"))
    {
        return Ok(Exit::Fine);
    }
    print(general, watcher.watch, &watcher.header, look)?;
    Ok(Exit::Fine)
}

fn print(general: &General, watch: &Watch, header: &Header, look: &Look) -> anyhow::Result<()> {
    if watch.json.wanted {
        let value = WatchDocument {
            watch: look,
            machine: &header.machine,
            disks: &header.disks,
        };
        return say(&(serde_json::to_string_pretty(&value)? + "\n"));
    }
    let trail = Trail::default();
    let view = View {
        header,
        look: Some(look),
        trail: &trail,
        mode: Mode::Once,
        with_programs: true,
        notice: None,
    };
    let style = Terminal::of(general).style();
    let (columns, _) = terminal::size();
    // A file or a pipe is read with an editor, which knows UTF-8 if the locale says so.
    say(&rubus_watch::text::lines(
        &view,
        columns.max(40),
        knows_utf8(),
        style,
    ))
}

/// When the next sample is due.
struct Beat {
    every: Duration,
    next: Instant,
}

impl Beat {
    fn new(seconds: f64) -> Beat {
        Beat {
            every: Duration::from_secs_f64(seconds),
            next: Instant::now(),
        }
    }

    fn is_due(&mut self) -> bool {
        let now = Instant::now();
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
        self.next.saturating_duration_since(Instant::now())
    }
}

/// Records and exports without a screen, until it is told to end.
fn unseen(watcher: &mut Watcher<'_>, is_asked: &AtomicBool) -> anyhow::Result<Exit> {
    let mut beat = Beat::new(watcher.watch.interval);
    while !is_asked.load(Ordering::Relaxed) {
        if beat.is_due() {
            watcher.step(false)?;
        }
        // Short enough to end soon when told to.
        clock::sleep(beat.left().min(Duration::from_millis(500)));
    }
    Ok(Exit::Fine)
}

/// What the last row says for a while.
#[derive(Default)]
struct Notice {
    words: Option<(String, Instant)>,
}

impl Notice {
    fn say(&mut self, words: String) {
        self.words = Some((words, Instant::now()));
    }

    fn now(&self) -> Option<&str> {
        let (words, at) = self.words.as_ref()?;
        (at.elapsed() < NOTICE).then_some(words)
    }
}

fn letters(general: &General) -> Letters {
    Letters {
        utf8: knows_utf8(),
        colour: Terminal::of(general).colour,
    }
}

fn on_screen(
    general: &General,
    watcher: &mut Watcher<'_>,
    is_asked: &AtomicBool,
) -> anyhow::Result<Exit> {
    let mut screen = Screen::new(letters(general));
    let mut trail = Trail::default();
    let mut notice = Notice::default();
    let (mut is_paused, mut with_programs) = (false, true);
    let mut held: Option<Look> = None;
    let mut trouble = None;
    let mut beat = Beat::new(watcher.watch.interval);
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
            mode: Mode::Live {
                is_paused,
                recording: recording.as_deref(),
            },
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
        None => Ok(Exit::Fine),
    }
}

/// What happened that the figures do not show.
fn told_of(look: &Look) -> Option<String> {
    if !look.vanished.is_empty() {
        return Some(format!("gone: {}", look.vanished.join(", ")));
    }
    (look.slept_seconds > 1.0).then(|| format!("the machine slept for {:.0} s", look.slept_seconds))
}

fn replay(general: &General, watch: &Watch, path: &Path) -> anyhow::Result<Exit> {
    let mut replay = Replay::open(path)?;
    let cut = "its end was cut off in the middle of a line, which is left out";
    if watch.once {
        let last = replay.samples() - 1;
        let look = replay
            .look(last)
            .context("its last two samples are damaged")?;
        if replay.was_cut() && !general.quiet {
            eprintln!("rubus: {}: {cut}", path.display());
        }
        print(general, watch, replay.header(), &look)?;
        return Ok(Exit::Fine);
    }
    if let Err(why) = can_draw() {
        anyhow::bail!("{why}: `rubus watch --replay FILE --once` prints the end of a recording");
    }
    let mut notice = Notice::default();
    if replay.was_cut() {
        notice.say(cut.into());
    }
    let is_asked = signals::asked_flag()?;
    let header = replay.header().clone();
    let mut player = Player {
        at: 1,
        speed: watch.speed,
        is_paused: false,
        trail: Trail::default(),
        look: None,
        replay: &mut replay,
    };
    player.go_to(1);
    let mut screen = Screen::new(letters(general));
    let mut due = Instant::now() + player.until_next();
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
        let left = match player.is_paused {
            true => NOTICE,
            false => due.saturating_duration_since(Instant::now()),
        };
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
                due = Instant::now() + player.until_next();
            }
            Woken::Gone => break,
            Woken::Signal => {}
            Woken::Time if player.is_paused => {}
            Woken::Time => {
                player.go_to(player.at + 1);
                due = Instant::now() + player.until_next();
            }
        }
    }
    drop(taken);
    Ok(Exit::Fine)
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
            // From the end it begins anew.
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

    /// Whoever steps wants to look at it.
    fn step_to(&mut self, at: usize) {
        self.go_to(at);
        self.is_paused = true;
    }

    /// Shows a sample with the one before it: the second at first, the last at most.
    fn go_to(&mut self, at: usize) {
        /// So many samples are shown beside one another.
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
        let ns = now
            .zip(next)
            .map(|(now, next)| next.monotonic_ns.saturating_sub(now.monotonic_ns));
        let seconds = ns.map_or(self.replay.header().interval_seconds, |ns| ns as f64 / 1e9);
        let most = LONGEST_PAUSE.as_secs_f64();
        Duration::from_secs_f64((seconds.max(0.0) / self.speed).min(most))
    }
}
