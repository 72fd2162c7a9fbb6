//! The way to the other end.

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

use rubus_host::net::Stream;

/// What a transport waits for, for a caller that polls several.
#[derive(Clone, Copy, Debug)]
pub struct Awaited<'a> {
    /// Something can be received from this socket,
    pub socket: BorrowedFd<'a>,
    /// or sent to it.
    pub or_room: bool,
}

/// Bytes both ways, in order.
pub trait Transport: Send {
    /// Sends what can be sent without waiting; gives how many bytes that was.
    ///
    /// # Errors
    /// `WouldBlock` when nothing could be sent now; others when the connection is broken.
    fn send(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize>;

    /// Receives what is there, and waits for it if `wait`; 0 when the other end has closed.
    ///
    /// # Errors
    /// `WouldBlock` when nothing is there now, or nothing came for as long as
    /// [`Transport::set_patience`] says; others when the connection is broken.
    fn receive(&mut self, parts: &mut [IoSliceMut<'_>], wait: bool) -> io::Result<usize>;

    /// Waits until something can be received or, if `or_room`, sent; false when that took longer
    /// than `most`.
    ///
    /// # Errors
    /// When the connection is broken.
    fn wait(&mut self, or_room: bool, most: Option<Duration>) -> io::Result<bool>;

    /// How long [`Transport::receive`] waits at most; none: for ever, as it is at first.
    ///
    /// # Errors
    /// When the connection is broken.
    fn set_patience(&mut self, _most: Option<Duration>) -> io::Result<()> {
        Ok(())
    }

    /// What [`Transport::wait`] would wait for; nothing when it would not have to.
    ///
    /// # Errors
    /// When the connection is broken.
    fn awaited(&mut self, _or_room: bool) -> io::Result<Option<Awaited<'_>>> {
        Ok(None)
    }
}

impl Transport for Stream {
    #[inline]
    fn send(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        Stream::send(self, parts)
    }

    #[inline]
    fn receive(&mut self, parts: &mut [IoSliceMut<'_>], wait: bool) -> io::Result<usize> {
        Stream::receive(self, parts, wait)
    }

    fn wait(&mut self, or_room: bool, most: Option<Duration>) -> io::Result<bool> {
        Stream::wait(self, or_room, most)
    }

    fn awaited(&mut self, or_room: bool) -> io::Result<Option<Awaited<'_>>> {
        let socket = Stream::as_fd(self);
        Ok(Some(Awaited { socket, or_room }))
    }

    fn set_patience(&mut self, most: Option<Duration>) -> io::Result<()> {
        Stream::set_patience(self, most, None)
    }
}

/// A stream that others know, too.
impl Transport for Arc<Stream> {
    #[inline]
    fn send(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        Stream::send(self, parts)
    }

    #[inline]
    fn receive(&mut self, parts: &mut [IoSliceMut<'_>], wait: bool) -> io::Result<usize> {
        Stream::receive(self, parts, wait)
    }

    fn wait(&mut self, or_room: bool, most: Option<Duration>) -> io::Result<bool> {
        Stream::wait(self, or_room, most)
    }

    fn awaited(&mut self, or_room: bool) -> io::Result<Option<Awaited<'_>>> {
        let socket = Stream::as_fd(self);
        Ok(Some(Awaited { socket, or_room }))
    }

    fn set_patience(&mut self, most: Option<Duration>) -> io::Result<()> {
        Stream::set_patience(self, most, None)
    }
}
