//! How Ceph's own programs reach a cluster: with which configuration and as whom.

/// What stands behind the name of an image or a pool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Client {
    /// The path of `ceph.conf`.
    pub conf: Option<String>,
    /// The name of the user, without `client.`.
    pub user: Option<String>,
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
        self.conf = self.conf.or(of_environment.filter(|file| !file.is_empty()));
        self
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
