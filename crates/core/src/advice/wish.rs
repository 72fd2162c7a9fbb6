//! What a user wants to be weighed besides what is there: `--with`.

use serde::{Deserialize, Serialize};

use crate::reference::kinds::{CLASSES, DeviceClass};

/// One thing.
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
        let is_address = ["nbd://", "nbds://", "nbd+unix://", "nbds+unix://"];
        if is_address.iter().any(|start| text.starts_with(start)) {
            return Ok(Wish::Network(text.into()));
        }
        if let Some(disks) = text.strip_prefix("raid0:") {
            let name = |disk: &str| disk.trim().trim_start_matches("/dev/").to_string();
            let names: Vec<String> = disks.split(',').map(name).collect();
            let is_sound = names.len() >= 2
                && names.iter().all(|name| !name.is_empty())
                && (1..names.len()).all(|i| !names[..i].contains(&names[i]));
            return match is_sound {
                true => Ok(Wish::Stripe(names)),
                false => Err("write the disks of a raid0 like raid0:sda,sdb".into()),
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
        assert_eq!(
            Wish::parse("nbd://nas/root"),
            Ok(Wish::Network("nbd://nas/root".into()))
        );
        assert_eq!(
            Wish::parse("raid0:/dev/sda,sdb"),
            Ok(Wish::Stripe(vec!["sda".into(), "sdb".into()]))
        );
        for bad in ["raid0:sda", "raid0:sda,sda", "raid0:,", "", "floppy"] {
            assert!(Wish::parse(bad).is_err(), "{bad}");
        }
        assert!(Wish::parse("floppy").unwrap_err().contains("usb3-ssd"));
    }
}
