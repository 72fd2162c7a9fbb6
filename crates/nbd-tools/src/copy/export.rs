//! An export that is copied from or to, and the connections to it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rubus_nbd::client::{Client, Due, Offer, refused};
use rubus_nbd::identity::Identity;
use rubus_nbd::transport::Transport;
use rubus_nbd::wire::{Command, CommandFlags, ErrorCode, TransmissionFlags};

use super::CopyError;
use super::error::silent;
use super::work::is_given_up;
use super::worker::Wired;

/// How an export is connected to again.
pub type Dial<T> = Arc<dyn Fn() -> Result<(Client<T>, Offer), String> + Send + Sync>;

/// How often one who waits for a connection looks whether there is still something to do with it.
const LOOK: Duration = Duration::from_millis(20);

/// An export, with the connections to it that are not in use.
pub struct Export<T> {
    /// Its address, for people.
    pub name: String,
    /// What was agreed on.
    pub offer: Offer,
    idle: Mutex<Vec<Client<T>>>,
    dial: Dial<T>,
    /// The server has refused one more connection.
    is_full: AtomicBool,
}

impl<T: Transport + 'static> Export<T> {
    /// An export to which there is a connection.
    pub fn new(name: String, first: Client<T>, offer: Offer, dial: Dial<T>) -> Self {
        Export { name, offer, idle: Mutex::new(vec![first]), dial, is_full: AtomicBool::new(false) }
    }

    /// Requests are multiples of this. A server that names no sizes takes any, as the protocol recommends.
    pub(super) fn min_block_bytes(&self) -> u32 {
        self.offer.block_sizes.map_or(1, |sizes| sizes.min_bytes)
    }

    /// Whether something can be done with it.
    pub fn can(&self, flag: TransmissionFlags) -> bool {
        self.offer.flags.has(flag)
    }

    pub(super) fn take(&self) -> Result<Wired<T>, CopyError> {
        match self.take_idle() {
            Some(idle) => Ok(idle),
            None => self.connect((self.dial)().map_err(CopyError::Trouble)?),
        }
    }

    /// One more connection, if the server takes it before there is nothing left to do; many have a limit, and have one
    /// too many wait.
    pub(super) fn take_another(
        &self,
        is_over: &dyn Fn() -> bool,
    ) -> Result<Option<Wired<T>>, CopyError> {
        if let Some(idle) = self.take_idle() {
            return Ok(Some(idle));
        }
        if self.is_full.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let (sender, dialled) = channel();
        let dial = Arc::clone(&self.dial);
        // Without a receiver, it ends by itself.
        std::thread::spawn(move || drop(sender.send(dial())));
        loop {
            match dialled.recv_timeout(LOOK) {
                Ok(Ok(dialled)) => return self.connect(dialled).map(Some),
                Err(RecvTimeoutError::Timeout) if is_over() => return Ok(None),
                Err(RecvTimeoutError::Timeout) => {}
                Ok(Err(_)) | Err(RecvTimeoutError::Disconnected) => {
                    self.is_full.store(true, Ordering::Relaxed);
                    return Ok(None);
                }
            }
        }
    }

    fn take_idle(&self) -> Option<Wired<T>> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        idle.map(|client| Wired::new(client, &self.name))
    }

    fn connect(&self, (client, offer): (Client<T>, Offer)) -> Result<Wired<T>, CopyError> {
        self.is_still(&offer)?;
        Ok(Wired::new(client, &self.name))
    }

    fn is_still(&self, offer: &Offer) -> Result<(), CopyError> {
        let disk = |offer: &Offer| {
            let identity = offer.description.as_deref().and_then(Identity::parse);
            (offer.size_bytes, identity.map(|i| (i.export, i.generation)))
        };
        let is_same = disk(offer) == disk(&self.offer)
            && offer.replies() == self.offer.replies()
            && offer.allocation == self.offer.allocation;
        if is_same {
            Ok(())
        } else {
            Err(CopyError::Trouble(format!(
                "{} is another disk on another connection; its server was changed meanwhile: look at it, and start again",
                self.name
            )))
        }
    }

    pub(super) fn give_back(&self, client: Client<T>) {
        if client.in_flight() == 0 {
            let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
            idle.push(client);
        }
    }

    /// Everything that was answered is on stable storage.
    pub(super) fn flush(&self, cancel: &AtomicBool) -> Result<(), CopyError> {
        if !self.can(TransmissionFlags::SEND_FLUSH) {
            return Ok(());
        }
        let mut client = self.take()?.client;
        let flush = Due {
            slot: 0,
            command: Command::Flush,
            flags: CommandFlags::NONE,
            offset: 0,
            length: 0,
            memory_at: 0,
        };
        let mut answers = Vec::new();
        let name = &self.name;
        let given_up = |silent| is_given_up(cancel, silent);
        let exchanged = client.exchange_unless(&[flush], &mut [], &mut answers, &given_up);
        exchanged.map_err(|error| {
            let is_wanted = cancel.load(Ordering::Relaxed);
            if is_wanted { CopyError::Interrupted } else { silent("flushing", name, &error) }
        })?;
        if let Some(answer) = answers.iter().find(|a| a.error != ErrorCode::NONE) {
            let why = refused(answer, client.words());
            return Err(CopyError::NotDurable(format!(
                "{name} cannot make durable what was written: {why}"
            )));
        }
        self.give_back(client);
        Ok(())
    }

    /// Says goodbye on all connections.
    pub fn end(&self) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.iter_mut().for_each(Client::disconnect);
    }
}
