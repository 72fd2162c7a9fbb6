//! `/proc/cpuinfo`, read once for all who need it: on a large machine it takes the kernel
//! milliseconds to write.

use rubus_host::Files;
use rubus_vocabulary::fact::Fact;

use crate::probe::read;

pub(crate) const PATH: &str = "/proc/cpuinfo";

/// The lines of the file.
pub(crate) struct CpuInfo {
    text: Fact<String>,
}

impl CpuInfo {
    pub(crate) fn read(files: &dyn Files) -> Self {
        CpuInfo { text: read::text(files, PATH) }
    }

    /// The first value of a key. Keys are case-sensitive: "Model" is the board on ARM, "model" a
    /// number on x86.
    pub(crate) fn first(&self, key: &str) -> Fact<String> {
        self.text.clone().and_then(|text| {
            pairs(&text)
                .find(|(name, _)| *name == key)
                .map(|(_, value)| value.to_string())
                .filter(|value| !value.is_empty())
                .ok_or_else(|| format!("it has no line '{key}'"))
        })
    }

    /// All values of a key in the order of the cores.
    pub(crate) fn all(&self, key: &str) -> Vec<&str> {
        let text = self.text.text().unwrap_or("");
        pairs(text).filter(|(name, _)| *name == key).map(|(_, value)| value).collect()
    }

    /// The lines of each core, which begin with its number.
    pub(crate) fn cores(&self) -> Vec<Vec<(&str, &str)>> {
        let mut cores: Vec<Vec<(&str, &str)>> = Vec::new();
        for (name, value) in pairs(self.text.text().unwrap_or("")) {
            if name == "processor" {
                cores.push(Vec::new());
            }
            if let Some(core) = cores.last_mut() {
                core.push((name, value));
            }
        }
        cores
    }
}

fn pairs(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.lines()
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.trim(), value.trim()))
}
