//! What a check came to, and what it found.

use rubus_change::unseen::Unseen;

/// What a check came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Holds,
    Fails,
    /// The fact could not be read, and nothing speaks against it.
    Unknown,
}

impl From<bool> for Answer {
    fn from(holds: bool) -> Answer {
        if holds { Answer::Holds } else { Answer::Fails }
    }
}

impl From<Option<bool>> for Answer {
    fn from(holds: Option<bool>) -> Answer {
        holds.map_or(Answer::Unknown, Answer::from)
    }
}

/// What a check found, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) words: String,
    /// Whether this user may not look at it, which says nothing about the machine.
    pub(crate) is_denied: bool,
    /// Whether the capture that stands for the machine does not hold it, which says nothing about the machine either.
    pub(crate) is_not_captured: bool,
}

impl Found {
    pub(crate) fn followed_by(mut self, words: &str) -> Found {
        self.words.push_str(words);
        self
    }
}

impl From<String> for Found {
    fn from(words: String) -> Found {
        Found { words, is_denied: false, is_not_captured: false }
    }
}

impl From<&str> for Found {
    fn from(words: &str) -> Found {
        words.to_string().into()
    }
}

impl From<&Unseen> for Found {
    fn from(why: &Unseen) -> Found {
        Found {
            words: why.to_string(),
            is_denied: why.is_denied(),
            is_not_captured: why.is_not_captured(),
        }
    }
}
