//! The options of a mount from a file server (nfs(5), mount.cifs(8)), as the kernel lists them in `mountinfo`.

use std::net::IpAddr;

use rubus_vocabulary::nas::{FileProtocol, NetworkMount};

/// What is mounted with these options; nothing where the filesystem is none of a file server.
pub fn of(filesystem: &str, options: &[String]) -> Option<NetworkMount> {
    let (protocol, usual_port) = match filesystem {
        "nfs" | "nfs4" => (FileProtocol::Nfs, 2049),
        "cifs" | "smb3" => (FileProtocol::Smb, 445),
        _ => return None,
    };
    let has = |name: &str| options.iter().any(|option| option == name);
    let number = |name: &str| value(options, name).and_then(|text| text.parse::<u64>().ok());
    let security = value(options, "sec").unwrap_or_default();
    Some(NetworkMount {
        protocol,
        version: value(options, "vers").map(str::to_string),
        transport: value(options, "proto").map(|name| name.trim_end_matches('6').to_string()),
        // Version 4 of NFS lists 0 for "the usual one".
        port: number("port")
            .and_then(|port| u16::try_from(port).ok())
            .filter(|port| *port > 0)
            .unwrap_or(usual_port),
        read_request_bytes: number("rsize"),
        write_request_bytes: number("wsize"),
        connections: number("nconnect")
            .or_else(|| number("max_channels"))
            .and_then(|count| u32::try_from(count).ok()),
        // The kernel lists sync with noac, which implies it (nfs(5)).
        is_sync: has("sync") && !has("noac"),
        is_uncached: has("noac")
            || value(options, "actimeo") == Some("0")
            // As NFS lists actimeo=0.
            || ["acregmax", "acdirmax"].iter().all(|name| value(options, name) == Some("0"))
            || value(options, "cache") == Some("none"),
        is_soft: has("soft"),
        is_encrypted: has("seal") || security == "krb5p",
        is_signed: has("sign") || security.ends_with('i'),
    })
}

/// The server's address, as the kernel resolved it.
pub fn server(options: &[String]) -> Option<IpAddr> {
    let text = value(options, "addr").or_else(|| value(options, "ip"))?;
    // A link-local address has its interface behind it.
    text.split('%').next()?.parse().ok()
}

/// The last value of an option counts.
fn value<'a>(options: &'a [String], name: &str) -> Option<&'a str> {
    let values = options.iter().filter_map(|option| option.split_once('='));
    values.filter(|(known, _)| *known == name).map(|(_, value)| value).next_back()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(text: &str) -> Vec<String> {
        text.split(',').map(str::to_string).collect()
    }

    /// As Linux 6.1 lists them.
    const NFS4: &str = "rw,relatime,vers=4.2,rsize=1048576,wsize=1048576,namlen=255,hard,proto=tcp,nconnect=4,timeo=600,\
        retrans=2,sec=sys,clientaddr=192.0.2.5,local_lock=none,addr=192.0.2.7";
    const NFS3: &str = "rw,relatime,sync,vers=3,rsize=4096,wsize=4096,namlen=255,soft,noac,proto=tcp6,port=2050,timeo=7,\
        retrans=3,sec=krb5p,mountaddr=2001:db8::7,local_lock=all,addr=2001:db8::7";
    const SMB: &str = "rw,relatime,vers=3.1.1,cache=strict,username=alice,uid=0,gid=0,addr=192.0.2.8,file_mode=0755,\
        soft,nounix,seal,serverino,mapposix,rsize=4194304,wsize=4194304,bsize=1048576,actimeo=1";

    #[test]
    fn options_are_read_and_names_are_not_kept() {
        let nfs = of("nfs4", &options(NFS4)).unwrap();
        assert_eq!((nfs.version.as_deref(), nfs.port), (Some("4.2"), 2049));
        assert_eq!(nfs.read_request_bytes, Some(1 << 20));
        assert_eq!(nfs.connections, Some(4));
        assert!(
            !nfs.is_sync && !nfs.is_soft && !nfs.is_encrypted && !nfs.is_uncached && !nfs.is_signed
        );
        assert_eq!(server(&options(NFS4)), Some("192.0.2.7".parse().unwrap()));

        let old = of("nfs", &options(NFS3)).unwrap();
        assert_eq!((old.version.as_deref(), old.port), (Some("3"), 2050));
        assert_eq!(old.transport.as_deref(), Some("tcp"));
        assert!(!old.is_sync && old.is_soft && old.is_encrypted && old.is_uncached);
        let is_uncached = |text: &str| of("nfs", &options(text)).unwrap().is_uncached;
        assert!(is_uncached("rw,vers=3,acregmin=0,acregmax=0,acdirmin=0,acdirmax=0"));
        assert!(!is_uncached("rw,vers=3,acregmin=3,acregmax=0"));
        assert_eq!(server(&options(NFS3)), Some("2001:db8::7".parse().unwrap()));

        let smb = of("cifs", &options(SMB)).unwrap();
        assert_eq!((smb.protocol, smb.port), (FileProtocol::Smb, 445));
        assert!(smb.is_encrypted && !smb.is_uncached && !smb.is_sync);
        assert!(!format!("{smb:?}").contains("alice"));
    }

    #[test]
    fn signing_is_told_apart_from_encryption() {
        for (text, signed, encrypted) in [
            ("rw,sec=krb5i", true, false),
            ("rw,sec=krb5p", false, true),
            ("rw,sec=ntlmsspi", true, false),
            ("rw,sign", true, false),
            ("rw,sec=sys", false, false),
        ] {
            let found = of("cifs", &options(text)).unwrap();
            assert_eq!((found.is_signed, found.is_encrypted), (signed, encrypted), "{text}");
        }
    }

    #[test]
    fn other_filesystems_are_none_of_a_server() {
        for filesystem in ["ext4", "fuse.sshfs", "9p", "tmpfs"] {
            assert_eq!(of(filesystem, &options(NFS4)), None, "{filesystem}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_options_are_survived(text in "[ -~]{0,120}") {
            of("nfs", &options(&text));
            server(&options(&text));
        }
    }
}
