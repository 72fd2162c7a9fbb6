//! The guard, as network disks ask it.

use std::path::Path;

use rubus_change::guard::{self, Consent, Refusal, TargetFacts};
use rubus_host::Live;
use rubus_host::block::blockdev::{BlockReader, ClaimedDevice, OpenError};
use rubus_nbd_tools::guard::{Guard, NotClaimed, Unused};

/// The guard of this machine.
#[derive(Clone, Copy, Debug)]
pub struct LiveGuard;

impl Guard for LiveGuard {
    fn file_unused(&self, path: &Path) -> Result<(), String> {
        guard::file_unused(&Live::new(), path).map_err(in_words)
    }

    fn read_only(&self, path: &Path) -> Result<BlockReader, String> {
        guard::read_only(path).map_err(in_words)
    }

    fn claim(&self, path: &Path, losses: &[String]) -> Result<ClaimedDevice, NotClaimed> {
        let live = Live::new();
        let mut answer = None;
        for serial in losses {
            let tried = guard::claim(&live, path, Some(&Consent::new(serial)));
            let is_claimed = tried.is_ok();
            answer = Some(tried);
            if is_claimed {
                break;
            }
        }
        let answer = answer.unwrap_or_else(|| guard::claim(&live, path, None));
        answer.map_err(|refusal| NotClaimed {
            expected: refusal.expected_confirmation().map(|expected| expected.text.clone()),
            refusal: refusal.to_string(),
        })
    }

    fn is_in_use(&self, path: &Path) -> bool {
        let facts = guard::look(&Live::new(), path);
        matches!(&facts, TargetFacts::Device(device) if !device.uses.is_empty())
    }

    fn unused(&self, path: &Path) -> Result<Box<dyn Unused>, String> {
        let unused = guard::unused(&Live::new(), path).map_err(in_words)?;
        Ok(Box::new(Held(unused)))
    }

    fn carries_nothing(&self, path: &Path) -> Result<(), String> {
        guard::carries_nothing(&Live::new(), path).map_err(in_words)
    }
}

struct Held(guard::Unused);

impl Unused for Held {
    fn flush(&self) -> Result<(), OpenError> {
        self.0.flush()
    }
}

fn in_words(refusal: Refusal) -> String {
    refusal.to_string()
}
