//! Supply voltage, heat and clocks.

use super::Look::Facts;
use super::{Rule, Seen, Weight};
use crate::kernel_log::BETTER_SUPPLY;
use rubus_vocabulary::machine::Machine;
use rubus_vocabulary::units::percent;

const FIRMWARE: &str =
    "Raspberry Pi documentation, get_throttled: bits 0-3 now, 16-19 since the start";

const OTHER_SUPPLY: &str = "`vcgencmd get_throttled` after a restart and an hour of full load: 0x0, and the supply \
    suffices. A multimeter at the 5 V pins shows less than 4.63 V if it does not.";

const COOLED: &str = "`vcgencmd get_throttled` after a restart and an hour of full load: no bit of 0x60006, and the \
    heat does not matter.";

pub(super) static RULES: &[Rule] = &[
    Rule {
        name: "undervoltage-now",
        weight: Weight::Danger,
        when: "the firmware says that the supply voltage is too low now",
        source: FIRMWARE,
        disproof: OTHER_SUPPLY,
        look: Facts(undervoltage_now),
    },
    Rule {
        name: "undervoltage-seen",
        weight: Weight::Danger,
        when: "the firmware or the kernel's alarm says that the supply voltage was too low since the start",
        source: FIRMWARE,
        disproof: OTHER_SUPPLY,
        look: Facts(undervoltage_seen),
    },
    Rule {
        name: "throttled-now",
        weight: Weight::Cost,
        when: "the firmware holds the clock down now, and not for want of voltage",
        source: FIRMWARE,
        disproof: COOLED,
        look: Facts(throttled_now),
    },
    Rule {
        name: "throttled-seen",
        weight: Weight::Cost,
        when: "the firmware held the clock down since the start because of heat",
        source: FIRMWARE,
        disproof: COOLED,
        look: Facts(throttled_seen),
    },
    Rule {
        name: "hot",
        weight: Weight::Cost,
        when: "a sensor of the processor shows 80 °C or more",
        source: "Raspberry Pi documentation, frequency management: the clock is lowered from 80 °C (60 °C on a 3B+) and held down at 85 °C",
        disproof: "Read the sensor with the case open or a fan: no lower, and the sensor is wrong.",
        look: Facts(hot),
    },
    Rule {
        name: "slow-governor",
        weight: Weight::Cost,
        when: "the governor is powersave and the clock stays at its lowest",
        source: "Linux documentation, admin-guide/pm/cpufreq: powersave keeps the lowest frequency",
        disproof: "Watch `/sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq` under load: it rises, and the \
        governor is not in the way.",
        look: Facts(slow_governor),
    },
];

fn undervoltage_now(machine: &Machine) -> Vec<Seen> {
    let throttling = &machine.power.throttling;
    let Some(word) = throttling.value().filter(|word| word.undervoltage_now) else {
        return Vec::new();
    };
    vec![Seen {
        about: "the power supply".into(),
        evidence: format!("the supply voltage is too low now (throttled={:#x})", word.word),
        read_from: throttling.source().into(),
        consequence: "The firmware holds the clock down to its lowest step meanwhile, USB disks may drop off the bus, and cards may lose writes. No measurement is worth anything.".into(),
        fix: BETTER_SUPPLY.into(),
        command: None,
    }]
}

fn undervoltage_seen(machine: &Machine) -> Vec<Seen> {
    let power = &machine.power;
    let by_firmware =
        power.throttling.value().filter(|word| word.undervoltage_seen && !word.undervoltage_now);
    let (evidence, read_from) = if let Some(word) = by_firmware {
        let said =
            format!("the supply voltage was too low since the start (throttled={:#x})", word.word);
        (said, power.throttling.source())
    } else if power.throttling.value().is_none() && power.undervoltage_alarm.get() == Some(true) {
        let said = "the kernel's alarm of low voltage was raised since the start".to_string();
        (said, power.undervoltage_alarm.source())
    } else {
        return Vec::new();
    };
    vec![Seen {
        about: "the power supply".into(),
        evidence,
        read_from: read_from.into(),
        consequence: "It sags under load: just when a disk is written. USB disks drop off the bus, filesystems are damaged.".into(),
        fix: BETTER_SUPPLY.into(),
        command: None,
    }]
}

fn throttled_now(machine: &Machine) -> Vec<Seen> {
    let throttling = &machine.power.throttling;
    let held = |word: &&rubus_vocabulary::machine::Throttling| {
        !word.undervoltage_now && (word.throttled_now || word.capped_now || word.soft_limit_now)
    };
    let Some(word) = throttling.value().filter(held) else {
        return Vec::new();
    };
    vec![Seen {
        about: "the processor".into(),
        evidence: format!("the firmware holds the clock down now (throttled={:#x})", word.word),
        read_from: throttling.source().into(),
        consequence: format!(
            "{} Ciphers, compression and network disks are slower by as much.",
            clock_now(machine)
        ),
        fix: "A heat sink with a fan, or a case that lets air through.".into(),
        command: None,
    }]
}

/// "The clock is at 600 MHz of 1.40 GHz.", where that is known.
fn clock_now(machine: &Machine) -> String {
    let clock = machine.cpu.clocks.first();
    let share = clock.and_then(|clock| {
        let (now, most) = (clock.current_hz.get()?, clock.max_hz.get()?);
        (most > 0).then(|| now as f64 / most as f64)
    });
    match share {
        Some(share) if share < 0.99 => {
            format!("The clock is at {} of its highest.", percent(share))
        }
        _ => "The clock is below its highest at times.".into(),
    }
}

fn throttled_seen(machine: &Machine) -> Vec<Seen> {
    let throttling = &machine.power.throttling;
    let held = |word: &&rubus_vocabulary::machine::Throttling| {
        let now = word.throttled_now || word.capped_now || word.soft_limit_now;
        let low_voltage = word.undervoltage_seen || word.undervoltage_now;
        let seen = word.throttled_seen || word.capped_seen || word.soft_limit_seen;
        seen && !now && !low_voltage
    };
    let Some(word) = throttling.value().filter(held) else {
        return Vec::new();
    };
    vec![Seen {
        about: "the processor".into(),
        evidence: format!("heat held the clock down since the start (throttled={:#x})", word.word),
        read_from: throttling.source().into(),
        consequence: "Under lasting load the processor is slower than a short measurement says."
            .into(),
        fix: "A heat sink with a fan, or a case that lets air through.".into(),
        command: None,
    }]
}

/// From here on the firmware lowers the clock.
const HOT_MILLICELSIUS: i64 = 80_000;

fn hot(machine: &Machine) -> Vec<Seen> {
    let zones = machine.power.temperatures.iter();
    let hot = zones.filter(|zone| {
        zone.zone.contains("cpu")
            && zone.millicelsius.get().is_some_and(|heat| heat >= HOT_MILLICELSIUS)
    });
    hot.map(|zone| Seen {
        about: zone.zone.clone(),
        evidence: format!("{:.0} °C", zone.millicelsius.get().unwrap_or_default() as f64 / 1000.0),
        read_from: zone.millicelsius.source().into(),
        consequence: "From 80 °C on the clock is lowered step by step, at 85 °C it is held down."
            .into(),
        fix: "A heat sink with a fan, or a case that lets air through.".into(),
        command: None,
    })
    .collect()
}

fn slow_governor(machine: &Machine) -> Vec<Seen> {
    let clocks = machine.cpu.clocks.iter();
    let slow = clocks.filter(|clock| clock.governor.text() == Some("powersave"));
    slow.filter_map(|clock| {
        let (least, most) = (clock.min_hz.get()?, clock.max_hz.get()?);
        // Intel's own driver calls its ordinary governor so, too; it does use the higher clocks.
        let stays_low = clock.current_hz.get().is_none_or(|now| now <= least + least / 10);
        (least < most && stays_low).then(|| Seen {
            about: format!("cores {}", clock.cores),
            evidence: "the governor is powersave".into(),
            read_from: clock.governor.source().into(),
            consequence: format!(
                "The clock stays at {} of its highest: all that the processor does for storage takes {:.1} times as long.",
                percent(least as f64 / most as f64),
                most as f64 / least as f64
            ),
            fix: "Take ondemand or schedutil: echo schedutil into scaling_governor, or cpufrequtils' setting.".into(),
            command: None,
        })
    })
    .collect()
}
