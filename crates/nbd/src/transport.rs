//! The way to the other end.

use std::io::{self, IoSlice, IoSliceMut};
use std::sync::Arc;
use std::time::Duration;

use rubus_host::net::Stream;

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
    /// `WouldBlock` when nothing is there now; others when the connection is broken.
    fn receive(&mut self, parts: &mut [IoSliceMut<'_>], wait: bool) -> io::Result<usize>;

    /// Waits until something can be received or, if `or_room`, sent; false when that took longer
    /// than `most`.
    ///
    /// # Errors
    /// When the connection is broken.
    fn wait(&mut self, or_room: bool, most: Option<Duration>) -> io::Result<bool>;
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
}
