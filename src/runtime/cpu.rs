//! The processor that programs see, and the one that is there.

use std::arch::is_x86_feature_detected;
use std::arch::x86_64::__cpuid_count;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use vsrun_model::cpu::TUNABLES;

use crate::base::hash::fnv1a;
use crate::scenario::Cpu;

/// What programs that are run here with `--cpu baseline`, or `native`, see.
///
/// # Errors
/// This processor has less than the baseline.
pub fn here(baseline: bool) -> Result<Cpu, String> {
    let has_it = is_x86_feature_detected!("sse4.2")
        && is_x86_feature_detected!("ssse3")
        && is_x86_feature_detected!("popcnt")
        && is_x86_feature_detected!("cmpxchg16b");
    if baseline && !has_it {
        return Err("this processor has less than x86-64-v2, which --cpu baseline stands for; --cpu native runs the program on it as it is".into());
    }
    Ok(Cpu { baseline, model: model(), trapped: baseline && can_trap() })
}

/// The kernel can have `cpuid` fault.
fn can_trap() -> bool {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let flags = info.lines().find_map(|line| line.strip_prefix("flags")).unwrap_or_default();
    flags.split_whitespace().any(|flag| flag == "cpuid_fault")
}

/// The name of this processor, with family, model and stepping, and a hash of what it can do, by which libc chooses: the same
/// on each core.
fn model() -> String {
    let ask = |leaf, subleaf| {
        let all = __cpuid_count(leaf, subleaf);
        [all.eax, all.ebx, all.ecx, all.edx]
    };
    let most = |from: u32| ask(from, 0)[0];
    let within = |leaf: u32, subleaf| if leaf <= most(leaf & 1 << 31) { ask(leaf, subleaf) } else { [0; 4] };
    let name: Vec<u8> =
        (0x8000_0002..=0x8000_0004).flat_map(|leaf| within(leaf, 0)).flat_map(u32::to_le_bytes).collect();
    let name = String::from_utf8_lossy(&name).split('\0').next().unwrap_or_default().trim().to_string();
    let [signature, _, c, d] = within(1, 0);
    let [_, wide, wider, more] = within(7, 0);
    let [_, _, extended_c, extended_d] = within(0x8000_0001, 0);
    let features = [signature, c, d, wide, wider, more, extended_c, extended_d];
    let hash = fnv1a(features.into_iter().flat_map(u32::to_le_bytes)) as u32;
    let family = (signature >> 8 & 15) + if signature >> 8 & 15 == 15 { signature >> 20 & 255 } else { 0 };
    let number = signature >> 4 & 15 | signature >> 12 & 0xf0;
    format!("{name} (family {family}, model {number}, stepping {}, features {hash:08x})", signature & 15)
}

/// The environment with what tells libc's loader of the baseline, before what the user tells it: that counts where it is about the same.
pub(super) fn with_baseline(mut envp: Vec<OsString>) -> Vec<OsString> {
    let name = b"GLIBC_TUNABLES=";
    let own = [&name[..], TUNABLES].concat();
    match envp.iter_mut().find(|entry| entry.as_bytes().starts_with(name)) {
        Some(entry) => *entry = OsString::from_vec([&own, &b":"[..], &entry.as_bytes()[name.len()..]].concat()),
        // Behind the first one, which stays where the kernel has put it, see `hide` in the shim.
        None => envp.insert(envp.len().min(1), OsString::from_vec(own)),
    }
    envp
}

/// Why what was recorded with the one processor cannot be run with the other; `Ok`: what is to be said of it, if anything is.
///
/// # Errors
/// It was recorded with `--cpu native`, and this is another processor.
pub fn compare(recorded: &Cpu, here: &Cpu) -> Result<Option<String>, String> {
    if recorded.model == here.model {
        return Ok(None);
    }
    let Cpu { model, .. } = recorded;
    match recorded.baseline {
        false => Err(format!(
            "it was recorded with --cpu native on another processor, {model}, and this is {}; --cpu baseline records what runs on both",
            here.model
        )),
        true if recorded.trapped && here.trapped => Ok(None),
        true => {
            let place = if here.trapped { "there" } else { "here" };
            Ok(Some(format!(
                "recorded on another processor, {model}; {place} cpuid cannot be trapped, so what asks for the processor by itself, not by libc, may go another way"
            )))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_native_is_refused() {
        let of = |baseline, model: &str, trapped| Cpu { baseline, model: model.into(), trapped };
        let why = compare(&of(false, "a", false), &of(false, "b", false)).unwrap_err();
        assert!(why.contains("another processor, a, and this is b"), "{why}");
        assert_eq!(compare(&of(false, "a", false), &of(false, "a", false)), Ok(None));
        assert_eq!(compare(&of(true, "a", true), &of(true, "b", true)), Ok(None));
        for (there, here, place) in [(true, false, "; here cpuid"), (false, true, "; there cpuid")] {
            let said = compare(&of(true, "a", there), &of(true, "b", here)).unwrap();
            assert!(said.is_some_and(|said| said.contains(place)));
        }
    }

    #[test]
    fn this_one_has_a_name_that_stays() {
        let one = here(false).unwrap();
        assert!(one.model.contains("family") && !one.baseline && !one.trapped, "{one:?}");
        for _ in 0..20 {
            // Whichever processor of the machine it is asked on.
            std::thread::spawn(|| here(false).unwrap())
                .join()
                .map(|again| assert_eq!(again, here(false).unwrap()))
                .unwrap();
        }
    }

    #[test]
    fn what_the_user_tells_libc_comes_last() {
        let of = |entry: &str| with_baseline(vec!["A=b".into(), entry.into()]);
        let own = OsString::from_vec([&b"GLIBC_TUNABLES="[..], TUNABLES].concat());
        assert_eq!(of("C=d"), ["A=b".into(), own.clone(), "C=d".into()]);
        let mut both = own;
        both.push(":glibc.malloc.check=0");
        assert_eq!(of("GLIBC_TUNABLES=glibc.malloc.check=0"), ["A=b".into(), both]);
    }
}
