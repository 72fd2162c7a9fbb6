//! What a run measured: a disk, the memory or the processor; one of them, never two.
//!
//! In JSON the figures of memory and of the processor are fields of the run, and a run of a disk has neither.

use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};

use super::{
    Against, Calibration, Doubt, Finding, JobFile, JobResult, Machine, RemoteFacts, Run,
    TargetFacts,
};
use crate::memory::Memory;
use crate::processor::ProcessorRun;

/// The figures of a run, besides the results of jobs.
#[derive(Clone, Debug, PartialEq)]
pub enum Figures {
    /// Of a disk, or what is measured like one: all is in the results of its jobs.
    Disk,
    /// Such a run has no results of jobs.
    Memory(Memory),
    /// Such a run has no results of jobs.
    Processor(Box<ProcessorRun>),
}

impl Serialize for Figures {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_map(None)?;
        match self {
            Figures::Disk => {}
            Figures::Memory(memory) => fields.serialize_entry("memory", memory)?,
            Figures::Processor(processor) => fields.serialize_entry("processor", processor)?,
        }
        fields.end()
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Figures {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Figures".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        /// The fields that a run has for them, of which one at most is there.
        #[derive(schemars::JsonSchema)]
        #[expect(dead_code, reason = "only its schema is taken")]
        struct Fields {
            /// The figures of memory.
            #[schemars(default, skip_serializing_if = "Option::is_none")]
            memory: Option<Memory>,
            /// The figures of the processor.
            #[schemars(default, skip_serializing_if = "Option::is_none")]
            processor: Option<ProcessorRun>,
        }
        Fields::json_schema(generator)
    }
}

/// A run as it is read.
#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct StoredRun {
    rubus_version: String,
    machine: Machine,
    target: TargetFacts,
    suite: String,
    seed: u64,
    started: String,
    elapsed_s: f64,
    bytes_written: u64,
    calibration: Option<Calibration>,
    results: Vec<JobResult>,
    doubts: Vec<Doubt>,
    #[serde(default)]
    findings: Vec<Finding>,
    #[serde(default)]
    on: Option<RemoteFacts>,
    #[serde(default)]
    job_file: Option<JobFile>,
    #[serde(default)]
    against: Option<Against>,
    #[serde(default)]
    plans: Option<Vec<String>>,
    #[serde(default)]
    memory: Option<Memory>,
    #[serde(default)]
    processor: Option<ProcessorRun>,
}

impl TryFrom<StoredRun> for Run {
    type Error = &'static str;

    fn try_from(stored: StoredRun) -> Result<Self, Self::Error> {
        let figures = match (stored.memory, stored.processor) {
            (None, None) => Figures::Disk,
            (Some(memory), None) => Figures::Memory(memory),
            (None, Some(processor)) => Figures::Processor(Box::new(processor)),
            (Some(_), Some(_)) => {
                return Err("a run is of the memory or of the processor, not of both");
            }
        };
        Ok(Run {
            rubus_version: stored.rubus_version,
            machine: stored.machine,
            target: stored.target,
            suite: stored.suite,
            seed: stored.seed,
            started: stored.started,
            elapsed_s: stored.elapsed_s,
            bytes_written: stored.bytes_written,
            calibration: stored.calibration,
            results: stored.results,
            doubts: stored.doubts,
            findings: stored.findings,
            on: stored.on,
            job_file: stored.job_file,
            against: stored.against,
            plans: stored.plans,
            figures,
        })
    }
}
