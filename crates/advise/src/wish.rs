//! What a user wants to be weighed besides what is there: `--with`.

use serde::{Deserialize, Serialize};

use rubus_recipes::network_address;

use crate::device_classes::{CLASSES, DeviceClass};

/// A device or set-up to weigh besides what is there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wish {
    /// A kind of device that could be bought, by its [`DeviceClass::id`].
    Class(String),
    /// A network disk; empty where no address is known yet.
    Network(String),
    /// These disks as one, by the kernel's names.
    Stripe(Vec<String>),
}

impl Wish {
    /// Reads what was typed.
    ///
    /// # Errors
    /// A sentence that lists what there is.
    pub fn parse(text: &str) -> Result<Wish, String> {
        if text == "nbd" {
            return Ok(Wish::Network(String::new()));
        }
        if text.starts_with("nbd") && text.contains("://") {
            // What no plan can use is not weighed.
            return match network_address::check(text) {
                Ok(()) => Ok(Wish::Network(text.into())),
                Err(why) => Err(format!("no network disk can be made of '{text}': {why}")),
            };
        }
        if let Some(disks) = text.strip_prefix("raid0:") {
            let name = |disk: &str| disk.trim().trim_start_matches("/dev/").to_string();
            let names: Vec<String> = disks.split(',').map(name).collect();
            let is_sound = names.len() >= 2
                && names.iter().all(|name| !name.is_empty())
                && (1..names.len()).all(|i| !names[..i].contains(&names[i]));
            return if is_sound {
                Ok(Wish::Stripe(names))
            } else {
                Err("write the disks of a raid0 like raid0:sda,sdb".into())
            };
        }
        match DeviceClass::by_id(text) {
            Some(class) => Ok(Wish::Class(class.id.into())),
            None => {
                let known: Vec<&str> = CLASSES.iter().map(|class| class.id).collect();
                Err(format!(
                    "nothing is known of '{text}'; there are {}, nbd, an address such as nbd://192.168.1.2/disk, and \
                     raid0:sda,sdb",
                    known.join(", ")
                ))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_there_is_is_understood_and_the_rest_is_told_what_there_is() {
        assert_eq!(Wish::parse("usb3-ssd"), Ok(Wish::Class("usb3-ssd".into())));
        assert_eq!(Wish::parse("nbd://nas/root"), Ok(Wish::Network("nbd://nas/root".into())));
        assert_eq!(
            Wish::parse("raid0:/dev/sda,sdb"),
            Ok(Wish::Stripe(vec!["sda".into(), "sdb".into()]))
        );
        let socket = "nbd+unix:///root?socket=/run/nbd";
        assert_eq!(Wish::parse(socket), Ok(Wish::Network(socket.into())));
        for bad in ["raid0:sda", "raid0:sda,sda", "raid0:,", "", "floppy"] {
            assert!(Wish::parse(bad).is_err(), "{bad}");
        }
        for (bad, why) in [
            ("nbds://nas/root", "TLS"),
            ("nbds+unix:///root?socket=s", "TLS"),
            ("nbd://", "such as nbd://"),
            ("nbd:///root", "no host"),
            ("nbd+unix:///root", "which socket"),
            ("nbd://nas/a b", "such as nbd://"),
        ] {
            let error = Wish::parse(bad).expect_err(bad);
            assert!(error.contains(why), "{bad}: {error}");
        }
        assert!(Wish::parse("floppy").unwrap_err().contains("usb3-ssd"));
    }
}
