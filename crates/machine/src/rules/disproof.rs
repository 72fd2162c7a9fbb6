//! How each finding is disproved: a look or a measurement that would come out otherwise if the finding were wrong.

/// Of a finding's code; none for a code that no finding has.
pub fn disproof(code: &str) -> Option<&'static str> {
    Some(match code {
        "disk-fails" => {
            "Put the disk into another machine, with another cable and supply, and read all of it (`rubus bench --suite capacity` on a \
             new disk, `badblocks -sv` on a full one): no errors there, and it is the connection."
        }
        "disk-goes-silent" => {
            "Change the cable, then the port, then end the link's power saving, under the same load: each time it is silent again, and \
             it is the disk."
        }
        "card-queue-stalls" => {
            "Start without the queue (`dtparam=sd_cqe=0` on a Raspberry Pi 5) and repeat the same load: errors of the card again, and \
             it is the card."
        }
        "supply-disturbs-disks" => {
            "Use another supply and cable, or a powered hub: the same errors without a new line about the voltage, and it is not the \
             supply."
        }
        "uas-gives-up" => {
            "Let usb-storage serve the bridge and repeat the same load: it still resets, and it is not UAS."
        }
        "connection-fails" => {
            "Change the cable, then the port: the same errors with both changed, and it is the disk or its bridge."
        }
        "usb-controller-stops" => {
            "Put the disk on a port of another controller, or into another machine, under the same load: it drops off there too, and it is \
             the disk, its cable or its supply."
        }
        "disk-went-away" => {
            "Compare the time in the log with when you unplugged it: a disk or card that was pulled out is no fault."
        }
        "filesystem-has-errors" => {
            "Check it while it is not mounted (`fsck -fn`): clean, and only the counter is left from a fault that was mended."
        }
        "undervoltage-now" | "undervoltage-seen" => {
            "`vcgencmd get_throttled` after a restart and an hour of full load: 0x0, and the supply suffices. A multimeter at the 5 V pins \
             shows less than 4.63 V if it does not."
        }
        "undervoltage-while-measuring" => {
            "Measure again with another supply: the same rates, and the voltage did not hold the disk back."
        }
        "throttled-now" | "throttled-seen" => {
            "`vcgencmd get_throttled` after a restart and an hour of full load: no bit of 0x60006, and the heat does not matter."
        }
        "hot" => "Read the sensor with the case open or a fan: no lower, and the sensor is wrong.",
        "slow-governor" => {
            "Watch `/sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq` under load: it rises, and the governor is not in the way."
        }
        "usb3-disk-at-usb2" | "usb-full-speed" => {
            "`lsusb -t` shows the speed of each plug: 5000M beside the disk, and it is connected as fast as it can be."
        }
        "usb-storage-for-uas" => {
            "`lsusb -v` of the bridge: no interface with protocol 98, and it does not speak UAS."
        }
        "uas-trouble" | "uas-quirk" => {
            "`dmesg | grep -i uas` after a day of full load: no reset, and this bridge is one of the good ones."
        }
        "no-trim-over-usb" => {
            "`sudo fstrim -v` on its mount point: it tells the bytes trimmed, and TRIM reaches the disk."
        }
        "network-and-disk-share-usb" | "disks-share-usb2" | "array-on-one-bus" => {
            "`rubus bench A B --together` measures both alone and at once: no slower together, and they share nothing that matters."
        }
        "other-boot-partition-mounted" => {
            "`rubus boot --verbose` says which partition the firmware read: the mounted one, and the finding is wrong."
        }
        "boot-partition-not-mounted" => {
            "`findmnt /boot/firmware /boot`: one of them has the partition that `rubus boot` names, and the finding is wrong."
        }
        "disks-with-one-identifier" => {
            "`lsblk -o NAME,UUID,PARTUUID`: no identifier twice, and the finding is wrong."
        }
        "next-root-is-another" => {
            "Read root= in the command line that `rubus boot` names: the root that runs now, and the finding is wrong."
        }
        "next-start-stops" => {
            "`rubus boot --verbose` says where the link that stops was read: the file says otherwise, and the finding is wrong."
        }
        "kernel-without-modules" => {
            "`ls /lib/modules` of the root that starts: the kernel's release is there, and the finding is wrong."
        }
        "card-bus-slower-than-card" | "card-one-data-line" => {
            "`cat /sys/kernel/debug/mmc*/ios` as root shows timing and bus width: SDR50 or faster on 4 lines, and the bus is not in the \
             way."
        }
        "a2-card-without-queueing" => {
            "`rubus bench / --suite class`: 4000 random reads and 2000 random writes per second, and it is A2 here all the same."
        }
        "card-without-application-class" => {
            "`rubus bench / --suite class`: 1500 random reads and 500 random writes per second, and it is as good as A1."
        }
        "card-write-protected" => {
            "Write a file to the card in another reader: it works, and the switch or this reader is at fault."
        }
        "card-of-no-maker" => {
            "`rubus bench --suite capacity` on the empty card: all bytes come back, and it at least holds what it says."
        }
        "card-below-its-class" => {
            "Trim the card (`fstrim`), let it rest for an hour and measure again: it reaches its class, and it was only full of old \
             blocks."
        }
        "system-on-card-beside-a-disk" => {
            "`rubus checkup` on both: the card does as many random writes and commits, and moving gains nothing."
        }
        "disk-does-not-answer" => {
            "`cat /sys/block/*/queue/scheduler`: all answer at once, and it hung only for a while."
        }
        "pcie-below-its-best" => {
            "`lspci -vv` shows LnkCap and LnkSta: both the same, and the link is at its best."
        }
        "cipher-without-instructions" => {
            "`rubus bench cpu`: AES-XTS in the kernel carries more than the disk, and another cipher gains nothing."
        }
        "system-on-platters" => {
            "`rubus checkup /`: more than 500 random reads per second, and the disk does not turn."
        }
        "stick-says-it-spins" => {
            "`rubus checkup` on it: more than 500 random reads per second, and it does not turn; far fewer, and it may."
        }
        "nvme-with-a-scheduler" => {
            "`rubus bench` with the scheduler and with none (--against): no difference, and it costs nothing here."
        }
        "write-cache-off" => {
            "`rubus checkup` on it: thousands of commits per second, and its cache is used whatever the kernel believes."
        }
        "array-without-a-spare-copy" => {
            "Restore its backup to another disk: everything is there, and losing the array loses only time."
        }
        "swap-on-card" => {
            "`rubus watch` during an ordinary day: no pages swapped, and swap wears nothing."
        }
        "swap-over-network" => {
            "Nothing short of the failure: the machine hangs when it needs memory to send what frees memory."
        }
        "no-swap" => {
            "`rubus watch` while all your programs run: memory stays available and there is no pressure, and none is needed."
        }
        "zswap-off" | "zswap-before-zram" | "zswap-keeps-cold-pages" => {
            "`rubus bench memory` with the setting and without it: the same, and it gains nothing here."
        }
        "zswap-allocator-gone" => {
            "`cat /sys/module/zswap/parameters/zpool`: zsmalloc, and the kernel has changed it already."
        }
        "swap-read-ahead" | "swappiness-for-disks" => {
            "`rubus bench memory` with both values: no difference, and the setting does not matter here."
        }
        "two-managers-of-swap" => {
            "`swapon --show` after several restarts: the same areas each time, and they do not race."
        }
        "slow-swap-first" => {
            "`swapon --show` while memory is short: the fast area fills first, and the order is right."
        }
        "filesystem-nearly-full" | "boot-partition-nearly-full" => {
            "`df -h` on its mount point: more is free than the finding says."
        }
        "root-went-read-only" => {
            "`findmnt -no OPTIONS /`: it begins with rw, and the root takes writes."
        }
        "disk-gone" => "`ls` on its mount point: it shows the files, and the disk is there.",
        "btrfs-without-compression" | "btrfs-old-compression" => {
            "`rubus bench cpu` and `rubus advise --pipes`: the disk carries more than the processor compresses, and it gains nothing."
        }
        "access-times-written" | "access-times-on-card" => {
            "`rubus writers` for a day with the option and with noatime: the same bytes, and access times cost nothing here."
        }
        "barriers-off" => {
            "A disk whose cache survives a power cut, by its data sheet: then nothing is lost without barriers."
        }
        "synchronous-mount" => {
            "`rubus checkup` there, then after a remount without sync: the same rates, and it costs nothing."
        }
        "trim-at-each-delete" => {
            "Delete a large tree with the option and without it: as fast, and TRIM costs nothing here."
        }
        "ntfs-through-fuse" => {
            "`rubus checkup` there, then mounted with ntfs3: the same rates, and the program is not in the way."
        }
        "network-disk-without-netdev" => {
            "Restart twice with the server on: it mounts each time and unmounts cleanly, and systemd orders it here."
        }
        "link-below-gigabit" | "half-duplex" => {
            "`ethtool` on the link: Speed 1000Mb/s, Duplex Full, and it is as fast as the chip."
        }
        "gigabit-behind-usb2" => {
            "`iperf3` to another machine: more than 350 Mbit/s, and the bus is not in the way."
        }
        "disk-over-wifi" => {
            "Use it for a week of ordinary work: `rubus watch` shows no replaced connection, and this link holds."
        }
        "root-over-100-mbit" => {
            "`rubus checkup /`: more than 12 MB/s, and the link is faster than it says."
        }
        "nas-old-protocol" | "nas-small-requests" | "nas-uncached" | "nas-sync" => {
            "`rubus checkup` there, then after a remount with the option changed: the same rates, and it costs nothing."
        }
        "nas-soft-writes" => {
            "`nfsstat -m`: the flags have hard and not soft, and writes wait for the server."
        }
        "much-unwritten" => {
            "Copy a large file and then type `sync`: it returns within 2 s, and little waits."
        }
        "no-zswap-in-kernel" | "no-btrfs-in-kernel" => {
            "`zcat /proc/config.gz` or /boot/config: the option is y or m, and the kernel has it."
        }
        "no-pressure-figures" => "`cat /proc/pressure/io`: figures, and the kernel tells them.",
        "memory-groups-off" => {
            "`cat /sys/fs/cgroup/cgroup.controllers`: memory is among them, and limits work."
        }
        "32-bit-programs-on-64-bit" => {
            "`rubus bench cpu --against-binary` with a 64-bit program: no faster, and it costs nothing."
        }
        "old-kernel" => "`uname -r`: 5.6 or later.",
        "memory-pressure-now" | "disk-pressure-now" => {
            "`rubus watch` for a minute: the share is near zero, and it was a moment's load."
        }
        "bytes-missing" => {
            "Repeat the test in another machine: all bytes come back, and it is memory, cable or reader here."
        }
        "device-failed" => {
            "Repeat the run with another cable and port: no error, and the disk is sound."
        }
        "slow-small-writes" | "slow-commits" => {
            "Stop all other programs and measure again: more than the limit, and they were in the way."
        }
        "long-stalls" => {
            "Trim the disk, let it rest for an hour and measure again: no stall, and it was clearing old blocks."
        }
        "reads-starve-beside-writes" => {
            "Set the scheduler bfq and measure again: no better, and it is the disk itself that lets reads wait."
        }
        "queue-gains-nothing" => {
            "Put the SSD behind another bridge, or on SATA: no better there, and it is the SSD."
        }
        "bus-is-the-limit" => {
            "Put a faster disk on the same plug: it reads faster, and the bus carries more than the finding says."
        }
        "disk-worn-out" | "disk-spare-low" => {
            "`smartctl --all` (NVMe, ATA) or `mmc extcsd read` (eMMC): the figure that the disk gives is lower."
        }
        "disk-data-errors" | "disk-blocks-replaced" => {
            "`smartctl --all` in a month: the same count, and nothing has happened since."
        }
        _ => return None,
    })
}
