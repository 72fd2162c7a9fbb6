//! All that `rubus bench cpu` measures, part by part, and the other programs that it runs beside it.

#![deny(clippy::disallowed_methods)]

mod arithmetic;
mod hpl;
mod openssl;
mod openssl_speed;
mod own_ssh;

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use rubus_vocabulary::heat::Heat;
use rubus_vocabulary::machine::Machine;
use rubus_vocabulary::processor::compression::{Cut, Method};
use rubus_vocabulary::processor::{Ciphers, LeftOut, Part, ProcessorRun};

use crate::offer::Offer;

/// What every part needs.
pub struct CpuSuite<'a> {
    /// As surveyed before the run.
    pub machine: &'a Machine,
    /// What was asked for.
    pub options: &'a CpuOptions<'a>,
    /// Cores that the program may use.
    pub cores: u32,
    /// Set when the user has had enough.
    pub cancel: &'a AtomicBool,
    /// Says what is measured now.
    pub says: &'a dyn Fn(&str),
    /// Does something and gives what was seen of clock and heat meanwhile.
    pub watched: &'a dyn Fn(&mut dyn FnMut()) -> Vec<Heat>,
}

/// What was asked for.
pub struct CpuOptions<'a> {
    /// Seconds per figure.
    pub seconds: f64,
    /// Where the files are that are compressed.
    pub data: PathBuf,
    /// What to compress with, for each way to cut data into pieces, where pages are so large.
    pub methods: Methods<'a>,
    /// Unknowns of Linpack's system.
    pub unknowns: Option<u32>,
    /// Block sizes to try.
    pub blocks: Vec<u32>,
    /// How long the same system is solved again and again.
    pub stability: Option<f64>,
    /// Path of HPL's program (xhpl).
    pub hpl: Option<PathBuf>,
    /// No other programs.
    pub alone: bool,
}

/// The methods of compression for a size of pages, or why the names are none.
pub type Methods<'a> = Box<dyn Fn(u32) -> Result<Vec<(Cut, Vec<Method>)>, String> + 'a>;

impl CpuSuite<'_> {
    /// One part.
    ///
    /// # Errors
    /// Why it could not be measured.
    pub fn measure(&self, part: Part, processor: &mut ProcessorRun) -> anyhow::Result<()> {
        match part {
            Part::Ciphers => processor.ciphers = Some(ciphers(self, processor)),
            Part::Ssh => processor.ssh = Some(own_ssh::ssh(self, processor)?),
            Part::Compression => {
                processor.compression = Some(arithmetic::compression(self, processor)?);
            }
            Part::Linpack => processor.linpack = Some(arithmetic::linpack(self, processor)?),
        }
        Ok(())
    }
}

fn ciphers(suite: &CpuSuite<'_>, processor: &mut ProcessorRun) -> Ciphers {
    let features = suite.machine.cpu.crypto_features.value();
    let offer = Offer {
        architecture: std::env::consts::ARCH,
        features: features.map_or(&[], Vec::as_slice),
    };
    let says = &mut |what: &str| (suite.says)(what);
    let (cores, seconds) = (suite.cores, suite.options.seconds);
    let mut rows = crate::run::ciphers(cores, seconds, &offer, suite.cancel, says);
    let (of_kernel, refused) = crate::run::kernel_ciphers(cores, seconds, suite.cancel, says);
    rows.extend(of_kernel);
    let part = Part::Ciphers;
    let refused = refused.into_iter().map(|what| LeftOut { part, what });
    processor.left_out.extend(refused);
    Ciphers {
        rows,
        peers: if suite.options.alone {
            Vec::new()
        } else {
            openssl::peers(suite, &offer, processor)
        },
    }
}
