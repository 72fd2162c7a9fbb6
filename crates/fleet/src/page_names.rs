//! What boards are called on a page that others may see.

use std::collections::BTreeMap;

use rubus_host::shareable::identities::is_address;

/// The names without users; a board that is named by its address alone is called by its place in the list.
pub fn page_names(names: &[&str]) -> Vec<String> {
    let mut times: BTreeMap<String, usize> = BTreeMap::new();
    let named = names.iter().enumerate().map(|(at, name)| {
        let host = name.rsplit('@').next().unwrap_or(name);
        let host = if is_address(host) { format!("board-{}", at + 1) } else { host.to_string() };
        let seen = times.entry(host.clone()).or_default();
        *seen += 1;
        // Two users of one host are two boards of the list.
        if *seen > 1 { format!("{host} ({seen})") } else { host }
    });
    named.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_user_and_no_address_is_on_a_page() {
        let names =
            ["pi07", "alice@attic", "bob@attic", "pi@10.1.2.3", "fd00::7", "alice@[fd00::7]"];
        assert_eq!(
            page_names(&names),
            ["pi07", "attic", "attic (2)", "board-4", "board-5", "board-6"]
        );
    }
}
