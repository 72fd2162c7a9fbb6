//! How Ceph's own programs reach a cluster: with which configuration and as whom.

/// What stands behind the name of an image or a pool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Client {
    /// The path of `ceph.conf`.
    pub conf: Option<String>,
    /// The name of the user, without `client.`.
    pub user: Option<String>,
    /// The environment named the configuration, not the address.
    is_of_environment: bool,
}

impl Client {
    /// Reads `conf=FILE` and `id=USER`; nothing if one of them is something else.
    pub(super) fn parse<'a>(options: impl Iterator<Item = &'a str>) -> Option<Client> {
        let mut client = Client::default();
        for option in options {
            match option.split_once('=')? {
                ("conf", file) if !file.is_empty() => client.conf = Some(file.into()),
                ("id", user) if is_name(user) => client.user = Some(user.into()),
                _ => return None,
            }
        }
        Some(client)
    }

    /// The same with the configuration that the environment names (`CEPH_CONF`), unless the name says another.
    #[must_use]
    pub fn or_conf(mut self, of_environment: Option<String>) -> Client {
        if self.conf.is_none() {
            self.conf = of_environment.filter(|file| !file.is_empty());
            self.is_of_environment = self.conf.is_some();
        }
        self
    }

    /// The configuration that Ceph's own programs read, in words.
    pub fn conf_in_words(&self) -> String {
        match (&self.conf, self.is_of_environment) {
            (Some(file), true) => format!("{file} (named by CEPH_CONF; :conf=FILE names another)"),
            (Some(file), false) => file.clone(),
            (None, _) => {
                "/etc/ceph/ceph.conf or ~/.ceph/ceph.conf (:conf=FILE or CEPH_CONF names another)"
                    .into()
            }
        }
    }

    /// The options that Ceph's own programs take for it.
    pub fn options(&self) -> Vec<String> {
        self.each(|name, value| format!("--{name}={value}"))
    }

    /// As it stands behind a name.
    pub fn suffix(&self) -> String {
        self.each(|name, value| format!(":{name}={value}")).concat()
    }

    fn each(&self, write: impl Fn(&str, &str) -> String) -> Vec<String> {
        let options = [("conf", &self.conf), ("id", &self.user)];
        let given = options.into_iter().filter_map(|(name, value)| {
            let value = value.as_ref()?;
            Some(write(name, value))
        });
        given.collect()
    }
}

/// Whether it may be the name of a pool, an image or a user in an address.
pub(super) fn is_name(part: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    !part.is_empty() && part.chars().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_comes_before_the_environment() {
        let named = Client::parse(["conf=/a"].into_iter()).expect("options");
        let of_address = named.or_conf(Some("/b".into()));
        assert_eq!(of_address.options(), ["--conf=/a"]);
        assert_eq!(of_address.conf_in_words(), "/a");
        let of_environment = Client::default().or_conf(Some("/b".into()));
        assert_eq!(of_environment.options(), ["--conf=/b"]);
        assert_eq!(
            of_environment.conf_in_words(),
            "/b (named by CEPH_CONF; :conf=FILE names another)"
        );
        for nothing in [None, Some(String::new())] {
            let client = Client::default().or_conf(nothing);
            assert!(client.options().is_empty());
            assert!(client.conf_in_words().starts_with("/etc/ceph/ceph.conf or "));
        }
    }
}
