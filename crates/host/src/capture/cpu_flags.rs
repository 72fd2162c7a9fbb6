//! What a processor can do and what is wrong with it, in the kernel's words. No other word passes.
//!
//! Sources of `cpu_flags.txt`: arch/x86/include/asm/cpufeatures.h, arch/arm/kernel/setup.c, arch/arm64/kernel/cpuinfo.c,
//! arch/riscv/kernel/cpufeature.c.

/// The known ones of a line, as they are separated; nothing where there is none.
pub(super) fn known(value: &str) -> Option<String> {
    let known: Vec<String> = value.split_whitespace().filter_map(flag).collect();
    (!known.is_empty()).then(|| known.join(" "))
}

fn flag(token: &str) -> Option<String> {
    let number = token.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let is_number = number.is_some_and(|n| n.len() <= 2 && n.bytes().all(|b| b.is_ascii_digit()));
    if is_number || is_listed(token) {
        return Some(token.to_string());
    }
    // "rv64imafdc_zicbom_zba"
    let mut parts = token.split('_');
    let base = parts.next().filter(|base| is_riscv_base(base))?;
    let extensions = parts.filter(|part| is_listed(part));
    Some(std::iter::once(base).chain(extensions).collect::<Vec<&str>>().join("_"))
}

fn is_listed(token: &str) -> bool {
    include_str!("cpu_flags.txt").lines().any(|known| known == token)
}

/// "rv64imafdc": letters in the order of the specification, in which they spell no word.
fn is_riscv_base(text: &str) -> bool {
    const ORDER: &str = "iemafdqlcbkjtpvnhsu";
    let letters = text.strip_prefix("rv32").or_else(|| text.strip_prefix("rv64"));
    letters.is_some_and(|letters| {
        let mut order = ORDER.chars();
        letters.chars().all(|letter| order.any(|next| next == letter))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_the_kernel_stay_and_others_go() {
        for same in [
            "fp asimd evtstrm aes pmull sha1 sha2 crc32 cpuid",
            "fpu sse2 hypervisor avx512f",
            "half thumb vfpv3 lpae",
            "sysret_ss_attrs spectre_v1 spectre_v2",
            "rv64imafdcvh_zicbom_zba_svpbmt",
            "ts ttp hwpstate [13] [14]",
        ] {
            assert_eq!(known(same).as_deref(), Some(same));
        }
        assert_eq!(known("qzbug spectre_v1 qzalice").as_deref(), Some("spectre_v1"));
        assert_eq!(known("rv64imac_qzcorp_zba").as_deref(), Some("rv64imac_zba"));
        for other in ["", "qzalice", "rv64anna", "[5551234]", "b827eb3a2b1c"] {
            assert_eq!(known(other), None, "{other}");
        }
        let list: Vec<&str> = include_str!("cpu_flags.txt").lines().collect();
        assert!(list.is_sorted());
    }
}
