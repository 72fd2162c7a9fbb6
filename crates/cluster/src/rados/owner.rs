//! Whose run writes into a pool: a note beside its objects, by which the next run tells one that goes on from one that was
//! killed and left them.

/// A process, so that it can be found again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Name of its machine.
    pub host: String,
    /// Number of that machine's start (`boot_id`).
    pub boot: String,
    /// Name of the namespace in which its number counts.
    pub space: String,
    /// Process id in that namespace.
    pub process: u32,
    /// When it began, in the kernel's ticks: numbers are given again.
    pub began: u64,
}

/// What is known of the owner of a note.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The process is still running.
    Running,
    /// It has ended without removing its objects.
    Gone,
    /// It cannot be seen from here.
    Elsewhere,
}

impl Owner {
    /// As it is written down: one word.
    pub fn note(&self) -> String {
        let Owner { host, boot, space, process, began } = self;
        format!("{host},{boot},{space},{process},{began}")
    }

    /// Reads a note.
    pub fn parse(note: &str) -> Option<Owner> {
        let parts: Vec<&str> = note.trim().split(',').collect();
        let [host, boot, space, process, began] = parts[..] else {
            return None;
        };
        Some(Owner {
            host: host.into(),
            boot: boot.into(),
            space: space.into(),
            process: process.parse().ok()?,
            began: began.parse().ok()?,
        })
    }

    /// What became of this owner, as `own` sees it: a process of the machine here, of which `began` says when the process of
    /// a number began.
    pub fn standing(&self, own: &Owner, began: impl Fn(u32) -> Option<u64>) -> Standing {
        if self.host != own.host {
            return Standing::Elsewhere;
        }
        if self.boot != own.boot {
            return Standing::Gone;
        }
        match began(self.process) {
            _ if self.space != own.space => Standing::Elsewhere,
            Some(began) if began == self.began => Standing::Running,
            _ => Standing::Gone,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_is_found_again_or_is_gone() {
        let own = Owner {
            host: "attic".into(),
            boot: "b1".into(),
            space: "pid:[4026531836]".into(),
            process: 7,
            began: 100,
        };
        assert_eq!(Owner::parse(&format!("{}\n", own.note())), Some(own.clone()));
        assert_eq!(Owner::parse("x"), None);
        let other = |change: &dyn Fn(&mut Owner)| {
            let mut other = own.clone();
            change(&mut other);
            other.standing(&own, |process| (process == 7).then_some(100))
        };
        assert_eq!(other(&|_| ()), Standing::Running);
        assert_eq!(other(&|other| other.process = 8), Standing::Gone);
        assert_eq!(other(&|other| other.began = 99), Standing::Gone);
        assert_eq!(other(&|other| other.boot = "b0".into()), Standing::Gone);
        assert_eq!(other(&|other| other.host = "cellar".into()), Standing::Elsewhere);
        assert_eq!(other(&|other| other.space = "pid:[1]".into()), Standing::Elsewhere);
    }
}
