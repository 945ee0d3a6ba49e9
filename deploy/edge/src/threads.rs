//! How many threads the network gets: the fast cores of a board, at most 4.

use std::fs;

/// `CPU part` of Arm cores that compute well: A72 to A78, X1, Neoverse N1. Where a chip has these
/// and little ones beside them, waiting for the little ones would slow every step.
const BIG: [&str; 8] = [
    "0xd08", "0xd09", "0xd0a", "0xd0b", "0xd0d", "0xd41", "0xd44", "0xd0c",
];
const MOST: usize = 4;

/// The threads to take where nobody says.
#[must_use]
pub fn default_threads() -> usize {
    // Affinity and the quota of the control group.
    let allowed = std::thread::available_parallelism().map_or(1, usize::from);
    let cpus = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    match big_cores(&cpus) {
        0 => allowed.min(MOST),
        big => allowed.min(big).min(MOST),
    }
}

/// Big Arm cores of a machine; 0 where none says what it is.
fn big_cores(cpuinfo: &str) -> usize {
    let parts = cpuinfo.lines().filter_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == "CPU part").then(|| value.trim())
    });
    parts.filter(|part| BIG.contains(part)).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chip_with_little_cores_counts_its_big_ones() {
        let core = |part: &str| format!("processor\t: 0\nCPU part\t: {part}\n\n");
        let rk3588 = core("0xd05").repeat(4) + &core("0xd0b").repeat(4);
        assert_eq!(4, big_cores(&rk3588));
        assert_eq!(0, big_cores("model name : an x86\n"));
    }
}
