//! The watcher with a fake driver and fake servers: what it resumes with, what it refuses, and what it
//! logs.

use std::cell::{Cell, RefCell};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::rc::Rc;

use rubus_nbd::client::Style;
use rubus_nbd::identity::{Identity, Uuid};

use super::*;

/// What the driver was asked for, and what of it is known from outside.
#[derive(Default)]
struct Driver {
    replaced: u32,
    disconnected: bool,
    written: u64,
    counts: bool,
    refuses: bool,
    /// Connections that it will tell to be dead.
    dead: u32,
    /// How long ago any connection's other end was heard.
    heard_ago: Option<Duration>,
}

#[derive(Clone)]
struct FakeKernel {
    driver: Rc<RefCell<Driver>>,
    tells: Rc<UnixStream>,
}

impl Kernel for FakeKernel {
    fn reconnect(&mut self, _: BorrowedFd<'_>) -> Result<(), DriverError> {
        let mut driver = self.driver.borrow_mut();
        if driver.refuses {
            return Err(DriverError::Silent);
        }
        driver.replaced += 1;
        Ok(())
    }

    fn disconnect(&mut self) -> Result<(), DriverError> {
        self.driver.borrow_mut().disconnected = true;
        Ok(())
    }

    fn is_connected(&mut self) -> bool {
        !self.driver.borrow().disconnected
    }

    fn take_dead(&mut self) -> u32 {
        std::mem::take(&mut self.driver.borrow_mut().dead)
    }

    fn tells(&self) -> BorrowedFd<'_> {
        self.tells.as_fd()
    }

    fn heard_ago(&mut self, _: &Stream) -> Option<Duration> {
        self.driver.borrow().heard_ago
    }

    fn counters(&mut self) -> Option<Counters> {
        let driver = self.driver.borrow();
        let stat = format!("0 0 0 0 0 0 {} 0 0 0 0 0", driver.written);
        Counters::parse(&stat).filter(|_| driver.counts)
    }
}

/// For which lane each connection was, and which had ended.
type Asked = Rc<RefCell<Vec<(usize, Vec<usize>)>>>;

/// Offers what is listed, one after the other; then it detaches the device.
struct FakeServer {
    driver: Rc<RefCell<Driver>>,
    offers: Vec<Result<Offer, &'static str>>,
    peers: Rc<RefCell<Vec<UnixStream>>>,
    asked: Asked,
    /// The server cannot be reached while this is true.
    is_away: Rc<Cell<bool>>,
}

impl Server for FakeServer {
    fn connect(&mut self, lane: usize, ended: &[usize]) -> Result<(Stream, Offer), String> {
        self.asked.borrow_mut().push((lane, ended.to_vec()));
        if self.is_away.get() {
            return Err("away".into());
        }
        if self.offers.is_empty() {
            self.driver.borrow_mut().disconnected = true;
            return Err("no more".into());
        }
        let offer = self.offers.remove(0)?;
        Ok((line(&self.peers), offer))
    }
}

fn line(peers: &Rc<RefCell<Vec<UnixStream>>>) -> Stream {
    let (ours, theirs) = UnixStream::pair().expect("a pair of sockets");
    peers.borrow_mut().push(theirs);
    Stream::connected(ours.into(), "pair".into())
}

fn offer(identity: Option<Identity>) -> Offer {
    Offer {
        style: Style::Fixed,
        size_bytes: 1 << 20,
        flags: TransmissionFlags::HAS_FLAGS.with(TransmissionFlags::SEND_FLUSH),
        block_sizes: None,
        structured_replies: false,
        extended_headers: false,
        allocation: None,
        fenced: true,
        description: identity.map(|identity| format!("a disk {identity}")),
    }
}

fn of_boot(boot: u128) -> Option<Identity> {
    Some(Identity { boot: Uuid(boot), export: Uuid(7), generation: 0, sync: false })
}

struct Case {
    driver: Rc<RefCell<Driver>>,
    peers: Rc<RefCell<Vec<UnixStream>>>,
    attached: Attached,
    said: Vec<String>,
    states: Vec<AttachmentState>,
    asked: Asked,
    stop: AtomicBool,
    leave: Leave,
    /// The server is away until this was said.
    away_until: Option<&'static str>,
    /// How the first flush ends.
    flushed: Option<Result<(), FlushError>>,
}

impl Case {
    fn with_lines(count: usize, before: Option<Identity>) -> Case {
        let peers = Rc::new(RefCell::new(Vec::new()));
        Case {
            driver: Rc::new(RefCell::new(Driver { counts: true, ..Driver::default() })),
            attached: Attached {
                name: "nbd0".into(),
                lines: (0..count).map(|_| line(&peers)).collect(),
                appearance: Appearance::of(&offer(before)),
                counters: Counters::parse("0 0 0 0 0 0 0 0 0 0 0"),
                read_only: false,
                vouched_for: false,
                fenced: true,
            },
            peers,
            said: Vec::new(),
            states: Vec::new(),
            asked: Rc::default(),
            stop: AtomicBool::new(false),
            leave: Arc::new(|| Err("it is mounted".into())),
            away_until: None,
            flushed: None,
        }
    }

    /// The first `count` connections end after something was written or not; then these offers come.
    fn run(
        &mut self,
        count: usize,
        written: bool,
        offers: Vec<Result<Offer, &'static str>>,
    ) -> End {
        let (_keep, tells) = UnixStream::pair().expect("a pair of sockets");
        let mut kernel = FakeKernel { driver: Rc::clone(&self.driver), tells: Rc::new(tells) };
        let mut server = FakeServer {
            driver: Rc::clone(&self.driver),
            offers,
            peers: Rc::clone(&self.peers),
            asked: Rc::clone(&self.asked),
            is_away: Rc::new(Cell::new(self.away_until.is_some())),
        };
        let (away_until, is_away) = (self.away_until, Rc::clone(&server.is_away));
        let said = &mut self.said;
        let mut log = |_: Urgency, text: &str| {
            if away_until.is_some_and(|words| text.contains(words)) {
                is_away.set(false);
            }
            said.push(text.to_owned());
        };
        let states = &mut self.states;
        let driver = Rc::clone(&self.driver);
        let mut tell = |state: &AttachmentState| {
            // All is well again: the case is over.
            if state.replaced > 0 && state.trouble.is_none() {
                driver.borrow_mut().disconnected = true;
            }
            states.push(state.clone());
        };
        let lines = self.attached.lines.drain(..).collect();
        let attached = Attached { lines, name: self.attached.name.clone(), ..self.attached };
        let stop = &self.stop;
        let mut watcher = Watcher::new(
            attached,
            &mut kernel,
            &mut server,
            &mut log,
            &mut tell,
            stop,
            Arc::clone(&self.leave),
        )
        .at(Pace {
            first: Duration::from_millis(1),
            most: Duration::from_millis(2),
            look: Duration::from_millis(5),
            notice: Duration::from_millis(50),
        });
        if let Some(flushed) = self.flushed.take() {
            watcher.flusher = Some(Flusher::that_says(flushed));
        }
        self.peers.borrow_mut().drain(..count);
        let mut driver = self.driver.borrow_mut();
        driver.dead += count as u32;
        driver.written += u64::from(written);
        drop(driver);
        watcher.run()
    }

    fn replaced(&self) -> u32 {
        self.driver.borrow().replaced
    }
}

#[test]
fn a_server_that_was_restarted_goes_on() {
    let mut case = Case::with_lines(1, of_boot(1));
    let offers = vec![Err("nobody listens"), Err("nobody listens"), Ok(offer(of_boot(1)))];
    assert_eq!(case.run(1, true, offers), End::Detached);
    assert_eq!(case.replaced(), 1);
    let said = case.said.join("\n");
    assert_eq!(said.matches("nobody listens").count(), 1, "{said}");
    assert!(said.contains("to the same disk"), "{said}");
    let troubles: Vec<_> = case.states.iter().map(|s| s.trouble.is_some()).collect();
    assert_eq!(troubles, [false, true, true, false]);
    assert_eq!(case.states[1].alive, 0);
    assert_eq!(case.states.last().unwrap().alive, 1);
}

#[test]
fn every_connection_that_ended_is_replaced() {
    let mut case = Case::with_lines(4, of_boot(1));
    let offers = (0..3).map(|_| Ok(offer(of_boot(1)))).collect();
    assert_eq!(case.run(3, true, offers), End::Detached);
    assert_eq!(case.replaced(), 3);
    assert_eq!(case.states.last().unwrap().alive, 4);
}

#[test]
fn a_machine_that_was_restarted_after_writes_fails_the_device() {
    let mut case = Case::with_lines(1, of_boot(1));
    let end = case.run(1, true, vec![Ok(offer(of_boot(2)))]);
    assert!(matches!(end, End::GivenUp(ref why) if why.contains("machine was restarted")));
    assert_eq!(case.replaced(), 0);
    assert!(case.driver.borrow().disconnected, "nothing may be written");
    assert!(case.said.last().unwrap().contains("NOT resumed"));
}

#[test]
fn a_machine_that_was_restarted_without_writes_is_followed() {
    let mut case = Case::with_lines(1, of_boot(1));
    let end = case.run(1, false, vec![Ok(offer(of_boot(2)))]);
    assert_eq!(end, End::Detached);
    assert_eq!(case.replaced(), 1);
    let now = case.states.last().unwrap().appearance.identity;
    assert_eq!(now, of_boot(2));
}

#[test]
fn a_device_that_does_not_count_counts_as_written() {
    let mut case = Case::with_lines(1, of_boot(1));
    case.driver.borrow_mut().counts = false;
    let end = case.run(1, false, vec![Ok(offer(of_boot(2)))]);
    assert!(matches!(end, End::GivenUp(_)), "{end:?}");
}

#[test]
fn another_image_fails_the_device_even_when_nothing_was_written() {
    let mut case = Case::with_lines(1, of_boot(1));
    let other = Identity { export: Uuid(8), ..of_boot(1).unwrap() };
    let end = case.run(1, false, vec![Ok(offer(Some(other)))]);
    assert!(matches!(end, End::GivenUp(ref why) if why.contains("another image")));
    assert_eq!(case.replaced(), 0);
}

#[test]
fn a_server_that_does_not_name_itself_is_resumed_when_somebody_vouches_or_it_never_went_away() {
    let offers = || vec![Ok(offer(None))];
    let mut alone = Case::with_lines(1, None);
    let end = alone.run(1, true, offers());
    assert!(matches!(end, End::GivenUp(ref why) if why.contains("does not say")));
    let mut unwritten = Case::with_lines(1, None);
    assert_eq!(unwritten.run(1, false, offers()), End::Detached);
    let mut vouched = Case::with_lines(1, None);
    vouched.attached.vouched_for = true;
    assert_eq!(vouched.run(1, true, offers()), End::Detached);
    // The other connection, to a socket of this machine, was there all the time.
    let mut in_part = Case::with_lines(2, None);
    assert_eq!(in_part.run(1, true, offers()), End::Detached);
    assert_eq!(in_part.replaced(), 1);
    let mut whole = Case::with_lines(2, None);
    let end = whole.run(2, true, offers());
    assert!(matches!(end, End::GivenUp(_)), "{end:?}");
}

/// Connections over TCP whose other ends are there, for a server that does not name itself.
fn over_tcp(count: usize) -> (Case, Vec<std::net::TcpStream>) {
    let mut case = Case::with_lines(0, None);
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let address = listener.local_addr().expect("an address");
    let mut kept = Vec::new();
    for _ in 0..count {
        let stream = Stream::tcp_at(address, SILENCE).expect("it listens");
        case.attached.lines.push(stream);
        kept.push(listener.accept().expect("a connection").0);
    }
    (case, kept)
}

#[test]
fn an_idle_connection_that_was_not_heard_since_proves_nothing() {
    for (heard_ago, goes_on) in [(None, false), (Some(3600), false), (Some(0), true)] {
        let (mut case, mut peers) = over_tcp(2);
        case.driver.borrow_mut().heard_ago = heard_ago.map(Duration::from_secs);
        // The first one has ended, the other says nothing and looks alive.
        drop(peers.remove(0));
        case.driver.borrow_mut().dead = 1;
        let end = case.run(0, true, vec![Ok(offer(None))]);
        assert_eq!(end == End::Detached, goes_on, "{heard_ago:?}: {end:?}");
        assert_eq!(case.replaced(), u32::from(goes_on));
    }
}

#[test]
fn only_what_was_heard_after_the_handshake_counts() {
    let ms = Duration::from_millis;
    assert!(is_newer(Some(ms(100)), ms(1000)));
    assert!(!is_newer(Some(ms(1000)), ms(1000)));
    assert!(!is_newer(Some(ms(985)), ms(1000)), "within the clock's steps");
    assert!(!is_newer(Some(ms(5000)), ms(1000)));
    assert!(!is_newer(None, ms(1000)));
}

#[test]
fn a_driver_that_takes_no_connection_is_given_up() {
    let mut case = Case::with_lines(1, of_boot(1));
    case.driver.borrow_mut().refuses = true;
    let offers = (0..9).map(|_| Ok(offer(of_boot(1)))).collect();
    let end = case.run(1, false, offers);
    assert!(matches!(end, End::GivenUp(_)), "{end:?}");
    assert!(case.driver.borrow().disconnected);
}

#[test]
fn a_device_that_was_detached_and_a_wish_to_stop_end_it_also_while_the_server_is_gone() {
    let mut case = Case::with_lines(1, of_boot(1));
    assert_eq!(case.run(1, true, vec![Err("gone")]), End::Detached);
    let mut case = Case::with_lines(1, of_boot(1));
    case.leave = Arc::new(|| Ok(()));
    case.stop.store(true, Ordering::Relaxed);
    assert_eq!(case.run(0, true, vec![]), End::Stopped);
    assert!(!case.driver.borrow().disconnected);
}

#[test]
fn a_wish_to_stop_that_is_refused_makes_nothing_durable() {
    let mut case = Case::with_lines(1, of_boot(1));
    case.stop.store(true, Ordering::Relaxed);
    // Mounted, so it stays; then its server's machine loses power.
    case.away_until = Some("stays attached");
    let end = case.run(1, true, vec![Ok(offer(of_boot(2)))]);
    assert!(matches!(end, End::GivenUp(_)), "{end:?}");
    let said = case.said.join("\n");
    assert!(said.contains("stays attached: it is mounted"), "{said}");
    assert_eq!(case.replaced(), 0);
}

#[test]
fn a_server_is_brought_back_while_detaching_waits_for_it() {
    let mut case = Case::with_lines(1, of_boot(1));
    let (back, is_back) = sync_channel(1);
    let is_back = std::sync::Mutex::new(is_back);
    case.leave = Arc::new(move || {
        let waits = is_back.lock().unwrap();
        // The flush of a device without a server waits for one.
        match waits.recv_timeout(Duration::from_secs(20)) {
            Ok(()) => Err("somebody has it open by now".into()),
            Err(_) => Ok(()),
        }
    });
    case.stop.store(true, Ordering::Relaxed);
    let offers = vec![Err("gone"), Ok(offer(of_boot(1)))];
    let end = case.run(1, true, offers);
    back.send(()).unwrap();
    assert_eq!(case.replaced(), 1);
    assert_eq!(end, End::Stopped, "the test detaches it then");
}

#[test]
fn what_was_written_before_the_watcher_began_is_not_durable() {
    let mut case = Case::with_lines(1, of_boot(1));
    case.driver.borrow_mut().written = 8;
    let end = case.run(1, false, vec![Ok(offer(of_boot(2)))]);
    assert!(matches!(end, End::GivenUp(_)), "{end:?}");
}

#[test]
fn a_failed_flush_fails_the_device_and_one_that_could_not_begin_does_not() {
    let error = || std::io::Error::from_raw_os_error(5);
    let mut case = Case::with_lines(1, of_boot(1));
    case.flushed = Some(Err(FlushError::Failed(error())));
    let end = case.run(0, true, vec![]);
    assert!(matches!(end, End::GivenUp(ref why) if why.contains("a flush failed")));
    assert!(case.driver.borrow().disconnected);
    assert!(case.states.last().unwrap().unflushed);

    let mut case = Case::with_lines(1, of_boot(1));
    case.flushed = Some(Err(FlushError::NotBegun(error())));
    case.leave = Arc::new(|| {
        // Long enough for some looks, and the flush.
        rubus_host::clock::sleep(Duration::from_millis(200));
        Ok(())
    });
    case.stop.store(true, Ordering::Relaxed);
    assert_eq!(case.run(0, true, vec![]), End::Stopped);
}

#[test]
fn attempts_of_many_clients_are_spread() {
    let wait = Duration::from_secs(3);
    let times: Vec<_> = (0..1000).map(|number| spread(wait, 7_000_000 + number)).collect();
    assert!(times.iter().all(|time| *time >= wait / 2 && *time <= wait));
    let in_tenth = |tenth: u32| {
        let from = wait / 2 + wait / 20 * tenth;
        times.iter().filter(|time| **time >= from && **time < from + wait / 20).count()
    };
    assert!((0..10).all(|tenth| (50..150).contains(&in_tenth(tenth))));
    assert_eq!(spread(Duration::ZERO, 5), Duration::ZERO);
}

#[test]
fn a_server_hears_which_connection_is_replaced_and_which_others_have_ended() {
    let mut case = Case::with_lines(3, of_boot(1));
    case.run(2, false, vec![Ok(offer(of_boot(1))), Ok(offer(of_boot(1)))]);
    let asked = case.asked.borrow();
    assert_eq!(asked[0], (0, vec![0, 1]));
    assert_eq!(asked[1], (1, vec![1]));
}

#[test]
fn a_server_that_does_not_fence_any_more_is_told_of_once() {
    let mut case = Case::with_lines(2, of_boot(1));
    let plain = || Offer { fenced: false, ..offer(of_boot(1)) };
    case.run(2, false, vec![Ok(plain()), Ok(plain())]);
    let said = case.said.iter();
    assert_eq!(said.filter(|line| line.contains(NOT_FENCED)).count(), 1);
}
