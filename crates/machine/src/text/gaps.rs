//! What could not be read: collected while a text is made, and told in one line per section.

use rubus_vocabulary::fact::Fact;

/// Names of unknown facts, by the reason why they are unknown.
#[derive(Debug, Default)]
pub struct Gaps {
    by_reason: Vec<(String, Vec<String>)>,
}

impl Gaps {
    /// The words for a known fact; an unknown one is remembered as `name` with its reason.
    pub fn take<T, U>(
        &mut self,
        fact: &Fact<T>,
        name: &str,
        words: impl FnOnce(&T) -> U,
    ) -> Option<U> {
        match fact {
            Fact::Known { value, .. } => Some(words(value)),
            Fact::Unknown { unknown, .. } => {
                self.add(name, unknown);
                None
            }
        }
    }

    /// Remembers an unknown thing.
    pub fn add(&mut self, name: &str, reason: &str) {
        let index = self.by_reason.iter().position(|(known, _)| known == reason);
        let names = match index {
            Some(index) => &mut self.by_reason[index].1,
            None => {
                self.by_reason.push((reason.to_string(), Vec::new()));
                let last = self.by_reason.len() - 1;
                &mut self.by_reason[last].1
            }
        };
        if !names.iter().any(|known| known == name) {
            names.push(name.to_string());
        }
    }

    /// "serial, model (this device does not say); content (permission denied)"; nothing if all
    /// was known.
    pub fn line(&self) -> Option<String> {
        let groups: Vec<String> = self
            .by_reason
            .iter()
            .map(|(reason, names)| format!("{} ({reason})", names.join(", ")))
            .collect();
        (!groups.is_empty()).then(|| groups.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_facts_are_grouped_by_their_reason() {
        let mut gaps = Gaps::default();
        assert_eq!(gaps.line(), None);
        let denied = || Fact::<u32>::unknown("permission denied", "/dev/x");
        assert_eq!(gaps.take(&Fact::known(5, ""), "depth", |d| d + 1), Some(6));
        assert_eq!(gaps.take(&denied(), "content", |d| *d), None);
        gaps.add("serial", "the device does not say");
        assert_eq!(gaps.take(&denied(), "size", |d| *d), None);
        assert_eq!(gaps.take(&denied(), "size", |d| *d), None);
        assert_eq!(
            gaps.line().as_deref(),
            Some("content, size (permission denied); serial (the device does not say)")
        );
    }
}
